"""One deployment of the functions in virtual time: what `carillon.cdk.stack` is for AWS."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

from carillon.domain.job import Lane
from carillon.domain.quotas import limits_in
from carillon.domain.wheel.entry import minute_of
from carillon.errors import CarillonError
from carillon.executor.batch import BATCH_SIZE, PartlyHandledError, Report, in_waves
from carillon.executor.ports import ExecutorPorts
from carillon.executor.router import Router
from carillon.services.activity import Activity, ActivityWriter
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.settings import TASK_RESERVE_SECONDS, TICK_RESERVE_SECONDS
from carillon.simulation.faults import Draws, Fault, Faults
from carillon.simulation.idle_ticks import pass_idle_tick
from carillon.simulation.loop import Loop, Process, Task
from carillon.simulation.seams import (
    BatchActivity,
    LoopClock,
    LoopEntropy,
    LoopTimers,
    SimulatedStores,
    name_of,
    seam,
)
from carillon.simulation.targets import SimulatedTargets
from carillon.stores.memory.messaging import MemoryQueue, Received
from carillon.tick.counting import SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import TickPorts
from carillon.tick.root import Root
from carillon.tick.sharing import SHARE_MESSAGES, SHARE_SECONDS, Share, Worth, in_order, segments_of

_MINUTE_US = 60_000_000
_SECOND_US = 1_000_000

Span = tuple[datetime, datetime]
"""[from, until): aware instants."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a simulated deployment; the names are those of the settings and the CDK
    context. `share_seconds` and `share_messages` are the work that is worth a tick of its own,
    which on AWS nobody chooses: few worlds are so large."""

    segments: int = 2
    tick_workers: int = 1
    share_seconds: float = SHARE_SECONDS
    share_messages: int = SHARE_MESSAGES
    look_ahead_minutes: int = 2
    function_timeout_seconds: int = 60
    max_receives: int = 20
    catch_up_per_minute: int = 3000
    owner_jobs: int = 0
    owner_scheduled_per_minute: int = 0
    owner_starts_per_minute: int = 0
    owner_concurrent_runs: int = 0
    run_lifetime: timedelta = timedelta(days=30)
    longest_delay_seconds: int = 900
    slow_after_seconds: int = 2
    slow_lane_share: int = 25
    page_size: int = 7
    chunks: bool = False
    records: bool = False
    """Of jobs' changes and former generations, as deployments put them: worlds without chunks only
    take more steps by them, since each job's row has its last change in any case."""


