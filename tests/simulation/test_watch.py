"""The missed-run watch: a row and an event when no success came in time, whatever the cause."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.events import EventType
from carillon.domain.execution import missed as checks
from carillon.domain.job import Job, JobState, Lane
from carillon.domain.policies import CatchUp, OnComplete, RetryPolicy
from carillon.domain.run import Resolution, Run, RunError, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import Slot
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.schedules import CalendarRule, SlotKind
from tests.support.world import OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
WITHIN = timedelta(minutes=10)
FIRST = NOON + timedelta(minutes=30)


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def watched(world: World, schedule: str = "30 * * * *", **options: object) -> Job:
    options = {"expect_within": 600, "events": (EventType.RUN_MISSED,), **options}
    return world.create("watched", schedule, **options)


def rows(world: World, job: Job) -> list[Run]:
    return [run for run in world.history(job) if run.key.kind is RunKind.WATCH]


def fails(call: Call) -> Outcome:
    return Failure(RunError("http_400", "no", permanent=True))


def test_a_success_in_time_leaves_no_row_and_costs_no_write(world: World) -> None:
    job = watched(world)
    world.run_until(FIRST + WITHIN + timedelta(seconds=1))
    assert [report.handled for report in world.reports] == [Handled.RAN, Handled.CHECKED]
    assert rows(world, job) == []
    assert world.events.emitted == []


def test_a_dead_run_is_missed_on_the_second_with_a_row_and_an_event(world: World) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN - timedelta(seconds=1))
    assert rows(world, job) == []
    world.run_until(FIRST + WITHIN)
    (row,) = rows(world, job)
    assert (row.key.fire_at, row.status, row.reason) == (FIRST, RunStatus.MISSED, "not_succeeded")
    assert row.updated_at == FIRST + WITHIN
    dead = RunKey(OWNER, job.job_id, RunKind.SCHEDULED, FIRST).run_id
    assert row.note == f"{dead} is dead (refused): http_400: no"
    (event,) = world.events.emitted
    assert (event.type, event.subject) == (EventType.RUN_MISSED, row.key.run_id)
    assert (event.data["note"], event.data["status"]) == (row.note, "missed")


def test_an_executor_that_is_down_is_noticed_when_it_comes_back(world: World) -> None:
    """The lane is stuck: nobody has even begun the run, nor looked."""
    job = watched(world)
    while world.clock.now() <= FIRST + 2 * WITHIN:
        if world.clock.now().second == 0:
            world.tick()
        world.clock.advance(1)
    behind = [kept.message for kept in world.queue.kept()]
    assert {message.key.kind for message in behind} == {RunKind.SCHEDULED, RunKind.WATCH}
    (look,) = (message for message in behind if message.key.kind is RunKind.WATCH)
    world.executor.handle(look, world.clock.now() + timedelta(seconds=60))
    (row,) = rows(world, job)
    assert row.note == "no run of it was recorded"


def test_a_duplicate_tells_the_same_event_again_and_puts_no_second_row(world: World) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN)
    look = world.reports[-1].message
    world.clock.advance(100)
    report = world.executor.handle(look, world.clock.now() + timedelta(seconds=60))
    assert report.handled is Handled.REPEATED
    assert len(rows(world, job)) == 1
    first, second = world.events.emitted
    assert first == second


def test_an_executor_that_died_before_it_told_has_it_told_though_a_success_came_since(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation: the row stood, and no event ever told of it."""
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN - timedelta(seconds=1))
    look = RunKey(OWNER, job.job_id, RunKind.WATCH, FIRST)

    def die(events: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.events, "emit", die)
        with pytest.raises(KeyboardInterrupt):
            world.run_until(FIRST + WITHIN)
    assert world.events.emitted == []
    (dead,) = (run for run in world.history(job) if run.key.kind is RunKind.SCHEDULED)
    late = replace(dead, key=dead.key.redriven, status=RunStatus.SUCCEEDED)
    assert world.runs.claim(late, None)
    assert world.runs.claim(replace(dead, settled=Resolution.REDRIVEN, token=9), dead)
    world.run_until(FIRST + WITHIN + timedelta(minutes=7))
    (event,) = (each for each in world.events.emitted if each.type is EventType.RUN_MISSED)
    assert event.subject == look.run_id


