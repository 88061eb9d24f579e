"""Spans of the runs of a batch, and their way to a collector (docs/tracing.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from carillon.clock import Clock
from carillon.settings import TRACES_TO_LOGS, Settings

if TYPE_CHECKING:
    from carillon.executor.tracing.tracer import Tracer


def create_tracer(settings: Settings, clock: Clock) -> Tracer | None:
    """None where no spans are to be sent: such a deployment does not pay for their import."""
    if settings.tracing in ("", TRACES_TO_LOGS):
        return None
    from carillon.executor.tracing.collector import collector_of
    from carillon.executor.tracing.tracer import Tracer

    stack = settings.stack_name or "carillon"
    return Tracer(collector_of(settings.tracing), clock, settings.trace_percent, stack)
