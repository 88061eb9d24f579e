"""Admission as the protocol passes them: what they cost, and what faults around them leave
behind."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from carillon.domain.admission.state import (
    OWNER_ROW,
    AdmissionRow,
    PermitHolder,
    job_admission,
    key_admission,
    rate_admission,
)
from carillon.domain.job import Job
from carillon.domain.message import Message, encode
from carillon.domain.policies import Concurrency, Overlap, Rate
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.executor.runs.admission import change_admission
from carillon.executor.targets import Call, Outcome, Success
from tests.simulation.mutants.kit import swapped
from tests.simulation.mutants.rates import RESERVATION_OUTLIVES
from tests.support.jobs import job_with
from tests.support.world import FUNCTION_SECONDS, OWNER, World

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def world() -> World:
    return World(NOON)


@pytest.fixture
def calls(world: World, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often gates are read and put."""
    counted: Counter[str] = Counter()
    for name in ("get", "put"):
        original = getattr(world.admission_rows, name)

        def count(*arguments: object, _name: str = name, _original: object = original) -> object:
            counted[_name] += 1
            return _original(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(world.admission_rows, name, count)
    return counted


def due(world: World, job: Job, minutes: int = 1) -> Message:
    """The message of an occurrence, at its very instant; the queue holds nothing."""
    message = message_of(job, NOON + minutes * MINUTE)
    world.clock.set(message.due_at)
    for kept in world.queue.kept():
        world.queue.delete(kept.receipt)
    return message


def handle(world: World, message: Message) -> Handled:
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
    return world.executor.lane(encode(message), ends_at).handled


def run_of(world: World, message: Message) -> Run:
    run = world.runs.get(message.key)
    assert run is not None
    return run


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
        assert handle(world, due(world, job)) is Handled.RAN
        assert (calls["get"], calls["put"]) == (reads, writes)

    def test_spacing_and_overlap_share_one_write(self, world: World, calls: Counter[str]) -> None:
        job = world.create("job", "every 1m", overlap=Overlap.SKIP, tolerance=5)
        handle(world, due(world, job))
        assert (calls["get"], calls["put"]) == (2, 1)

    def test_who_has_waited_for_a_slot_takes_no_second_one(
        self, world: World, calls: Counter[str]
    ) -> None:
        job = world.create("job", "* * * * *", rate=Rate(1, 100))
        assert handle(world, due(world, job)) is Handled.RAN
        assert handle(world, due(world, job, 2)) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.visible_at == kept.message.wait_until == NOON + 160 * SECOND
        writes = calls["put"]
        world.clock.set(kept.visible_at)
        assert handle(world, kept.message) is Handled.RAN
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
        world.executor = Router(replace(world.executor_ports, owner_starts_per_minute=1))
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
        assert handle(world, due(world, job)) is Handled.RAN
        assert handle(world, due(world, job, 2)) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.message.wait_until == NOON + 160 * SECOND
        assert kept.message.rate_slot is not None
        assert kept.message.owner_slot is None
        world.clock.set(kept.visible_at)
        other = world.create("other", "* * * * *")
        first = message_of(other, NOON + 2 * MINUTE)
        assert handle(world, first) is Handled.RAN, "the owner's slots are free meanwhile"
        assert handle(world, kept.message) is Handled.DEFERRED
        again = next(each for each in world.queue.kept() if each.message.owner_slot)
        assert again.message.rate_slot == kept.message.rate_slot
        assert again.message.wait_until == NOON + 220 * SECOND
        world.clock.set(again.visible_at)
        assert handle(world, again.message) is Handled.RAN

    def test_none_is_taken_while_the_key_is_held(self, world: World, job: Job) -> None:
        message = due(world, job)
        self.hold(world, 30)
        assert handle(world, message) is Handled.DEFERRED
        assert run_of(world, message).note == "waits for the concurrency key 'db', held by 1 run"
        assert self.names(world) == []

    def test_the_place_is_kept_until_a_start_that_comes_soon(self, world: World, job: Job) -> None:
        handle(world, due(world, job))
        handle(world, due(world, job, 2))
        (kept,) = world.queue.kept()
        other = world.create("other", "* * * * *", concurrency=Concurrency("db", 1))
        assert handle(world, message_of(other, NOON + 2 * MINUTE)) is Handled.DEFERRED
        world.clock.set(kept.visible_at)
        assert handle(world, kept.message) is Handled.RAN
        gate = world.admission_rows.get(OWNER, key_admission("db"))
        assert gate is not None
        assert gate.holders == ()

    def test_no_place_is_kept_for_a_start_that_is_far_off(self, world: World) -> None:
        key = Concurrency("db", 1)
        job = world.create("job", "* * * * *", rate=Rate(1, 600), concurrency=key)
        other = world.create("other", "* * * * *", concurrency=key)
        handle(world, due(world, job))
        handle(world, due(world, job, 2))
        (kept,) = world.queue.kept()
        assert kept.message.rate_slot is not None
        assert kept.message.rate_slot.at == NOON + 660 * SECOND
        assert kept.message.wait_until == NOON + 570 * SECOND, "it comes for a place before"
        assert handle(world, message_of(other, NOON + 2 * MINUTE)) is Handled.RAN
        for at in (570, 660):
            world.clock.set(NOON + at * SECOND)
            world.queue.delete(kept.receipt)
            handled = handle(world, kept.message)
            (kept,) = world.queue.kept() or [kept]
        assert handled is Handled.RAN

    @pytest.mark.parametrize(("late", "handled"), [(10, Handled.RAN), (11, Handled.DEFERRED)])
    def test_a_slot_that_is_used_late_is_none(
        self, world: World, late: int, handled: Handled
    ) -> None:
        """Or all that an outage has held back would start at once (seeds 61001465, 77005534)."""
        job = world.create("job", "* * * * *", rate=Rate(1, 100))
        handle(world, due(world, job))
        handle(world, due(world, job, 2))
        (kept,) = world.queue.kept()
        for _ in range(3):
            world.ask(job)
        for asked in [each for each in world.queue.kept() if each.message.key.request_id]:
            handle(world, asked.message)
        world.clock.set(kept.visible_at + late * SECOND)
        assert handle(world, kept.message) is handled
        if handled is Handled.DEFERRED:
            again = max(world.queue.kept(), key=lambda each: each.visible_at).message.rate_slot
            assert again is not None
            assert (again.at, again.asked) == (NOON + 560 * SECOND, 2)


class TestLooks:
    """A run that waits for a slot looks each hour whether its job has the same rate still."""

    def waiting(self, world: World, job: Job, count: int) -> None:
        for _ in range(count + 1):
            world.ask(job)
        world.run_until(NOON + MINUTE)
        assert len(world.targets.calls) == 1

    def test_it_costs_no_write_of_the_gate_and_keeps_the_place(
        self, world: World, calls: Counter[str]
    ) -> None:
        job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 3 * 3600))
        self.waiting(world, job, 1)
        writes = calls["put"]
        world.run_until(NOON + 180 * MINUTE)
        assert (len(world.targets.calls), calls["put"]) == (2, writes)
        first, second = sorted(run.started_at for run in world.history(job) if run.started_at)
        assert second - first <= timedelta(hours=3, seconds=1)

    def test_a_raised_rate_starts_what_waits_within_the_hour_and_new_ones_at_once(
        self, world: World
    ) -> None:
        job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400))
        self.waiting(world, job, 50)
        raised = job_with(job, rate=Rate(100, 60), revision=job.revision + 1)
        assert world.jobs.replace(raised, job.revision)
        world.ask(raised)
        world.run_until(NOON + 2 * MINUTE)
        assert len(world.targets.calls) == 2
        world.run_until(NOON + 62 * MINUTE)
        assert len(world.targets.calls) == 52

    def test_planted_a_reservation_that_outlives_its_rate_starts_nothing(
        self, world: World
    ) -> None:
        job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400))
        self.waiting(world, job, 50)
        raised = job_with(job, rate=Rate(100, 60), revision=job.revision + 1)
        assert world.jobs.replace(raised, job.revision)
        with swapped((RESERVATION_OUTLIVES,)):
            world.run_until(NOON + 62 * MINUTE)
        assert len(world.targets.calls) == 1

    def test_a_rate_raised_and_lowered_again_leaves_no_debt(self, world: World) -> None:
        job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400))
        self.waiting(world, job, 50)
        raised = job_with(job, rate=Rate(100, 60), revision=job.revision + 1)
        assert world.jobs.replace(raised, job.revision)
        world.run_until(NOON + 62 * MINUTE)
        assert len(world.targets.calls) == 51
        lowered = replace(job, revision=raised.revision + 1)
        assert world.jobs.replace(lowered, raised.revision)
        asked = world.ask(lowered)
        world.run_until(NOON + 63 * MINUTE)
        run = world.runs.get(asked)
        assert run is not None
        assert run.note is not None
        assert "may start at 2026-12-02T" in run.note, "a day after the last start, not 51"

    def test_a_lowered_rate_has_those_who_wait_ask_anew(self, world: World) -> None:
        job = world.create("quick", "0 0 1 1 *", rate=Rate(1, 3600))
        self.waiting(world, job, 5)
        lowered = job_with(job, rate=Rate(1, 7200), revision=job.revision + 1)
        assert world.jobs.replace(lowered, job.revision)
        world.run_until(NOON + timedelta(hours=12))
        starts = sorted(run.started_at for run in world.history(job) if run.started_at)
        hours = [round((at - NOON).total_seconds() / 3600) for at in starts]
        assert hours[:2] == [0, 1], "what was granted within the hour stays granted"
        gaps = [later - before for before, later in pairwise(hours[1:])]
        assert gaps == [3, 2, 2, 2], "what was granted for the next hour counts, used or not"

    def test_a_job_without_a_rate_any_more_gives_up_what_it_had_reserved(
        self, world: World
    ) -> None:
        job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400, "mail"))
        self.waiting(world, job, 20)
        other = world.create("other", "0 0 1 1 *", rate=Rate(1, 86_400, "mail"))
        free = job_with(job, rate=None, revision=job.revision + 1)
        assert world.jobs.replace(free, job.revision)
        world.run_until(NOON + 62 * MINUTE)
        assert len(world.targets.calls) == 21
        asked = world.ask(other)
        world.run_until(NOON + 63 * MINUTE)
        run = world.runs.get(asked)
        assert run is not None
        assert run.next_attempt_at is not None
        slot = world.admission_rows.get(OWNER, rate_admission("mail", ""))
        assert slot is not None
        assert slot.started_at is not None
        assert slot.started_at <= NOON + timedelta(days=1, hours=2)


