"""Jobs with an end: their last occurrences, and what becomes of them then."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.events import EventType
from carillon.domain.job import Job, JobState, Lane
from carillon.domain.policies import Backoff, CatchUp, OnComplete, Overlap, RetryPolicy
from carillon.domain.run import RunError, RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of, message_of
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.schedules import CalendarRule
from tests.simulation.stories.story import (
    HOUR,
    MIDNIGHT,
    MINUTE,
    handle,
    row_of,
)
from tests.support.jobs import job_with
from tests.support.world import World, times

DELETE = OnComplete.DELETE
COMPLETED = (EventType.JOB_COMPLETED,)
QUEUED = {"overlap": Overlap.QUEUE_ONE, "timeout_seconds": 40, "events": COMPLETED}


@pytest.fixture
def world() -> World:
    return World(MIDNIGHT, segments=1)


@pytest.mark.parametrize("runs", [1, 2, 7])
@pytest.mark.parametrize("schedule", ["*/2 * * * *", "every 90s", "every 181m", "0 */3 * * *"])
@pytest.mark.parametrize("window", ["", "45s"])
def test_max_runs_is_the_exact_number_of_runs(schedule: str, runs: int, window: str) -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("counted", schedule, max_runs=runs, window=window)
    assert job.schedule.end_at is not None
    over = job.schedule.end_at + timedelta(minutes=20)
    while world.clock.now() < over:
        world.tick()
        world.execute()
        world.clock.advance(60)
    succeeded = [run for run in world.history(job) if run.status is RunStatus.SUCCEEDED]
    assert len(succeeded) == len(world.fired(job)) == runs


def test_an_end_is_an_occurrence_itself_and_nothing_comes_after_it() -> None:
    world = World(MIDNIGHT)
    job = world.create("ends", "*/5 * * * *", end_at=MIDNIGHT + timedelta(minutes=15), window="2m")
    world.run_until(MIDNIGHT + timedelta(minutes=40))
    assert world.fired(job) == times("00:05 00:10 00:15", MIDNIGHT)


def test_the_standing_entries_of_a_job_with_an_end_leave_the_wheel_by_themselves() -> None:
    world = World(MIDNIGHT)
    end_at = MIDNIGHT + timedelta(hours=5)
    fourteen_days = timedelta(days=14)
    job = world.new_job("ends", "*/5 * * * *", end_at=end_at, window="4m", fraction=0.5)
    assert {entry.expires_at for entry in entries_of(job)} == {
        end_at + timedelta(minutes=2) + fourteen_days
    }
    rolling = ("holidays", CalendarRule.PREVIOUS_BUSINESS_DAY)
    job = world.new_job("shifts", "*/5 * * * *", end_at=end_at, calendar=rolling)
    assert {entry.expires_at for entry in entries_of(job)} == {end_at + fourteen_days}
    job = world.new_job("once", "at 2026-12-05T00:00:00", calendar=rolling)
    moment = datetime(2026, 12, 5, tzinfo=UTC)
    assert {entry.expires_at for entry in entries_of(job)} == {moment + fourteen_days}
    job = world.new_job("endless", "*/5 * * * *")
    assert {entry.expires_at for entry in entries_of(job)} == {None}


def test_it_is_the_end_of_the_last_run_that_completes_not_its_first_attempt() -> None:
    world = World(MIDNIGHT)
    world.targets.behave = lambda call: Failure(RunError("busy", "later"))
    policy = RetryPolicy(3, Backoff(base_seconds=60, factor=1, cap_seconds=60))
    job = world.create("ends", "at 2026-12-01T00:10:00", on_complete=DELETE, retry=policy)
    world.run_until(MIDNIGHT + timedelta(minutes=10, seconds=5))
    assert row_of(world, job).state is JobState.ACTIVE
    world.run_until(MIDNIGHT + timedelta(minutes=15))
    assert row_of(world, job).state is JobState.COMPLETED
    assert [run.status for run in world.history(job)] == [RunStatus.DEAD]


def test_a_retry_of_an_earlier_run_still_runs_when_the_job_has_completed() -> None:
    world = World(MIDNIGHT)

    def first_is_busy(call: Call) -> Outcome:
        busy = call.fire_at.minute == 5 and call.attempt == 1
        return Failure(RunError("busy", "later")) if busy else Success(None)

    world.entropy.fraction = lambda: 0.0  # type: ignore[method-assign]
    world.targets.behave = first_is_busy
    policy = RetryPolicy(2, Backoff(base_seconds=1800, factor=1, cap_seconds=1800))
    job = world.create("ends", "*/5 * * * *", max_runs=2, on_complete=DELETE, retry=policy)
    world.run_until(MIDNIGHT + timedelta(minutes=20))
    assert row_of(world, job).state is JobState.COMPLETED
    world.run_until(MIDNIGHT + timedelta(minutes=40))
    outcomes = [(run.status, run.attempt) for run in world.history(job)]
    assert outcomes == [(RunStatus.SUCCEEDED, 2), (RunStatus.SUCCEEDED, 1)]
    assert row_of(world, job).state is JobState.COMPLETED


def test_what_still_waits_when_the_last_run_has_ended_runs_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An outage is caught up in any order: the last occurrence may be the first that runs."""
    world = World(MIDNIGHT, segments=1)
    job = world.create("ends", "*/5 * * * *", max_runs=4, on_complete=DELETE, catch_up=CatchUp.ALL)
    world.run_until(MIDNIGHT + MINUTE)
    world.clock.set(MIDNIGHT + HOUR)
    world.tick()
    receive = world.queue.receive
    monkeypatch.setattr(world.queue, "receive", lambda now, n: list(reversed(receive(now, 100))))
    world.execute()
    assert world.fired(job) == times("00:20 00:15 00:10 00:05", MIDNIGHT)
    assert {run.status for run in world.history(job)} == {RunStatus.SUCCEEDED}
    assert row_of(world, job).state is JobState.COMPLETED


