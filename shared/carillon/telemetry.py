"""Logs and metrics: closed lists of names, which operators may build on.

The function's environment has the rest: POWERTOOLS_METRICS_NAMESPACE (the stack's name, or
Carillon), POWERTOOLS_SERVICE_NAME and POWERTOOLS_LOG_LEVEL. Spans are made by the executor
(docs/tracing.md).
"""

import logging
from collections.abc import Sequence
from enum import StrEnum
from threading import Lock

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from carillon.domain.spec.owners import Author
from carillon.domain.tracing import trace_id


class Action(StrEnum):
    """The member `action` of every log record; alarms and queries may rely on it."""

    # all
    EVENTS_LOST = "events.lost"
    # api
    JOB_CREATED = "job.created"
    JOB_CHANGED = "job.changed"
    JOB_PAUSED = "job.paused"
    JOB_RESUMED = "job.resumed"
    JOB_DELETED = "job.deleted"
    CALENDAR_PUT = "calendar.put"
    CALENDAR_DELETED = "calendar.deleted"
    NOTIFICATION_PUT = "notification.put"
    NOTIFICATION_DELETED = "notification.deleted"
    QUOTA_PUT = "quota.put"
    RUN_REQUESTED = "run.requested"
    RUN_CANCELLED = "run.cancelled"
    RUN_REPORTED = "run.reported"
    RUN_REDRIVEN = "run.redriven"
    RUN_DISCARDED = "run.discarded"
    OPERATION_REQUESTED = "operation.requested"
    OPERATION_CANCELLED = "operation.cancelled"
    REQUEST_FAILED = "request.failed"
    STACK_FAILED = "stack.failed"
    REQUEST_UNAVAILABLE = "request.unavailable"
    # tick
    TICK_FINISHED = "tick.finished"
    SEGMENT_FAILED = "segment.failed"
    SEGMENTS_LOWERED = "segments.lowered"
    ENTRY_SET_ASIDE = "entry.set_aside"
    SHARE_UNINVITED = "share.uninvited"
    CLOCK_SKEWED = "clock.skewed"
    CANARY_FILED = "canary.filed"
    CANARY_FAILED = "canary.failed"
    # executor
    ACTIVITY_LOST = "activity.lost"
    BATCH_FINISHED = "batch.finished"
    RUN_RETRYING = "run.retrying"
    RUN_DEAD = "run.dead"
    RUN_TIMED_OUT = "run.timed_out"
    RUN_SKIPPED = "run.skipped"
    RUN_MISSED = "run.missed"
    JOB_COMPLETED = "job.completed"
    MESSAGE_DROPPED = "message.dropped"
    MESSAGE_SENT_BACK = "message.sent_back"
    MESSAGE_MALFORMED = "message.malformed"
    MESSAGE_FAILED = "message.failed"
    SPANS_LOST = "spans.lost"
    NOTIFYING_FAILED = "notifying.failed"
    TASK_LOG = "task.log"


class Metric(StrEnum):
    """The names of the metrics, one dimension each: `service`. Each has a monthly price: only those
    that an alarm or the dashboard uses are here (infra/); everything else to be counted is in the
    log."""

    # tick
    OCCURRENCES_SENT = "OccurrencesSent"
    ENTRIES_SET_ASIDE = "EntriesSetAside"
    SHARES_UNINVITED = "SharesUninvited"
    WATERMARK_LAG = "WatermarkLag"
    CLOCK_SKEW = "ClockSkew"
    # executor
    RUNS_SUCCEEDED = "RunsSucceeded"
    RUNS_RETRIED = "RunsRetried"
    RUNS_DEAD = "RunsDead"
    EXECUTORS_DIED = "ExecutorsDied"
    """Of the dead ones: executors died on them, or none could begin them."""
    RUNS_SKIPPED = "RunsSkipped"
    RUNS_MISSED = "RunsMissed"
    RUN_LAG = "RunLag"
    CANARY_LAG = "CanaryLag"
    """Of a run of the canary that succeeded: its lag."""


SECONDS = frozenset({Metric.WATERMARK_LAG, Metric.CLOCK_SKEW, Metric.RUN_LAG, Metric.CANARY_LAG})
"""The metrics in seconds; all others are counts."""