class TestFaults:
    def test_gates_that_cannot_be_read_use_up_no_attempt(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, world.create("job", "* * * * *", overlap=Overlap.SKIP))

        def throttled(owner: str, name: str) -> AdmissionRow | None:
            raise StoreUnavailableError("throttled")

        with monkeypatch.context() as patch:
            patch.setattr(world.admission_rows, "get", throttled)
            assert handle(world, message) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        assert kept.visible_at == message.due_at + 10 * SECOND
        assert handle(world, kept.message) is Handled.RAN
        assert run_of(world, message).attempt == 1

    def test_a_gate_that_changes_at_every_step_is_passed_later(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, world.create("job", "* * * * *", rate=Rate(9, 60)))
        with monkeypatch.context() as patch:
            patch.setattr(world.admission_rows, "put", lambda gate, over_revision: False)
            assert handle(world, message) is Handled.DEFERRED
        waiting = run_of(world, message)
        assert (waiting.status, waiting.attempt) == (RunStatus.SCHEDULED, 0)
        assert waiting.note is not None
        assert waiting.note.startswith("many pass the gate")
        (kept,) = world.queue.kept()
        assert kept.message.rate_slot is None
        world.clock.set(kept.visible_at)
        assert handle(world, kept.message) is Handled.RAN

    def test_a_place_that_cannot_be_given_back_ends_with_its_lease(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = due(world, job)
        get = world.admission_rows.get

        def fail_from_now_on(call: Call) -> Outcome:
            def throttled(owner: str, name: str) -> AdmissionRow | None:
                raise StoreUnavailableError("throttled")

            monkeypatch.setattr(world.admission_rows, "get", throttled)
            return Success(None)

        world.targets.behave = fail_from_now_on
        assert handle(world, message) is Handled.RAN
        assert run_of(world, message).status is RunStatus.SUCCEEDED
        monkeypatch.setattr(world.admission_rows, "get", get)
        world.targets.behave = lambda call: Success(None)
        following = message_of(job, NOON + 2 * MINUTE)
        world.clock.set(following.due_at)
        assert handle(world, following) is Handled.DEFERRED, "the lease ends after 61 seconds"
        (waiting,) = world.queue.kept()
        world.clock.set(waiting.visible_at)
        assert handle(world, waiting.message) is Handled.RAN

    def test_slow_gates_start_no_run_that_cannot_end_in_time(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = due(world, job)
        get = world.admission_rows.get

        def slow(owner: str, name: str) -> AdmissionRow | None:
            world.clock.advance(20)
            return get(owner, name)

        with monkeypatch.context() as patch:
            patch.setattr(world.admission_rows, "get", slow)
            ends_at = world.clock.now() + 25 * SECOND
            report = world.executor.handle(message, ends_at)
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
        message = due(world, job)
        assert handle(world, message) is Handled.DEFERRED
        assert handle(world, message) is Handled.DROPPED
        (first,) = world.queue.kept()
        world.clock.set(first.visible_at)
        outcomes = [handle(world, first.message) for _ in range(3)]
        assert outcomes == [Handled.DEFERRED, Handled.DROPPED, Handled.DROPPED]
        assert run_of(world, message).waits == 2
        key = replace(message.key, kind=RunKind.MANUAL, request_id="other", fire_at=NOON)
        other = world.runs.get(key)
        assert other is not None
        assert world.runs.finish(replace(other, status=RunStatus.SUCCEEDED))
        world.queue.delete(first.receipt)
        (second,) = world.queue.kept()
        world.clock.set(second.visible_at)
        assert [handle(world, second.message) for _ in range(2)] == [
            Handled.RAN,
            Handled.REPEATED,
        ]
        assert len(world.targets.calls) == 1

    def test_a_crash_behind_the_copy_leaves_a_message_that_is_current(
        self, world: World, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The copy was sent and the row not put back: whichever comes first takes the run over."""
        message = due(world, job)

        class Killed(BaseException):
            pass

        def die(run: Run) -> bool:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(world.runs, "finish", die)
            with pytest.raises(Killed):
                handle(world, message)
        (copy,) = world.queue.kept()
        world.clock.set(copy.visible_at)
        assert handle(world, copy.message) is Handled.DEFERRED, "ahead of its row: it looks again"
        world.clock.advance(FUNCTION_SECONDS + 2)
        assert handle(world, message) is Handled.DEFERRED
        run = run_of(world, message)
        assert (run.status, run.waits) == (RunStatus.RETRYING, 1)
        assert handle(world, message) is Handled.REPEATED

    def test_a_queue_that_takes_no_copy_costs_no_attempt(
        self, world: World, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, job)

        def refuse(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
            raise QueueUnavailableError(1, "throttled")

        with monkeypatch.context() as patch:
            patch.setattr(world.queue, "send", refuse)
            with pytest.raises(QueueUnavailableError):
                handle(world, message)
        assert world.runs.get(message.key) is None
        assert handle(world, message) is Handled.DEFERRED
        assert run_of(world, message).attempt == 0

    def test_a_dead_letter_queue_ends_it_at_last(self, world: World, job: Job) -> None:
        """No executor could begin it for ten days: whoever waits behind it must go on."""
        message = due(world, job)
        handle(world, message)
        (kept,) = world.queue.kept()
        world.clock.advance(11 * 86_400)
        ends_at = world.clock.now() + MINUTE
        assert world.executor.handle_dead(kept.message, ends_at).handled is Handled.RAN
        run = run_of(world, message)
        assert (run.status, run.reason) == (RunStatus.DEAD, "never_started")

    def test_a_cancelled_one_absorbs_its_message(self, world: World, job: Job) -> None:
        message = due(world, job)
        handle(world, message)
        waiting = run_of(world, message)
        now = world.clock.now()
        cancelled = replace(waiting, status=RunStatus.CANCELLED, finished_at=now)
        assert world.runs.claim(cancelled, waiting)
        (kept,) = world.queue.kept()
        world.clock.advance(5)
        assert handle(world, kept.message) is Handled.REPEATED
        assert world.targets.calls == []
        assert len(world.queue.kept()) == 1, "nothing was sent"

    def test_noise_that_waited_leaves_no_row(self, world: World, job: Job) -> None:
        """The job was re-indexed meanwhile, more often than it remembers the generations of."""
        message = due(world, job)
        handle(world, message)
        (kept,) = world.queue.kept()
        changed = job
        for _ in range(6):
            world.clock.advance(1)
            changed = world.new_generation(changed, "0 0 * * *")
        without = replace(changed, previous=None, earlier=(), revision=changed.revision + 1)
        assert world.jobs.replace(without, changed.revision)
        world.clock.advance(120)
        assert handle(world, kept.message) is Handled.DROPPED
        assert world.runs.get(message.key) is None


def test_a_fixed_delay_goes_on_after_a_cancelled_run(world: World) -> None:
    job = world.create("job", "every 60s after finish")
    message = due(world, job)
    row = Run(message.key, RunStatus.CANCELLED, 0, 1, "c", message.generation_id, NOON, NOON)
    assert world.runs.claim(replace(row, finished_at=message.due_at), None)
    handle(world, message)
    world.run_until(NOON + 4 * MINUTE)
    assert world.fired(job)[0] == NOON + 2 * MINUTE