def test_a_change_that_comes_first_keeps_the_job() -> None:
    """The owner gives it more to do while its last run is under way."""
    world = World(MIDNIGHT)
    job = world.create("ends", "at 2026-12-01T00:10:00", on_complete=DELETE)

    def change(call: Call) -> Outcome:
        if call.fire_at.minute == 10:
            world.new_generation(job, "at 2026-12-01T00:20:00")
        return Success(None)

    world.targets.behave = change
    world.run_until(MIDNIGHT + timedelta(minutes=19))
    assert row_of(world, job).state is JobState.ACTIVE
    world.run_until(MIDNIGHT + timedelta(minutes=21))
    assert world.fired(job) == times("00:10 00:20", MIDNIGHT)
    assert row_of(world, job).state is JobState.COMPLETED


def test_a_job_that_is_kept_and_goes_on_by_then_is_not_told_to_be_complete(world: World) -> None:
    """Its owner has changed it while its last run was under way."""
    job = world.create("kept", "*/5 * * * *", max_runs=1, events=COMPLETED)

    def change(call: Call) -> Outcome:
        if len(world.fired(job)) == 1:
            world.new_generation(job, "*/10 * * * *")
        return Success(None)

    world.targets.behave = change
    world.run_until(MIDNIGHT + 10 * MINUTE)
    assert world.fired(job) == times("00:05 00:10", MIDNIGHT)
    assert world.events.emitted == []


def test_a_paused_job_is_not_completed_by_the_skip_of_its_last_occurrence() -> None:
    world = World(MIDNIGHT)
    job = world.create("ends", "at 2026-12-01T00:10:00", on_complete=DELETE)
    world.pause(job)
    world.run_until(MIDNIGHT + timedelta(minutes=11))
    assert [run.reason for run in world.history(job)] == ["paused"]
    assert row_of(world, job).state is JobState.PAUSED


@pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
def test_a_job_whose_end_falls_into_an_outage_completes_after_it(policy: CatchUp) -> None:
    world = World(MIDNIGHT, segments=1)
    job = world.create("ends", "*/5 * * * *", max_runs=4, on_complete=DELETE, catch_up=policy)
    world.run_until(MIDNIGHT + MINUTE)
    world.clock.set(MIDNIGHT + HOUR)
    world.run_until(MIDNIGHT + timedelta(hours=1, minutes=1))
    assert row_of(world, job).state is JobState.COMPLETED
    assert len(world.fired(job)) == (1 if policy is CatchUp.LATEST else 0)


def test_a_fixed_delay_that_was_resumed_is_not_complete_at_the_end_of_a_run_from_before() -> None:
    """Its own occurrence is to come; the run that lasts would have been followed by none."""
    world = World(MIDNIGHT, segments=1)
    end_at = MIDNIGHT + timedelta(hours=2, minutes=30)
    job = world.create("chain", "every 1h after finish", end_at=end_at, on_complete=DELETE)

    def lasts_over_a_pause(call: Call) -> Outcome:
        if len(world.fired(job)) == 1:
            paused = world.pause(job)
            world.clock.advance(20)
            world.new_generation(paused)
            for _ in range(45):
                world.clock.advance(60)
                world.tick()
        return Success(None)

    world.targets.behave = lasts_over_a_pause
    world.run_until(MIDNIGHT + timedelta(hours=3))
    assert world.fired(job) == times("01:00 02:00:20", MIDNIGHT)
    gone = world.jobs.get(job.owner, job.job_id)
    assert gone is not None
    assert gone.state is JobState.COMPLETED, "nor does it stay for ever"


