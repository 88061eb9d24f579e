"""`owner_concurrent_runs`: an owner's runs that last are held to a number, nobody else's are."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event, Thread, active_count
from time import sleep

import pytest

from carillon.clock import ThreadTimers
from carillon.domain.admission.state import PERMITS_ROW, AdmissionRow, PermitHolder, QueuedRun
from carillon.domain.message import Message
from carillon.domain.policies import Rate
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled, Report
from carillon.executor.router import Router
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Draws, Faults
from carillon.simulation.loop import Loop
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import Behaviour, SimulatedTargets, TargetCall
from tests.simulation.stories.story import MINUTE, NOON, SECOND
from tests.support.world import FUNCTION_SECONDS, OWNER, World, quotas_of
from tests.unit.faults import preceded

LIMIT = 5
ANEW_WITHIN_TWELVE_SECONDS = 40
"""Of twenty jobs, each asked every ten seconds: two times, where the twelve begin with one."""
TASK = {"type": "task", "name": "echo"}


class Workload:
    """Twenty jobs of the culprit, each asked every ten seconds, whose calls last for 40 s; and a
    neighbour's job, whose calls are short, for eight minutes. No job is marked as slow."""

    def __init__(self, limit: int, faults: Faults | None = None) -> None:
        self.loop = Loop(NOON, Chaos(1, faults or Faults(), 50_000))
        self.calls: list[TargetCall] = []
        targets = SimulatedTargets(self.loop, self._behave, self._note)
        options = Options(owner_concurrent_runs=limit, slow_after_seconds=900)
        self.deployment = Deployment(self.loop, options, targets)
        api = Api.of(self.deployment)
        for number in range(20):
            self._create(api, "culprit", f"slow {number}")
        self._create(api, "neighbour", "quick")
        self.deployment.start()
        self.loop.run(self.loop.us_of(NOON + 8 * MINUTE))

    def _create(self, api: Api, owner: str, name: str) -> None:
        body = job_body(
            {"name": name, "schedule": "every 10s", "target": TASK, "overlap": "allow"}
            | {"timeout_seconds": 50}
        )
        self.deployment.invoke(f"create {name}", lambda: api.jobs.create(owner, body, name))

    def _behave(self, target: object, call: Call, draws: Draws) -> Behaviour:
        return Behaviour(40 if call.owner == "culprit" else 0.1, Success(None))

    def _note(self, seen: TargetCall) -> None:
        self.calls = [
            each
            for each in self.calls
            if each.begun_at != seen.begun_at or (each.call.run_id != seen.call.run_id)
        ] + [seen]

    def spans(self, owner: str) -> list[tuple[datetime, datetime]]:
        now = self.loop.instant()
        mine = [each for each in self.calls if each.call.owner == owner]
        return sorted((each.begun_at, each.ended_at or now) for each in mine)

    def most_at_once(self, owner: str) -> int:
        spans = self.spans(owner)
        return max(sum(since <= at < until for since, until in spans) for at, _ in spans)

    def lasting_at_starts(self, owner: str, seconds: float) -> int:
        """How many calls, at the start of any, had begun this long before, at most."""
        spans, age = self.spans(owner), timedelta(seconds=seconds)
        return max(
            sum(since <= at - age and at < until for since, until in spans) for at, _ in spans
        )


@pytest.fixture(scope="module")
def limited() -> Workload:
    return Workload(LIMIT)


class TestFleet:
    def test_no_run_begins_while_so_many_have_lasted_twelve_seconds(
        self, limited: Workload
    ) -> None:
        """What starts within 12 s may be over it: two until it takes a permit, ten until read."""
        assert limited.lasting_at_starts("culprit", 12.5) < LIMIT
        assert LIMIT <= limited.most_at_once("culprit") <= LIMIT + ANEW_WITHIN_TWELVE_SECONDS

    def test_without_the_limit_they_are_many(self, limited: Workload) -> None:
        free = Workload(0)
        assert free.lasting_at_starts("culprit", 12.5) > 8 * LIMIT
        assert free.most_at_once("culprit") >= 80
        assert free.deployment.stores.admission_rows.get("culprit", PERMITS_ROW) is None

    def test_the_neighbour_is_on_time(self, limited: Workload) -> None:
        mine = [each for each in limited.calls if each.call.owner == "neighbour"]
        assert len(mine) >= 40
        assert max(each.begun_at - each.call.fire_at for each in mine) < 1.5 * SECOND
        assert limited.deployment.stores.admission_rows.get("neighbour", PERMITS_ROW) is None

    def test_what_is_over_it_waits_in_its_row_and_says_why(self, limited: Workload) -> None:
        stores = limited.deployment.stores
        rows = [
            run
            for job in stores.jobs.list("culprit", 100).items
            for run in stores.runs.list("culprit", job.job_id, 1000).items
        ]
        waiting = [row for row in rows if row.status is RunStatus.SCHEDULED]
        assert len(waiting) > 100
        reason = re.compile(r"waits for its owner's permits, (held by|behind) \d+ runs?")
        notes = {row.note or "" for row in waiting}
        assert all(reason.fullmatch(note) for note in notes), notes
        assert max(Counter(each.call.run_id for each in limited.calls).values()) == 1

    def test_executors_that_die_keep_no_permit(self) -> None:
        fleet = Workload(LIMIT, Faults(dies=0.05))
        late = [since for since, _ in fleet.spans("culprit") if since > NOON + 6 * MINUTE]
        assert fleet.deployment.crashes == []
        assert late, "or those that died would hold all permits by then"


