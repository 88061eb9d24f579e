"""Watches a simulated deployment and writes down what the checker judges by."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from carillon.audit.evidence import Gap, JobVersion
from carillon.domain.execution import returning
from carillon.domain.message import Message
from carillon.domain.operation import Operation
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import minute_start
from carillon.domain.wheel.segment import Backlog, Control, freed
from carillon.errors import StoreUnavailableError
from carillon.simulation.deployment import Deployment
from carillon.simulation.faults import Fault
from carillon.simulation.loop import Task
from carillon.simulation.targets import TargetCall
from tests.simulation.judging.activity import activity_of
from tests.simulation.judging.checker_history import listed_of
from tests.simulation.judging.chunks import SeenChunks, handler_of
from tests.simulation.judging.deliveries import Delivered, Read, delivery_of
from tests.simulation.judging.evidence import (
    Ack,
    Circumstances,
    Evidence,
    Grant,
    Load,
    RunWrite,
    Told,
)
from tests.simulation.judging.notices import notices_of
from tests.simulation.judging.queues import due, runs_in

_LASTS = {
    Fault.PAUSED: timedelta(seconds=200),
    Fault.LATE: timedelta(seconds=600),
    Fault.THROTTLED_INVOCATION: timedelta(seconds=120),
    Fault.SLOW: timedelta(seconds=4),
    Fault.TICK_LATE: timedelta(seconds=75),
    Fault.TICK_SKEWED: timedelta(seconds=90),
    Fault.TICK_MISSING: timedelta(seconds=60),
    Fault.SHARE_MISSING: timedelta(seconds=60),
    Fault.SHARE_LATE: timedelta(seconds=60),
}
"""The longest that these faults last; the others are over at once."""
_RATES = ("rate", "owner")
"""How the names of the gates of rates begin."""
_LONGEST_AHEAD = timedelta(minutes=6)
"""Ticks have sent no later minutes than these, counted from their own on."""
_TICKS = ("tick", "other tick")
"""How the names of their processes begin."""
_TRANSIENT = StoreUnavailableError.__name__
PLANTED = "planted"
"""Begins the job ids of entries that are put into a world as bad ones: they are to be set aside."""
"""A row that a tick could not read for once is told of as a bad entry, too."""

Handler = Callable[[Task | None, tuple[Any, ...], Any], None]


class Recorder:
    """`on_call` is for the targets, which exist before the deployment; `acks` is for whoever sends
    requests. Nothing is copied: all rows are frozen."""

    def __init__(self) -> None:
        self.acks: list[Ack] = []
        self._deployment: Deployment | None = None
        self._versions: dict[str, list[JobVersion]] = {}
        self._rows: dict[RunKey, Run] = {}
        self._late_claims: set[str] = set()
        self._chunks = SeenChunks()
        self._writes: list[RunWrite] = []
        self._reads: dict[tuple[str, str], Read] = {}
        self._tasks: dict[str, Task] = {}
        self._faults: dict[str, int] = {}
        self._asked_at: dict[str, datetime] = {}
        self._faults_before_claim: dict[tuple[str, str], int] = {}
        self._delivered: list[Delivered] = []
        self._open: dict[str, Delivered] = {}
        self._operations: dict[tuple[str, str], Operation] = {}
        self._told: list[Told] = []
        self._put_at: dict[str, datetime] = {}
        self._grants: list[Grant] = []
        self._loads: list[Load] = []
        self._caught_up: Counter[tuple[int, str]] = Counter()
        self._longest_return_seconds = 0
        self._granted_to: dict[tuple[str, str], str] = {}
        self._backlogs: dict[tuple[int, int, int, datetime], tuple[int, datetime | None]] = {}
        self._controls: dict[int, Control] = {}
        self._put_back: list[tuple[datetime, datetime]] = []
        self._in_vain: list[datetime] = []
        self._handlers: dict[tuple[str, str], Handler] = {
            ("jobs", "get"): self._job_read,
            ("jobs", "create"): self._job_written,
            ("jobs", "replace"): self._job_written,
            ("jobs", "relink"): self._job_written,
            ("runs", "claim"): self._claimed,
            ("runs", "finish"): self._finished,
            ("runs", "discard_claim"): self._withdrawn,
            ("chunks", "claim"): self._chunk_claimed,
            ("chunks", "finish"): self._chunk_finished,
            ("jobs", "get_all"): self._jobs_read,
            ("wheel", "put_control"): self._control_put,
            ("operations", "put"): self._operation_put,
            ("events", "emit"): self._emitted,
            ("activity", "put"): self._result_put,
            ("admission_rows", "put"): self._gate_put,
            ("queue", "send"): self._sent,
            ("wheel", "put_entries"): self._entries_put,
        }

    def attach(self, deployment: Deployment) -> None:
        """Watch this deployment from now on; once."""
        self._deployment = deployment
        deployment.loop.observers.append(self._observe)

    def on_call(self, call: TargetCall) -> None:
        """A call of a target has begun, or ended."""
        if call.ended_at is not None:
            known = self._open.pop(call.process, None)
            if known is not None:
                known.ended = call
            return
        run_id, process = call.call.run_id, handler_of(call.process)
        key = self._chunks.held_by(process)
        if key is not None:
            stored = self._known_deployment().stores.chunks.get(key)
            self._writes += self._chunks.claims(process, stored, run_id, self._now())
        delivered = Delivered(
            replace(call, process=process),
            self._reads.get((process, call.call.job_id)),
            self._tasks.get(process),
            self._faults_before_claim.get((process, run_id)),
            self._known_deployment().taken.get(process),
            self._chunks.claimed_at.get(process),
            self._asked_at.get(call.process),
        )
        self._delivered.append(delivered)
        self._open[call.process] = delivered

    def weigh(self) -> None:
        """See what is in the lanes now."""
        lanes, now = self._known_deployment().lanes, self._now()
        begun_anew = [*self._in_vain, *(at for _, at in self._put_back)]
        again = sum(now - at < _LONGEST_AHEAD for at in begun_anew)
        self._loads.append(Load(now, len(lanes), len(set(runs_in(lanes))), again))

    def evidence(self, until: datetime) -> Evidence:
        """All that was seen by now; everything that was due up to `until` is to have ended."""
        deployment = self._known_deployment()
        options, chaos = deployment.options, deployment.loop.chaos
        owners = frozenset(key.owner for key in self._rows)
        notices = notices_of(deployment, owners, self._put_at)
        return Evidence(
            versions={**self._versions, **notices.pop("versions", {})},
            runs=list(self._rows_at_last()),
            deliveries=[delivery_of(each) for each in self._delivered],
            acks=self.acks,
            until=until,
            writes=self._writes,
            faults=sorted(self._fault_instants()),
            target_faults=list(self._target_faults()),
            outages=sorted(self._outages()),
            leftovers=list(self._leftovers(until)),
            gaps=list(self._gaps()),
            told=self._told,
            grants=self._grants,
            operations=list(self._operations.values()),
            loads=self._loads,
            caught_up=self._caught_up,
            listed=listed_of(
                deployment,
                {job_id: found[-1].job.owner for job_id, found in self._versions.items()},
            ),
            **activity_of(deployment, owners),
            results={
                row.key: deployment.stores.runs.get_result(row)
                for row in self._rows.values()
                if row.result_bytes is not None
            },
            **notices,
            circumstances=Circumstances(
                latency_seconds=chaos.most_latency_us / 1_000_000,
                function_timeout_seconds=options.function_timeout_seconds,
                catch_up_per_minute=options.catch_up_per_minute,
                segments=options.segments,
                owner_starts_per_minute=options.owner_starts_per_minute,
                owner_concurrent_runs=options.owner_concurrent_runs,
                longest_return_seconds=self._longest_return_seconds,
            ),
        )

    def _rows_at_last(self) -> Iterator[Run]:
        """The rows; no claim is to be left beside a success in a chunk, unless its process had
        stood still past its lease before it, and died."""
        stored = self._known_deployment().stores.runs
        for key, row in self._rows.items():
            claim = stored.get(key) if key in self._chunks.by_chunk else None
            is_left = claim is not None and not claim.is_final
            yield claim if claim and is_left and claim.claim_id not in self._late_claims else row

    def _observe(
        self, task: Task | None, port: str, method: str, args: tuple[Any, ...], answer: object
    ) -> None:
        handler = self._handlers.get((port, method))
        if handler is not None:
            handler(task, args, answer)
        if task is not None:
            self._faults[handler_of(task.name)] = task.process.faults
            self._asked_at[task.name] = self._now()

    def _known_deployment(self) -> Deployment:
        assert self._deployment is not None, "attach it first"
        return self._deployment

    def _now(self) -> datetime:
        return self._known_deployment().loop.instant()

    def _job_read(self, task: Task | None, args: tuple[Any, ...], answer: Any) -> None:
        if task is not None:
            revision, lane = (0, None) if answer is None else (answer.revision, answer.lane)
            self._reads[handler_of(task.name), args[1]] = Read(self._now(), revision, lane)

    def _jobs_read(self, task: Task | None, args: tuple[Any, ...], answer: Any) -> None:
        for owner, job_id in args[0]:
            self._job_read(task, (owner, job_id), answer.get(job_id))

    def _job_written(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        job = args[0]
        row = self._known_deployment().stores.jobs.get(job.owner, job.job_id)
        versions = self._versions.setdefault(job.job_id, [])
        if row is not None and (not versions or versions[-1].job != row):
            versions.append(JobVersion(self._now(), row))

    def _chunk_claimed(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        deployment = self._known_deployment()
        kept = (*deployment.lanes.kept(), *deployment.dead_letter_queue.kept())
        self._chunks.seen(each.order for each in kept if each.is_chunk)
        stored, process = deployment.stores.chunks.get(args[0].key), _process(task)
        if task is not None:
            self._tasks[process] = task
        for run_id in self._chunks.claimed(process, stored, self._now()):
            self._faults_before_claim[process, run_id] = self._faults.get(process, 0)

    def _chunk_finished(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        """The row tells whether the write had an effect."""
        stored = self._known_deployment().stores.chunks.get(args[0].key)
        process = _process(task)
        now, counts = self._now(), self._is_cancelled_by_row
        for write in self._chunks.finishes(process, stored, now, counts):
            job_id = "" if write.after is None else write.after.key.job_id
            read = self._reads.get((process, job_id))
            revision = None if read is None else read.revision
            self._writes.append(replace(write, job_revision=revision))
        self._rows.update(self._chunks.by_chunk)

    def _is_cancelled_by_row(self, key: RunKey) -> bool:
        """True if a row that the run had was cancelled: one of whose put its executor has no
        answer, or another generation's claim."""
        row = self._rows.get(key)
        return (
            row is not None
            and row.status is RunStatus.CANCELLED
            and any(write.after == row and write.before is not None for write in self._writes)
        )

    def _claimed(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        if task is not None and answer is not False:
            # What struck before the call that made the claim is no business of the claim's.
            name, of_run = handler_of(task.name), args[0].key.run_id
            faults = self._faults.get(name, 0)
            if task.name == name:  # and not a part of it, which may have ended when that dies
                self._tasks[name] = task
                self._faults_before_claim[name, of_run] = faults
            else:  # a pause may have struck the call already, under its chunk's claim
                self._faults_before_claim.setdefault((name, of_run), faults)
        self._run_written(task, "claim", args[0].key)

    def _finished(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        self._run_written(task, "finish", args[0].key)

    def _withdrawn(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        self._run_written(task, "discard_claim", args[0].key)

    def _run_written(self, task: Task | None, method: str, key: RunKey) -> None:
        """What the row has become tells whether the write had an effect, whatever it answered.

        A row that the store has let expire is kept here as it was: what comes after may not be
        otherwise than if it stood.
        """
        before = self._rows.get(key)
        after = self._known_deployment().stores.runs.get(key)
        if after is before or after == before:
            return
        if key in self._chunks.by_chunk and (after is None or not after.is_final):
            if after is not None and after.lease_until and after.lease_until < self._now():
                self._late_claims.add(after.claim_id)
            return  # a claim that is withdrawn once its chunk is seen
        if after is None:
            if method != "discard_claim":
                return  # it has expired
            del self._rows[key]
        else:
            self._rows[key] = after
        process, read = "", None
        if task is not None:
            process = handler_of(task.name)
            read = self._reads.get((process, key.job_id))
        revision = None if read is None else read.revision
        self._writes.append(RunWrite(self._now(), process, method, before, after, revision))

    def _operation_put(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        if answer:
            operation: Operation = args[0]
            self._operations[operation.owner, operation.operation_id] = operation

    def _emitted(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        now = self._now()
        self._told += [Told(each.type.value, each.subject, now) for each in args[0]]

    def _result_put(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        self._put_at[args[0].batch_id] = self._now()

    def _gate_put(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        """Admission of rates are put to grant a start, to a claim of its own, or to forget some."""
        gate = args[0]
        if not answer or not gate.name.startswith(_RATES) or gate.started_at is None:
            return
        name = (gate.owner, gate.name)
        if self._granted_to.get(name) != gate.started:  # or it is put once more
            self._granted_to[name] = gate.started
            self._grants.append(Grant(*name, self._now(), gate.started_at))

    def _sent(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        """What comes back from the dead-letter queue waits for longer each time."""
        single = [order for order in args[0] if isinstance(order, Message)]
        waits = (returning.delay_seconds(each) for each in single if each.returns)
        self._longest_return_seconds = max(self._longest_return_seconds, *waits, 0)
        self._count_caught_up(task, single)

    def _entries_put(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        self._count_caught_up(task, [each.message for each in args[0] if each.message is not None])

    def _count_caught_up(self, task: Task | None, messages: Iterable[Message]) -> None:
        if task is not None and task.name.startswith(_TICKS):
            now = self._now()
            late = (message for message in messages if _is_caught_up(message, now))
            self._caught_up.update((each.segment, each.key.owner) for each in late)

    def _control_put(self, task: Task | None, args: tuple[Any, ...], answer: object) -> None:
        segment = args[0].segment
        control = self._known_deployment().stores.wheel.get_control(segment)
        before = self._controls.get(segment)
        if control is None or control == before:
            return
        names = {_name_of(segment, each): each for each in control.backlog}
        for known in () if before is None else before.backlog:
            name = _name_of(segment, known)
            if name not in names:
                self._backlogs[name] = (self._backlogs[name][0], self._now())
        for name, backlog in names.items():
            self._backlogs.setdefault(name, (backlog.done, None))
        if before is not None and control.watermark < before.watermark:
            # A reindexing: ticks go through these minutes once more.
            self._put_back.append((minute_start(control.watermark + 1), self._now()))
        is_behind = control.watermark < control.horizon
        if before is not None and before.lease_until and is_behind and control == freed(before):
            # The queue refused a part of a minute: the next tick sends all of it again.
            self._in_vain.append(self._now())
        self._controls[segment] = control

    def _gaps(self) -> Iterator[Gap]:
        for (segment, announced, until, taken_up_at), (_, cleared_at) in self._backlogs.items():
            from_at, until_at = minute_start(announced + 1), minute_start(until + 1)
            yield Gap(segment, from_at, until_at, cleared_at, taken_up_at)

    def _outages(self) -> Iterator[tuple[datetime, datetime]]:
        deployment = self._known_deployment()
        loop = deployment.loop
        yield from deployment.ticks_down
        yield from deployment.executors_down
        yield from self._put_back
        for done, cleared_at in self._backlogs.values():
            yield minute_start(done + 1), cleared_at or self._now()
        for struck in loop.chaos.injected:
            lasts = _LASTS.get(struck.strike.fault)
            if lasts is not None:
                at = loop.instant(struck.at_us)
                yield at, at + lasts

    def _fault_instants(self) -> Iterator[datetime]:
        """When faults struck, and when processes came to the end of their time with work left."""
        loop = self._known_deployment().loop
        for struck in loop.chaos.injected:
            yield loop.instant(struck.at_us)
        for task in self._tasks.values():
            ends_us = task.process.ends_us
            if task.died and ends_us is not None and ends_us <= loop.us:
                yield loop.instant(ends_us)

    def _target_faults(self) -> Iterator[tuple[datetime, str]]:
        loop = self._known_deployment().loop
        for struck in loop.chaos.injected:
            where = struck.strike.where
            if struck.strike.fault.value.startswith("target_"):
                yield loop.instant(struck.at_us), where.removeprefix("target ").partition("_")[0]

    def _leftovers(self, until: datetime) -> Iterator[str]:
        deployment, now = self._known_deployment(), self._now()
        for name, error in deployment.crashes:
            yield f"{name} crashed: {type(error).__name__}: {error}"
        for where in deployment.bad_entries:
            if _TRANSIENT not in where and PLANTED not in where:
                yield f"bad entry {where}"
        for kept in due(deployment.dead_letter_queue, until):
            yield f"in the dead-letter queue: {kept.body}"
        for kept in due(deployment.lanes, until):
            if kept.visible_at <= now:
                yield f"visible since {kept.visible_at}, and nobody takes it: {kept.body}"
        for operation in self._operations.values():
            # That of a paused job waits for its resume, and says so.
            if not operation.is_final and not operation.note and operation.created_at <= until:
                yield f"operation {operation.operation_id} is {operation.state.value} for ever"


def _process(task: Task | None) -> str:
    return "" if task is None else handler_of(task.name)


def _is_caught_up(message: Message, now: datetime) -> bool:
    """Whether a tick that had been away has sent it: looks of the watch take places, too."""
    is_late_look = message.key.kind is RunKind.WATCH and message.due_at <= now
    return message.in_time is not None or message.wait_until is not None or is_late_look


def _name_of(segment: int, backlog: Backlog) -> tuple[int, int, int, datetime]:
    return segment, backlog.announced, backlog.until, backlog.taken_up_at
