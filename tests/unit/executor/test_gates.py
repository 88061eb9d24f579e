"""Gates as the protocol passes them: what they cost, and what faults around them leave behind."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from functions.executor.executor import Executor
from functions.executor.gates import change_gate
from functions.executor.protocol import Handled
from functions.executor.targets import Call, Outcome, Success
from shared.domain.gate import OWNER_GATE, Gate, Holder, job_gate, key_gate, rate_gate
from shared.domain.job import Job
from shared.domain.message import Message, encode
from shared.domain.policies import Concurrency, Overlap, Rate
from shared.domain.run import Run, RunKind, RunStatus
from shared.domain.wheel import message_of
from shared.errors import QueueUnavailableError, StoreUnavailableError
from tests.simulation.world import FUNCTION_SECONDS, OWNER, World

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
        original = getattr(world.gates, name)

        def count(*arguments: object, _name: str = name, _original: object = original) -> object:
            counted[_name] += 1
            return _original(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(world.gates, name, count)
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
    return world.reception.lane(encode(message), ends_at).handled


def run_of(world: World, message: Message) -> Run:
    run = world.runs.get(message.key)
    assert run is not None
    return run


def active_run(world: World, job: Job) -> Run:
    """The row of a run of the job by hand, which is under way and named by the job's gate."""
    key = replace(message_of(job, NOON).key, kind=RunKind.MANUAL, request_id="other")
    run = Run(key, RunStatus.RUNNING, 1, 1, "c", job.filing.filing_id, NOON, NOON)
    assert world.runs.claim(run, None)
    gate = Gate(OWNER, job_gate(job.job_id), 1, NOON, active=key.run_id)
    assert world.gates.put(gate, None)
    return run


class TestCosts:
    @pytest.mark.parametrize(
        ("policy", "reads", "writes"),
        [
            ({}, 0, 0),
            ({"grace_seconds": 5, "pause_after_failures": None}, 0, 0),
            ({"overlap": Overlap.SKIP}, 2, 1),  # one read to see who waits for its end
            ({"rate": Rate(5, 60)}, 1, 1),
            ({"concurrency": Concurrency("db", 3)}, 2, 2),
            ({"rate": Rate(5, 60), "concurrency": Concurrency("db", 3)}, 4, 3),
        ],
    )
    def test_a_run_pays_for_the_policies_of_its_job(
        self, world: World, calls: Counter[str], policy: object, reads: int, writes: int
    ) -> None:
        job = world.create("job", "* * * * *", **policy)  # type: ignore[arg-type]
        assert handle(world, due(world, job)) is Handled.RAN
        assert (calls["get"], calls["put"]) == (reads, writes)

    def test_spacing_and_overlap_share_one_write(self, world: World, calls: Counter[str]) -> None:
        job = world.create("job", "every 1m", overlap=Overlap.SKIP, tolerance_seconds=5)
        handle(world, due(world, job))
        assert (calls["get"], calls["put"]) == (2, 1)

    def test_who_has_waited_for_a_slot_takes_no_second_one(
        self, world: World, calls: Counter[str]
    ) -> None:
        job = world.create("job", "* * * * *", rate=Rate(1, 100))
        assert handle(world, due(world, job)) is Handled.RAN
        assert handle(world, due(world, job, 2)) is Handled.SENT_ON
        (kept,) = world.queue.kept()
        assert kept.visible_at == kept.message.wait_until == NOON + 160 * SECOND
        writes = calls["put"]
        world.clock.set(kept.visible_at)
        assert handle(world, kept.message) is Handled.RAN
        assert calls["put"] == writes