class ManualTimers:
    """What is to be done meanwhile is done by `pass_`, which a test's target calls."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        self.waiting.append(act)
        return lambda: self.waiting.remove(act) if act in self.waiting else None

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def pass_(self) -> None:
        while self.waiting:
            self.waiting.pop()()


class OneRun:
    """A job whose occurrences are handled one by one, by an executor with a limit of one."""

    def __init__(self, limit: int = 1) -> None:
        self.world = World(NOON)
        self.timers = ManualTimers()
        ports = self.world.executor_ports
        self.ports = replace(ports, timers=self.timers, quotas=quotas_of(concurrent_runs=limit))
        self.world.executor = Router(self.ports)
        self.job = self.world.create("job", "* * * * *")
        self.used: Counter[str] = Counter()
        for name in ("get", "put"):
            setattr(
                self.world.admission_rows,
                name,
                self._counted(name, getattr(self.world.admission_rows, name)),
            )

    def _counted(self, name: str, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*terms: object) -> object:
            self.used[name] += 1
            return call(*terms)

        return counted

    def due(self, minute: int) -> Message:
        message = message_of(self.job, NOON + minute * MINUTE)
        self.world.clock.set(max(self.world.clock.now(), message.due_at))
        return message

    def handle(self, message: Message) -> Report:
        ends_at = self.world.clock.now() + FUNCTION_SECONDS * SECOND
        return self.world.executor.handle(message, ends_at)

    def permits(self) -> int:
        gate = self.world.admission_rows.get(OWNER, PERMITS_ROW)
        return 0 if gate is None else len(gate.holders)


def test_short_runs_cost_one_read_in_ten_seconds_and_no_write() -> None:
    one = OneRun()
    for _ in range(3):
        key = one.world.ask(one.job)
        message = Message(
            key, one.job.generation.generation_id, one.job.segment, one.job.lane, key.fire_at
        )
        assert one.handle(message).handled is Handled.RAN
        one.world.clock.advance(3)
    assert one.used == {"get": 1}
    one.world.clock.advance(8)
    one.handle(one.due(1))
    assert one.used == {"get": 2}


def test_without_the_limit_nothing_is_read_and_no_timer_runs() -> None:
    one = OneRun(limit=0)

    def behave(call: Call) -> Outcome:
        assert one.timers.waiting == []
        return Success(None)

    one.world.targets.behave = behave
    assert one.handle(one.due(1)).handled is Handled.RAN
    assert one.used == {}


@pytest.mark.parametrize("outcome", [Success(None), None])
def test_a_run_that_lasts_holds_a_permit_until_its_call_has_ended(outcome: Outcome | None) -> None:
    one = OneRun()
    held: list[int] = []

    def behave(call: Call) -> Outcome:
        one.timers.pass_()
        held.append(one.permits())
        return outcome or Failure(RunError("timeout", "no answer"), timed_out=True)

    one.world.targets.behave = behave
    one.handle(one.due(1))
    assert (held, one.permits()) == ([1], 0)


def test_a_permit_is_given_back_behind_the_row() -> None:
    """The permits' row may be contended for longer than the run's claim lasts."""
    one = OneRun()
    message = one.due(1)
    ended: list[RunStatus | None] = []

    def behave(call: Call) -> Outcome:
        one.timers.pass_()
        return Success(None)

    def look() -> None:
        row = one.world.runs.get(message.key)
        ended.append(None if row is None else row.status)

    one.world.targets.behave = behave
    with preceded(one.world.admission_rows, "put", look, number=2):
        one.handle(message)
    assert (ended, one.permits()) == ([RunStatus.SUCCEEDED], 0)


def test_an_executor_that_dies_keeps_its_permit_for_its_lease_only() -> None:
    one = OneRun()

    def die(call: Call) -> Outcome:
        one.timers.pass_()
        raise KeyboardInterrupt

    one.world.targets.behave = die
    with pytest.raises(KeyboardInterrupt):
        one.handle(one.due(1))
    assert one.permits() == 1
    one.world.targets.behave = lambda call: Success(None)
    one.world.clock.set(NOON + 90 * SECOND)
    assert one.handle(message_of(one.job, NOON + 90 * SECOND)).handled is Handled.DEFERRED
    one.world.clock.set(NOON + 123 * SECOND)
    assert one.handle(message_of(one.job, NOON + 2 * MINUTE)).handled is Handled.RAN


class TestHoldingBack:
    def test_a_check_while_none_is_known_to_be_free_claims_nothing(self) -> None:
        """Of a thousand runs that wait, each would cost its owner's neighbours six requests."""
        one, ends_at = OneRun(), NOON + 20 * MINUTE
        holders = (PermitHolder("another's claim", ends_at),)
        turns = (QueuedRun("another", NOON, ends_at),)
        gate = AdmissionRow(OWNER, PERMITS_ROW, 1, ends_at, holders=holders, turns=turns)
        assert one.world.admission_rows.put(gate, None)
        message, rows = one.due(1), list[Run | None]()
        for _ in range(3):
            assert one.handle(message).handled is Handled.DEFERRED
            rows.append(one.world.runs.get(message.key))
            (kept,) = one.world.queue.kept()
            one.world.queue.delete(kept.receipt)
            one.world.clock.set(kept.visible_at)
            message = kept.message
        assert rows[0] is None, "it has no row until its second check"
        assert rows[1] is not None
        assert (rows[1].status, rows[1].waits) == (RunStatus.SCHEDULED, 1)
        assert rows[2] == rows[1]
        assert message.waits == 1
        one.world.clock.set(ends_at)
        assert one.handle(message).handled is Handled.RAN

    def test_a_run_whose_executor_died_is_not_held_back(self) -> None:
        """Its attempt counts at once, and it is not shown as running for longer."""
        one = OneRun()

        def die(call: Call) -> Outcome:
            one.timers.pass_()
            raise KeyboardInterrupt

        one.world.targets.behave = die
        message = one.due(1)
        with pytest.raises(KeyboardInterrupt):
            one.handle(message)
        lease_until = one.world.clock.now() + (FUNCTION_SECONDS + 1) * SECOND
        one.world.clock.set(lease_until)
        holders = (PermitHolder("another's claim", lease_until + MINUTE),)
        gate = one.world.admission_rows.get(OWNER, PERMITS_ROW)
        assert gate is not None
        held = replace(gate, holders=holders).next_revision()
        assert one.world.admission_rows.put(held, gate.revision)
        assert one.handle(message).handled is Handled.DEFERRED
        row = one.world.runs.get(message.key)
        assert row is not None
        assert row.status is RunStatus.RETRYING

    def test_what_is_given_back_here_is_known_at_once(self) -> None:
        one = OneRun()
        held: list[Report] = []

        def behave(call: Call) -> Outcome:
            if not held:
                one.timers.pass_()
                held.append(one.handle(one.due(2)))
                held.append(one.handle(replace(held[0].message, wait_until=NOON + 2 * MINUTE)))
            return Success(None)

        one.world.targets.behave = behave
        one.handle(one.due(1))
        assert [each.handled for each in held] == [Handled.DEFERRED] * 2
        now = one.world.clock.now()
        assert one.handle(replace(held[1].message, wait_until=now)).handled is Handled.RAN


