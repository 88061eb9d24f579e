"""The spans of a message's handling, made of the row that it has left behind. Pure.

Nothing on a run's way takes part: its row has the instants of the call, and the handler those at
which it took the message and was done with it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.run import (
    DEAD_LETTER,
    NO_RUNS,
    DeadReason,
    Run,
    RunError,
    RunKey,
    RunKind,
    RunStatus,
)
from carillon.domain.tracing import Step, is_sampled, trace_id
from carillon.executor.batch import Handled, Report
from carillon.executor.tracing.calls import Attributes, Kind, call_of

_TOLD = frozenset({Handled.RAN, Handled.SKIPPED, Handled.OPENED})
_HTTP_STATUS = re.compile(r"(?:http_)?([1-5][0-9]{2})\b")
"""At the beginning of a webhook's result, or the kind of its error."""


@dataclass(frozen=True, slots=True)
class Handling:
    """A message's way through an executor."""

    report: Report
    received_at: datetime
    done_at: datetime


@dataclass(frozen=True, slots=True)
class Span:
    """A span of OpenTelemetry. `error`: why it failed. `link`: the run from which this follows."""

    run: Run
    step: Step
    name: str
    started_at: datetime
    ended_at: datetime
    parent: Step | None = None
    kind: Kind = Kind.INTERNAL
    attributes: Attributes = field(default_factory=dict)
    error: RunError | None = None
    link: RunKey | None = None

    @property
    def attempt(self) -> int:
        """That by which the id is made: the run's own span has none."""
        return 0 if self.step is Step.RUN else self.run.attempt


def spans_of(handling: Handling, percent: int) -> Iterator[Span]:
    """The spans of the attempt that was made, and of the run if it has ended by now; of a chunk
    those of each of its runs. None for what was deferred, dropped or repeated, nor for traces that
    are not among the `percent` kept."""
    report = handling.report
    for single in report.whole:
        if single is not report:
            yield from spans_of(replace(handling, report=single), percent)
    run, job = report.run, report.job
    if run is None or job is None or report.handled not in _TOLD or run.key.kind in NO_RUNS:
        return
    if not is_sampled(trace_id(run.key.run_id), percent):
        return
    begun_at = run.attempt_started_at
    is_called = run.reason != DeadReason.EXECUTOR_DIED
    if begun_at is not None and is_called and begun_at >= handling.received_at:
        yield from _of_attempt(handling, run, job, begun_at)
    if run.is_final:
        yield _of_run(report, run, job)


def _of_attempt(handling: Handling, run: Run, job: Job, begun_at: datetime) -> Iterator[Span]:
    """The wait in the queue, the attempt from its reception on, and in it the call and what was
    done after it."""
    due_at = handling.report.message.starts_at
    lane: Attributes = {
        "messaging.system": "aws_sqs",
        "messaging.destination.name": handling.report.message.lane.value,
    }
    received_at = max(due_at, handling.received_at)
    if received_at > due_at:
        receive = lane | {"messaging.operation.type": "receive", **_named("receive")}
        yield Span(run, Step.WAIT, "wait", due_at, received_at, Step.RUN, attributes=receive)
    error = run.error if run.status in (*DEAD_LETTER, RunStatus.RETRYING) else None
    process = lane | {"messaging.operation.type": "process", **_named("process")}
    yield Span(
        run,
        Step.ATTEMPT,
        "attempt",
        received_at,
        handling.done_at,
        Step.RUN,
        Kind.CONSUMER,
        process | _ids(run.key) | {"carillon.attempt": run.attempt},
        error,
    )
    ended_at = run.finished_at or run.updated_at
    name, kind, attributes = _call(run, job)
    yield Span(run, Step.CALL, name, begun_at, ended_at, Step.ATTEMPT, kind, attributes, error)
    yield Span(run, Step.FOLLOW_UP, "follow up", ended_at, handling.done_at, Step.ATTEMPT)


def _ids(key: RunKey) -> Attributes:
    """Not on each span: they are half of its bytes, which are paid for."""
    return {
        "carillon.run.id": key.run_id,
        "carillon.job.id": key.job_id,
        "carillon.owner": key.owner,
    }


def _named(operation: str) -> Attributes:
    return {"messaging.operation.name": operation}


def _call(run: Run, job: Job) -> tuple[str, Kind, Attributes]:
    if run.key.kind is RunKind.CALLBACK:  # of two targets, by the end of another run
        return "callback", Kind.CLIENT, {}
    name, kind, attributes = call_of(job.spec.target)
    told = run.error.kind if run.error else run.result
    status = _HTTP_STATUS.match(told or "") if "http.request.method" in attributes else None
    return (
        name,
        kind,
        attributes | ({"http.response.status_code": int(status[1])} if status else {}),
    )


def _of_run(report: Report, run: Run, job: Job) -> Span:
    """The whole run, from the instant at which it was due to its end."""
    started_at = run.started_at or run.updated_at
    attributes = _ids(run.key) | {
        "carillon.job.name": job.spec.name,
        "carillon.run.kind": run.key.kind.value,
        "carillon.run.status": run.status.value,
        "carillon.run.attempts": run.attempt,
        "carillon.run.fire_at": run.key.fire_at.isoformat(),
    }
    if run.reason:
        attributes["carillon.run.reason"] = run.reason
    return Span(
        run,
        Step.RUN,
        job.spec.name,
        min(_due_at(report, run) or started_at, started_at),
        run.finished_at or run.updated_at,
        attributes=attributes,
        error=run.error if run.status in DEAD_LETTER else None,
        link=_cause(run.key),
    )


def _due_at(report: Report, run: Run) -> datetime | None:
    """None for what was asked for, after its first attempt: its fire time may be long ago."""
    if run.key.is_occurrence:
        return run.effective_at or run.key.fire_at
    return report.message.due_at if run.attempt <= 1 else None


def _cause(key: RunKey) -> RunKey | None:
    """The run that this one repeats, reports or follows."""
    if key.redrive:
        return replace(key, redrive=key.redrive - 1)
    match key.kind:
        case RunKind.CALLBACK:
            return key.called_back
        case RunKind.AFTER:
            return key.predecessor
        case _:
            return None
