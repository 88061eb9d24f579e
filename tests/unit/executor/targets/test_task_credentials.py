"""The credentials of tasks while AWS's token service fails, or hangs."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest

from carillon.clock import ManualClock
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.secrets import RETRY_AFTER
from carillon.executor.targets.task_credentials import LEFT, TaskCredentials, TaskCredentialsError

START = datetime(2026, 3, 1, tzinfo=UTC)
LIFETIME = timedelta(hours=1)


class Tokens:
    """A token service that answers only while `free` is set, with numbered credentials."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked = 0
        self.fails = False
        self.free = Event()
        self.free.set()

    def assume_role(self, **asked: Any) -> Mapping[str, Any]:
        self.asked += 1
        number = self.asked
        self.free.wait(30)
        if self.fails:
            raise RuntimeError("throttled")
        keys = {"AccessKeyId": "id", "SecretAccessKey": "key", "SessionToken": f"token {number}"}
        return {"Credentials": {**keys, "Expiration": self.clock.now() + LIFETIME}}


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    tokens = Tokens(ManualClock(START))
    yield tokens
    tokens.free.set()


@pytest.fixture
def credentials(tokens: Tokens) -> TaskCredentials:
    """Such as are to be renewed now, and last for LEFT."""
    credentials = TaskCredentials("arn:role", tokens.clock, lambda: tokens)
    assert token(credentials) == "token 1"
    tokens.clock.advance((LIFETIME - LEFT).total_seconds() + 1)
    return credentials


def token(credentials: TaskCredentials, timeout_seconds: float = 20) -> str:
    return credentials.variables(Deadline.after(timeout_seconds))["AWS_SESSION_TOKEN"]


def test_those_that_outlast_a_call_serve_while_there_are_no_newer_ones(
    tokens: Tokens, credentials: TaskCredentials
) -> None:
    tokens.fails = True
    assert [token(credentials) for _ in range(3)] == ["token 1"] * 3
    assert tokens.asked == 2  # not by each call
    tokens.fails = False
    tokens.clock.advance(RETRY_AFTER.total_seconds())
    assert token(credentials) == "token 3"


def test_those_that_do_not_outlast_a_call_do_not_serve(
    tokens: Tokens, credentials: TaskCredentials
) -> None:
    tokens.fails = True
    assert token(credentials) == "token 1"
    with pytest.raises(TaskCredentialsError):
        token(credentials, timeout_seconds=LEFT.total_seconds())
    tokens.fails = False
    assert token(credentials, timeout_seconds=LEFT.total_seconds()) == "token 4"


def test_a_token_service_that_hangs_leaves_a_call_most_of_its_time(
    tokens: Tokens, credentials: TaskCredentials
) -> None:
    tokens.free.clear()
    deadline = Deadline.after(2)
    assert credentials.variables(deadline)["AWS_SESSION_TOKEN"] == "token 1"
    assert deadline.remaining() > 1
    tokens.clock.advance(LEFT.total_seconds())
    with pytest.raises(TimeoutError):
        token(credentials, timeout_seconds=0.1)