def test_a_store_that_fails_meanwhile_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    one = OneRun()

    def fails(*terms: object) -> None:
        raise StoreUnavailableError("down")

    def behave(call: Call) -> Outcome:
        monkeypatch.setattr(one.world.admission_rows, "put", fails)
        one.timers.pass_()
        return Success(None)

    one.world.targets.behave = behave
    report = one.handle(one.due(1))
    assert report.run is not None
    assert report.run.status is RunStatus.SUCCEEDED


def test_a_run_that_another_gate_holds_back_keeps_no_permit() -> None:
    one = OneRun()
    one.job = one.world.new_generation(one.job, rate=Rate(1, 600))
    one.handle(one.due(1))
    held_back = one.handle(replace(one.due(2), waits=1))
    assert held_back.handled is Handled.DEFERRED
    assert "1 starts in 600 s" in held_back.reason
    assert one.permits() == 0


def test_a_timer_of_threads_is_called_off_or_waited_for() -> None:
    done: list[str] = []
    ThreadTimers().after(30, lambda: done.append("called off"))()
    begun = Event()

    def slow() -> None:
        begun.set()
        sleep(0.05)
        done.append("waited for")

    call_off = ThreadTimers().after(0, slow)
    assert begun.wait(10)
    call_off()
    assert done == ["waited for"]


def test_many_timers_of_threads_wait_in_one() -> None:
    timers, before = ThreadTimers(), active_count()
    off = [timers.after(30, lambda: None) for _ in range(50)]
    assert active_count() <= before + 1
    for call_off in off:
        call_off()
    done = Event()
    timers.after(0.01, done.set)
    assert done.wait(10), "those that were called off hold up none that comes earlier"


def test_a_timer_for_which_no_thread_is_left_comes_later_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lambda has 1,024 for a process: calls of full chunks that all last come close."""
    timers, first, second = ThreadTimers(), Event(), Event()
    start, refused = Thread.start, list[Thread]()

    def start_or_refuse(thread: Thread) -> None:
        if is_waiter(thread) or refused:
            start(thread)
            return
        refused.append(thread)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", start_or_refuse)
    timers.after(0, first.set)
    timers.after(0.01, second.set)
    assert second.wait(10)
    assert first.wait(10)
    assert len(refused) == 1


def is_waiter(thread: Thread) -> bool:
    return "_wait" in repr(thread._target)  # type: ignore[attr-defined]