class Deployment:
    """The functions, their clock rule and their queues' pollers, in one loop.

    `ticks_down` and `executors_down` are spans in which nothing invokes the one or the other.
    `skips_idle_ticks`: those that would find nothing due are passed over where no fault can strike.
    `crashes` are exceptions that no code of ours was meant to raise, `untold` the instants at which
    the owners' notifications could not be told of something.
    """

    def __init__(
        self,
        loop: Loop,
        options: Options,
        targets: SimulatedTargets,
        *,
        ticks_down: Sequence[Span] = (),
        executors_down: Sequence[Span] = (),
        skips_idle_ticks: bool = False,
    ) -> None:
        self.loop = loop
        self.options = options
        self.clock = LoopClock(loop)
        self.entropy = LoopEntropy(loop)
        self.crashes: list[tuple[str, Exception]] = []
        self.bad_entries: list[str] = []
        self.untold: list[datetime] = []
        self.taken: dict[str, Received] = {}
        """By the name of a task that handles a message: what it was given."""
        self.on_report: Callable[[Report], None] = lambda report: None
        self.on_invoke: Callable[[Task, int], None] = lambda task, at_us: None
        self.on_tick: Callable[[list[SegmentReport]], None] = lambda reports: None
        self.ticks_down = ticks_down
        self.executors_down = executors_down
        self._skips_idle_ticks = skips_idle_ticks and loop.chaos.faults == Faults()
        self._polls: set[tuple[Lane | None, int]] = set()
        self._received: Counter[str] = Counter()
        self._named = 0
        self._shares: Counter[str] = Counter()
        self.dead_letter_queue, self.lanes = self._queues()
        records_for = options.run_lifetime if options.records else None
        self.stores = SimulatedStores(loop, self.lanes, options.page_size, records_for)
        self.indexer = Indexer.of(self.stores.ports, self.clock, options.longest_delay_seconds)
        writer = ActivityWriter(self.stores.ports.activity, self.clock, self.entropy, timedelta(7))
        self.activity = BatchActivity(loop, writer)
        self.tick_ports = self._tick_ports()
        self._invoker = seam(SimpleNamespace(invite=self._invite), "fanout", loop)
        self.executor_ports = self._executor_ports(targets)
        self.router = Router(self.executor_ports)

    def _queues(self) -> tuple[MemoryQueue, MemoryQueue]:
        visibility_seconds = 6 * self.options.function_timeout_seconds
        dead = MemoryQueue(
            self.clock, visibility_seconds, on_visible=lambda lane, at: self._poll_at(None, at)
        )
        lanes = MemoryQueue(
            self.clock,
            visibility_seconds,
            on_visible=self._poll_at,
            max_receives=self.options.max_receives,
            dead=dead,
        )
        return dead, lanes

    def _tick_ports(self) -> TickPorts:
        ports, options = self.stores.ports, self.options
        return TickPorts(
            jobs=ports.jobs,
            calendars=ports.calendars,
            wheel=ports.wheel,
            chunks=ports.chunks,
            indexer=self.indexer,
            clock=self.clock,
            on_bad_entry=lambda *where: self.bad_entries.append(" ".join(map(str, where))),
            tzdata="simulated",
            catch_up_share=max(1, options.catch_up_per_minute // options.segments),
            side_by_side=self.loop.side_by_side,
            chunked=options.chunks and not options.owner_starts_per_minute,
        )

    def _executor_ports(self, targets: SimulatedTargets) -> ExecutorPorts:
        ports, options = self.stores.ports, self.options
        quotas = Quotas(limits_in(options))
        return ExecutorPorts(
            jobs=ports.jobs,
            calendars=ports.calendars,
            wheel=ports.wheel,
            runs=ports.runs,
            chunks=ports.chunks,
            queue=ports.queue,
            indexer=self.indexer,
            targets=seam(targets, "targets", self.loop),
            clock=self.clock,
            entropy=self.entropy,
            run_lifetime=options.run_lifetime,
            longest_timeout_seconds=options.function_timeout_seconds - TASK_RESERVE_SECONDS,
            admission_rows=ports.admission_rows,
            operations=ports.operations,
            records=ports.idempotency_records,
            notifications=ports.notifications,
            windows=ports.windows,
            events=ports.events,
            activity=self.activity,
            feed=Activity(ports.activity),
            quotas=quotas,
            job_quotas=JobQuotas(
                quotas, ports.jobs, ports.uses, self.clock, self.entropy, turn=nullcontext()
            ),
            slow_after_seconds=options.slow_after_seconds,
            slow_lane_share=options.slow_lane_share,
            timers=LoopTimers(self.loop),
            side_by_side=self.loop.side_by_side,
        ).notifying(self._left_untold)

    def _left_untold(self, error: Exception) -> None:
        self.untold.append(self.loop.instant())
        if not isinstance(error, CarillonError):
            self.crashes.append(("notifying", error))

    def start(self) -> None:
        """Let the clock rule invoke the tick from the next whole minute on, each minute."""
        self.loop.later(-(-self.loop.us // _MINUTE_US) * _MINUTE_US, self._minute)

    def invoke(
        self,
        name: str,
        run: Callable[[], Any],
        *,
        at: datetime | None = None,
        seconds: int | None = None,
        skew_us: int = 0,
        freezes: bool = False,
    ) -> Task:
        """Start a process with one task, which Lambda would end after `seconds`."""
        loop = self.loop
        process = Process(name, skew_us=skew_us, freezes=freezes)
        at_us = loop.us if at is None else loop.us_of(at)
        task = loop.spawn(process, name, partial(self._run, name, run), at_us)
        limit_seconds = self.options.function_timeout_seconds if seconds is None else seconds
        loop.end_at(process, at_us + limit_seconds * _SECOND_US)
        self.on_invoke(task, at_us)
        return task

    def tick(
        self,
        name: str,
        *,
        at: datetime | None = None,
        skew_us: int = 0,
        share: Share | None = None,
    ) -> Task:
        """Invoke the tick once: the root, or a share."""
        run = partial(self._tick, share)
        return self.invoke(name, run, at=at, skew_us=skew_us, freezes=True)

    def _run(self, name: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except Exception as error:
            cause = error.__cause__ if isinstance(error, PartlyHandledError) else error
            if not isinstance(cause, CarillonError):
                self.crashes.append((name, error))
            raise

    def are_ticks_down(self) -> bool:
        """True if nothing invokes ticks now."""
        now = self.loop.instant()
        return any(start <= now < end for start, end in self.ticks_down)

    def _tick(self, share: Share | None) -> None:
        self.dispatch(self.options.look_ahead_minutes, share)

    def dispatch(self, look_ahead_minutes: int, share: Share | None = None) -> None:
        """The body of a tick with this look-ahead, to be run by a process (`invoke`)."""
        now, options = self.clock.now(), self.options
        deadline = now + timedelta(seconds=options.function_timeout_seconds - TICK_RESERVE_SECONDS)
        dispatcher = Dispatcher(
            self.tick_ports,
            lease_owner=self.entropy.new_id(now),
            look_ahead_minutes=look_ahead_minutes,
        )
        if share is not None:
            order = in_order(options.segments, minute_of(now))
            self.on_tick(dispatcher.tick(*segments_of(order, share), deadline))
            return
        root = Root(
            self.tick_ports,
            dispatcher,
            self._invoker.invite,
            lambda share, error: None,
            workers=options.tick_workers,
            worth=Worth(options.share_seconds, options.share_messages),
        )
        self.on_tick(root.tick(options.segments, deadline))

    def _invite(self, share: Share) -> None:
        """An asynchronous invocation, which comes late, twice, or not at all."""
        loop, caller = self.loop, self.loop.current
        assert caller is not None, "only a tick invites"
        name = f"{caller.process.name} share {share.number}"
        self._shares[name] += 1
        name = f"{name}@{self._shares[name]}"
        draws = Draws(loop.chaos.seed, name)
        if loop.chaos.strikes(Fault.SHARE_MISSING, name, loop.us, draws):
            loop.tell(f"FAULT {name} is missing")
            return
        late_us = int(draws.fraction() * _SECOND_US)
        if loop.chaos.strikes(Fault.SHARE_LATE, name, loop.us, draws):
            late_us = int(draws.fraction() * _MINUTE_US)
        self._invoke_tick(name, loop.us + late_us, draws, share)
        if loop.chaos.strikes(Fault.SHARE_DOUBLED, name, loop.us, draws):
            late_us = int(draws.fraction() * _MINUTE_US)
            self._invoke_tick(f"{name} again", loop.us + late_us, draws, share)

    def _minute(self) -> None:
        """The rule of EventBridge, which fires late, twice, or not at all."""
        loop, now_us = self.loop, self.loop.us
        loop.later(now_us + _MINUTE_US, self._minute)
        if self.are_ticks_down() or self._passes_idle_tick():
            return
        name = f"tick {loop.instant():%m-%d %H:%M}"
        draws = Draws(loop.chaos.seed, name)
        if loop.chaos.strikes(Fault.TICK_MISSING, name, now_us, draws):
            loop.tell(f"FAULT {name} is missing")
            return
        late_us = int(draws.fraction() * _SECOND_US)
        if loop.chaos.strikes(Fault.TICK_LATE, name, now_us, draws):
            late_us = int(draws.fraction() * 75_000_000)
        self._invoke_tick(name, now_us + late_us, draws)
        if loop.chaos.strikes(Fault.TICK_DOUBLED, name, now_us, draws):
            late_us = late_us if draws.fraction() < 0.5 else int(draws.fraction() * _MINUTE_US)
            self._invoke_tick(f"{name} again", now_us + late_us, draws)

    def _passes_idle_tick(self) -> bool:
        if not self._skips_idle_ticks:
            return False
        ahead, segments = self.options.look_ahead_minutes, range(self.options.segments)
        return pass_idle_tick(self.stores.wheel, segments, self.clock.now(), ahead)

    def _invoke_tick(self, name: str, at_us: int, draws: Draws, share: Share | None = None) -> None:
        skew_us = 0
        if self.loop.chaos.strikes(Fault.TICK_SKEWED, name, self.loop.us, draws):
            skew_us = int(draws.between(-90_000_000, 90_000_000))
        self.tick(name, at=self.loop.instant(at_us), skew_us=skew_us, share=share)

    def _poll_at(self, lane: Lane | None, at: datetime) -> None:
        """Check a lane (None: the dead-letter queue) when a message there becomes visible."""
        at_us = self.loop.us_of(at)
        if (lane, at_us) not in self._polls:
            self._polls.add((lane, at_us))
            self.loop.later(at_us, partial(self._poll, lane, at_us))

    def _poll(self, lane: Lane | None, at_us: int) -> None:
        self._polls.discard((lane, at_us))
        now = self.loop.instant()
        for _, until in (span for span in self.executors_down if span[0] <= now < span[1]):
            self._poll_at(lane, until)
            return
        queue = self.dead_letter_queue if lane is None else self.lanes
        limit = BATCH_SIZE if lane is None else lane.batch_size
        while received := queue.receive(now, limit, lane):
            name = self._name(received[0])
            if self._is_throttled(name):
                continue
            run = partial(self._batch, queue, received)
            self.invoke(f"batch {name}", run, freezes=True)

    def _is_throttled(self, name: str) -> bool:
        """True if no executor is left for a batch: it stays hidden, unread, until that lapses."""
        loop, where = self.loop, f"invocation {name}"
        draws = Draws(loop.chaos.seed, where)
        if not loop.chaos.strikes(Fault.THROTTLED_INVOCATION, where, loop.us, draws):
            return False
        loop.tell(f"FAULT {Fault.THROTTLED_INVOCATION.value} {where}")
        return True

    def _batch(self, queue: MemoryQueue, received: Sequence[Received]) -> None:
        """One invocation of an executor."""
        loop, began_us = self.loop, self.loop.us
        seconds = self.options.function_timeout_seconds
        ends_at = self.clock.now() + timedelta(seconds=seconds)

        of_lane = {str(one.receipt): one for one in received if queue is self.lanes}
        sent_on = self.router.send_on(of_lane)
        for report in sent_on.values():
            self.on_report(report)

        def wave(those: Sequence[Received], alone: bool) -> list[Exception | None]:
            record = partial(self._record, queue, ends_at, alone)
            tasks = loop.together([(self._name(one), partial(record, one)) for one in those])
            return [task.failure for task in tasks]

        left = [one for one in received if str(one.receipt) not in sent_on]
        failed = {one.receipt for one in in_waves(left, wave)}
        self.activity.flush()
        if loop.us <= began_us + seconds * _SECOND_US:
            for one in received:
                if one.receipt not in failed:
                    queue.delete(one.receipt)

    def _record(self, queue: MemoryQueue, ends_at: datetime, alone: bool, one: Received) -> None:
        lane, dead = partial(self.router.lane, alone=alone), self.router.dead
        step = partial(lane if queue is self.lanes else dead, one.body, ends_at)
        task = self.loop.current
        name = "" if task is None else task.name
        if self.loop.interleaves:
            self.taken[name] = one
        for report in self._run(name, step).whole:
            self.on_report(report)

    def _name(self, one: Received) -> str:
        """A name that does not depend on what other messages there are.

        Where nothing interleaves nothing is ever left out: then it need not be read from the body.
        """
        if not self.loop.interleaves:
            self._named += 1
            return str(self._named)
        name = name_of(one.order)
        self._received[name] += 1
        return f"{name}@{self._received[name]}"
