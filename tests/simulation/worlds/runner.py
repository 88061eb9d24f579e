"""Runs one scenario through the real code, lets it settle, and has it checked."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from carillon.audit.evidence import Violation
from carillon.domain.chunks import placing
from carillon.domain.chunks.message import Order
from carillon.domain.job import JobState
from carillon.domain.message import Message
from carillon.domain.notifying.notification import Deliverable, notification_of
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.run import FINAL, RunError, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.errors import MalformedMessageError
from carillon.executor.targets import Call, Failure, Success
from carillon.schedules import SlotKind
from carillon.schedules.base import EPOCH
from carillon.simulation.deployment import Deployment
from carillon.simulation.faults import Chaos, Draws, Fault, Strike, Struck
from carillon.simulation.loop import Loop, RunawayError
from carillon.simulation.targets import Behaviour, SimulatedTargets, TargetCall
from carillon.stores.cursors import pages
from tests.simulation.judging.audited import audited
from tests.simulation.judging.checker import violations
from tests.simulation.judging.evidence import Evidence
from tests.simulation.judging.recorder import Recorder
from tests.simulation.worlds.clients import Clients
from tests.simulation.worlds.receivers import Receivers, accepts
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_notifications import NotificationPlan
from tests.simulation.worlds.scenario_parts import JobPlan
from tests.simulation.worlds.tracing import Tracer

_ALL = 1_000_000
_MINUTE_US = 60_000_000
_MOST_STEPS = 3_000_000
"""Twice what the busiest known world takes, in which jobs ask for three times what they may have:
looks of what waits are many, but do not multiply. What does meets the limit of messages first."""
_MOST_MESSAGES = 5_000
_WEIGHED_MESSAGES = 30
"""Fewer messages than this are too few to judge by."""

Trace = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Figures:
    """What was simulated; `faults` counts those that struck, by kind; `acknowledged` the requests
    that were answered as done, by what they asked for."""

    seeds: int = 0
    virtual_minutes: int = 0
    occurrences: int = 0
    deliveries: int = 0
    requests: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)

    def __add__(self, other: "Figures") -> "Figures":
        return Figures(
            self.seeds + other.seeds,
            self.virtual_minutes + other.virtual_minutes,
            self.occurrences + other.occurrences,
            self.deliveries + other.deliveries,
            self.requests + other.requests,
            self.acknowledged + other.acknowledged,
            self.faults + other.faults,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a scenario; `strikes` are the faults that happened, in their order."""

    scenario: Scenario
    violations: Sequence[Violation]
    figures: Figures
    strikes: Sequence[Struck]
    evidence: Evidence


def run(
    scenario: Scenario,
    *,
    only: frozenset[Strike] | None = None,
    leave_out: frozenset[str] = frozenset(),
    trace: Trace | None = None,
) -> Outcome:
    """Simulate it. Of its faults `only` these happen; parts of it can be left out by name
    (`Scenario.parts`). `trace` gets each line of what happens.
    """
    with chunk_sizes(is_small=scenario.options.chunks or scenario.switched_at is not None):
        return _run(scenario.without(leave_out), only, trace)


@contextmanager
def chunk_sizes(*, is_small: bool) -> Iterator[None]:
    """Worlds last for minutes and have few jobs: their chunks are small, and begin soon."""
    if not is_small:
        yield
        return
    sizes = {"SETTLED_AFTER": timedelta(minutes=10), "FEWEST": 1, "MEAN_SIZE": 2, "MOST_IN_ONE": 3}
    kept = {name: getattr(placing, name) for name in sizes}
    vars(placing).update(sizes)
    try:
        yield
    finally:
        vars(placing).update(kept)


