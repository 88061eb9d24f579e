"""What takes minutes is made first, and looked at last (`test_waiting.py`)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.e2e.conftest import Json, Person

LATE_RETRY_SECONDS = 200
"""Later than a queue may delay here, and than ticks announce: the wheel must bring it."""


def _soon() -> str:
    return f"at {datetime.now(UTC) + timedelta(seconds=3):%Y-%m-%dT%H:%M:%S}"


@pytest.fixture(scope="session", autouse=True)
def late_retry(alice: Person) -> Json:
    """A job whose run fails once and is retried minutes later."""
    backoff = {"type": "fixed", "base_seconds": LATE_RETRY_SECONDS}
    retry = {"max_attempts": 2, "backoff": backoff}
    return alice.create(_soon(), target={"type": "task", "name": "fail"}, retry=retry)


@pytest.fixture(scope="session", autouse=True)
def gone_job(alice: Person) -> tuple[Json, datetime]:
    """A job of every second, deleted as soon as it was made, and when that was."""
    job = alice.create("every 1s")
    assert alice.http.delete(f"/jobs/{job['job_id']}").status_code == 204
    return job, datetime.now(UTC)


@pytest.fixture(scope="session", autouse=True)
def killer(alice: Person) -> Json:
    """A job that kills its executor, in a lane in which nothing else runs by then."""
    target = {"type": "task", "name": "kill_executor"}
    return alice.create(_soon(), target=target, retry={"max_attempts": 1}, priority="low")


@pytest.fixture(scope="session", autouse=True)
def watched(alice: Person) -> tuple[Json, Json]:
    """A job that fails and one that succeeds, of both of which a success is expected."""
    target = {"type": "task", "name": "fail"}
    bad = alice.create(
        _soon(), name="watched", target=target, retry={"max_attempts": 1}, expect_within="1m"
    )
    return bad, alice.create("every 20s", name="watched-too", expect_within="1m")
