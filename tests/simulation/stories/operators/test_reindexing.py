"""`carillon admin reindex`: the wheel is lost, or restored to another instant, and is filled again
from the jobs and their histories."""

from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.events import EventType
from carillon.domain.job import Job
from carillon.domain.operation import OperationKind, OperationState
from carillon.domain.policies import (
    Backoff,
    BackoffType,
    CatchUp,
    OnComplete,
    Rate,
    RetryPolicy,
)
from carillon.domain.run import RunError, RunKind, RunStatus
from carillon.errors import UnreadableRowError
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.reindexing.reindexing import Done, Reindex
from carillon.schedules import CalendarRule
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import Stores
from tests.simulation.stories.story import MINUTE, NOON, REFUSED, runs_of_kind
from tests.support import notification_kit, operation_kit
from tests.support.world import World, times

LOST = NOON + timedelta(minutes=20, seconds=30)
MENDED = NOON + timedelta(minutes=47, seconds=20)
AFTER = NOON + 75 * MINUTE


@pytest.fixture
def world() -> World:
    return World(NOON, segments=2)


def stores_of(world: World, wheel: Any = None) -> Stores:
    members: dict[str, Any] = {
        each.name: getattr(world, each.name, None) for each in fields(Stores)
    }
    return Stores(**{**members, "wheel": wheel or world.wheel, "skew_seconds": lambda: None})


def reindex(world: World, wheel: Any = None, **options: Any) -> Done:
    work = Reindex(stores_of(world, wheel), world.clock, world.entropy, 900, **options)
    work.run()
    return work.done


def put_wheel(world: World, contents: dict[str, Any]) -> None:
    """What a restored table holds; everybody goes on with it."""
    vars(world.wheel).update(contents)


def lose_wheel(world: World) -> None:
    put_wheel(world, vars(MemoryWheelStore(page_size=7)))


def lose(world: World) -> None:
    """The wheel is lost, and has yet to be mended."""
    world.run_until(LOST)
    lose_wheel(world)
    world.run_until(MENDED)


def lose_and_mend(world: World, until: datetime = AFTER) -> Done:
    lose(world)
    done = reindex(world)
    world.run_until(until)
    return done


def twice(world: World) -> list[str]:
    """The attempts that were made more than once."""
    made = Counter((call.run_id, call.attempt) for call in world.targets.calls)
    return [run_id for (run_id, _), count in made.items() if count > 1]


def minutes(job: Job, world: World) -> list[int]:
    """The minutes after noon of its calls, in their order."""
    return [round((at - NOON).total_seconds() / 60) for at in world.fired(job)]


@pytest.mark.parametrize(
    ("catch_up", "ran"),
    [
        (CatchUp.LATEST, [10, 20, 40, 50, 60, 70]),
        (CatchUp.ALL, [10, 20, 30, 40, 50, 60, 70]),
        (CatchUp.SKIP, [10, 20, 50, 60, 70]),
    ],
)
def test_jobs_fire_again_and_what_was_due_meanwhile_goes_by_catch_up(
    world: World, catch_up: CatchUp, ran: list[int]
) -> None:
    job = world.create("job", "*/10 * * * *", catch_up=catch_up)
    lose_and_mend(world)
    assert minutes(job, world) == ran
    assert twice(world) == []
    covered = [run.covers_count for run in world.history(job) if run.key.kind is RunKind.MISSED]
    assert covered == {CatchUp.ALL: [], CatchUp.LATEST: [1], CatchUp.SKIP: [1]}[catch_up]


def test_an_instant_beyond_what_ticks_have_done_stops_no_job(world: World) -> None:
    job = world.create("job", "*/10 * * * *")
    world.run_until(LOST)
    reindex(world, since=LOST + timedelta(hours=2))
    world.run_until(AFTER)
    assert minutes(job, world) == [10, 20, 30, 40, 50, 60, 70]


