"""The watch's decisions: what is expected, what is amiss, and the words for it."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from carillon.domain.calendar import resolve
from carillon.domain.decisions import SkipReason
from carillon.domain.execution import missed
from carillon.domain.job import JobState, PastGeneration
from carillon.domain.policies import CatchUp
from carillon.domain.run import Resolution, Run, RunError, RunKey, RunKind, RunStatus
from carillon.domain.wheel.announced import announced_messages
from carillon.schedules import ClosedDays, parse_schedule
from tests.support.jobs import job_with
from tests.unit.domain.samples import CURRENT, KEY, NEWER_STALE, NOON, OLD, OLDER, job, message, run

WATCHED = job(expect_within=60)
RECHECK = message(key=replace(KEY, kind=RunKind.WATCH))
NOTHING_AMISS = [
    run(RunStatus.SUCCEEDED),
    run(RunStatus.CANCELLED),
    *(run(RunStatus.SKIPPED, reason=reason) for reason in ("paused", "deleted", "changed")),
    run(RunStatus.SKIPPED, reason="calendar"),
]


class TestExpectation:
    def test_an_occurrence_of_the_jobs_own_filing_is_expected(self) -> None:
        assert missed.is_expected(WATCHED, RECHECK, None)

    @pytest.mark.parametrize(
        ("state", "expected"), [(JobState.DELETED, False), (JobState.COMPLETED, True)]
    )
    def test_nothing_is_of_a_job_that_was_deleted(self, state: JobState, expected: bool) -> None:
        assert missed.is_expected(replace(WATCHED, state=state), RECHECK, None) is expected

    @pytest.mark.parametrize(("seconds_later", "expected"), [(-1, False), (0, True), (60, True)])
    def test_a_pause_leaves_what_came_before_it(self, seconds_later: int, expected: bool) -> None:
        paused = WATCHED.paused(NOON + timedelta(seconds=seconds_later))
        assert missed.is_expected(paused, RECHECK, None) is expected

    def test_nothing_is_where_there_is_no_job_or_no_watch(self) -> None:
        assert not missed.is_expected(None, RECHECK, None)
        assert not missed.is_expected(job(), RECHECK, None)

    @pytest.mark.parametrize(
        ("generation_id", "expected"),
        [(CURRENT, True), (OLD, True), (OLDER, False), (NEWER_STALE, False)],
    )
    def test_the_filing_must_cover_it(self, generation_id: str, expected: bool) -> None:
        day = timedelta(days=1)
        previous = PastGeneration(OLD, NOON - day, NOON)
        older = PastGeneration(OLDER, NOON - 2 * day, NOON - day)
        changed = replace(WATCHED, previous=previous, earlier=(older,))
        assert (
            missed.is_expected(changed, replace(RECHECK, generation_id=generation_id), None)
            == expected
        )

    def test_not_before_the_filing_begins(self) -> None:
        at = WATCHED.generation.from_at
        assert not missed.is_expected(WATCHED, replace(RECHECK, key=replace(KEY, fire_at=at)), None)

    def test_not_on_a_closed_day(self) -> None:
        closed = ClosedDays(ranges=((date(2026, 12, 1), date(2026, 12, 1)),))
        assert not missed.is_expected(WATCHED, RECHECK, closed)
        assert missed.is_expected(WATCHED, RECHECK, ClosedDays())


class TestComplaint:
    @pytest.mark.parametrize("row", NOTHING_AMISS)
    def test_what_has_succeeded_or_was_not_to_run_is_fine(self, row: object) -> None:
        assert missed.alert(row) is None  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "reason",
        [SkipReason.CATCH_UP, SkipReason.MISFIRE, SkipReason.OVERLAP, SkipReason.SPACING],
    )
    def test_what_the_scheduler_has_skipped_is_not(self, reason: SkipReason) -> None:
        note = missed.alert(run(RunStatus.SKIPPED, reason=reason))
        assert note == f"job_20261201T120000Z_scheduled_0 is skipped ({reason.value})"

    @pytest.mark.parametrize("status", [RunStatus.SCHEDULED, RunStatus.RUNNING, RunStatus.RETRYING])
    def test_what_is_under_way_is_late(self, status: RunStatus) -> None:
        assert missed.alert(run(status)) is not None

    def test_a_dead_run_is_told_with_its_error(self) -> None:
        dead = run(RunStatus.DEAD, reason="exhausted", error=RunError("http_503", "no"))
        note = "job_20261201T120000Z_scheduled_0 is dead (exhausted): http_503: no"
        assert missed.alert(dead) == note
        assert missed.alert(None) == "no run of it was recorded"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"status": RunStatus.SUCCEEDED}, True),
        ({"status": RunStatus.SUCCEEDED, "key": KEY.redriven}, True),
        ({"status": RunStatus.SUCCEEDED, "kind": RunKind.BACKFILL}, True),
        ({"status": RunStatus.RUNNING, "kind": RunKind.BACKFILL}, False),
        ({"status": RunStatus.SUCCEEDED, "kind": RunKind.MANUAL}, False),
        ({"status": RunStatus.SUCCEEDED, "kind": RunKind.CALLBACK}, False),
        ({"status": RunStatus.SUCCEEDED, "fire_at": NOON + timedelta(minutes=10)}, False),
    ],
)
def test_any_run_of_the_occurrence_may_be_its_success(
    changes: dict[str, Any], expected: bool
) -> None:
    status = changes.pop("status", RunStatus.DEAD)
    key = replace(changes.pop("key", KEY), **changes)
    rows = [run(RunStatus.DEAD), run(status, key=key)]
    assert missed.has_success(NOON, rows) is expected


def test_the_last_redrive_of_a_dead_letter_counts() -> None:
    dead = run(RunStatus.DEAD, settled=Resolution.REDRIVEN)
    again = replace(dead, key=dead.key.redriven)
    good = run(RunStatus.SUCCEEDED, key=again.key.redriven)
    rows = {row.key: row for row in (dead, again, good)}

    def get(key: RunKey) -> Run | None:
        return rows.get(key)

    assert missed.last_run(RECHECK.key, get) == good
    del rows[good.key]
    assert missed.last_run(RECHECK.key, get) == again, "the row of the next one has expired"
    rows.clear()
    assert missed.last_run(RECHECK.key, get) is None


@pytest.mark.parametrize(("policy", "minutes"), [(CatchUp.LATEST, []), (CatchUp.ALL, [31, 32])])
def test_a_late_beginning_checks_only_what_it_sends(policy: CatchUp, minutes: list[int]) -> None:
    """A check that comes before the row of what is passed over finds no run, and tells of it."""
    late = replace(WATCHED.generation, from_at=NOON - timedelta(minutes=30))
    late_job = job(
        schedule=parse_schedule("* * * * *"),
        generation=late,
        expect_within=1800,
        catch_up=policy,
    )
    until = NOON + timedelta(minutes=2, seconds=59)
    sent = announced_messages(late_job, resolve(late_job.schedule, None, None), until, NOON)
    checked = [message.key.fire_at for message in sent if message.key.kind is RunKind.WATCH]
    assert [at.minute for at in checked] == minutes


@pytest.mark.parametrize(("policy", "waits"), [(CatchUp.LATEST, True), (CatchUp.ALL, False)])
def test_only_what_a_later_one_may_stand_for_waits_for_ticks_that_are_behind(
    policy: CatchUp, waits: bool
) -> None:
    watched = job_with(WATCHED, catch_up=policy)
    in_time = replace(RECHECK, due_at=NOON + timedelta(seconds=60))
    now = in_time.due_at
    again = missed.check_again(watched, in_time, None, now, is_behind=True)
    assert (again is not None) == waits
    assert missed.check_again(watched, in_time, None, now) is None
