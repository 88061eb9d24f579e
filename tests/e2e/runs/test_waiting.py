"""What waits for minutes on the deployed stack; the last file, since others run meanwhile.

The jobs are made first (`conftest.py`)."""

from datetime import UTC, datetime, timedelta
from time import sleep

import pytest

from carillon.domain.wheel.entry import Slot
from carillon.local.deployment import Deployment
from carillon.schedules import SlotKind
from tests.e2e.chaos.tables import opened, read
from tests.e2e.conftest import LAG_LIMIT_SECONDS, Json, Person, instant, owner_of
from tests.e2e.runs.conftest import LATE_RETRY_SECONDS

pytestmark = pytest.mark.e2e

ANNOUNCED = timedelta(minutes=3)
"""The minute of the deletion, and the look-ahead of the tick in it."""
SEEN = timedelta(seconds=20)
"""How long is looked at after that, for a job of every second."""


def test_a_message_that_kills_its_executor_ends_as_a_dead_letter(
    alice: Person, killer: Json
) -> None:
    (run,) = alice.ended_runs(killer, 1, within_seconds=150)
    assert (run["status"], run["reason"]) == ("dead", "executor_died")


def test_a_retry_beyond_the_queues_delay_comes_on_its_second(
    alice: Person, late_retry: Json
) -> None:
    (run,) = alice.ended_runs(late_retry, 1, within_seconds=LATE_RETRY_SECONDS + 30)
    one = alice.http.get(f"/jobs/{late_retry['job_id']}/runs/{run['run_id']}").json()
    first, second = one["attempts"]
    waited = (instant(second["started_at"]) - instant(first["finished_at"])).total_seconds()
    # Retries are due in whole seconds: up to one more than the backoff says.
    assert LATE_RETRY_SECONDS <= waited <= LATE_RETRY_SECONDS + 1 + LAG_LIMIT_SECONDS


def test_a_deleted_job_leaves_no_entry_and_no_row_after_what_was_announced(
    deployment: Deployment, alice: Person, gone_job: tuple[Json, datetime]
) -> None:
    """`every 1s`, made and deleted at once: not sixty messages a minute for an hour."""
    job, deleted_at = gone_job
    owner, job_id = owner_of(alice), job["job_id"]
    over_at = deleted_at + ANNOUNCED
    sleep(max(0.0, (over_at + SEEN - datetime.now(UTC)).total_seconds()))
    with opened(deployment) as stores:
        row = stores.jobs.get(owner, job_id)
        assert row is not None
        for number in range(60):
            page = stores.wheel.query(row.segment, Slot(SlotKind.HOURLY, number))
            assert [entry for entry in page.items if entry.job_id == job_id] == []
        runs = read(stores, owner, [job_id]).runs[job_id]
    assert [run.key.fire_at for run in runs if run.key.fire_at > over_at] == []
    assert len(runs) <= ANNOUNCED.total_seconds()