def _run(scenario: Scenario, only: frozenset[Strike] | None, trace: Trace | None) -> Outcome:
    calm_us = _us_of(scenario.calm_at)
    chaos = Chaos(scenario.seed, scenario.faults, scenario.most_latency_us, only, calm_us)
    loop = Loop(scenario.start, chaos, most_steps=_MOST_STEPS)
    if trace is not None:
        Tracer(loop, scenario, trace)
    recorder = Recorder()
    receivers = Receivers(scenario.seed, recorder.acks.append)

    def on_call(call: TargetCall) -> None:
        recorder.on_call(call)
        receivers.on_call(call)

    deployment = Deployment(
        loop,
        scenario.options,
        SimulatedTargets(loop, _behaviour_of(scenario), on_call),
        ticks_down=scenario.ticks_down,
        executors_down=scenario.executors_down,
    )
    recorder.attach(deployment)
    receivers.attach(deployment)
    clients = Clients(scenario, deployment, recorder.acks.append)
    clients.start()
    deployment.start()
    if scenario.other_look_ahead_minutes:
        _start_other_worker(deployment, scenario.other_look_ahead_minutes)
    if scenario.switched_at is not None:
        _switch_chunks(deployment, scenario.switched_at)
    _expire_each_minute(deployment)
    _weigh_each_minute(deployment, recorder)
    try:
        _settle(deployment, scenario)
        evidence = recorder.evidence(scenario.until)
        found = [*violations(evidence), *audited(deployment, scenario.start, scenario.until)]
    except RunawayError as error:
        evidence = recorder.evidence(scenario.until)
        found = [Violation("runaway", "", str(error))]
    figures = _figures_of(scenario, loop, clients, evidence)
    loop.close()
    return Outcome(scenario, found, figures, chaos.injected, evidence)


def _figures_of(scenario: Scenario, loop: Loop, clients: Clients, evidence: Evidence) -> Figures:
    return Figures(
        seeds=1,
        virtual_minutes=(loop.us - _us_of(scenario.start)) // _MINUTE_US,
        occurrences=sum(1 for row in evidence.runs if row.status in FINAL),
        deliveries=len(evidence.deliveries),
        requests=clients.sent,
        acknowledged=Counter(ack.what for ack in evidence.acks),
        faults=Counter(struck.strike.fault for struck in loop.chaos.injected),
    )


