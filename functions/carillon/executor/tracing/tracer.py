"""A batch's spans, gathered while it runs and sent when all else is done."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from carillon.clock import Clock
from carillon.domain.run import one_line
from carillon.executor.batch import PartlyHandledError, Report
from carillon.executor.deadlines import Deadline, call_within
from carillon.executor.tracing.otlp import request_of
from carillon.executor.tracing.spans import Handling, Span, spans_of
from carillon.telemetry import Action, Telemetry

EXPORT_SECONDS = 1.0
"""The longest that a batch waits for its collector."""
KEPT_SECONDS = 0.5
"""Left of the process, to answer for the batch."""
PAUSE = timedelta(minutes=1)
"""After a failure: a collector that hangs must not cost every batch a second."""

_R = TypeVar("_R")


class Collector(Protocol):
    """The place where spans go."""

    def post(self, body: bytes, limit_seconds: float) -> None:
        """Send a request of OTLP; raises some exception if it was not taken as a whole."""
        ...


class Tracer:
    """Usable from several threads, for one batch at a time. Raises nothing: traces are a view."""

    def __init__(self, collector: Collector, clock: Clock, percent: int, service: str) -> None:
        self._collector = collector
        self._clock = clock
        self._percent = percent
        self._service = service
        self._handled: list[Handling] = []
        self._lost = 0
        self._paused_until: datetime | None = None

    def watched(self, handle: Callable[[_R, bool], Report]) -> Callable[[_R, bool], Report]:
        """The same handler of a record, whose reports are kept for `export`; so is that of a part,
        since whoever repeats the message tells nothing of it."""

        def handle_and_keep(record: _R, alone: bool) -> Report:
            received_at = self._clock.now()
            try:
                report = handle(record, alone)
            except PartlyHandledError as error:
                self._handled.append(Handling(error.report, received_at, self._clock.now()))
                raise
            self._handled.append(Handling(report, received_at, self._clock.now()))
            return report

        return handle_and_keep

    def export(self, ends_at: datetime, telemetry: Telemetry) -> None:
        """Send the spans of what was handled, once, within EXPORT_SECONDS; the process may be
        stopped at `ends_at`. A failure is logged, with the number of spans that were lost since
        the failure before, and nothing is sent for a minute."""
        handled, self._handled = self._handled, []
        now, spans = self._clock.now(), list[Span]()
        limit_seconds = min(EXPORT_SECONDS, (ends_at - now).total_seconds() - KEPT_SECONDS)
        is_paused = self._paused_until is not None and now < self._paused_until
        try:
            for one in handled:
                spans += spans_of(one, self._percent)
            if not spans:
                return
            if is_paused or limit_seconds <= 0:
                self._lost += len(spans)
                return
            body = request_of(spans, self._service)
            call_within(
                Deadline.after(limit_seconds), lambda: self._collector.post(body, limit_seconds)
            )
        except Exception as error:  # no run may fail for it
            self._paused_until = now + PAUSE
            lost, self._lost = self._lost + len(spans), 0
            reason = one_line(f"{type(error).__name__}: {error}")
            telemetry.record(Action.SPANS_LOST, logging.WARNING, count=lost, reason=reason)
