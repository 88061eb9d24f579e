"""The bill of a deployment for the events of a simulation.

Calls are counted at the ports, sized by the real encoders, and priced by
`carillon.schedules.insight.cost`.

DynamoDB: by the bytes of the rows that the stores would write and read; jobs and dead letters are
written to their indexes, too. SQS: ten messages go in one request of their lane; each invocation of
an executor stands for one reception and one deletion. Lambda: an invocation waits as long as it
lasts in the simulation (for its second, for targets), and works as `make bench-cost` measured for
its requests.
Segments that are not simulated cost each tick what an idle one costs. Left out: the API's requests,
storage of jobs, the event bus, and what targets cost.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from carillon.domain.admission.state import AdmissionRow
from carillon.domain.calendar import Calendar
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Job
from carillon.domain.message import Message, encode
from carillon.domain.operation import Operation
from carillon.domain.run import Run
from carillon.domain.wheel.entry import Entry
from carillon.domain.wheel.segment import Control
from carillon.schedules.insight.cost import (
    CALL_CPU_SECONDS,
    DEFAULT,
    IDLE_READS,
    IDLE_WRITES,
    MESSAGE_CPU_SECONDS,
    NOTHING,
    RUN_CPU_SECONDS,
    TICK_LOG_BYTES,
    Line,
    Usage,
    carried,
    invoked,
    kept,
    lasted,
    queue_units,
    read_units,
    received,
    worked,
    write_units,
)
from carillon.stores.dynamo import jobs, runs, side_rows, wheel
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.ports import ADMISSION_ROWS, CALENDARS, IDEMPOTENCY_RECORDS, OPERATIONS

_MEMORY_MB = DEFAULT.memory_mb
_BATCH = 10

Rows = Callable[[tuple[Any, ...], Any], Iterable[Any]]
"""From a call's arguments and answer to the rows that were read, or written; None is none."""


@dataclass(frozen=True, slots=True)
class Bill:
    """The resources used in a span: by ticks, by runs, or by the deployment as such."""

    usage: Usage
    events: int
    calls: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        usage = self.usage
        return {
            "write_units": round(usage.of(Line.WRITES)),
            "read_units": round(usage.of(Line.READS)),
            "queue_requests": round(usage.of(Line.QUEUE) + usage.of(Line.EMPTY_RECEIVES)),
            "lambda_invocations": round(usage.of(Line.INVOCATIONS)),
            "lambda_gb_seconds": round(usage.of(Line.WAITING) + usage.of(Line.WORK), 3),
            "events": self.events,
            "calls": self.calls,
            "dollars": {
                line.value: round(dollars, 6) for line, dollars in usage.dollars_by_line.items()
            },
            "dollars_total": round(usage.dollars, 6),
        }


class Meter:
    """Counts the calls of processes, from the loop, and invocations, from the deployment."""

    def __init__(self, segments: int) -> None:
        """`segments` are those that are simulated."""
        self._others = max(0, DEFAULT.segments - segments)
        self._sizes = _Sizes()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._amounts: Counter[Line] = Counter()
        self._ticks = 0
        self._batches = 0
        self._messages = 0
        self._kept = NOTHING
        self._busy_us = 0
        self._events = 0

    def called(self, port: str, method: str, args: tuple[Any, ...], answer: Any) -> None:
        """A call of a port had its effect."""
        name = (port, method)
        self._calls[name] += 1
        if name in _READS:
            rows = _READS[name](args, answer)
            self._amounts[Line.READS] += read_units(sum(map(self._sizes.of, rows)))
        elif name in _WRITES:
            for row in _WRITES[name](args, answer):
                units = write_units(self._sizes.of(row))
                if isinstance(row, Run) and row.is_dead_letter:
                    units *= 2
                elif isinstance(row, Job):
                    units += 1  # of its index the entry is small
                self._amounts[Line.WRITES] += units
        elif port == "queue":
            self._sent(args[0])
        elif port == "events":
            self._events += len(args[0])
        if name == ("runs", "finish") and answer and args[0].is_final:
            days, recovery = DEFAULT.run_retention_days, DEFAULT.recover_runs
            self._kept += kept(self._sizes.of(args[0]), days, recovery=recovery)

    def _sent(self, messages: Iterable[Message]) -> None:
        by_lane: dict[str, list[int]] = {}
        for message in messages:
            by_lane.setdefault(message.lane, []).append(len(encode(message)))
        for sizes in by_lane.values():
            self._messages += len(sizes)
            for first in range(0, len(sizes), _BATCH):
                requests = queue_units(sum(sizes[first : first + _BATCH]))
                self._amounts.update(carried(requests).amounts)

    def ticked(self) -> None:
        """The tick is invoked."""
        self._ticks += 1
        self._amounts[Line.WRITES] += self._others * IDLE_WRITES
        self._amounts[Line.READS] += self._others * IDLE_READS

    def received(self) -> None:
        """An executor is invoked with a batch, which is received and deleted."""
        self._batches += 1

    def lasted(self, busy_us: int) -> None:
        """Count an invocation that has lasted this many microseconds."""
        self._busy_us += busy_us

    def bill(self) -> Bill:
        """For what was counted until now."""
        ours = {name: n for name, n in self._calls.items() if name[0] != "targets"}
        requests = sum(ours.values()) + self._ticks * self._others * (IDLE_WRITES + IDLE_READS)
        runs = ours.get(("runs", "claim"), 0)
        cpu_seconds = requests * CALL_CPU_SECONDS + runs * RUN_CPU_SECONDS
        cpu_seconds += self._messages * MESSAGE_CPU_SECONDS
        usage = Usage(dict(self._amounts)) + self._kept + worked(cpu_seconds, _MEMORY_MB)
        usage += lasted(Line.WAITING, self._busy_us / 1e6, _MEMORY_MB)
        usage += invoked(self._ticks, TICK_LOG_BYTES, _MEMORY_MB)
        usage += received(max(runs, self._batches), self._batches, _MEMORY_MB)
        calls = {f"{port}.{method}": n for (port, method), n in sorted(self._calls.items())}
        return Bill(usage, self._events, calls)


