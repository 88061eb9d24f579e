"""What takes minutes is made first, and looked at last (`test_waiting.py`)."""

from datetime import UTC, datetime

import pytest

from tests.e2e.conftest import Json, Person, seconds_ahead, task

LATE_RETRY_SECONDS = 200
"""Later than a queue may delay here, and than ticks announce: the wheel must bring it."""


@pytest.fixture(scope="session", autouse=True)
def late_retry(alice: Person) -> Json:
    """A job whose run fails once and is retried minutes later."""
    backoff = {"type": "fixed", "base_seconds": LATE_RETRY_SECONDS}
    retry = {"max_attempts": 2, "backoff": backoff}
    return alice.create(seconds_ahead(3), target=task("fail"), retry=retry)


@pytest.fixture(scope="session", autouse=True)
def gone_job(alice: Person) -> tuple[Json, datetime]:
    """A job of every second, deleted as soon as it was made, and when that was."""
    job = alice.create("every 1s")
    assert alice.http.delete(f"/jobs/{job['job_id']}").status_code == 204
    return job, datetime.now(UTC)


@pytest.fixture(scope="session", autouse=True)
def killer(alice: Person) -> Json:
    """A job that kills its executor, in a lane in which nothing else runs by then."""
    return alice.create(
        seconds_ahead(3), target=task("kill_executor"), retry={"max_attempts": 1}, priority="low"
    )