def test_a_segment_that_cannot_be_read_keeps_no_other_from_its_jobs(world: World) -> None:
    names = [f"job-{number}" for number in range(20)]
    jobs = [world.create(name, "*/10 * * * *") for name in names]
    assert {job.segment for job in jobs} == {0, 1}
    world.run_until(LOST)
    control = world.wheel.get_control

    def unreadable(segment: int) -> object:
        if segment == 0:
            raise UnreadableRowError("control of 0")
        return control(segment)

    world.wheel.get_control = unreadable  # type: ignore[method-assign, assignment]
    done = reindex(world, only=1)
    assert done.jobs == sum(job.segment for job in jobs)


@pytest.mark.parametrize(
    "schedule", ["at 2026-12-01T12:30:00Z", "30 12 1 12 *", "at 2026-12-01T12:49:00Z"]
)
def test_rare_occurrences_run_once(world: World, schedule: str) -> None:
    job = world.create("once", schedule, timezone="Europe/Berlin" if "*" in schedule else "UTC")
    if "*" in schedule:
        job = world.new_generation(job, "30 13 1 12 *")  # 12:30 in UTC
    lose_and_mend(world)
    assert minutes(job, world) == [49 if ":49" in schedule else 30]


def test_windows_and_calendars_come_back(world: World) -> None:
    world.close("closed", "2026-12-01")
    window = world.create("window", "*/10 * * * *", window="5m", fraction=0.8)
    shut = world.create("shut", "*/10 * * * *", calendar=("closed", CalendarRule.SKIP))
    lose_and_mend(world)
    assert minutes(window, world)[-3:] == [50, 60, 70]
    assert minutes(shut, world) == []
    recorded = [run.key.fire_at for run in world.history(shut)]
    assert recorded[-3:] == times("12:50 13:00 13:10", NOON)


def test_an_occurrence_on_its_way_to_an_open_day_comes(world: World) -> None:
    """It stood on the wheel as a message, and no row tells of it."""
    world.close("closed", "2026-12-01")
    rule = CalendarRule.NEXT_BUSINESS_DAY
    job = world.create("moved", "10 12 * * *", calendar=("closed", rule))
    lose_and_mend(world)
    tomorrow = NOON + timedelta(days=1, minutes=10)
    world.leap_to(tomorrow - MINUTE)
    world.run_until(tomorrow + MINUTE)
    assert [call.fire_at for call in world.targets.calls] == [tomorrow]
    assert job.job_id == world.targets.calls[0].job_id


@pytest.mark.parametrize("is_lost", [True, False])
def test_so_does_one_of_which_that_day_has_none_though_a_newer_one_has_run(is_lost: bool) -> None:
    """At ten on Saturdays, and at nine on Sundays."""
    saturday = datetime(2026, 12, 5, 9, 30, tzinfo=UTC)
    world = World(saturday, segments=1)
    world.close("closed", "2026-12-05")
    calendar = ("closed", CalendarRule.NEXT_BUSINESS_DAY)
    job = world.create("moved", ["0 10 * * 6", "0 9 * * 0"], calendar=calendar)
    world.run_until(saturday + 32 * MINUTE)
    world.leap_to(saturday + timedelta(hours=23, minutes=29))
    world.run_until(saturday + timedelta(hours=24))
    if is_lost:
        lose_wheel(world)
    reindex(world)
    world.run_until(saturday + timedelta(hours=24, minutes=32))
    assert [(at.day, at.hour) for at in world.fired(job)] == [(6, 9), (6, 10)]
    assert twice(world) == []
    assert world.history(job)[-1].note == "moved from 2026-12-05 by calendar closed"