@pytest.mark.parametrize("since", ["a success", "a later occurrence"])
def test_a_row_whose_answer_was_lost_is_told_of_though_nothing_is_amiss_any_more(
    world: World, monkeypatch: pytest.MonkeyPatch, since: str
) -> None:
    """Found by seeds 77002719 and 661001232: the message waited 10 s for the store, and a redrive
    succeeded, or the run was skipped for a later one."""
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN - timedelta(seconds=1))
    claim, ends_at = world.runs.claim, FIRST + WITHIN + timedelta(seconds=60)

    def lose_the_answer(run: Run, over: Run | None) -> bool:
        claim(run, over)
        raise StoreUnavailableError("the answer was lost")

    (received,) = world.queue.receive(FIRST + WITHIN, 1)
    world.clock.set(FIRST + WITHIN)
    with monkeypatch.context() as patch:
        patch.setattr(world.runs, "claim", lose_the_answer)
        world.executor.lane(received.body, ends_at)
    world.queue.delete(received.receipt)
    (missed,) = rows(world, job)
    (dead,) = (run for run in world.history(job) if run.key.kind is RunKind.SCHEDULED)
    if since == "a success":
        late = replace(dead, key=dead.key.redriven, status=RunStatus.SUCCEEDED)
        assert world.runs.claim(late, None)
        assert world.runs.claim(replace(dead, settled=Resolution.REDRIVEN, token=9), dead)
    else:
        monkeypatch.setattr(checks, "another_is_checked", lambda *arguments: True)
    world.run_until(FIRST + WITHIN + timedelta(seconds=30))
    (event,) = (each for each in world.events.emitted if each.type is EventType.RUN_MISSED)
    assert event.subject == missed.key.run_id


def test_a_retry_that_comes_too_late_is_missed_though_it_will_succeed(world: World) -> None:
    job = watched(world, retry=RetryPolicy(max_attempts=2))
    answers: list[Outcome] = [Failure(RunError("E", "e"), retry_after_seconds=900), Success("ok")]
    world.targets.behave = lambda call: answers.pop(0)
    world.run_until(FIRST + timedelta(minutes=16))
    (row,) = rows(world, job)
    assert row.note is not None
    assert "is retrying: E: e" in row.note
    assert [run.status for run in world.history(job) if run.key.kind is RunKind.SCHEDULED] == [
        RunStatus.SUCCEEDED
    ]


@pytest.mark.parametrize("again", [RunStatus.SUCCEEDED, RunStatus.DEAD])
def test_of_a_dead_letter_that_was_redriven_the_new_run_counts(
    world: World, again: RunStatus
) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + timedelta(seconds=1))
    (dead,) = world.history(job)
    for row, over in (
        (replace(dead, key=dead.key.redriven, status=again), None),
        (replace(dead, settled=Resolution.REDRIVEN, token=dead.token + 1), dead),
    ):
        assert world.runs.claim(row, over)
    world.run_until(FIRST + WITHIN)
    assert len(rows(world, job)) == (0 if again is RunStatus.SUCCEEDED else 1)


def test_what_is_paused_or_closed_or_not_watched_any_more_is_not_missed(world: World) -> None:
    world.close("closed", "2026-12-01")
    job = watched(world)
    closed = world.create(
        "closed", "30 * * * *", expect_within=600, calendar=("closed", CalendarRule.SKIP)
    )
    unwatched = world.create("unwatched", "30 * * * *", expect_within=600)
    world.targets.behave = fails
    world.run_until(FIRST - timedelta(minutes=1))
    world.pause(job)
    world.refile(unwatched, expect_within=None)
    world.run_until(FIRST + WITHIN + timedelta(seconds=1))
    assert rows(world, job) == rows(world, closed) == rows(world, unwatched) == []


def test_a_pause_after_its_fire_time_leaves_the_alarm(world: World) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + timedelta(minutes=5))
    world.pause(job)
    world.run_until(FIRST + timedelta(hours=2))
    assert [row.key.fire_at for row in rows(world, job)] == [FIRST]