def _start_other_worker(deployment: Deployment, look_ahead_minutes: int) -> None:
    """Another worker of ticks for the same segments, each minute; where nothing invokes the one,
    nothing invokes the other."""
    loop, tick = deployment.loop, partial(deployment.dispatch, look_ahead_minutes)

    def minute() -> None:
        loop.later(loop.us + _MINUTE_US, minute)
        if deployment.are_ticks_down():
            return
        name = f"other tick {loop.instant():%m-%d %H:%M}"
        late_us = Draws(loop.chaos.seed, name).below(3_000_000)
        deployment.invoke(name, tick, at=loop.instant(loop.us + late_us), freezes=True)

    loop.later(-(-loop.us // _MINUTE_US) * _MINUTE_US, minute)


def _switch_chunks(deployment: Deployment, at: datetime) -> None:
    """Have ticks that begin from then on plan chunks, or none any more."""

    def switch() -> None:
        ports = deployment.tick_ports
        deployment.tick_ports = replace(ports, chunked=not ports.chunked)

    deployment.loop.later(_us_of(at), switch)


_FILED_MINUTES = 120
_RECORDED = timedelta(minutes=3)
"""What happened is in the feed after that, its executor's death included."""


def _settle(deployment: Deployment, scenario: Scenario) -> None:
    """Let time pass until all that was due by `scenario.until` has ended, or too long.

    A catch-up may take longer at its pace, over all that owners have had: places beyond the usual
    end put that off, once.
    """
    loop, usual = deployment.loop, timedelta(minutes=scenario.settle_minutes)
    loop.run(_us_of(scenario.until))
    end_at = _us_of(max([scenario.until, *_places(deployment)]) + usual)
    while loop.us < end_at and not _is_settled(deployment, scenario):
        loop.run(loop.us + _MINUTE_US)


def _places(deployment: Deployment) -> Iterator[datetime]:
    """The instants at which the segments' catch-ups end."""
    for segment in range(deployment.options.segments):
        control = deployment.stores.wheel.get_control(segment)
        if control is not None and control.throttled_until is not None:
            yield control.throttled_until


def _is_settled(deployment: Deployment, scenario: Scenario) -> bool:
    stores, until = deployment.stores, scenario.until
    minute = minute_of(until)
    for segment in range(deployment.options.segments):
        control = stores.wheel.get_control(segment)
        if control is not None and (control.watermark < minute or control.backlog):
            return False
    waiting = set[str]()
    for job in scenario.plans:
        rows = stores.runs.list(job.owner, job.job_id, _ALL, until_at=until).items
        open_ = [row for row in rows if row.status not in FINAL]
        if any(row.status is not RunStatus.SCHEDULED for row in open_):
            return False
        if open_ and {row.key for row in open_} & _on_their_way(deployment):
            return False
        operations = stores.operations.list(job.owner, _ALL).items
        going_on = [each for each in operations if each.state is OperationState.RUNNING]
        waiting |= {each.operation_id for each in going_on if _waits_for_good(deployment, each)}
        if any(each.operation_id not in waiting for each in going_on):
            return False
    return not deployment.dead_letter_queue.kept() and not _is_due(deployment, until, waiting)


def _on_their_way(deployment: Deployment) -> set[RunKey]:
    """The runs that messages are for. A scheduled run that none is for was asked for by a request
    that failed behind its row, and was not repeated."""
    orders = [*_orders(deployment), *_filed(deployment)]
    return {order.key for order in orders if isinstance(order, Message)}


def _waits_for_good(deployment: Deployment, operation: Operation) -> bool:
    """Whether it waits for a paused job, which nobody resumes any more."""
    if operation.kind is not OperationKind.BACKFILL:
        return False
    job = deployment.stores.jobs.get(operation.owner, operation.job_id)
    return job is not None and job.state is JobState.PAUSED and job.resume_at is None


def _is_due(deployment: Deployment, until: datetime, waiting: Container[str]) -> bool:
    """Whether a message is left that was for an instant up to `until`; not a `waiting`
    operation's."""
    for order in (*_orders(deployment), *_filed(deployment)):
        if order is None:
            return True
        waits = isinstance(order, Message) and order.key.job_id in waiting
        if not waits and _is_owed(deployment, order, until):
            return True
    return False


def _orders(deployment: Deployment) -> Iterator[Order | None]:
    """What the lanes hold; None for what is malformed."""
    for kept in deployment.lanes.kept():
        try:
            yield kept.order
        except MalformedMessageError:
            yield None


def _is_owed(deployment: Deployment, message: Order, until: datetime) -> bool:
    """Whether what a message orders was due up to `until`. A window goes on while a job fails: only
    what happened until then is owed."""
    if not isinstance(message, Message):
        return message.starts_at <= until
    key = message.key
    if key.fire_at > until or key.kind is not RunKind.WINDOW:
        return key.fire_at <= until
    window = deployment.stores.windows.get(key.owner, notification_of(key))
    return window is not None and window.is_open and window.told_until < until + _RECORDED


def _filed(deployment: Deployment) -> Iterator[Message]:
    """The messages that the wheel is to bring within two hours: late retries, and what waits for
    its place in a catch-up."""
    minute = minute_of(deployment.loop.instant())
    for segment in range(deployment.options.segments):
        for later in range(_FILED_MINUTES):
            slot = Slot(SlotKind.DATED, minute + later)
            for page in pages(partial(deployment.stores.wheel.query, segment, slot)):
                yield from (entry.message for entry in page.items if entry.message is not None)


def _expire_each_minute(deployment: Deployment) -> None:
    """What DynamoDB's TTL would do: it never may take anything that is still needed."""
    loop = deployment.loop

    def expire() -> None:
        deployment.stores.runs.expire(loop.instant())
        deployment.stores.wheel.expire(loop.instant())
        loop.later(loop.us + _MINUTE_US, expire)

    loop.later(loop.us + _MINUTE_US, expire)


def _weigh_each_minute(deployment: Deployment, recorder: Recorder) -> None:
    """Note what is in flight; far too much of it is the end of the world."""
    loop, lanes = deployment.loop, deployment.lanes

    def weigh() -> None:
        if len(lanes) > _MOST_MESSAGES:
            raise RunawayError(f"{len(lanes)} messages in flight at {loop.instant()}")
        if len(lanes) > _WEIGHED_MESSAGES:
            recorder.weigh()
        loop.later(loop.us + _MINUTE_US, weigh)

    loop.later(loop.us + _MINUTE_US, weigh)


def _behaviour_of(scenario: Scenario) -> Callable[[Deliverable, Call, Draws], Behaviour]:
    plans: dict[str, JobPlan | NotificationPlan] = {job.job_id: job for job in scenario.plans}
    plans |= {each.job_id: each for each in scenario.notifications}

    def behave(target: Deliverable, call: Call, draws: Draws) -> Behaviour:
        plan = plans[call.job_id]
        seconds = draws.fraction() * plan.seconds
        if draws.fraction() < plan.failures:
            failure = Failure(RunError("http_500", "simulated"))
            return Behaviour(seconds, failure, is_done=False)
        # More than a run's row keeps, and of this attempt alone.
        result = f"{call.run_id}/{call.attempt}\n" + "x" * 1000 if call.keeps_whole else None
        return Behaviour(seconds, Success(result, accepts(scenario.seed, call)))

    return behave


def _us_of(instant: datetime) -> int:
    return (instant - EPOCH) // timedelta(microseconds=1)