class TestFixedDelays:
    def test_a_chain_goes_on_from_the_end_of_its_last_run(self, world: World) -> None:
        job = world.create("chain", "every 18m after finish")
        lose_and_mend(world)
        # Due at 12:36, and at once when it was mended.
        assert minutes(job, world) == [18, 36, 65]
        assert twice(world) == []

    def test_one_whose_run_is_under_way_has_no_second_chain(self, world: World) -> None:
        job = world.create("chain", "every 10m after finish")

        def lasts(call: Call) -> Outcome:
            world.clock.advance(20)
            if len(world.targets.calls) < 4:
                lose_wheel(world)
                reindex(world)
            world.clock.advance(20)
            return Success("done")

        world.targets.behave = lasts
        world.run_until(NOON + 45 * MINUTE)
        expected = times("12:10 12:20:40 12:31:20 12:42", NOON)
        assert world.fired(job) == expected
        assert len(world.history(job)) == 4

    @pytest.mark.parametrize("on_complete", OnComplete)
    def test_one_that_has_ended_runs_no_more_though_its_runs_have_expired(
        self, world: World, on_complete: OnComplete
    ) -> None:
        """The row of the job outlives theirs."""
        end_at = NOON + 20 * MINUTE
        job = world.create("chain", "every 9m after finish", end_at=end_at, on_complete=on_complete)
        world.run_until(LOST)
        world.leap_to(LOST + timedelta(days=35))
        world.runs.expire(world.clock.now())
        assert world.history(job) == []

        reindex(world)
        world.run_until(world.clock.now() + 5 * MINUTE)

        assert minutes(job, world) == [9, 18]

    def test_nor_is_one_recorded_as_skipped_whose_runs_expired_in_its_pause(
        self, world: World
    ) -> None:
        """It had run: a row at the instant of its first occurrence said that it had not."""
        job = world.create("chain", "every 9m after finish")
        world.run_until(LOST)
        world.pause(job)
        world.run_until(LOST + 9 * MINUTE)
        world.leap_to(LOST + timedelta(days=35))
        world.runs.expire(world.clock.now())
        assert world.history(job) == []

        reindex(world)
        world.run_until(world.clock.now() + 5 * MINUTE)

        assert world.history(job) == []


def test_what_has_expired_on_the_wheel_while_all_was_off_for_a_month_goes_on(world: World) -> None:
    """Rare schedules, and pauses that end by themselves, would be silent for good."""
    monthly = world.create("monthly", "0 12 3 * *")
    pausing = world.create("pausing", "*/10 * * * *")
    world.pause(pausing, until=NOON + timedelta(days=2))
    on = NOON + timedelta(days=31)
    world.leap_to(on)
    world.wheel.expire(on)
    world.run_until(on + 2 * MINUTE)
    assert (minutes(monthly, world), minutes(pausing, world)) == ([], [])

    reindex(world)
    world.run_until(on + 15 * MINUTE)
    assert world.fired(pausing)[-1] == on + 10 * MINUTE
    world.leap_to(on + timedelta(days=2) - MINUTE)
    world.run_until(on + timedelta(days=2))
    assert world.fired(monthly) == [on + timedelta(days=2)]


def test_retries_that_waited_on_the_wheel_come_at_their_time(world: World) -> None:
    fixed = Backoff(1800, type=BackoffType.FIXED)
    late = Backoff(3000, type=BackoffType.FIXED)
    down = Failure(RunError("http_503", "down"))
    world.targets.behave = lambda call: down if call.attempt == 1 else Success("done")
    soon = world.create("soon", "at 2026-12-01T12:10:00Z", retry=RetryPolicy(2, fixed))
    later = world.create("later", "at 2026-12-01T12:10:00Z", retry=RetryPolicy(2, late))
    done = lose_and_mend(world)
    assert done.runs == 2
    for job, at in ((soon, MENDED), (later, NOON + 60 * MINUTE)):
        (run,) = world.history(job)
        assert run.status is RunStatus.SUCCEEDED
        assert run.attempt_started_at is not None
        assert timedelta() <= run.attempt_started_at - at < timedelta(seconds=3)
    assert twice(world) == []


def test_deliveries_that_waited_on_the_wheel_come_at_their_time(world: World) -> None:
    """A channel may ask to be left alone for longer than a queue delays."""
    notification_kit.notify(world)
    down = Failure(RunError("http_503", "down"), retry_after_seconds=3000)

    def behave(call: Call) -> Outcome:
        if not notification_kit.is_delivery(call.run_id):
            return REFUSED
        return down if call.attempt == 1 else Success("told")

    world.targets.behave = behave
    world.create("refused", "at 2026-12-01T12:10:00Z")
    assert lose_and_mend(world).runs == 1
    attempts = [call.attempt for call in world.targets.calls if call.job_name != "refused"]
    assert attempts == [1, 2]


