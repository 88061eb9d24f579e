"""From `POST /jobs` to the recorded run, through what is deployed, as Lambda would run it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

import boto3
import pytest

from carillon.domain.job import Lane
from tests.packaged.conftest import Deployed
from tests.packaged.events import batch, request
from tests.packaged.function import Function

pytestmark = pytest.mark.ministack

FREEZE_SECONDS = 3.0
JOB = {"name": "packaged", "schedule": "every 5s", "target": {"type": "task", "name": "echo"}}


@pytest.fixture(scope="module")
def api(functions: Deployed) -> Function:
    return functions.start("api")


@pytest.fixture(scope="module")
def tick(functions: Deployed) -> Function:
    return functions.start("tick")


@pytest.fixture(scope="module")
def executor(functions: Deployed) -> Function:
    return functions.start("executor-normal")


@pytest.fixture(scope="module")
def job(api: Function) -> str:
    status, created = call(api, "POST", "/jobs", {**JOB, "payload": {"n": 1}})
    assert status == 201, created
    return str(created["job_id"])


def call(api: Function, method: str, path: str, body: object = None) -> tuple[int, Any]:
    answer = api.invoke(request(method, path, body))
    return answer["statusCode"], json.loads(answer["body"])


def executed(functions: Deployed, executor: Function, count: int) -> None:
    """Hand messages of the lane to the executor until it has worked off so many."""
    deadline = monotonic() + 60
    while count > 0:
        assert monotonic() < deadline, "no message came"
        if messages := functions.receive(Lane.NORMAL):
            answer = executor.invoke(batch(messages))
            assert answer == {"batchItemFailures": []}, executor.log[-4000:]
            count -= len(messages)


def succeeded(api: Function, job: str) -> list[dict[str, Any]]:
    status, history = call(api, "GET", f"/jobs/{job}/runs")
    assert status == 200, history
    return [run for run in history["items"] if run["status"] == "succeeded"]


def test_a_job_runs_cold(
    functions: Deployed, api: Function, tick: Function, executor: Function, job: str
) -> None:
    assert tick.invoke({})["messages"] > 0
    executed(functions, executor, count=1)
    first, *_ = succeeded(api, job)
    assert first["attempt"] == 1
    assert first["lag_seconds"] >= 0


def test_a_job_runs_after_all_have_been_frozen(
    functions: Deployed, api: Function, tick: Function, executor: Function, job: str
) -> None:
    """Lambda stops a process between its invocations, whatever it is at."""
    before = len(succeeded(api, job))
    for function in (api, tick, executor):
        function.freeze(FREEZE_SECONDS)
    tick.invoke({})
    executed(functions, executor, count=2)
    assert len(succeeded(api, job)) >= before + 2


def test_an_executor_frozen_right_after_it_was_loaded_runs(
    functions: Deployed, api: Function, job: str
) -> None:
    """Its children are just starting then."""
    before = len(succeeded(api, job))
    executor = functions.start("executor-normal")
    executor.freeze(FREEZE_SECONDS)
    status, asked = call(api, "POST", f"/jobs/{job}/run")
    assert status in {200, 202}, asked
    executed(functions, executor, count=1)
    assert len(succeeded(api, job)) > before


@contextmanager
def cloudformation() -> Iterator[tuple[str, list[Any]]]:
    """An address that takes the answers of custom resources, and the answers."""
    answers: list[Any] = []

    class Taking(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            answers.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", answers
        server.shutdown()


def test_the_jobs_of_a_stack_are_applied(functions: Deployed, api: Function) -> None:
    """Its function is in stacks with a team only, with the environment of the api."""
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="documents")
    job = {"schedule": {"$ref": "t1"}, "target": {"type": "task", "name": "echo"}}
    s3.put_object(Bucket="documents", Key="a.json", Body=json.dumps({"jobs": {"nightly": job}}))
    function = functions.start("api", Handler="carillon.api.stack_handler.handler")
    place = {"Bucket": "documents", "Key": "a.json"}
    with cloudformation() as (url, answers):
        for schedule in ("0 3 * * *", "often"):
            document = {**place, "Values": {"t1": schedule}}
            event = {
                "RequestType": "Create",
                "ResponseURL": url,
                "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/Billing/1",
                "RequestId": "1",
                "LogicalResourceId": "Jobs",
                "ResourceProperties": {
                    "Team": "billing",
                    "Manager": "stack/Billing/Scheduler",
                    "Document": document,
                },
            }
            function.invoke(event)
    assert [each["Status"] for each in answers] == ["SUCCESS", "FAILED"]
    assert "job 'nightly': schedule" in answers[1]["Reason"]
    created = [line for line in function.log.splitlines() if '"job.created"' in line]
    assert len(created) == 1


def test_nothing_was_written_where_the_code_lies(functions: Deployed, job: str) -> None:
    """All bytecode was there already."""
    assert functions.files() == functions.unpacked
    assert any(path.suffix == ".pyc" for path in functions.unpacked)