def test_an_occurrence_of_a_pause_is_not_missed_when_it_is_over(world: World) -> None:
    job = watched(world, expect_within=3000)
    world.run_until(FIRST - timedelta(minutes=5))
    paused = world.pause(job)
    world.run_until(FIRST + timedelta(minutes=5))
    world.refile(paused)
    world.run_until(FIRST + timedelta(minutes=70))
    assert rows(world, job) == []


def test_the_failure_that_pauses_its_job_is_missed(world: World) -> None:
    job = watched(world, pause_after_failures=1)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN)
    stored = world.jobs.get(OWNER, job.job_id)
    assert stored is not None
    assert stored.state is JobState.PAUSED
    assert [row.key.fire_at for row in rows(world, job)] == [FIRST]


def test_the_last_run_of_a_job_that_deletes_itself_is_watched(world: World) -> None:
    job = watched(world, "at 2026-12-01T12:30:00Z", on_complete=OnComplete.DELETE)
    world.targets.behave = fails
    world.run_until(FIRST + WITHIN)
    stored = world.jobs.get(OWNER, job.job_id)
    assert stored is not None
    assert stored.state is JobState.COMPLETED
    assert [row.key.fire_at for row in rows(world, job)] == [FIRST]


@pytest.mark.parametrize("end", ["pause", "change", "complete"])
def test_a_dated_chain_looks_after_what_its_filing_had_when_it_ends(world: World, end: str) -> None:
    """Each look files the next: the chain must outlive the generation by what is still to be
    seen."""
    complete = {"on_complete": OnComplete.DELETE, "max_runs": 3} if end == "complete" else {}
    job = watched(
        world,
        "every 61m",
        start_at=NOON - timedelta(minutes=60),
        expect_within=4 * 3600,
        **complete,
    )
    world.targets.behave = fails
    fire_times = list(job.schedule.between(NOON, NOON + timedelta(minutes=130)))
    assert len(fire_times) == 3
    world.run_until(fire_times[-1] + timedelta(minutes=5))
    if end == "pause":
        world.pause(job)
    if end == "change":
        world.refile(job, "0 0 1 1 *")
    world.run_until(fire_times[-1] + timedelta(hours=4, minutes=1))
    assert [row.key.fire_at for row in rows(world, job)] == fire_times
    world.run_until(fire_times[-1] + timedelta(hours=6))
    assert len(rows(world, job)) == 3


@pytest.mark.parametrize("status", [RunStatus.SUCCEEDED, RunStatus.DEAD])
def test_a_backfill_may_be_the_success(world: World, status: RunStatus) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + timedelta(seconds=5))
    (dead,) = world.history(job)
    key = RunKey(OWNER, job.job_id, RunKind.BACKFILL, FIRST, "operation")
    assert world.runs.claim(replace(dead, key=key, status=status), None)
    world.run_until(FIRST + WITHIN)
    assert len(rows(world, job)) == (0 if status is RunStatus.SUCCEEDED else 1)


def test_a_replaced_filing_still_watches_what_was_its_own(world: World) -> None:
    job = watched(world)
    world.targets.behave = fails
    world.run_until(FIRST + timedelta(minutes=1))
    world.refile(job, "0 5 * * *")
    world.run_until(FIRST + WITHIN)
    assert [row.key.fire_at for row in rows(world, job)] == [FIRST]


@pytest.mark.parametrize(("policy", "alarms"), [(CatchUp.LATEST, 0), (CatchUp.SKIP, 1)])
def test_what_came_late_is_left_to_the_next_of_its_filing_though_that_is_replaced(
    world: World, policy: CatchUp, alarms: int
) -> None:
    """Twenty came while executors were away. Under `latest` the last of them ran, under `skip` it
    is the one that is told of."""
    job = watched(world, "* * * * *", expect_within=7200, catch_up=policy)
    back = world.clock.now() + timedelta(minutes=20)
    while world.clock.now() < back:
        if world.clock.now().second == 0:
            world.tick()
        world.clock.advance(1)
    world.run_until(back + timedelta(minutes=5))
    world.refile(job, "0 5 * * *")
    world.run_until(back + timedelta(hours=3))
    late = [run for run in world.history(job) if run.reason in ("catch_up", "misfire")]
    assert len(late) > 15
    assert len(rows(world, job)) == alarms


