"""The whole stack, deployed by the real CDK command to a MiniStack of its own."""

import json
import os
import subprocess
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, TypeVar
from uuid import uuid4

import httpx2
import pytest

from carillon.client.session import MOST_REPETITIONS, is_repeated, wait_seconds
from carillon.client.steps import Answer, Request
from carillon.local.api_client import Api, warm
from carillon.local.deployment import Deployment, create_user, deploy, sign_in, synthesize
from carillon.local.emulator import Emulator
from carillon.local.receiver import Receiver, read_signing_secret

Json = dict[str, Any]
Seen = TypeVar("Seen")
LONGEST_DELAY_SECONDS = 60
SEGMENTS = 16
ENDED = {"succeeded", "dead", "timed_out", "skipped", "cancelled"}
LAG_LIMIT_SECONDS = 1.5
"""Invariant I3."""
NEVER = "0 0 1 1 *"
"""A schedule for jobs that only run by hand."""
COMMAND = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "carillon"
APP = "tests.e2e.app"
CONTEXT = {
    "task_modules": "carillon.executor.tasks.samples",
    "segments": SEGMENTS,
    "alarm_email": "on-call@example.com",
    "alarm_lost_runs": 1,
    "console": True,
    "tracing": "logs",
}
SHARED = "CARILLON_E2E_STACK"
"""Names a stack that is there already, by the members of its Deployment, as JSON."""


@contextmanager
def deployed(
    context: Mapping[str, object] | None = None, emulator: Emulator | None = None, **options: Any
) -> Iterator[Deployment]:
    """A stack with these options of `synthesize` on a MiniStack of its own."""
    with emulator or Emulator() as emulator, TemporaryDirectory() as directory:
        endpoint = emulator.endpoint_url
        assembly = synthesize(endpoint, Path(directory), context=context, app=APP, **options)
        yield installed(endpoint, assembly)


def installed(endpoint_url: str, assembly: Path) -> Deployment:
    """An assembly as a stack, each of whose functions has been called once."""
    deployment = deploy(endpoint_url, assembly)
    user = create_user(deployment, "warmer", operator=True)
    with closing(Api(deployment.api_url, lambda: sign_in(deployment, user))) as api:
        warm(deployment, api)
    return deployment


class Patient(httpx2.HTTPTransport):
    """Sends again what the command does: what came too soon, and what a busy machine lost. For
    that each POST has a key."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            request.headers.setdefault("Idempotency-Key", uuid4().hex)
        asked = Request(request.method, str(request.url), headers=request.headers)
        for number in range(MOST_REPETITIONS):
            answer = super().handle_request(request)
            got = Answer(answer.status_code, "", answer.headers, b"")
            if not is_repeated(asked, got):
                return answer
            answer.close()
            sleep(wait_seconds(got, number, fraction=0.5))
        return super().handle_request(request)


def until(look: Callable[[], Seen], within_seconds: float = 30) -> Seen:
    """Wait until there is something, and give that."""
    deadline = monotonic() + within_seconds
    while not (seen := look()):
        assert monotonic() < deadline, "it did not come about in time"
        sleep(0.3)
    return seen


def seconds_ahead(seconds: int) -> str:
    return f"at {datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}"


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def task(name: str) -> Json:
    return {"type": "task", "name": name}


def post(person: "Person", path: str, body: Json | None = None, status: int = 202) -> Json:
    answer = person.http.post(path, json=body) if body is not None else person.http.post(path)
    assert answer.status_code == status, answer.text
    found: Json = answer.json()
    return found


def run_by_hand(person: "Person", job: Json) -> Json:
    return post(person, f"/jobs/{job['job_id']}/run")


def run_of(person: "Person", run: Json) -> Json:
    answer = person.http.get(f"/jobs/{run['job_id']}/runs/{run['run_id']}")
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


class Person:
    """Somebody with a real token (or none), talking plain HTTP."""

    def __init__(self, base_url: str, token: str | None) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self.carillon = partial(carillon, base_url, token or "")
        self.http = httpx2.Client(
            base_url=base_url, headers=headers, timeout=60, transport=Patient()
        )

    def __enter__(self) -> "Person":
        return self

    def __exit__(self, *exception: object) -> None:
        self.http.close()

    def create(self, schedule: object, name: str = "e2e", **fields: object) -> Json:
        """A job of a name that begins so, and that no other job has."""
        body = {"name": f"{name} {uuid4().hex[:8]}", "schedule": schedule, "target": task("echo")}
        response = self.http.post("/jobs", json={**body, **fields})
        assert response.status_code == 201, response.text
        job: Json = response.json()
        return job

    def every(self, path: str, **query: str) -> Iterator[Json]:
        """The items of all pages of a list."""
        cursor: dict[str, str] = {}
        while True:
            answer = self.http.get(path, params={"limit": 100, **query, **cursor})
            assert answer.status_code == 200, answer.text
            page: Json = answer.json()
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = {"cursor": page["next_cursor"]}

    def runs(self, job: Json) -> list[Json]:
        """The job's newest runs, newest first."""
        response = self.http.get(f"/jobs/{job['job_id']}/runs", params={"limit": 100})
        assert response.status_code == 200, response.text
        items: list[Json] = response.json()["items"]
        return items

    def ended_runs(self, job: Json, count: int, within_seconds: float = 60) -> list[Json]:
        """Wait for `count` ended runs; oldest first."""

        def ended() -> list[Json]:
            runs = [run for run in self.runs(job) if run["status"] in ENDED]
            return runs[::-1] if len(runs) >= count else []

        return until(ended, within_seconds)

    def delete(self, job: Json) -> None:
        assert self.http.delete(f"/jobs/{job['job_id']}").status_code == 204


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployment]:
    """The stack that `python -m tests.e2e` has deployed, or one for this session."""
    if shared := os.environ.get(SHARED):
        yield Deployment(**json.loads(shared))
        return
    with deployed(CONTEXT, longest_delay_seconds=LONGEST_DELAY_SECONDS) as deployment:
        yield deployment


def person(deployment: Deployment, name: str, *, operator: bool = False) -> Person:
    """Somebody whom no other session on the same stack knows."""
    user = create_user(deployment, f"{name}-{os.getpid()}", operator=operator)
    return Person(deployment.api_url, sign_in(deployment, user).access_token)


@pytest.fixture(scope="session")
def alice(deployment: Deployment) -> Iterator[Person]:
    with person(deployment, "alice") as alice:
        yield alice


@pytest.fixture(scope="session")
def bob(deployment: Deployment) -> Iterator[Person]:
    with person(deployment, "bob") as bob:
        yield bob


@pytest.fixture(scope="session")
def operator(deployment: Deployment) -> Iterator[Person]:
    with person(deployment, "oscar", operator=True) as operator:
        yield operator


def owner_of(person: Person) -> str:
    """The owner that the person's token names."""
    token = person.http.headers["authorization"].removeprefix("Bearer ")
    claims = token.split(".")[1]
    subject: str = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]
    return f"user/{subject}"


@pytest.fixture
def receiver(deployment: Deployment) -> Iterator[Receiver]:
    with Receiver(lambda: read_signing_secret(deployment)) as receiver:
        yield receiver


def carillon(api_url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed `carillon` command."""
    return subprocess.run(
        [str(COMMAND), "--api-url", api_url, "--token", token, *arguments],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
