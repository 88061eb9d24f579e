"""Admission as the protocol passes them: what they cost, and what faults around them leave
behind."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest

from carillon.domain.admission.state import (
    OWNER_ROW,
    AdmissionRow,
    PermitHolder,
    job_admission,
    key_admission,
    rate_admission,
)
from carillon.domain.job import Job, Lane
from carillon.domain.policies import CatchUp, Concurrency, Overlap, Rate
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import QueueUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.executor.runs.admission import change_admission
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.support.world import OWNER, quotas_of
from tests.unit.executor.kit import LEASE_SECONDS, MINUTE, NOON, SECOND, World
from tests.unit.faults import preceded


def active_run(world: World, job: Job) -> Run:
    """The row of a run of the job by hand, which is under way and named by the job's gate."""
    key = replace(message_of(job, NOON).key, kind=RunKind.MANUAL, request_id="other")
    run = Run(key, RunStatus.RUNNING, 1, 1, "c", job.generation.generation_id, NOON, NOON)
    assert world.runs.claim(run, None)
    gate = AdmissionRow(OWNER, job_admission(job.job_id), 1, NOON, active=key.run_id)
    assert world.admission_rows.put(gate, None)
    return run


class TestCosts:
    @pytest.mark.parametrize(
        ("policy", "reads", "writes"),
        [
            ({}, 0, 0),
            ({"grace": 5, "pause_after_failures": None}, 0, 0),
            ({"overlap": Overlap.SKIP}, 2, 1),  # one read to see who waits for its end
            ({"rate": Rate(5, 60)}, 1, 1),
            ({"concurrency": Concurrency("db", 3)}, 2, 2),
            ({"rate": Rate(5, 60), "concurrency": Concurrency("db", 3)}, 3, 3),
        ],
    )
    def test_a_run_pays_for_the_policies_of_its_job(
        self, world: World, calls: Counter[str], policy: object, reads: int, writes: int
    ) -> None:
        job = world.create("job", "* * * * *", **policy)  # type: ignore[arg-type]
        assert world.lane(world.due(job)) is Handled.RAN
        assert (calls["get"], calls["put"]) == (reads, writes)

    def test_spacing_and_overlap_share_one_write(self, world: World, calls: Counter[str]) -> None:
        job = world.create("job", "every 1m", overlap=Overlap.SKIP, tolerance=5)
        world.lane(world.due(job))
        assert (calls["get"], calls["put"]) == (2, 1)

    def test_who_has_waited_for_a_slot_takes_no_second_one(
        self, world: World, calls: Counter[str]
    ) -> None:
        job = world.create("job", "* * * * *", rate=Rate(1, 100))
        assert world.lane(world.due(job)) is Handled.RAN
        assert world.lane(world.due(job, 2)) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.visible_at == kept.message.wait_until == NOON + 160 * SECOND
        writes = calls["put"]
        world.clock.set(kept.visible_at)
        assert world.lane(kept.message) is Handled.RAN
        assert calls["put"] == writes


