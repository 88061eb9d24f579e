"""Tasks of a folder of their own, with credentials of their own, in real child processes."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from carillon.clock import ManualClock
from carillon.executor.targets.call import Failure, Success
from carillon.executor.targets.task_credentials import TaskCredentials
from carillon.executor.task_process.parent import TaskCode
from carillon.executor.task_process.pool import ChildPool
from tests.integration.executor.processes import Tasks

MODULE = """
import os
import sys

import pydantic  # one of their own, not the executor's

from carillon.tasks import task

AT_IMPORT = os.environ.get("AWS_SESSION_TOKEN")


@task
def versions(payload, context):
    return [pydantic.VERSION, sys.path[0]]


@task
def credentials(payload, context):
    return [AT_IMPORT, os.environ.get("AWS_SESSION_TOKEN"), os.getpid()]
"""

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "billing.py").write_text(MODULE)
    (tmp_path / "pydantic.py").write_text('VERSION = "theirs"\n')
    return tmp_path


class Tokens:
    """A token service whose credentials are numbered."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, object]] = []
        self.fails = False
        self.waits: Callable[[float], object] = lambda seconds: None

    def assume_role(self, **asked: Any) -> Mapping[str, Any]:
        if self.fails:
            raise RuntimeError("arn:aws:iam::123456789012:role/secret")
        self.waits(6)
        self.asked.append(asked)
        number = len(self.asked)
        expires_at = NOW + timedelta(hours=number)
        keys = {"AccessKeyId": "id", "SecretAccessKey": "key", "SessionToken": f"token {number}"}
        return {"Credentials": {**keys, "Expiration": expires_at}}


@contextmanager
def tasks(folder: Path, credentials: TaskCredentials) -> Iterator[Tasks]:
    pool = ChildPool(TaskCode(("billing",), str(folder)), credentials.kept)
    caller = Tasks(pool=pool, variables=credentials.variables)
    try:
        yield caller
    finally:
        pool.close()


def result(outcome: object) -> Any:
    assert isinstance(outcome, Success), outcome
    return json.loads(str(outcome.result))


def test_what_tasks_require_wins_in_their_processes_alone(folder: Path) -> None:
    with tasks(folder, TaskCredentials("", ManualClock(NOW))) as caller:
        assert result(caller.run("versions")) == ["theirs", str(folder)]
    import pydantic

    assert pydantic.VERSION != "theirs"
    assert str(folder) not in sys.path


def test_without_a_role_there_are_no_credentials(folder: Path) -> None:
    tokens = Tokens()
    with tasks(folder, TaskCredentials("", ManualClock(NOW), lambda: tokens)) as caller:
        assert result(caller.run("credentials"))[:2] == [None, None]
    assert tokens.asked == []


def test_a_process_sees_newer_credentials_before_the_older_ones_end(folder: Path) -> None:
    """At the import of its modules, too: clients are made there."""
    tokens, clock = Tokens(), ManualClock(NOW)
    with tasks(folder, TaskCredentials("arn:role", clock, lambda: tokens)) as caller:
        first = result(caller.run("credentials"))
        assert first[:2] == ["token 1", "token 1"]
        clock.advance(39 * 60)
        assert result(caller.run("credentials")) == first
        clock.advance(2 * 60)
        assert result(caller.run("credentials")) == ["token 1", "token 2", first[2]]
    assert [asked["RoleArn"] for asked in tokens.asked] == ["arn:role", "arn:role"]


def test_without_the_credentials_of_its_role_no_task_runs(folder: Path) -> None:
    tokens = Tokens()
    tokens.fails = True
    with tasks(folder, TaskCredentials("arn:role", ManualClock(NOW), lambda: tokens)) as caller:
        outcome = caller.run("versions")
        assert isinstance(outcome, Failure)
        assert outcome.error.kind == "task_not_started"
        assert outcome.error.message == "no credentials for tasks: RuntimeError"
        assert not outcome.error.permanent
        tokens.fails = False
        assert result(caller.run("versions"))[0] == "theirs"


def test_a_token_service_that_hangs_takes_none_of_the_others_time(folder: Path) -> None:
    """Nor more of its call's than there is: processes of Lambda end soon after that."""
    tokens, released, clock = Tokens(), Event(), ManualClock(NOW)
    with tasks(folder, TaskCredentials("arn:role", clock, lambda: tokens)) as caller:
        caller.run("versions")
        clock.advance(60 * 60)
        tokens.waits = released.wait
        began = time.monotonic()
        with ThreadPoolExecutor() as threads:
            ended = list(threads.map(lambda _: caller.run("versions", timeout_seconds=1), range(3)))
        assert time.monotonic() - began < 3
        released.set()
    kinds = {each.error.kind for each in ended if isinstance(each, Failure)}
    assert (kinds, len(ended)) == ({"task_not_ready"}, 3)