def test_its_standing_entries_go_when_the_filing_is_replaced(world: World) -> None:
    job = watched(world)
    world.run_until(FIRST + timedelta(minutes=20))
    slot = Slot(SlotKind.HOURLY, 40)
    (entry,) = world.wheel.query(0, slot).entries
    assert entry.key == f"{job.job_id}#{job.generation.generation_id}#watch"
    world.refile(job, "0 5 * * *")
    world.run_until(FIRST + timedelta(minutes=100))
    assert world.wheel.query(0, slot).entries == ()
    assert world.wheel.query(0, Slot(SlotKind.HOURLY, 30)).entries == ()


@pytest.mark.parametrize("schedule", ["at 2026-12-01T12:30:00Z", "0 30 12 1 12 *"])
def test_a_dated_chain_is_watched_by_one_of_its_own(world: World, schedule: str) -> None:
    job = watched(world, schedule, expect_within=3600)
    world.targets.behave = fails
    world.run_until(FIRST + timedelta(minutes=60))
    assert [row.key.fire_at for row in rows(world, job)] == [FIRST]


def test_it_counts_from_the_place_in_the_window_and_goes_the_way_of_its_lane(world: World) -> None:
    job = watched(world, window="10m", fraction=0.5, priority=Lane.HIGH)
    world.targets.behave = fails
    effective = FIRST + timedelta(seconds=job.spread_seconds)
    assert job.spread_seconds > 0
    world.run_until(effective + WITHIN)
    (row,) = rows(world, job)
    assert (row.updated_at, row.effective_at) == (effective + WITHIN, effective)
    assert world.reports[-1].message.lane is Lane.HIGH


@pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
def test_after_an_outage_the_last_occurrence_is_looked_at(world: World, policy: CatchUp) -> None:
    """Those before it have their rows by the job's catch-up; the watch tells that ticks came late,
    but once."""
    job = watched(world, catch_up=policy)
    world.targets.behave = fails
    world.run_until(NOON + timedelta(minutes=1))
    back = NOON + timedelta(hours=5)
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=1))
    assert [row.key.fire_at for row in rows(world, job)] == [NOON + timedelta(hours=4, minutes=30)]
    covering = [run for run in world.history(job) if run.key.kind is RunKind.MISSED]
    assert len(covering) == 1


@pytest.mark.parametrize(
    ("options", "first_hour"),
    [
        ({"catch_up": CatchUp.ALL}, 12),
        ({"catch_up": CatchUp.SKIP, "grace": 9001}, 14),
        ({"catch_up": CatchUp.LATEST, "grace": 9001}, 14),
    ],
)
def test_each_run_that_died_after_an_outage_is_missed(
    world: World, options: dict[str, Any], first_hour: int
) -> None:
    """What the policy let run was not passed over."""
    job = watched(world, **options)
    world.targets.behave = fails
    world.run_until(NOON + timedelta(minutes=1))
    back = NOON + timedelta(hours=5)
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=1))
    dead = [run for run in world.history(job) if run.status is RunStatus.DEAD]
    assert [run.key.fire_at.hour for run in dead] == list(range(first_hour, 17))
    assert [row.key.fire_at for row in rows(world, job)] == [run.key.fire_at for run in dead]


@pytest.mark.parametrize("policy", list(CatchUp))
def test_what_was_dispatched_before_an_outage_is_looked_at_after_it(
    world: World, policy: CatchUp
) -> None:
    """Only the looks fall into the outage, at 14:00 and 15:00; the runs of 12:30 and 13:30 died in
    time."""
    job = watched(world, catch_up=policy, expect_within=5400)
    world.targets.behave = fails
    world.run_until(NOON + timedelta(minutes=105))
    dead = [run.key.fire_at for run in world.history(job) if run.status is RunStatus.DEAD]
    assert dead == [FIRST, FIRST + timedelta(hours=1)]
    back = NOON + timedelta(hours=4, minutes=10)
    world.clock.set(back)
    world.run_until(back + timedelta(minutes=2))
    assert [row.key.fire_at for row in rows(world, job)][:2] == dead
