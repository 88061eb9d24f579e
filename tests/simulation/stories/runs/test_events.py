"""What a subscriber hears of runs and jobs, whom runs call back, and jobs that failures pause."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.admission.limits import with_failure
from carillon.domain.admission.state import first_admission
from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.job import Job, JobState
from carillon.domain.policies import OnComplete, Overlap, RetryPolicy
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.domain.wheel.entry import message_of
from carillon.errors import UnreadableRowError
from carillon.executor.runs.lifecycle_events import BufferedEvents
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.stores.memory.messaging import MemoryEvents
from tests.simulation.stories.story import NOON, SECOND, gate_of, handle, row_of, runs_of_kind
from tests.support.jobs import job_with
from tests.support.world import OWNER, World

ONCE = "at 2026-12-01T12:01:00Z"


@pytest.fixture
def world() -> World:
    return World(NOON, segments=1)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def listened(world: World, schedule: str = ONCE, **options: object) -> Job:
    return world.create("job", schedule, **{"events": JOB_EVENTS, **options})


def heard(world: World) -> list[tuple[str, int | None]]:
    """Types and attempts, in the order in which they were told."""
    return [(event.type.value, event.data.get("attempt")) for event in world.events.emitted]


def test_failures_are_told_with_what_follows_from_each(world: World) -> None:
    listened(world, retry=RetryPolicy(max_attempts=2))
    world.targets.behave = lambda call: Failure(RunError("E", "broken"))
    world.run_until(minute(5))
    assert heard(world)[:6] == [
        ("run.started", 1),
        ("run.failed", 1),
        ("run.retrying", 1),
        ("run.started", 2),
        ("run.failed", 2),
        ("run.dead", 2),
    ]
    assert world.events.emitted[5].data["reason"] == "exhausted"


def test_a_skip_is_told_with_its_reason(world: World) -> None:
    job = listened(world, "* * * * *")
    world.tick()
    world.pause(job)
    world.run_until(minute(1))
    assert heard(world) == [("run.skipped", 1)]
    assert world.events.emitted[0].data["reason"] == "paused"


def test_a_duplicate_tells_the_same_again_under_the_same_ids(world: World) -> None:
    listened(world)
    world.run_until(minute(1))
    before = world.events.emitted[1:]
    world.executor.handle(world.reports[0].message, minute(2))
    assert world.events.emitted[3:] == before


@pytest.mark.parametrize("on_complete", list(OnComplete))
def test_the_last_run_completes_the_job_whether_it_is_kept_or_not(
    world: World, on_complete: OnComplete
) -> None:
    job = listened(world, "* * * * *", max_runs=2, on_complete=on_complete)
    world.run_until(minute(4))
    completed = [e for e in world.events.emitted if e.type is EventType.JOB_COMPLETED]
    assert [(e.subject, e.occurred_at) for e in completed] == [(job.job_id, minute(2))]
    world.executor.handle(world.reports[-1].message, minute(5))
    again = [e for e in world.events.emitted if e.type is EventType.JOB_COMPLETED]
    assert again == [*completed, *completed]


def test_a_job_tells_only_what_it_has_chosen(world: World) -> None:
    world.create("silent", "* * * * *")
    world.create("job", "* * * * *", events=(EventType.RUN_SUCCEEDED,))
    world.run_until(minute(2))
    assert heard(world) == [("run.succeeded", 1)] * 2


def test_events_of_callbacks_say_that_they_are(world: World) -> None:
    """Who counts the successes of jobs leaves these out."""
    told = TaskTarget(name="told")
    world.create("job", ONCE, events=(EventType.RUN_SUCCEEDED,), on_success=told)
    world.run_until(minute(4))
    kinds = [(event.type.value, event.data.get("kind")) for event in world.events.emitted]
    assert kinds == [("run.succeeded", "scheduled"), ("run.succeeded", "callback")]


def test_gathered_events_go_out_together_and_those_not_taken_are_counted() -> None:
    class Full(MemoryEvents):
        def emit(self, events: object) -> int:
            return 2

    world, sink = World(NOON), MemoryEvents()
    job = listened(world)
    world.run_until(minute(1))
    buffered, lost = BufferedEvents(sink), BufferedEvents(Full())
    assert buffered.emit(world.events.emitted) == lost.emit(world.events.emitted) == 0
    assert sink.emitted == []
    assert (buffered.flush(), lost.flush()) == (0, 2)
    assert sink.emitted == world.events.emitted
    assert buffered.flush() == lost.flush() == 0
    assert len(sink.emitted) == len({event.event_id for event in sink.emitted})
    assert {event.data["job_id"] for event in sink.emitted} == {job.job_id}


FAILURE = Failure(RunError("E", "broken", permanent=True))
CALLBACKS = {"on_success": TaskTarget(name="praised"), "on_failure": TaskTarget(name="told")}


def callbacks(world: World, job: Job) -> list[Run]:
    return runs_of_kind(world, job, RunKind.CALLBACK)


def calls_back(call: Call) -> bool:
    return "_callback-" in call.run_id


def failing_at(*numbers: int) -> Callable[[Call], Outcome]:
    """A target that fails at these minutes, and succeeds with all else."""
    instants = {minute(number) for number in numbers}

    def behave(call: Call) -> Outcome:
        fails = call.fire_at in instants and not calls_back(call)
        return FAILURE if fails else Success('"done"')

    return behave


class TestCallbacks:
    def test_a_success_and_a_failure_call_their_own_target_with_the_run(self, world: World) -> None:
        job = world.create("job", "* * * * *", tags={"env": "prod"}, **CALLBACKS)
        world.targets.behave = failing_at(2)
        world.run_until(minute(2) + timedelta(seconds=5))
        told = [json.loads(call.payload) for call in world.targets.calls if calls_back(call)]
        assert [(each["fire_at"], each["status"]) for each in told] == [
            ("2026-12-01T12:01:00Z", "succeeded"),
            ("2026-12-01T12:02:00Z", "dead"),
        ]
        success, failure = told
        assert (success["result"], success["tags"]) == ('"done"', {"env": "prod"})
        assert failure["error"] == {"kind": "E", "message": "broken"}
        assert [run.status for run in callbacks(world, job)] == [RunStatus.SUCCEEDED] * 2

    def test_a_retrying_or_skipped_run_calls_nobody(self, world: World) -> None:
        job = world.create("job", "* * * * *", retry=RetryPolicy(max_attempts=9), **CALLBACKS)
        world.targets.behave = lambda call: Failure(RunError("E", "e"))
        world.run_until(minute(1) + SECOND)
        world.pause(job)
        world.run_until(minute(8))
        assert {run.status for run in world.history(job)} == {RunStatus.SKIPPED}
        assert callbacks(world, job) == []

    def test_a_callback_is_retried_and_a_dead_one_is_told_to_nobody(self, world: World) -> None:
        job = world.create(
            "job", "at 2026-12-01T12:01:00Z", retry=RetryPolicy(max_attempts=2), **CALLBACKS
        )

        def behave(call: Call) -> Outcome:
            return Failure(RunError("E", "e")) if calls_back(call) else Success("done")

        world.targets.behave = behave
        world.run_until(minute(10))
        (callback,) = callbacks(world, job)
        assert (callback.status, callback.attempt) == (RunStatus.DEAD, 2)

    def test_a_duplicate_calls_back_once(self, world: World) -> None:
        job = world.create("job", "at 2026-12-01T12:01:00Z", **CALLBACKS)
        world.run_until(minute(1))
        message = world.reports[0].message
        world.clock.advance(30)
        for _ in range(3):
            handle(world, message)
            world.execute()
        assert len([call for call in world.targets.calls if calls_back(call)]) == 1
        assert len(callbacks(world, job)) == 1


def handled_at(world: World, job: Job, number: int) -> None:
    world.clock.set(minute(number))
    handle(world, message_of(job, minute(number)))


def counted_after(world: World, job: Job, monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """The run of 12:01 ends; between its record and its count those of these minutes end."""

    def stand_still(events: object) -> int:
        patch.undo()
        for number in numbers:
            handled_at(world, job, number)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(world.events, "emit", stand_still)
        handled_at(world, job, 1)


class TestPauseAfterFailures:
    def test_after_a_resume_the_count_begins_anew(self, world: World) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=2)
        world.targets.behave = lambda call: FAILURE
        world.run_until(minute(2) + timedelta(seconds=30))
        world.new_generation(row_of(world, job))
        world.run_until(minute(3) + timedelta(seconds=30))
        assert row_of(world, job).state is JobState.ACTIVE
        world.run_until(minute(4))
        assert row_of(world, job).state is JobState.PAUSED

    def test_duplicates_count_once_and_not_after_a_later_success(self, world: World) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=2)
        world.targets.behave = failing_at(1)
        world.run_until(minute(1))
        message = world.reports[0].message
        ends_at = minute(3)
        for _ in range(3):
            world.executor.handle(message, ends_at)
        assert row_of(world, job).state is JobState.ACTIVE
        world.run_until(minute(2))
        world.executor.handle(message, ends_at)
        gate = gate_of(world, job)
        assert gate.failed == ()

    def test_a_duplicate_of_an_old_success_forgets_no_later_failure(self, world: World) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=3)
        world.targets.behave = failing_at(2, 3)
        world.run_until(minute(3))
        world.executor.handle(world.reports[0].message, minute(5))
        gate = gate_of(world, job)
        assert len(gate.failed) == 2

    def test_a_success_forgets_a_failure_whose_row_cannot_be_read(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Good runs are not to wait until it is mended."""
        job = world.create("job", "* * * * *", pause_after_failures=2)
        world.targets.behave = failing_at(1)
        world.run_until(minute(1))
        assert len(gate_of(world, job).failed) == 1

        def unreadable(key: object) -> None:
            raise UnreadableRowError("of a later version")

        with monkeypatch.context() as patch:
            patch.setattr(world.runs, "get", unreadable)
            world.run_until(minute(2))
        assert gate_of(world, job).failed == ()

    def test_a_success_that_is_slow_to_count_forgets_no_later_failure(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its executor is slow, or stands still, between the record of its end and the count."""
        tells = {"events": (EventType.RUN_SUCCEEDED,)}
        job = world.create("job", "* * * * *", pause_after_failures=2, **tells)
        world.targets.behave = failing_at(2, 3)
        counted_after(world, job, monkeypatch, 2)
        assert row_of(world, job).state is JobState.ACTIVE
        handled_at(world, job, 3)
        assert row_of(world, job).state is JobState.PAUSED

    def test_a_failure_that_is_slow_to_count_is_not_in_a_row_with_one_after_a_success(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tells = {"events": (EventType.RUN_DEAD,)}
        job = world.create("job", "* * * * *", pause_after_failures=2, **tells)
        world.targets.behave = failing_at(1, 3)
        counted_after(world, job, monkeypatch, 2, 3)
        assert row_of(world, job).state is JobState.ACTIVE

    def test_a_resume_begins_the_count_anew_whoever_had_paused(self, world: World) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=3)
        world.targets.behave = lambda call: FAILURE
        world.run_until(minute(2) + timedelta(seconds=10))
        world.pause(row_of(world, job))
        world.run_until(minute(5) + timedelta(seconds=10))
        world.new_generation(row_of(world, job))
        world.run_until(minute(7) + timedelta(seconds=10))
        assert row_of(world, job).state is JobState.ACTIVE, "two failures since the resume"
        world.run_until(minute(8))
        assert row_of(world, job).state is JobState.PAUSED

    def test_a_failure_under_way_during_pause_and_resume_is_the_first_of_the_new_count(
        self, world: World
    ) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=2)

        def behave(call: Call) -> Outcome:
            if call.fire_at == minute(1):
                world.new_generation(world.pause(row_of(world, job)))
                world.clock.advance(5)
            return FAILURE

        world.targets.behave = behave
        world.run_until(minute(2) + timedelta(seconds=30))
        assert row_of(world, job).state is JobState.PAUSED, "two have died since the resume"

    @pytest.mark.parametrize(("before", "after", "is_paused"), [(2, 5, False), (5, 2, True)])
    def test_the_limit_counts_that_is_set_while_the_run_is_under_way(
        self, world: World, before: int, after: int, is_paused: bool
    ) -> None:
        job = world.create("job", "* * * * *", pause_after_failures=before)

        def behave(call: Call) -> Outcome:
            if call.fire_at == minute(2):
                changed = job_with(job, revision=2, pause_after_failures=after)
                assert world.jobs.replace(changed, job.revision)
            return FAILURE

        world.targets.behave = behave
        world.run_until(minute(2) + timedelta(seconds=30))
        stored = row_of(world, job)
        assert (stored.state is JobState.PAUSED) is is_paused
        assert ("since 2 runs in a row failed" in stored.note) is is_paused

    def test_failures_are_not_in_a_row_where_the_limit_was_taken_away_between(
        self, world: World
    ) -> None:
        """Without a limit nothing is counted, no success either. The job is none that goes in
        chunks, so that these changes make no new generation."""
        skip = {"overlap": Overlap.SKIP}
        job = world.create("job", "* * * * *", pause_after_failures=2, **skip)
        world.targets.behave = failing_at(1, 4, 5)
        world.run_until(minute(1) + 30 * SECOND)
        assert world.jobs.replace(job_with(job, revision=2, pause_after_failures=None), 1)
        assert gate_of(world, job).failed
        world.run_until(minute(3) + 30 * SECOND)
        assert world.jobs.replace(job_with(job, revision=3, pause_after_failures=2), 2)
        world.run_until(minute(4) + 30 * SECOND)
        assert row_of(world, job).state is JobState.ACTIVE, "two have succeeded since"
        world.run_until(minute(5))
        assert row_of(world, job).state is JobState.PAUSED

    def test_a_failure_of_a_replaced_generation_leaves_the_new_count_alone(self) -> None:
        world = World(NOON, segments=1)
        job = world.create("job", "* * * * *", pause_after_failures=3)
        world.clock.advance(1)
        newer = world.new_generation(job)
        world.targets.behave = lambda call: FAILURE
        world.run_until(minute(1))
        (run,) = world.history(job)
        counted = with_failure(first_admission(OWNER, "g"), run, newer, 3)
        assert with_failure(counted, run, job, 3) == counted
        assert counted.failed == (run.key.run_id,)

    def test_a_fixed_delay_that_failures_pause_ends_its_chain(self, world: World) -> None:
        job = world.create("job", "every 1m after finish", pause_after_failures=1)
        world.targets.behave = lambda call: FAILURE
        world.run_until(minute(5))
        assert [run.status for run in world.history(job)] == [RunStatus.DEAD]
        assert world.queue.kept() == []

    def test_runs_that_somebody_asked_for_do_not_count(self, world: World) -> None:
        job = world.create("job", "0 5 * * *", pause_after_failures=1)
        world.targets.behave = lambda call: FAILURE
        message = message_of(job, NOON)
        key = replace(message.key, kind=RunKind.MANUAL, request_id="r")
        world.executor.handle(replace(message, key=key), minute(1))
        assert [run.status for run in world.history(job)] == [RunStatus.DEAD]
        assert row_of(world, job).state is JobState.ACTIVE
