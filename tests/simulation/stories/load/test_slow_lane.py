"""Slow jobs served apart: marked, redirected, brought back, and fair among owners, in virtual time.

The executors have as many places as messages come; what counts here is who goes where.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.admission.state import (
    SLOW_LANE_ROW,
    AdmissionRow,
    PermitHolder,
    QueuedRun,
    job_admission,
)
from carillon.domain.chunks.message import encode
from carillon.domain.events import JOB_EVENTS, EventType
from carillon.domain.job import Job, JobState, Lane, Slow
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp, Rate, RetryPolicy
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.wheel.entry import entries_of, message_of
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import Handled, Received
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.simulation.stories.story import MINUTE, NOON, SECOND, empty_queue, handle, row_of
from tests.support.world import OWNER, World

ONCE = RetryPolicy(max_attempts=1)
MARK = Slow(NOON, "attempts keep lasting longer than 2 s")


@pytest.fixture
def world() -> World:
    return World(NOON)


def lasts(world: World, seconds: float, outcome: Outcome | None = None) -> None:
    """Every call lasts so long from now on; nothing else goes on meanwhile."""

    def behave(call: Call) -> Outcome:
        world.clock.advance(seconds)
        return outcome or Success(None)

    world.targets.behave = behave


def hangs(world: World) -> None:
    """Every call lasts until its limit, and has timed out then."""

    def behave(call: Call) -> Outcome:
        world.clock.advance(call.timeout_seconds)
        return Failure(RunError("timeout", "no answer"), timed_out=True)

    world.targets.behave = behave


def marked(world: World, job: Job, slow: Slow = MARK) -> Job:
    """The job with the mark in its row, under the same revision."""
    moved = replace(row_of(world, job), slow=slow)
    assert world.jobs.replace(moved, job.revision)
    return moved


def due(world: World, job: Job, **changes: object) -> Message:
    """The message of the occurrence a minute after noon, at its instant; the queue is empty."""
    message = replace(message_of(job, NOON + MINUTE), **changes)  # type: ignore[arg-type]
    world.clock.set(max(world.clock.now(), message.due_at))
    empty_queue(world)
    return message


def counted(calls: Counter[str], name: str, original: Callable[..., object]) -> object:
    def call(*args: object) -> object:
        calls[name] += 1
        return original(*args)

    return call


class TestMark:
    def test_two_time_outs_move_the_job_and_nothing_else_of_it(self, world: World) -> None:
        hangs(world)
        job = world.create("job", "every 10s", timeout_seconds=5, events=JOB_EVENTS)
        world.run_until(NOON + 30 * SECOND)
        stored = row_of(world, job)
        assert stored.slow is not None
        assert replace(stored, slow=None) == job
        assert (stored.lane, stored.spec.priority, stored.revision) == (Lane.SLOW, Lane.NORMAL, 1)
        told = [each for each in world.events.emitted if each.type is EventType.JOB_SLOWED]
        assert [each.data["reason"] for each in told] == [stored.slow.reason]
        assert [(each.data["lane"], each.data["priority"]) for each in told] == [("slow", "normal")]

    def test_quick_jobs_have_no_gate_at_all(self, world: World) -> None:
        lasts(world, 1.9)
        job = world.create("job", "every 10s")
        world.run_until(NOON + 2 * MINUTE)
        assert row_of(world, job) == job
        assert world.admission_rows.get(job.owner, job_admission(job.job_id)) is None

    def test_failures_in_a_row_are_counted_over_the_move(self, world: World) -> None:
        """A job that times out is moved by its second run and paused by its fourth."""
        hangs(world)
        job = world.create("job", "every 1m", timeout_seconds=5, pause_after_failures=4, retry=ONCE)
        world.run_until(NOON + 3 * MINUTE + 30 * SECOND)
        assert row_of(world, job).slow is not None
        assert row_of(world, job).state is JobState.ACTIVE
        world.run_until(NOON + 10 * MINUTE)
        paused = row_of(world, job)
        assert paused.state is JobState.PAUSED
        assert paused.slow is not None
        assert len(world.targets.calls) == 4

    def test_an_owners_change_wins_and_the_mark_is_set_again(self, world: World) -> None:
        job = world.create("job", "every 10s", timeout_seconds=5)
        changed: list[Job] = []

        def behave(call: Call) -> Outcome:
            world.clock.advance(3)
            if len(world.targets.calls) == 3:  # its end would move the job
                changed.append(world.new_generation(row_of(world, job), "every 20s"))
            return Success(None)

        world.targets.behave = behave
        world.run_until(NOON + 40 * SECOND)
        (owners,) = changed
        stored = row_of(world, job)
        assert stored.slow is not None
        assert replace(stored, slow=None) == owners

    def test_a_store_that_fails_costs_a_count_and_no_run(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(owner: str, name: str) -> None:
            raise StoreUnavailableError("down")

        hangs(world)
        job = world.create("job", "every 10s", timeout_seconds=5, retry=ONCE)
        monkeypatch.setattr(world.admission_rows, "get", fails)
        world.run_until(NOON + 60 * SECOND)
        assert row_of(world, job) == job
        assert {run.status for run in world.history(job)} == {RunStatus.TIMED_OUT}

    def test_a_deleted_job_stays_deleted(self, world: World) -> None:
        job = world.create("job", "every 10s", timeout_seconds=5)

        def behave(call: Call) -> Outcome:
            world.clock.advance(3)
            if len(world.targets.calls) == 3:
                current = row_of(world, job)
                gone = current.deleted(world.clock.now(), world.clock.now() + 30 * MINUTE)
                assert world.jobs.replace(gone, current.revision)
            return Success(None)

        world.targets.behave = behave
        world.run_until(NOON + 60 * SECOND)
        assert row_of(world, job).state is JobState.DELETED
        assert row_of(world, job).slow is None


class TestWayBack:
    def test_an_hour_after_its_last_slow_attempt_a_quick_one_brings_it_back(
        self, world: World
    ) -> None:
        hangs(world)
        job = world.create("job", "every 1m", timeout_seconds=5, events=JOB_EVENTS)
        world.run_until(NOON + 5 * MINUTE + 30 * SECOND)
        assert row_of(world, job).lane is Lane.SLOW
        lasts(world, 0.1)
        last = max(run.updated_at for run in world.history(job))
        world.run_until(last + 59 * MINUTE)
        assert row_of(world, job).lane is Lane.SLOW
        world.run_until(last + 62 * MINUTE)
        assert row_of(world, job) == job
        told = [each for each in world.events.emitted if each.type.value.startswith("job.")]
        assert [each.type for each in told] == [EventType.JOB_SLOWED, EventType.JOB_RECOVERED]
        assert len({each.event_id for each in told}) == 2

    def test_it_takes_as_many_slow_attempts_to_be_moved_again(self, world: World) -> None:
        hangs(world)
        job = world.create("job", "every 1m", timeout_seconds=5)
        world.run_until(NOON + 3 * MINUTE)
        lasts(world, 0.1)
        world.run_until(NOON + 70 * MINUTE)
        assert row_of(world, job).lane is Lane.NORMAL
        lasts(world, 3)
        world.run_until(NOON + 71 * MINUTE)
        assert row_of(world, job).lane is Lane.NORMAL


class TestRedirection:
    """A message that came by another lane than its job's is sent there, before its target is
    called."""

    def test_after_a_change_of_the_priority_what_lies_in_the_old_lane_goes_to_the_new(
        self, world: World
    ) -> None:
        job = world.create("job", "* * * * *")
        message = due(world, job)
        world.new_generation(job, priority=Lane.HIGH)
        empty_queue(world)
        handle(world, message)
        (there,) = world.queue.kept()
        assert (there.lane, world.targets.calls) == (Lane.HIGH, [])

    def test_a_job_that_is_back_is_served_by_its_priority(self, world: World) -> None:
        job = world.create("job", "* * * * *")
        message = due(world, job, lane=Lane.SLOW)
        handle(world, message)
        (there,) = world.queue.kept()
        assert there.lane is Lane.NORMAL

    def test_a_paused_job_is_skipped_wherever_its_message_lies(self, world: World) -> None:
        job = world.create("job", "* * * * *")
        message = due(world, job)
        world.pause(marked(world, job))
        handle(world, message)
        assert world.queue.kept() == []
        assert [run.reason for run in world.history(job)] == ["paused"]

    def test_a_fixed_delay_goes_on_as_one_chain_over_the_move(self, world: World) -> None:
        hangs(world)
        job = world.create("job", "every 20s after finish", timeout_seconds=5, retry=ONCE)
        world.run_until(NOON + 5 * MINUTE)
        assert row_of(world, job).lane is Lane.SLOW
        starts = world.fired(job)
        assert len(starts) == len(set(starts)) == 12


class TestSendingOn:
    """Once a message of a job has gone to lane slow, its executor sends the next ones of a batch
    there together, before it handles the others."""

    def sent(self, world: World, *messages: Message, receive_count: int = 1) -> list[int]:
        records = {
            str(number): Received(str(number), encode(each), receive_count)
            for number, each in enumerate(messages)
        }
        return sorted(map(int, world.executor.send_on(records)))

    def by_tick(self, job: Job, minute: int = 2) -> Message:
        return entries_of(job)[0].message_at(NOON + minute * MINUTE)

    def known(self, world: World) -> Job:
        job = marked(world, world.create("slow", "* * * * *"))
        handle(world, due(world, job, lane=Lane.NORMAL))
        empty_queue(world)
        return job

    def test_it_costs_one_request_and_keeps_what_each_stands_for(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow, quick = self.known(world), world.create("quick", "* * * * *")
        assert self.sent(world, self.by_tick(marked(world, world.create("new", "* * * * *")))) == []
        empty_queue(world)
        first, second = self.by_tick(slow), self.by_tick(slow, 3)
        first = replace(first, missed=Missed(NOON, CatchUp.LATEST, slow.schedule))
        calls: Counter[str] = Counter()
        for store, name in ((world.runs, "claim"), (world.jobs, "get"), (world.queue, "send")):
            monkeypatch.setattr(store, name, counted(calls, name, getattr(store, name)))
        assert self.sent(world, first, self.by_tick(quick), second) == [0, 2]
        assert calls == {"send": 1}
        there = sorted((kept.message for kept in world.queue.kept()), key=lambda each: each.due_at)
        assert there == [replace(each, lane=Lane.SLOW) for each in (first, second)]

    def test_what_no_tick_has_sent_is_handled(self, world: World) -> None:
        """A message comes back from lane slow so, and must not be sent there again."""
        message = self.by_tick(self.known(world))
        others = (
            replace(message, slot_key=""),
            replace(message, attempt=2),
            replace(message, lane=Lane.SLOW),
        )
        assert self.sent(world, *others) == []
        assert self.sent(world, message, receive_count=2) == [], "it may have killed its executor"
        assert world.executor.send_on({"0": Received("0", "no message", 1)}) == {}

    def test_a_job_is_known_for_five_minutes_to_ten(self, world: World) -> None:
        message = self.by_tick(self.known(world))
        world.clock.advance(5 * 60)
        assert self.sent(world, message) == [0]
        world.clock.advance(5 * 60 + 1)
        assert self.sent(world, message) == []

    def test_what_cannot_be_sent_is_handled(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(*terms: object) -> None:
            raise QueueUnavailableError(1, "down")

        message = self.by_tick(self.known(world))
        monkeypatch.setattr(world.queue, "send", fails)
        assert self.sent(world, message) == []

    def test_while_the_share_is_taken_it_comes_later(self, world: World) -> None:
        message, ends_at = self.by_tick(self.known(world)), NOON + 5 * MINUTE
        holders = (PermitHolder("another's claim", ends_at),)
        gate = AdmissionRow(OWNER, SLOW_LANE_ROW, 1, ends_at, holders=holders)
        assert world.admission_rows.put(gate, None)
        world.clock.set(message.due_at)
        assert self.sent(world, message) == [0]
        (kept,) = world.queue.kept()
        assert 16 <= (kept.visible_at - message.due_at).total_seconds() <= 32


class TestShareOfAnOwner:
    def test_a_second_owners_honest_job_runs_while_a_culprit_fills_the_lane(
        self, world: World
    ) -> None:
        """The culprit has twenty jobs whose runs last longer than their interval, and one place."""
        for number in range(20):
            marked(world, world.create(f"culprit {number}", "every 10s", timeout_seconds=20))
        honest = replace(world.new_job("honest", "every 30s", timeout_seconds=20), owner="owner-2")
        honest = replace(honest, slow=MARK)
        assert world.indexer.index_job(honest, None)
        active: Counter[str] = Counter()
        most: Counter[str] = Counter()
        lags: list[timedelta] = []

        def behave(call: Call) -> Outcome:
            active[call.owner] += 1
            most[call.owner] = max(most[call.owner], active[call.owner])
            now = world.clock.now()
            if call.owner == "owner-2":
                lags.append(now - call.fire_at)
            world.run_until(now + (8 if call.owner == "owner-2" else 12) * SECOND)
            active[call.owner] -= 1
            return Success(None)

        world.targets.behave = behave
        world.run_until(NOON + 3 * MINUTE)
        assert most[OWNER] == 1
        assert len(lags) >= 5
        assert max(lags) <= 2 * SECOND

    def test_while_the_share_is_taken_what_is_redirected_comes_later_and_a_check_claims_nothing(
        self, world: World
    ) -> None:
        """Each message of lane slow costs an invocation, and a check in full seven requests."""
        job, ends_at = marked(world, world.create("job", "* * * * *")), NOON + 30 * MINUTE
        holders = (PermitHolder("another's claim", ends_at),)
        turns = (QueuedRun("another", NOON - 3 * MINUTE, ends_at),)
        gate = AdmissionRow(OWNER, SLOW_LANE_ROW, 1, ends_at, holders=holders, turns=turns)
        assert world.admission_rows.put(gate, None)
        message = due(world, job, lane=Lane.NORMAL)
        rows, delays = list[Run | None](), list[float]()
        for _ in range(3):
            assert handle(world, message).handled is Handled.DEFERRED
            (kept,) = world.queue.kept()
            message = kept.message
            rows.append(world.runs.get(message.key))
            delays.append((kept.visible_at - world.clock.now()).total_seconds())
            assert message.lane is Lane.SLOW
            empty_queue(world)
            world.clock.set(kept.visible_at)
        assert all(120 <= delay <= 300 for delay in delays), "as long as the first in turn waited"
        assert rows[0] is None, "its claim is given up"
        assert rows[1] is not None
        assert (rows[1].status, rows[1].waits) == (RunStatus.SCHEDULED, 1)
        assert rows[2] == rows[1]
        world.clock.set(ends_at)
        assert handle(world, message).handled is Handled.RAN

    def test_a_place_that_is_given_back_here_is_known_at_once(self, world: World) -> None:
        jobs = [marked(world, world.create(name, "* * * * *")) for name in "abc"]
        held: list[Handled] = []

        def behave(call: Call) -> Outcome:
            if not held:
                held.append(Handled.RAN)
                world.clock.advance(11)
                held.append(handle(world, due(world, jobs[1], lane=Lane.SLOW)).handled)
            return Success(None)

        world.targets.behave = behave
        handle(world, due(world, jobs[0], lane=Lane.SLOW))
        assert held[1] is Handled.DEFERRED
        assert handle(world, due(world, jobs[2], lane=Lane.SLOW)).handled is Handled.RAN

    def test_a_run_that_another_gate_holds_back_leaves_its_place(self, world: World) -> None:
        job = marked(world, world.create("job", "* * * * *", rate=Rate(1, 600)))
        handle(world, due(world, job))
        handle(world, message_of(job, NOON + 2 * MINUTE))
        gate = world.admission_rows.get(job.owner, SLOW_LANE_ROW)
        assert gate is not None
        assert gate.holders == ()