def test_runs_that_wait_for_their_rate_ask_anew_and_come(world: World) -> None:
    """What was granted is lost with the message, so that each comes a place later."""
    job = world.create("rate", "1,2,3 12 * * *", rate=Rate(1, 1800))
    lose_and_mend(world, until=NOON + 20 * MINUTE)
    assert minutes(job, world) == [1]
    world.run_until(NOON + timedelta(hours=4))
    assert minutes(job, world) == [1, 2, 3]
    assert twice(world) == []


def test_missed_run_checks_ring_for_what_was_due_before_and_after(world: World) -> None:
    options = {"expect_within": 900, "events": (EventType.RUN_MISSED,)}
    world.targets.behave = lambda call: REFUSED
    job = world.create("watched", "*/10 * * * *", **options)
    lose_and_mend(world)
    told = [run.key.fire_at for run in runs_of_kind(world, job, RunKind.WATCH)]
    # 12:10 is looked at 12:25, when there was no wheel; 12:30 was passed over for 12:40.
    assert told == times("12:10 12:20 12:40 12:50 13:00", NOON)
    assert len(told) == len(world.events.emitted)


@pytest.mark.parametrize("schedule", ["every 7m after finish", "*/7 * * * *"])
def test_one_changed_in_its_pause_is_owed_nothing_of_before_by_its_new_schedule(
    world: World, schedule: str
) -> None:
    """Seed 9987001250: a row at an instant that never was an occurrence."""
    options: dict[str, Any] = {"expect_within": 60} if schedule.startswith("*") else {}
    job = world.create("job", "0 0 1 1 *", **options)
    world.run_until(NOON + 15 * MINUTE)
    paused = world.pause(job)
    world.run_until(LOST)
    new = world.new_job("job", schedule, **options)
    changed = replace(
        paused,
        spec=new.spec,
        schedule=new.schedule,
        revision=paused.revision + 1,
        updated_at=world.clock.now(),
    )
    assert world.jobs.replace(changed, paused.revision)

    reindex(world, since=NOON)
    world.run_until(MENDED)

    assert world.history(job) == []


def test_operations_go_on(world: World) -> None:
    job = world.create("job", "0 0 1 1 *")
    dead = operation_kit.put_dead(world, job, 3)
    redrive = operation_kit.begin(world, OperationKind.REDRIVE, 2)
    world.run_until(world.clock.now() + timedelta(seconds=10))
    for receipt in world.queue.receive(world.clock.now() + 5 * MINUTE, 10):
        world.queue.delete(receipt.receipt)  # as if its next step had stood on the wheel
    lose_wheel(world)
    assert reindex(world).operations == 1
    world.run_until(NOON + 5 * MINUTE)
    ended = world.operations.get(redrive.owner, redrive.operation_id)
    assert ended is not None
    assert ended.state is OperationState.SUCCEEDED
    assert len(world.fired(job)) == len(dead)


class TestRestored:
    """To an earlier instant than the jobs and runs."""

    def test_jobs_and_runs_restored_to_an_earlier_instant_than_the_wheel(
        self, world: World
    ) -> None:
        job = world.create("job", "*/10 * * * *")
        world.run_until(NOON + 12 * MINUTE)
        changed = world.new_generation(job, "0 0 1 1 *")
        world.run_until(NOON + 15 * MINUTE)
        world.indexer.remove_ended_entries(job, changed)
        assert world.jobs.replace(job, 2)  # the change is forgotten, but not by the wheel
        world.run_until(MENDED)
        reindex(world)
        world.run_until(AFTER)
        assert minutes(job, world) == [10, 40, 50, 60, 70]

    def test_where_nothing_is_amiss_nothing_changes(self, world: World) -> None:
        job = world.create("job", "*/2 * * * *")
        chain = world.create("chain", "every 20m after finish")
        world.run_until(LOST)
        reindex(world)
        world.run_until(NOON + 50 * MINUTE)
        assert minutes(job, world) == list(range(2, 51, 2))
        assert minutes(chain, world) == [20, 40]
        assert runs_of_kind(world, job, RunKind.MISSED) == []
