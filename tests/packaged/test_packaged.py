"""From `POST /jobs` to the recorded run, through what is deployed, as Lambda would run it."""

import json
from time import monotonic
from typing import Any

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
            assert executor.invoke(batch(messages)) == {"batchItemFailures": []}
            count -= len(messages)


def succeeded(api: Function, job: str) -> list[dict[str, Any]]:
    status, history = call(api, "GET", f"/jobs/{job}/runs")
    assert status == 200, history
    return [run for run in history["items"] if run["status"] == "succeeded"]


def test_a_job_runs_cold(
    functions: Deployed, api: Function, tick: Function, executor: Function, job: str
) -> None:
    assert tick.invoke({"worker": 0})["messages"] > 0
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
    tick.invoke({"worker": 0})
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


def test_nothing_was_written_where_the_code_lies(functions: Deployed, job: str) -> None:
    """All bytecode was there already."""
    assert functions.files() == functions.unpacked
    assert any(path.suffix == ".pyc" for path in functions.unpacked)