def test_nor_is_it_where_executors_are_behind_with_that() -> None:
    """The run from before ends after the end of all."""
    world = World(MIDNIGHT, segments=1)
    end_at = MIDNIGHT + timedelta(minutes=25)
    job = world.create("chain", "every 10m after finish", end_at=end_at, on_complete=DELETE)

    def lasts_over_a_pause(call: Call) -> Outcome:
        if len(world.fired(job)) == 1:
            world.new_generation(world.pause(job))
            world.clock.set(MIDNIGHT + 26 * MINUTE)
        return Success(None)

    world.targets.behave = lasts_over_a_pause
    world.clock.set(MIDNIGHT + 10 * MINUTE)
    handle(world, message_of(job, MIDNIGHT + 10 * MINUTE))
    assert row_of(world, job).state is JobState.ACTIVE
    world.run_until(MIDNIGHT + 30 * MINUTE)
    assert world.fired(job) == times("00:10 00:20", MIDNIGHT)
    assert row_of(world, job).state is JobState.COMPLETED


def test_one_that_was_resumed_too_late_for_another_run_is_complete_when_that_has_ended() -> None:
    world = World(MIDNIGHT, segments=1)
    end_at = MIDNIGHT + timedelta(minutes=70)
    job = world.create("chain", "every 1h after finish", end_at=end_at, on_complete=DELETE)

    def ends_after_a_pause(call: Call) -> Outcome:
        world.new_generation(world.pause(job))
        return Success(None)

    world.targets.behave = ends_after_a_pause
    world.run_until(MIDNIGHT + timedelta(minutes=90))
    assert world.fired(job) == times("01:00", MIDNIGHT)
    gone = world.jobs.get(job.owner, job.job_id)
    assert gone is not None
    assert gone.state is JobState.COMPLETED


def test_a_moved_last_occurrence_is_the_last() -> None:
    world = World(datetime(2026, 12, 25, 8, 55, tzinfo=UTC), segments=1)
    world.close("holidays", "2026-12-25")
    job = world.create(
        "ends",
        "at 2026-12-25T09:00:00",
        on_complete=DELETE,
        calendar=("holidays", CalendarRule.NEXT_BUSINESS_DAY),
    )
    world.run_until(datetime(2026, 12, 25, 9, 5, tzinfo=UTC))
    assert row_of(world, job).state is JobState.ACTIVE
    world.leap_to(datetime(2026, 12, 26, 8, 57, tzinfo=UTC))
    world.run_until(datetime(2026, 12, 26, 9, 1, tzinfo=UTC))
    assert world.fired(job) == [datetime(2026, 12, 26, 9, tzinfo=UTC)]
    assert row_of(world, job).state is JobState.COMPLETED


