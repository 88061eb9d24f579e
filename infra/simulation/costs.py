"""What a deployment would be billed for: requests counted at the ports, and dollars by DESIGN 7.

The rules. DynamoDB: a strongly consistent read takes a unit for each begun 4 KiB, a write one for
each begun KiB and, of a dead letter, one more for its index; rows have the sizes of their texts and
an allowance for the rest. SQS: ten messages go in one request of their lane; each invocation of an
executor stands for one reception and one deletion. Lambda: an invocation of 512 MB takes the time
that it has in the simulation (its targets and waits), and 5 ms for each call of a port. Of the 4
segments of a deployment, those that are not simulated cost each tick what an idle one costs. Left
out: the API's requests, empty receptions, storage, logs, the event bus, and what targets cost.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.domain.cost import (
    LAMBDA_GB_SECOND_DOLLARS,
    LAMBDA_REQUEST_DOLLARS,
    QUEUE_REQUEST_DOLLARS,
    READ_UNIT_DOLLARS,
    WRITE_UNIT_DOLLARS,
)
from shared.domain.job import Job
from shared.domain.run import Run

SEGMENTS = 4
"""Of a deployment, unless its context says otherwise (cdk.json)."""
IDLE_WRITES = 2
IDLE_READS = 4
"""What one visit of a tick to a segment costs where nothing is due: the lease taken and freed; its
control item, and the three slots of the minute."""
MEMORY_GB = 0.5
CALL_SECONDS = 0.005
_ENTRY_BYTES = 160
_JOB_BYTES = 900
_RUN_BYTES = 450
_ATTEMPT_BYTES = 120
_RANGE_BYTES = 30
_BATCH = 10

Sizer = Callable[[tuple[Any, ...], Any], int]
"""From a call's arguments and answer to its units."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What was used in a span, and its price in US dollars: by ticks, or by executors."""

    write_units: int
    read_units: int
    queue_requests: int
    invocations: int
    gb_seconds: float
    events: int
    calls: dict[str, int]

    @property
    def dollars(self) -> dict[str, float]:
        """By service."""
        return {
            "dynamodb": self.write_units * WRITE_UNIT_DOLLARS + self.read_units * READ_UNIT_DOLLARS,
            "sqs": self.queue_requests * QUEUE_REQUEST_DOLLARS,
            "lambda": self.invocations * LAMBDA_REQUEST_DOLLARS
            + self.gb_seconds * LAMBDA_GB_SECOND_DOLLARS,
        }

    @property
    def total(self) -> float:
        return sum(self.dollars.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "write_units": self.write_units,
            "read_units": self.read_units,
            "queue_requests": self.queue_requests,
            "lambda_invocations": self.invocations,
            "lambda_gb_seconds": round(self.gb_seconds, 3),
            "events": self.events,
            "calls": self.calls,
            "dollars": {name: round(value, 6) for name, value in self.dollars.items()},
            "dollars_total": round(self.total, 6),
        }


