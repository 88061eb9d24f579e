"""Whether a change of an owner's jobs is within its quotas."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.quotas import (
    COUNTED_FOR,
    NO_LIMITS,
    NOTHING,
    Exceeded,
    Load,
    Quota,
    Recount,
    Use,
    decide,
    fires_of,
)
from carillon.domain.spec.job_summary import JobSummary
from carillon.schedules import NEVER, parse_schedule
from carillon.settings import Settings
from tests.unit.domain.samples import job as a_job

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + COUNTED_FOR
ONE = Load(1, 24)
JOBS = {**NO_LIMITS, Quota.JOBS: 10}
SCHEDULED = {**NO_LIMITS, Quota.SCHEDULED: 1}


def use(jobs: int, fires_per_day: int | None = None) -> Use:
    return Use("team/billing", 3, NOW, jobs, fires_per_day)


def test_what_fits_is_added() -> None:
    assert decide(use(9), ONE, JOBS, NOW) == use(10)
    assert decide(use(9, 5), ONE, SCHEDULED, NOW) == use(10, 29)
    assert decide(use(99_999), ONE, NO_LIMITS, LATER) == use(100_000)


def test_a_row_is_counted_once_a_day_while_jobs_are_made() -> None:
    """It may be from before a time in which no limit asked for it."""
    tomorrow = NOW + timedelta(days=1)
    assert decide(use(3), ONE, JOBS, tomorrow) == Recount()
    assert decide(use(3), Load(-1, 0), JOBS, tomorrow) == use(2)


def test_nothing_is_refused_that_was_not_counted_just_now() -> None:
    refused = Exceeded(Quota.JOBS, 10, 10)
    assert decide(use(10), ONE, JOBS, NOW) == refused
    assert decide(use(10), ONE, JOBS, LATER - timedelta(microseconds=1)) == refused
    assert decide(use(10), ONE, JOBS, LATER) == Recount()
    # By another's clock, which is ahead.
    assert decide(use(10), ONE, JOBS, NOW - timedelta(microseconds=1)) == Recount()


def test_a_row_that_is_not_there_or_knows_no_starts_is_counted_first() -> None:
    assert decide(None, ONE, NO_LIMITS, NOW) == Recount()
    assert decide(use(3), ONE, SCHEDULED, NOW) == Recount()
    # What lessens the load asks for nothing.
    assert decide(use(3), Load(-1, -24), SCHEDULED, NOW) == use(2)


def test_starts_are_forgotten_where_no_limit_asks_for_them() -> None:
    """They would be wrong by the time that one does: changes of schedules are not added then."""
    assert decide(use(3, 70), ONE, JOBS, NOW) == use(4, None)


def test_the_scheduled_starts_are_a_mean_of_the_day() -> None:
    assert decide(use(3, 1_440 - 24), ONE, SCHEDULED, NOW) == use(4, 1_440)
    assert decide(use(3, 1_440 - 23), ONE, SCHEDULED, NOW) == Exceeded(Quota.SCHEDULED, 1, 0.98)


def test_what_is_beyond_a_limit_may_be_lessened_and_left() -> None:
    """An operator has lowered it: a deletion, and a change that adds nothing, go on."""
    assert decide(use(20), Load(-1, 0), JOBS, NOW) == use(19)
    assert decide(use(20, 9_999), Load(0, -1), {**JOBS, **SCHEDULED}, NOW).__class__ is Use
    assert decide(use(20, 9_999), Load(1, 0), SCHEDULED, NOW) == use(21, 9_999)


def test_a_bound_never_falls_below_nothing() -> None:
    assert use(0, 3).with_load(Load(-1, -24)) == use(0, 0)


@pytest.mark.parametrize(
    ("schedule", "fires"),
    [
        ("every 1s", 86_400),
        ("every 25m", 58),
        ("every 25m after finish", 58),
        ("17 * * * *", 24),
        ("0 9 * * 1-5", 1),
        ("at 2026-12-01T09:00:00", 1),
        ("0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *", 2),
    ],
)
def test_a_schedule_counts_by_its_fullest_day(schedule: str, fires: int) -> None:
    job = replace(a_job(), schedule=parse_schedule(schedule, "Europe/Riga"))
    assert Load.of(job) == Load(1, fires)
    assert fires_of(JobSummary.of(job)) == fires


def test_what_has_no_schedule_or_is_gone_loads_nothing() -> None:
    job = a_job()
    assert Load.of(replace(job, schedule=NEVER)) == Load(1, 0)
    assert Load.of(None) == NOTHING
    assert Load.of(job.deleted(NOW, NOW)) == NOTHING


def test_the_parts_of_a_change() -> None:
    change = Load(1, 24) - Load(0, 60)
    assert (change.rise, change.fall) == (Load(1, 0), Load(0, -36))


def test_every_quota_is_an_option() -> None:
    names = {name for name in Settings.variable_names() if name.startswith("OWNER_")}
    assert names - {"OWNER_REQUESTS_BURST"} == {f"OWNER_{quota.upper()}" for quota in Quota}