class TestChangeGate:
    def test_it_is_asked_again_where_another_was_quicker(self, world: World) -> None:
        seen = []

        def change(gate: Gate) -> Gate:
            seen.append(gate.active)
            if len(seen) == 1:
                assert world.gates.put(Gate(OWNER, "g", 1, NOON, active="another"), None)
            return replace(gate, active="mine").lasting(NOON)

        assert change_gate(world.gates, OWNER, "g", change)
        assert seen == ["", "another"]
        gate = world.gates.get(OWNER, "g")
        assert gate is not None
        assert (gate.active, gate.revision) == ("mine", 2)

    @pytest.mark.parametrize("answer", [None, "the same"])
    def test_nothing_is_put_where_nothing_changes(
        self, world: World, calls: Counter[str], answer: str | None
    ) -> None:
        assert change_gate(world.gates, OWNER, "g", lambda gate: gate if answer else None)
        assert (calls["get"], calls["put"]) == (1, 0)

    def test_it_gives_up_where_others_change_it_at_every_step(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(world.gates, "put", lambda gate, over_revision: False)
        assert not change_gate(world.gates, OWNER, "g", lambda gate: gate.lasting(NOON))


class TestSlots:
    """Of its job's rate and of its owner's, with a concurrency key besides."""

    @pytest.fixture
    def job(self, world: World) -> Job:
        world.executor = Executor(replace(world.executor_ports, owner_starts_per_minute=1))
        return world.create("job", "* * * * *", rate=Rate(1, 100), concurrency=Concurrency("db", 1))

    def names(self, world: World) -> list[str]:
        """The rates that have granted a slot."""
        rates = [OWNER_GATE, rate_gate("", world.jobs.list(OWNER, 1).items[0].job_id)]
        return [name for name in rates if world.gates.get(OWNER, name) is not None]

    def hold(self, world: World, seconds: int) -> None:
        until = world.clock.now() + seconds * SECOND
        stored = world.gates.get(OWNER, key_gate("db"))
        gate = stored or Gate(OWNER, key_gate("db"), 1, until)
        held = replace(gate, revision=gate.revision + 1, holders=(Holder("other", until),))
        assert world.gates.put(held, None if stored is None else stored.revision)

    def test_one_gate_at_a_time(self, world: World, job: Job) -> None:
        assert handle(world, due(world, job)) is Handled.RAN
        assert handle(world, due(world, job, 2)) is Handled.SENT_ON
        (kept,) = world.queue.kept()
        assert kept.message.wait_until == NOON + 160 * SECOND
        assert (kept.message.has_rate_slot, kept.message.has_owner_slot) == (True, False)
        world.clock.set(kept.visible_at)
        other = world.create("other", "* * * * *")
        first = message_of(other, NOON + 2 * MINUTE)
        assert handle(world, first) is Handled.RAN, "the owner's slots are free meanwhile"
        assert handle(world, kept.message) is Handled.SENT_ON
        again = next(each for each in world.queue.kept() if each.message.has_owner_slot)
        assert again.message.has_rate_slot
        assert again.message.wait_until == NOON + 220 * SECOND
        world.clock.set(again.visible_at)
        assert handle(world, again.message) is Handled.RAN

    def test_none_is_taken_while_the_key_is_held(self, world: World, job: Job) -> None:
        message = due(world, job)
        self.hold(world, 30)
        assert handle(world, message) is Handled.SENT_ON
        assert run_of(world, message).note == "1 runs hold the concurrency key 'db'"
        assert self.names(world) == []

    def test_they_are_lost_where_the_key_is_held_for_long(self, world: World, job: Job) -> None:
        """Once it comes again at once; then the rate must count a start of then."""
        handle(world, due(world, job))
        handle(world, due(world, job, 2))
        (kept,) = world.queue.kept()
        world.clock.set(kept.visible_at)
        self.hold(world, 30)
        slots = []
        for _ in range(3):
            world.queue.delete(kept.receipt)
            assert handle(world, kept.message) is Handled.SENT_ON
            (kept,) = world.queue.kept()
            slots.append(kept.message.has_rate_slot)
            world.clock.set(kept.visible_at)
        assert slots == [True, False, False]


class TestFaults:
    def test_gates_that_cannot_be_read_use_up_no_attempt(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, world.create("job", "* * * * *", overlap=Overlap.SKIP))

        def throttled(owner: str, name: str) -> Gate | None:
            raise StoreUnavailableError("throttled")

        with monkeypatch.context() as patch:
            patch.setattr(world.gates, "get", throttled)
            assert handle(world, message) is Handled.SENT_ON
        (kept,) = world.queue.kept()
        assert kept.visible_at == message.due_at + 10 * SECOND
        assert handle(world, kept.message) is Handled.RAN
        assert run_of(world, message).attempt == 1

    def test_a_gate_that_changes_at_every_step_is_passed_later(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, world.create("job", "* * * * *", rate=Rate(9, 60)))
        with monkeypatch.context() as patch:
            patch.setattr(world.gates, "put", lambda gate, over_revision: False)
            assert handle(world, message) is Handled.SENT_ON
        waiting = run_of(world, message)
        assert (waiting.status, waiting.attempt) == (RunStatus.SCHEDULED, 0)
        assert waiting.note is not None
        assert waiting.note.startswith("many pass the gate")
        (kept,) = world.queue.kept()
        assert not kept.message.has_rate_slot
        world.clock.set(kept.visible_at)
        assert handle(world, kept.message) is Handled.RAN

    def test_a_place_that_cannot_be_given_back_ends_with_its_lease(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = due(world, job)
        get = world.gates.get

        def fail_from_now_on(call: Call) -> Outcome:
            def throttled(owner: str, name: str) -> Gate | None:
                raise StoreUnavailableError("throttled")

            monkeypatch.setattr(world.gates, "get", throttled)
            return Success(None)

        world.targets.behave = fail_from_now_on
        assert handle(world, message) is Handled.RAN
        assert run_of(world, message).status is RunStatus.SUCCEEDED
        monkeypatch.setattr(world.gates, "get", get)
        world.targets.behave = lambda call: Success(None)
        following = message_of(job, NOON + 2 * MINUTE)
        world.clock.set(following.due_at)
        assert handle(world, following) is Handled.SENT_ON, "the lease ends after 61 seconds"
        (waiting,) = world.queue.kept()
        world.clock.set(waiting.visible_at)
        assert handle(world, waiting.message) is Handled.RAN

    def test_slow_gates_start_no_run_that_cannot_end_in_time(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = world.create("job", "* * * * *", concurrency=Concurrency("db", 1))
        message = due(world, job)
        get = world.gates.get

        def slow(owner: str, name: str) -> Gate | None:
            world.clock.advance(20)
            return get(owner, name)

        with monkeypatch.context() as patch:
            patch.setattr(world.gates, "get", slow)
            ends_at = world.clock.now() + 25 * SECOND
            report = world.executor.handle(message, ends_at)
        assert (report.handled, report.reason) == (
            Handled.SENT_ON,
            "too little time is left in this process",
        )
        assert world.targets.calls == []
        gate = world.gates.get(OWNER, key_gate("db"))
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
        assert handle(world, message) is Handled.SENT_ON
        assert handle(world, message) is Handled.DROPPED
        (first,) = world.queue.kept()
        world.clock.set(first.visible_at)
        outcomes = [handle(world, first.message) for _ in range(3)]
        assert outcomes == [Handled.SENT_ON, Handled.DROPPED, Handled.DROPPED]
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
        assert handle(world, copy.message) is Handled.SENT_ON, "ahead of its row: it looks again"
        world.clock.advance(FUNCTION_SECONDS + 2)
        assert handle(world, message) is Handled.SENT_ON
        run = run_of(world, message)
        assert (run.status, run.waits) == (RunStatus.RETRYING, 1)
        assert handle(world, message) is Handled.REPEATED

    def test_a_queue_that_takes_no_copy_costs_no_attempt(
        self, world: World, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        message = due(world, job)

        def refuse(messages: Sequence[Message], delays: Sequence[int]) -> None:
            raise QueueUnavailableError(1, "throttled")

        with monkeypatch.context() as patch:
            patch.setattr(world.queue, "send", refuse)
            with pytest.raises(QueueUnavailableError):
                handle(world, message)
        assert world.runs.get(message.key) is None
        assert handle(world, message) is Handled.SENT_ON
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
        """The job was refiled meanwhile, more often than it remembers the filings of."""
        message = due(world, job)
        handle(world, message)
        (kept,) = world.queue.kept()
        changed = job
        for _ in range(6):
            world.clock.advance(1)
            changed = world.refile(changed, "0 0 * * *")
        without = replace(changed, previous=None, earlier=(), revision=changed.revision + 1)
        assert world.jobs.replace(without, changed.revision)
        world.clock.advance(120)
        assert handle(world, kept.message) is Handled.DROPPED
        assert world.runs.get(message.key) is None


def test_a_fixed_delay_goes_on_after_a_cancelled_run(world: World) -> None:
    job = world.create("job", "every 60s after finish")
    message = due(world, job)
    row = Run(message.key, RunStatus.CANCELLED, 0, 1, "c", message.filing_id, NOON, NOON)
    assert world.runs.claim(replace(row, finished_at=message.due_at), None)
    handle(world, message)
    world.run_until(NOON + 4 * MINUTE)
    assert world.fired(job)[0] == NOON + 2 * MINUTE