class _Sizes:
    """Bytes of rows by the real encoders; once for those that differ in instants only, whose sizes
    are the same to a byte or two."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], int] = {}

    def of(self, row: Any) -> int:
        if row is None:
            return 0
        kind = type(row)
        if kind not in _ENCODERS:
            return 1  # rows that are removed, or known by their key only: small, whatever they hold
        like = _LIKE[kind](row) if kind in _LIKE else None
        if like is None:
            return item_size(_ENCODERS[kind](row))
        if (kind, *like) not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[kind, *like] = item_size(_ENCODERS[kind](row))
        return self._known[kind, *like]


def _like_run(run: Run) -> tuple[Any, ...]:
    texts = (run.result, run.note, run.reason, run.error, run.key.request_id)
    errors = tuple(record.error for record in run.attempts)
    return run.key.owner, run.key.job_id, run.status, run.attempt, run.waits, *texts, errors


def _given(args: tuple[Any, ...], answer: Any) -> Iterable[Any]:
    return (args[0],)


def _all_given(args: tuple[Any, ...], answer: Any) -> Iterable[Any]:
    rows: Iterable[Any] = args[0]
    return rows


def _answered(args: tuple[Any, ...], answer: Any) -> Iterable[Any]:
    return (answer,)


def _page(args: tuple[Any, ...], answer: Any) -> Iterable[Any]:
    rows: Iterable[Any] = answer.items
    return rows


_MOST_KNOWN = 500_000
_ENCODERS: dict[type, Callable[[Any], Any]] = {
    Job: jobs.item_of,
    Run: runs.item_of,
    Entry: wheel.item_of,
    Calendar: partial(side_rows.item_of, CALENDARS),
    AdmissionRow: partial(side_rows.item_of, ADMISSION_ROWS),
    Operation: partial(side_rows.item_of, OPERATIONS),
    IdempotencyRecord: partial(side_rows.item_of, IDEMPOTENCY_RECORDS),
    Control: wheel.control_item_of,
}
_LIKE: dict[type, Callable[[Any], tuple[Any, ...] | None]] = {
    Job: lambda job: (job.owner, job.job_id, job.revision),
    Run: _like_run,
    Entry: lambda entry: (entry.segment, entry.slot.key, entry.key),
    Calendar: lambda calendar: (calendar.owner, calendar.name, calendar.revision),
    Control: lambda control: None if control.backlog else (control.segment,),
}
_READS: dict[tuple[str, str], Rows] = {
    ("jobs", "get"): _answered,
    ("jobs", "list"): _page,
    ("calendars", "get"): _answered,
    ("calendars", "list"): _page,
    ("wheel", "query"): lambda args, answer: answer.items,
    ("wheel", "holds"): lambda args, answer: (),
    ("wheel", "get_control"): _answered,
    ("wheel", "examine_control"): lambda args, answer: (),
    ("runs", "get"): _answered,
    ("runs", "list"): _page,
    ("runs", "dead_letters"): _page,
    ("admission_rows", "get"): _answered,
    ("operations", "get"): _answered,
    ("idempotency_records", "get"): _answered,
    ("operations", "list"): _page,
    ("notifications", "get"): _answered,
    ("notifications", "list"): _page,
    ("windows", "get"): _answered,
    ("uses", "get"): _answered,
}
_WRITES: dict[tuple[str, str], Rows] = {
    ("jobs", "create"): _given,
    ("jobs", "replace"): _given,
    ("jobs", "relink"): _given,
    ("jobs", "remove_unreadable"): _given,
    ("calendars", "put"): _given,
    ("calendars", "delete"): _given,
    ("wheel", "put_entries"): _all_given,
    ("wheel", "remove_entries"): lambda args, answer: args[1],
    ("wheel", "put_control"): _given,
    ("wheel", "mend_control"): _given,
    ("runs", "claim"): _given,
    ("runs", "finish"): _given,
    ("runs", "replace_unreadable"): _given,
    ("runs", "discard_claim"): _given,
    ("runs", "put_result"): _given,
    ("admission_rows", "put"): _given,
    ("operations", "put"): _given,
    ("idempotency_records", "put"): _given,
    ("windows", "put"): _given,
    ("uses", "put"): _given,
}