_MOST_VALUES = 99
"""Of a metric in one record: at the hundredth the library gives them out by itself."""


class Telemetry:
    """Logs and metrics of one function; usable from several threads. `traced`: records with a
    `run_id` have its `trace_id`, too."""

    def __init__(self, logger: Logger, metrics: Metrics, *, traced: bool = False) -> None:
        self.logger = logger
        self._traced = traced
        self._metrics = metrics
        self._measured: dict[Metric, list[float]] = {}
        self._lock = Lock()

    def record(self, action: Action, level: int = logging.INFO, **details: object) -> None:
        """Log that `action` happened; `details` become members of the record, an Author in `by` two
        of them: who it was, and `via`, the way.

        They must not have the names of a LogRecord's own (`name`, `message`, `args`, ...).
        `level` is INFO, WARNING or ERROR.
        """
        log = {logging.WARNING: self.logger.warning, logging.ERROR: self.logger.error}.get(
            level, self.logger.info
        )
        log(action.value, extra=self._members(action, details))

    def failure(self, action: Action, error: BaseException, **details: object) -> None:
        """Log `action` as an error with the trace of `error`."""
        self.logger.error(action.value, exc_info=error, extra=self._members(action, details))

    def _members(self, action: Action, details: dict[str, object]) -> dict[str, object]:
        run_id = details.get("run_id") if self._traced else None
        trace = {"trace_id": trace_id(run_id)} if isinstance(run_id, str) else {}
        by = details.get("by")
        who = {"by": by.who, "via": by.via.value} if isinstance(by, Author) else {}
        return {"action": action.value, **details, **who, **trace}

    def measure(self, metric: Metric, value: float = 1) -> None:
        """Add a value to a metric: seconds for those in SECONDS, else a count."""
        with self._lock:
            values = self._measured.setdefault(metric, [])
            if metric in SECONDS:
                values.append(value)
            else:
                values[:] = [sum(values) + value]

    def events_lost(self, count: int) -> None:
        """Log how many lifecycle events their bus has not taken; nothing if none."""
        if count:
            self.record(Action.EVENTS_LOST, logging.WARNING, count=count)

    def activity_lost(self, count: int) -> None:
        """Log how many results the activity feed lacks; nothing if none."""
        if count:
            self.record(Action.ACTIVITY_LOST, logging.WARNING, count=count)

    def finish(self, action: Action, **details: object) -> None:
        """Log that an invocation came to its end, and give the metrics out in the same record:
        CloudWatch is paid by bytes and records. Of very many times of seconds a part is given
        out, evenly by their lengths, the longest among them."""
        with self._lock:
            measured, self._measured = self._measured, {}
            for metric, values in measured.items():
                unit = MetricUnit.Seconds if metric in SECONDS else MetricUnit.Count
                for value in _part_of(values):
                    self._metrics.add_metric(name=metric.value, unit=unit, value=value)
            blob = dict(self._metrics.serialize_metric_set()) if measured else {}
            self._metrics.clear_metrics()
        blob.pop("service", None)  # the record's own
        self.record(action, logging.INFO, **details, **blob)


def _part_of(values: Sequence[float]) -> Sequence[float]:
    """As many as one record of a metric may have."""
    if len(values) <= _MOST_VALUES:
        return values
    longest_first = sorted(values, reverse=True)
    return [longest_first[len(values) * n // _MOST_VALUES] for n in range(_MOST_VALUES)]


def _new_logger(service: str | None) -> Logger:
    # Lambda finds a line's level only beside such a timestamp (Advanced Logging Controls). The
    # location is left out of lines that are paid by their bytes: an action is logged in one place.
    return Logger(service=service, use_rfc3339=True, location=None)


def create_telemetry(service: str, *, traced: bool = False) -> Telemetry:
    """The telemetry of a function; POWERTOOLS_SERVICE_NAME overrides `service`."""
    logger = _new_logger(None)
    if logger.service == "service_undefined":
        logger = _new_logger(service)
    metrics = Metrics(service=logger.service)
    metrics.namespace = metrics.namespace or "Carillon"
    return Telemetry(logger, metrics, traced=traced)
