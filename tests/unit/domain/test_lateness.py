"""Late occurrences: which of them another one stands for, and which one that is."""

from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.decisions import Proceed, YieldToLatest
from carillon.domain.execution.lateness import latest_due
from carillon.domain.execution.start_decision import decide_start
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.schedules import CalendarRule, ClosedDays, parse_schedule
from tests.support.jobs import job_with
from tests.unit.domain.samples import KEY, NOON, OLD, job, message

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = job(schedule=parse_schedule("every 1m"))


def latest(
    late: timedelta, of: Job = EVERY_MINUTE, closed: ClosedDays | None = None, **changes: object
) -> datetime | None:
    """The occurrence that stands for that of noon when it comes so late."""
    found = latest_due(of, message(**changes), closed, NOON + late)  # type: ignore[arg-type]
    return None if found is None else found.key.fire_at


def test_what_is_more_than_a_minute_late_leaves_its_place_to_the_latest_that_is_due() -> None:
    assert latest(MINUTE) is None
    assert latest(MINUTE + timedelta(seconds=1)) == NOON + MINUTE
    assert latest(59.5 * MINUTE) == NOON + 59 * MINUTE
    assert latest(60 * MINUTE) == NOON + 60 * MINUTE


def test_a_grace_says_what_is_late() -> None:
    assert latest(MINUTE, job_with(EVERY_MINUTE, grace=30)) == NOON + MINUTE
    graceful = job_with(EVERY_MINUTE, grace=1500)
    assert latest(25 * MINUTE, graceful) is None
    assert latest(26 * MINUTE, graceful) == NOON + 26 * MINUTE


def test_the_latest_itself_runs_however_late() -> None:
    assert latest(300 * MINUTE, job(schedule=parse_schedule("0 */6 * * *"))) is None
    ends = parse_schedule("every 1m", "UTC", None, NOON + timedelta(seconds=30))
    assert latest(300 * MINUTE, replace(EVERY_MINUTE, schedule=ends)) is None


def test_the_latest_is_by_effective_times_and_under_the_calendar() -> None:
    due_at = NOON + timedelta(seconds=90)
    assert latest(3.4 * MINUTE, due_at=due_at) == NOON + MINUTE
    assert latest(2.4 * MINUTE, due_at=due_at) is None
    hourly = job(
        schedule=parse_schedule("every 1h"), calendar=CalendarUse("free", CalendarRule.SKIP)
    )
    closed = ClosedDays.of(set(), [(date(2026, 12, 2), date(2026, 12, 2))])
    assert latest(timedelta(hours=20), hourly, closed) == NOON.replace(hour=23)


@pytest.mark.parametrize("rule", CalendarRule)
def test_under_a_calendar_that_has_been_closed_for_years_nothing_before_it_is_searched(
    rule: CalendarRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All late messages of a job are asked that, beside those of others in their batches."""
    closed = ClosedDays.of(set(), [(date(1980, 1, 1), date(2190, 1, 1))])
    looks: list[date] = []

    def counted(days: ClosedDays, day: date) -> bool:
        looks.append(day)
        return days.ranges[0][0] <= day <= days.ranges[0][1]

    monkeypatch.setattr(ClosedDays, "__contains__", counted)
    every = job(schedule=parse_schedule("every 1s"), calendar=CalendarUse("season", rule))
    assert latest(timedelta(hours=3), every, closed) is None
    assert len(looks) < 100


def test_it_is_the_message_for_that_occurrence_and_is_not_passed_over_again() -> None:
    found = latest_due(EVERY_MINUTE, message(slot_key="s", returns=2), None, NOON + 5 * MINUTE)
    key = replace(KEY, fire_at=NOON + 5 * MINUTE)
    assert found == message(key=key, due_at=key.fire_at, in_time=True)
    assert latest_due(EVERY_MINUTE, found, None, NOON + 50 * MINUTE) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"waits": 1},
        {"wait_until": NOON},
        {"in_time": True},
        {"missed": Missed(NOON - MINUTE, CatchUp.LATEST, EVERY_MINUTE.schedule)},
        {"moved_from": NOON - timedelta(days=1)},
        {"generation_id": OLD},
    ],
)
def test_not_what_was_kept_waiting_nor_what_another_filing_is_of(
    changes: dict[str, object],
) -> None:
    assert latest(30 * MINUTE, **changes) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule": parse_schedule("every 1m after finish")},
        {"schedule": parse_schedule("at 2026-12-01T12:00:00Z")},
        {"catch_up": CatchUp.ALL},
        {"state": JobState.PAUSED, "paused_at": NOON + MINUTE},
    ],
)
def test_not_where_no_other_can_stand_for_it_or_each_is_to_run(changes: dict[str, object]) -> None:
    assert latest(30 * MINUTE, job_with(EVERY_MINUTE, **changes)) is None


@pytest.mark.parametrize(
    ("of", "stands_aside"),
    [
        (message(), True),
        (message(attempt=2), False),
        (message(key=KEY.redriven), False),
        (message(key=replace(KEY, kind=RunKind.MANUAL, request_id="r")), False),
        (message(key=replace(KEY, kind=RunKind.BACKFILL, request_id="o")), False),
    ],
)
def test_only_first_attempts_of_occurrences_stand_aside(of: Message, stands_aside: bool) -> None:
    start = decide_start(EVERY_MINUTE, of, NOON + 30 * MINUTE)
    assert isinstance(start, YieldToLatest if stands_aside else Proceed)
    skipping = job_with(EVERY_MINUTE, catch_up=CatchUp.SKIP)
    assert decide_start(skipping, of, NOON + 30 * MINUTE) == Proceed()