class TestChangeGate:
    def test_it_is_asked_again_where_another_was_quicker(self, world: World) -> None:
        seen = []

        def change(gate: AdmissionRow) -> AdmissionRow:
            seen.append(gate.active)
            if len(seen) == 1:
                assert world.admission_rows.put(
                    AdmissionRow(OWNER, "g", 1, NOON, active="another"), None
                )
            return replace(gate, active="mine").lasting(NOON)

        assert change_admission(world.admission_rows, OWNER, "g", change)
        assert seen == ["", "another"]
        gate = world.admission_rows.get(OWNER, "g")
        assert gate is not None
        assert (gate.active, gate.revision) == ("mine", 2)

    @pytest.mark.parametrize("answer", [None, "the same"])
    def test_nothing_is_put_where_nothing_changes(
        self, world: World, calls: Counter[str], answer: str | None
    ) -> None:
        assert change_admission(
            world.admission_rows, OWNER, "g", lambda gate: gate if answer else None
        )
        assert (calls["get"], calls["put"]) == (1, 0)

    def test_it_gives_up_where_others_change_it_at_every_step(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(world.admission_rows, "put", lambda gate, over_revision: False)
        assert not change_admission(
            world.admission_rows, OWNER, "g", lambda gate: gate.lasting(NOON)
        )


class TestSlots:
    """Of its job's rate and of its owner's, with a concurrency key besides."""

    @pytest.fixture
    def job(self, world: World) -> Job:
        world.executor = Router(
            replace(world.executor_ports, quotas=quotas_of(starts_per_minute=1))
        )
        return world.create("job", "* * * * *", rate=Rate(1, 100), concurrency=Concurrency("db", 1))

    def names(self, world: World) -> list[str]:
        """The rates that have granted a slot."""
        rates = [OWNER_ROW, rate_admission("", world.jobs.list(OWNER, 1).items[0].job_id)]
        return [name for name in rates if world.admission_rows.get(OWNER, name) is not None]

    def hold(self, world: World, seconds: int) -> None:
        until = world.clock.now() + seconds * SECOND
        stored = world.admission_rows.get(OWNER, key_admission("db"))
        gate = stored or AdmissionRow(OWNER, key_admission("db"), 1, until)
        held = replace(gate, revision=gate.revision + 1, holders=(PermitHolder("other", until),))
        assert world.admission_rows.put(held, None if stored is None else stored.revision)

    def test_one_gate_at_a_time(self, world: World, job: Job) -> None:
        assert world.lane(world.due(job)) is Handled.RAN
        assert world.lane(world.due(job, 2)) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.message.wait_until == NOON + 160 * SECOND
        assert kept.message.rate_slot is not None
        assert kept.message.owner_slot is None
        world.clock.set(kept.visible_at)
        other = world.create("other", "* * * * *")
        first = message_of(other, NOON + 2 * MINUTE)
        assert world.lane(first) is Handled.RAN, "the owner's slots are free meanwhile"
        assert world.lane(kept.message) is Handled.DEFERRED
        again = next(each for each in world.queue.kept() if each.message.owner_slot)
        assert again.message.rate_slot == kept.message.rate_slot
        assert again.message.wait_until == NOON + 220 * SECOND
        world.clock.set(again.visible_at)
        assert world.lane(again.message) is Handled.RAN

    def test_none_is_taken_while_the_key_is_held(self, world: World, job: Job) -> None:
        message = world.due(job)
        self.hold(world, 30)
        assert world.lane(message) is Handled.DEFERRED
        assert world.run_of(message).note == "waits for the concurrency key 'db', held by 1 run"
        assert self.names(world) == []

    def test_the_place_is_kept_until_a_start_that_comes_soon(self, world: World, job: Job) -> None:
        world.lane(world.due(job))
        world.lane(world.due(job, 2))
        (kept,) = world.queue.kept()
        other = world.create("other", "* * * * *", concurrency=Concurrency("db", 1))
        assert world.lane(message_of(other, NOON + 2 * MINUTE)) is Handled.DEFERRED
        world.clock.set(kept.visible_at)
        assert world.lane(kept.message) is Handled.RAN
        gate = world.admission_rows.get(OWNER, key_admission("db"))
        assert gate is not None
        assert gate.holders == ()

    def test_one_that_is_put_off_at_its_start_does_not_wait_for_its_own_place(
        self, world: World
    ) -> None:
        key = Concurrency("db", 1)
        job = world.create("job", "* * * * *", rate=Rate(1, 100), concurrency=key)
        world.lane(world.due(job))
        world.lane(world.due(job, 2))
        (kept,) = world.queue.kept()
        world.clock.set(kept.visible_at)
        report = world.handle(kept.message, 5)
        assert report.reason == "too little time is left in this process"
        world.clock.advance(1)
        assert world.lane(report.message) is Handled.RAN

    def test_nor_does_one_whose_job_is_served_in_another_lane_by_then(self, world: World) -> None:
        key = Concurrency("db", 1)
        job = world.create("job", "* * * * *", rate=Rate(1, 100), concurrency=key)
        world.lane(world.due(job))
        world.lane(world.due(job, 2))
        (kept,) = world.queue.kept()
        world.change(job, priority=Lane.LOW)
        world.clock.set(kept.visible_at)
        there = world.handle(kept.message)
        assert there.message.lane is Lane.LOW
        assert world.lane(there.message) is Handled.RAN

    def test_a_retry_that_waits_for_a_start_says_so(self, world: World) -> None:
        down = Failure(RunError("http_503", "down"))
        world.targets.behave = lambda call: down if call.attempt == 1 else Success(None)
        job = world.create("job", "at 2026-12-01T12:01:00Z", rate=Rate(1, 600))
        world.run_until(NOON + 2 * MINUTE)
        (run,) = world.history(job)
        assert (run.status, run.next_attempt_at) == (RunStatus.RETRYING, NOON + 11 * MINUTE)
        assert run.note == "1 starts in 600 s are reached, it may start at 2026-12-01T12:11:00Z"
        world.run_until(NOON + 11 * MINUTE)
        (run,) = world.history(job)
        assert (run.status, run.note) == (RunStatus.SUCCEEDED, None)

    def test_no_place_is_kept_for_a_start_that_is_far_off(self, world: World) -> None:
        key = Concurrency("db", 1)
        job = world.create("job", "* * * * *", rate=Rate(1, 600), concurrency=key)
        other = world.create("other", "* * * * *", concurrency=key)
        world.lane(world.due(job))
        world.lane(world.due(job, 2))
        (kept,) = world.queue.kept()
        assert kept.message.rate_slot is not None
        assert kept.message.rate_slot.at == NOON + 660 * SECOND
        assert kept.message.wait_until == NOON + 570 * SECOND, "it comes for a place before"
        assert world.lane(message_of(other, NOON + 2 * MINUTE)) is Handled.RAN
        for at in (570, 660):
            world.clock.set(NOON + at * SECOND)
            world.queue.delete(kept.receipt)
            handled = world.lane(kept.message)
            (kept,) = world.queue.kept() or [kept]
        assert handled is Handled.RAN

    @pytest.mark.parametrize(("late", "handled"), [(10, Handled.RAN), (11, Handled.DEFERRED)])
    def test_a_slot_that_is_used_late_is_none(
        self, world: World, late: int, handled: Handled
    ) -> None:
        """Or all that an outage has held back would start at once (seeds 61001465, 77005534)."""
        job = world.create("job", "* * * * *", rate=Rate(1, 100))
        world.lane(world.due(job))
        world.lane(world.due(job, 2))
        (kept,) = world.queue.kept()
        for _ in range(3):
            world.ask(job)
        for asked in [each for each in world.queue.kept() if each.message.key.request_id]:
            world.lane(asked.message)
        world.clock.set(kept.visible_at + late * SECOND)
        assert world.lane(kept.message) is handled
        if handled is Handled.DEFERRED:
            again = max(world.queue.kept(), key=lambda each: each.visible_at).message.rate_slot
            assert again is not None
            assert (again.at, again.asked) == (NOON + 560 * SECOND, 2)


class TestFaults:
    def test_gates_that_cannot_be_read_use_up_no_attempt(self, world: World) -> None:
        message = world.due(world.create("job", "* * * * *", overlap=Overlap.SKIP))

        with world.failing(world.admission_rows, "get"):
            assert world.lane(message) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.visible_at == message.due_at + 10 * SECOND
        assert world.lane(kept.message) is Handled.RAN
        assert world.run_of(message).attempt == 1

    def test_a_gate_that_changes_at_every_step_is_passed_later(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = world.due(world.create("job", "* * * * *", rate=Rate(9, 60)))
        with monkeypatch.context() as patch:
            patch.setattr(world.admission_rows, "put", lambda gate, over_revision: False)
            assert world.lane(message) is Handled.DEFERRED
        waiting = world.run_of(message)
        assert (waiting.status, waiting.attempt) == (RunStatus.SCHEDULED, 0)
        assert waiting.note is not None
        assert waiting.note.startswith("many pass the gate")
        (kept,) = world.queue.kept()
        assert kept.message.rate_slot is None
        world.clock.set(kept.visible_at)
        assert world.lane(kept.message) is Handled.RAN

    def test_a_place_that_cannot_be_given_back_ends_with_its_lease(self, world: World) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = world.due(job)
        with ExitStack() as stack:

            def fail_from_now_on(call: Call) -> Outcome:
                stack.enter_context(world.failing(world.admission_rows, "get"))
                return Success(None)

            world.targets.behave = fail_from_now_on
            assert world.lane(message) is Handled.RAN
        assert world.run_of(message).status is RunStatus.SUCCEEDED
        world.targets.behave = lambda call: Success(None)
        following = message_of(job, NOON + 2 * MINUTE)
        world.clock.set(following.due_at)
        assert world.lane(following) is Handled.DEFERRED, "the lease ends after 61 seconds"
        (waiting,) = world.queue.kept()
        world.clock.set(waiting.visible_at)
        assert world.lane(waiting.message) is Handled.RAN

    def test_a_place_is_given_back_behind_the_row(self, world: World) -> None:
        """A gate may be contended for longer than its run's claim lasts."""
        message = world.due(world.create("job", "* * * * *", concurrency=Concurrency("db", 1)))
        ended: list[RunStatus] = []

        def look() -> None:
            ended.append(world.run_of(message).status)

        with preceded(world.admission_rows, "put", look, number=2):
            assert world.lane(message) is Handled.RAN
        assert ended == [RunStatus.SUCCEEDED]

    def test_slow_gates_start_no_run_that_cannot_end_in_time(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = world.due(job)
        get = world.admission_rows.get

        def slow(owner: str, name: str) -> AdmissionRow | None:
            world.clock.advance(20)
            return get(owner, name)

        with monkeypatch.context() as patch:
            patch.setattr(world.admission_rows, "get", slow)
            report = world.handle(message, 25)
        assert (report.handled, report.reason) == (
            Handled.DEFERRED,
            "too little time is left in this process",
        )
        assert world.targets.calls == []
        gate = world.admission_rows.get(OWNER, key_admission("db"))
        assert gate is not None
        assert gate.holders == (), "its place is free for others"


class TestRunsThatWait:
    @pytest.fixture
    def job(self, world: World) -> Job:
        job = world.create("job", "* * * * *", overlap=Overlap.QUEUE_ONE)
        active_run(world, job)
        return job

    def test_duplicates_of_the_message_die_out(self, world: World, job: Job) -> None:
        message = world.due(job)
        assert world.lane(message) is Handled.DEFERRED
        assert world.lane(message) is Handled.DROPPED
        (first,) = world.queue.kept()
        world.clock.set(first.visible_at)
        outcomes = [world.lane(first.message) for _ in range(3)]
        assert outcomes == [Handled.DEFERRED, Handled.DROPPED, Handled.DROPPED]
        assert world.run_of(message).waits == 2
        key = replace(message.key, kind=RunKind.MANUAL, request_id="other", fire_at=NOON)
        other = world.runs.get(key)
        assert other is not None
        assert world.runs.finish(replace(other, status=RunStatus.SUCCEEDED))
        world.queue.delete(first.receipt)
        (second,) = world.queue.kept()
        world.clock.set(second.visible_at)
        assert [world.lane(second.message) for _ in range(2)] == [
            Handled.RAN,
            Handled.REPEATED,
        ]
        assert len(world.targets.calls) == 1

    @pytest.mark.parametrize(("minutes", "is_woken"), [(3, True), (20, False)])
    def test_one_that_may_be_late_is_left_to_its_own_message(
        self, world: World, minutes: int, is_woken: bool
    ) -> None:
        """That alone knows that it was in time for its grace before it was throttled."""
        job = world.create(
            "late", "* * * * *", overlap=Overlap.QUEUE_ONE, catch_up=CatchUp.SKIP, grace=120
        )
        waiting = replace(message_of(job, NOON + 2 * MINUTE), in_time=True)

        def meanwhile(call: Call) -> Outcome:
            if not world.queue.kept():
                world.clock.set(NOON + minutes * MINUTE)
                assert world.lane(waiting) is Handled.DEFERRED
            return Success(None)

        world.targets.behave = meanwhile
        world.lane(world.due(job))
        assert len(world.queue.kept()) == (2 if is_woken else 1)
        world.run_until(NOON + (minutes + 1) * MINUTE, ticking=False)
        assert world.run_of(waiting).status is RunStatus.SUCCEEDED

    def test_a_crash_behind_the_copy_leaves_a_message_that_is_current(
        self, world: World, job: Job
    ) -> None:
        """The copy was sent and the row not put back: whichever comes first takes the run over."""
        message = world.due(job)

        with world.dying(world.runs, "finish"):
            world.lane(message)
        (copy,) = world.queue.kept()
        world.clock.set(copy.visible_at)
        assert world.lane(copy.message) is Handled.DEFERRED, "ahead of its row: it looks again"
        world.clock.advance(LEASE_SECONDS)
        assert world.lane(message) is Handled.DEFERRED
        run = world.run_of(message)
        assert (run.status, run.waits) == (RunStatus.RETRYING, 1)
        assert world.lane(message) is Handled.REPEATED

    def test_a_queue_that_takes_no_copy_costs_no_attempt(self, world: World, job: Job) -> None:
        message = world.due(job)

        gone = QueueUnavailableError(1, "throttled")
        with world.failing(world.queue, "send", gone), pytest.raises(QueueUnavailableError):
            world.lane(message)
        assert world.runs.get(message.key) is None
        assert world.lane(message) is Handled.DEFERRED
        assert world.run_of(message).attempt == 0

    def test_a_dead_letter_queue_ends_it_at_last(self, world: World, job: Job) -> None:
        """No executor could begin it for ten days: whoever waits behind it must go on."""
        message = world.due(job)
        world.lane(message)
        (kept,) = world.queue.kept()
        world.clock.advance(11 * 86_400)
        assert world.handle_dead(kept.message).handled is Handled.RAN
        run = world.run_of(message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "never_started")

    def test_a_cancelled_one_absorbs_its_message(self, world: World, job: Job) -> None:
        message = world.due(job)
        world.lane(message)
        waiting = world.run_of(message)
        now = world.clock.now()
        cancelled = replace(waiting, status=RunStatus.CANCELLED, finished_at=now)
        assert world.runs.claim(cancelled, waiting)
        (kept,) = world.queue.kept()
        world.clock.advance(5)
        assert world.lane(kept.message) is Handled.REPEATED
        assert world.targets.calls == []
        assert len(world.queue.kept()) == 1, "nothing was sent"

    def test_noise_that_waited_leaves_no_row(self, world: World, job: Job) -> None:
        """The job was re-indexed meanwhile, more often than it remembers the generations of."""
        message = world.due(job)
        world.lane(message)
        (kept,) = world.queue.kept()
        changed = job
        for _ in range(6):
            world.clock.advance(1)
            changed = world.new_generation(changed, "0 0 * * *")
        without = replace(changed, previous=None, earlier=(), revision=changed.revision + 1)
        assert world.jobs.replace(without, changed.revision)
        world.clock.advance(120)
        assert world.lane(kept.message) is Handled.DROPPED
        assert world.runs.get(message.key) is None


def test_a_fixed_delay_goes_on_after_a_cancelled_run(world: World) -> None:
    job = world.create("job", "every 60s after finish")
    message = world.due(job)
    row = Run(message.key, RunStatus.CANCELLED, 0, 1, "c", message.generation_id, NOON, NOON)
    assert world.runs.claim(replace(row, finished_at=message.due_at), None)
    world.lane(message)
    world.run_until(NOON + 4 * MINUTE)
    assert world.fired(job)[0] == NOON + 2 * MINUTE