class TestNoRunIsActiveOrWaits:
    """Where runs wait for each other, or are skipped, the one that ends last completes the job."""

    def completed_at(self, world: World, job: Job, until: datetime) -> list[datetime]:
        """When the job was complete, by its events; whoever meets the run again tells it again."""
        world.run_until(until)
        told = [each for each in world.events.emitted if each.subject == job.job_id]
        return sorted(
            {(each.event_id, each.occurred_at): each.occurred_at for each in told}.values()
        )

    def taking(self, world: World, seconds: int) -> None:
        """A target that takes its time while the world goes on."""

        def behave(call: Call) -> Outcome:
            world.run_until(world.clock.now() + timedelta(seconds=seconds - 1))
            return Success(None)

        world.targets.behave = behave

    @pytest.mark.parametrize("on_complete", list(OnComplete))
    def test_the_last_occurrence_is_skipped_while_others_go_on(
        self, world: World, on_complete: OnComplete
    ) -> None:
        self.taking(world, 25)
        job = world.create("job", "every 10s", **QUEUED, max_runs=3, on_complete=on_complete)
        told = self.completed_at(world, job, MIDNIGHT + timedelta(minutes=3))
        rows = world.history(job)
        assert [run.status for run in rows] == [RunStatus.SUCCEEDED] * 2 + [RunStatus.SKIPPED]
        assert told == [rows[1].finished_at]
        kept = on_complete is OnComplete.KEEP
        assert row_of(world, job).state is (JobState.ACTIVE if kept else JobState.COMPLETED)

    def test_a_retry_of_an_earlier_run_is_the_last_to_end(self, world: World) -> None:
        def behave(call: Call) -> Outcome:
            busy = Failure(RunError("busy", "later"), retry_after_seconds=600)
            return busy if call.attempt == 1 else Success(None)

        world.targets.behave = behave
        skip = {"overlap": Overlap.SKIP, "events": COMPLETED}
        job = world.create("job", "*/2 * * * *", **skip, max_runs=3, on_complete=DELETE)
        told = self.completed_at(world, job, MIDNIGHT + timedelta(minutes=11))
        assert (told, row_of(world, job).state) == ([], JobState.ACTIVE)
        told = self.completed_at(world, job, MIDNIGHT + timedelta(minutes=13))
        assert told == [MIDNIGHT + timedelta(minutes=12)]
        assert row_of(world, job).state is JobState.COMPLETED

    @pytest.mark.parametrize("by_hand", [False, True])
    def test_runs_may_overlap_since_the_last_occurrence_was_skipped(
        self, world: World, by_hand: bool
    ) -> None:
        """Its owner has changed that while the run that was active then waited for its retry."""

        def behave(call: Call) -> Outcome:
            busy = Failure(RunError("busy", "later"), retry_after_seconds=600)
            return busy if call.attempt == 1 else Success(None)

        world.targets.behave = behave
        skip = {"overlap": Overlap.SKIP, "on_complete": DELETE}
        job = world.create("job", "*/2 * * * *", **skip, max_runs=2)
        if by_hand:
            world.ask(job)
        world.run_until(MIDNIGHT + timedelta(minutes=5))
        assert world.history(job)[-1].reason == "overlap"
        assert world.jobs.replace(job_with(job, overlap=Overlap.ALLOW, revision=2), 1)
        world.run_until(MIDNIGHT + timedelta(minutes=9))
        assert row_of(world, job).state is JobState.ACTIVE
        world.run_until(MIDNIGHT + timedelta(minutes=13))
        assert row_of(world, job).state is JobState.COMPLETED

    def test_the_last_occurrence_lies_in_the_queue_yet(self, world: World) -> None:
        """An earlier run ends after the last instant of the schedule, the executors are behind."""
        job = world.create("job", "every 10s", **QUEUED, max_runs=2, on_complete=DELETE)
        first, last = (message_of(job, MIDNIGHT + timedelta(seconds=n)) for n in (10, 20))
        ends_at = MIDNIGHT + timedelta(minutes=2)
        world.clock.set(MIDNIGHT + timedelta(seconds=21))
        world.executor.handle(first, ends_at)
        assert row_of(world, job).state is JobState.ACTIVE
        world.executor.handle(last, ends_at)
        assert row_of(world, job).state is JobState.COMPLETED

    def test_a_run_by_hand_before_the_end_completes_nothing(self, world: World) -> None:
        job = world.create("job", "every 5m after finish", end_at=MIDNIGHT + timedelta(minutes=7))
        job = job_with(job, overlap=Overlap.SKIP, on_complete=DELETE, revision=2)
        assert world.jobs.replace(job, 1)
        world.clock.set(MIDNIGHT + timedelta(minutes=4))
        message = message_of(job, MIDNIGHT + timedelta(minutes=4))
        key = replace(message.key, kind=RunKind.MANUAL, request_id="r")
        by_hand = replace(message, key=key, after_finish=False)
        world.executor.handle(by_hand, MIDNIGHT + timedelta(minutes=12))
        assert row_of(world, job).state is JobState.ACTIVE, "one is to come at 00:05"
        world.run_until(MIDNIGHT + timedelta(minutes=5))
        assert row_of(world, job).state is JobState.COMPLETED

    def test_a_run_by_hand_that_ends_behind_the_last_of_a_fixed_delay_ends_the_job(
        self, world: World
    ) -> None:
        """Two minutes are left until the end of all, and the next one would come in five."""

        def behave(call: Call) -> Outcome:
            if len(world.fired(job)) == 1:
                world.ask(job)
                world.run_until(world.clock.now() + timedelta(seconds=3))
            return Success(None)

        world.targets.behave = behave
        end_at = MIDNIGHT + timedelta(minutes=7)
        ends = {"end_at": end_at, "overlap": Overlap.SKIP, "on_complete": DELETE}
        job = world.create("job", "every 5m after finish", **ends)
        world.run_until(MIDNIGHT + timedelta(minutes=6))
        kinds = {run.key.kind: run.status for run in world.history(job)}
        assert kinds == dict.fromkeys((RunKind.SCHEDULED, RunKind.MANUAL), RunStatus.SUCCEEDED)
        assert row_of(world, job).state is JobState.COMPLETED

    def test_a_run_by_hand_after_a_change_leaves_what_the_window_puts_off(
        self, world: World
    ) -> None:
        """Found by the simulation: the occurrence was that of the generation before the change."""
        window = {"end_at": MIDNIGHT + timedelta(minutes=14), "window": "8m", "fraction": 0.75}
        skip = {"overlap": Overlap.SKIP, "on_complete": DELETE}
        job = world.create("job", "every 10m", **skip, **window)
        world.run_until(MIDNIGHT + timedelta(minutes=11))
        job = world.new_generation(job, priority=Lane.HIGH)
        world.ask(job)
        world.run_until(MIDNIGHT + timedelta(minutes=15))
        assert row_of(world, job).state is JobState.ACTIVE, "that of 00:10 is to start at 00:16"
        world.run_until(MIDNIGHT + timedelta(minutes=17))
        assert row_of(world, job).state is JobState.COMPLETED
        rows = world.history(job)
        assert {run.status for run in rows} == {RunStatus.SUCCEEDED}
        assert {run.key.kind for run in rows} == {RunKind.SCHEDULED, RunKind.MANUAL}

    def test_so_it_does_though_the_window_is_taken_away(self, world: World) -> None:
        """Each generation has an offset of its own."""
        window = {"end_at": MIDNIGHT + timedelta(minutes=14), "window": "8m", "fraction": 0.75}
        skip = {"overlap": Overlap.SKIP, "on_complete": DELETE}
        job = world.create("job", "every 10m", **skip, **window)
        world.run_until(MIDNIGHT + timedelta(minutes=11))
        job = world.new_generation(job, window=None, spread_seconds=0)
        world.ask(job)
        world.run_until(MIDNIGHT + timedelta(minutes=15))
        assert row_of(world, job).state is JobState.ACTIVE, "that of 00:10 is to start at 00:16"
        world.run_until(MIDNIGHT + timedelta(minutes=17))
        assert row_of(world, job).state is JobState.COMPLETED

    @pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.SKIP])
    def test_what_has_run_is_not_waited_for_in_a_window_that_came_later(
        self, world: World, overlap: Overlap
    ) -> None:
        end_at = MIDNIGHT + timedelta(minutes=14)
        job = world.create("job", "every 10m", end_at=end_at, overlap=overlap, on_complete=DELETE)

        def behave(call: Call) -> Outcome:
            world.clock.advance(30)
            if call.fire_at == MIDNIGHT + timedelta(minutes=10):
                world.new_generation(job, window="8m", spread_seconds=450)
            return Success("done")

        world.targets.behave = behave
        world.run_until(MIDNIGHT + timedelta(minutes=25))
        assert row_of(world, job).state is JobState.COMPLETED

    @pytest.mark.parametrize("overlap", [Overlap.ALLOW, Overlap.SKIP])
    @pytest.mark.parametrize("minute", [13, 18])
    def test_what_the_window_puts_off_beyond_the_last_occurrence_ends_the_job(
        self, world: World, overlap: Overlap, minute: int
    ) -> None:
        """Unless the run of that one, which is retried at minute 18, ends later."""

        def behave(call: Call) -> Outcome:
            is_retried = call.fire_at == MIDNIGHT + 13 * MINUTE and minute > 13
            busy = Failure(RunError("busy", "later"), retry_after_seconds=300)
            return busy if is_retried and call.attempt == 1 else Success(None)

        world.targets.behave = behave
        on_complete = {"overlap": overlap, "on_complete": DELETE}
        job = world.create("job", "every 10m", **on_complete, window="8m", fraction=0.75)
        world.run_until(MIDNIGHT + 11 * MINUTE)
        world.new_generation(job, "at 2026-12-01T00:13:00", window=None, spread_seconds=0)
        world.run_until(MIDNIGHT + (max(minute, 16) - 1) * MINUTE)
        assert row_of(world, job).state is JobState.ACTIVE, "that of 00:10 is to start at 00:16"
        world.run_until(MIDNIGHT + (max(minute, 16) + 1) * MINUTE)
        assert row_of(world, job).state is JobState.COMPLETED