class Meter:
    """Counts the calls of processes, told by the loop, and invocations, told by the deployment."""

    def __init__(self, segments: int) -> None:
        """`segments` are those that are simulated."""
        self._segments = segments
        self._calls: Counter[tuple[str, str]] = Counter()
        self._writes = 0
        self._reads = 0
        self._queue_requests = 0
        self._invocations = 0
        self._idle_calls = 0
        self._busy_us = 0
        self._events = 0

    def called(self, port: str, method: str, args: tuple[Any, ...], answer: Any) -> None:
        """A call of a port had its effect."""
        name = (port, method)
        self._calls[name] += 1
        if name in _READS:
            self._reads += _READS[name](args, answer)
        elif name in _WRITES:
            self._writes += _WRITES[name](args, answer)
        elif port == "queue":
            lanes = Counter(message.lane for message in args[0])
            self._queue_requests += sum(-(-count // _BATCH) for count in lanes.values())
        elif port == "events":
            self._events += len(args[0])

    def ticked(self) -> None:
        """The tick is invoked."""
        self._invocations += 1
        self._writes += (SEGMENTS - self._segments) * IDLE_WRITES
        self._reads += (SEGMENTS - self._segments) * IDLE_READS
        self._idle_calls += (SEGMENTS - self._segments) * (IDLE_WRITES + IDLE_READS)

    def received(self) -> None:
        """An executor is invoked with a batch, which is received and deleted."""
        self._invocations += 1
        self._queue_requests += 2

    def lasted(self, busy_us: int) -> None:
        """An invocation has ended after so many microseconds."""
        self._busy_us += busy_us

    def bill(self) -> Bill:
        """For what was counted until now."""
        paid = (n for (port, _), n in self._calls.items() if port != "targets")
        busy_seconds = self._busy_us / 1e6 + (sum(paid) + self._idle_calls) * CALL_SECONDS
        calls = {f"{port}.{method}": n for (port, method), n in sorted(self._calls.items())}
        return Bill(
            self._writes,
            self._reads,
            self._queue_requests,
            self._invocations,
            busy_seconds * MEMORY_GB,
            self._events,
            calls,
        )


def _one(args: tuple[Any, ...], answer: Any) -> int:
    return 1


def _job_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 if answer is None else 1 + _job_bytes(answer) // 4096


def _jobs_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 + sum(map(_job_bytes, answer.items)) // 4096


def _job_write(args: tuple[Any, ...], answer: Any) -> int:
    return 1 + _job_bytes(args[0]) // 1024


def _entries_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 + len(answer.entries) * _ENTRY_BYTES // 4096


def _entries_write(args: tuple[Any, ...], answer: Any) -> int:
    return len(args[0])


def _entries_removed(args: tuple[Any, ...], answer: Any) -> int:
    return len(args[1])


def _run_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 if answer is None else 1 + _run_bytes(answer) // 4096


def _runs_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 + sum(map(_run_bytes, answer.items)) // 4096


def _run_write(args: tuple[Any, ...], answer: Any) -> int:
    run: Run = args[0]
    return 1 + _run_bytes(run) // 1024 + run.is_dead_letter


def _calendar_read(args: tuple[Any, ...], answer: Any) -> int:
    return 1 if answer is None else 1 + len(answer.ranges) * _RANGE_BYTES // 4096


def _job_bytes(job: Job) -> int:
    return _JOB_BYTES + len(job.payload)


def _run_bytes(run: Run) -> int:
    texts = (run.result, run.note, run.error.message if run.error else None)
    told = sum(len(text) for text in texts if text)
    return _RUN_BYTES + told + len(run.attempts) * _ATTEMPT_BYTES


_READS: dict[tuple[str, str], Sizer] = {
    ("jobs", "get"): _job_read,
    ("jobs", "list"): _jobs_read,
    ("calendars", "get"): _calendar_read,
    ("calendars", "list"): _one,
    ("wheel", "query"): _entries_read,
    ("wheel", "get_control"): _one,
    ("wheel", "examine_control"): _one,
    ("runs", "get"): _run_read,
    ("runs", "list"): _runs_read,
    ("runs", "dead_letters"): _runs_read,
    ("gates", "get"): _one,
    ("operations", "get"): _one,
    ("operations", "list"): _one,
}
_WRITES: dict[tuple[str, str], Sizer] = {
    ("jobs", "create"): _job_write,
    ("jobs", "replace"): _job_write,
    ("jobs", "remove_unreadable"): _one,
    ("calendars", "put"): _one,
    ("calendars", "delete"): _one,
    ("wheel", "put_entries"): _entries_write,
    ("wheel", "remove_entries"): _entries_removed,
    ("wheel", "put_control"): _one,
    ("wheel", "mend_control"): _one,
    ("runs", "claim"): _run_write,
    ("runs", "finish"): _run_write,
    ("runs", "replace_unreadable"): _run_write,
    ("runs", "withdraw"): _one,
    ("gates", "put"): _one,
    ("operations", "put"): _one,
}
