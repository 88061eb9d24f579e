"""Spans of the runs of a batch, and their way to a collector (docs/tracing.md)."""

from carillon.clock import Clock
from carillon.executor.tracing.tracer import Tracer
from carillon.settings import TRACES_TO_LOGS, Settings

__all__ = ["Tracer", "create_tracer"]


def create_tracer(settings: Settings, clock: Clock) -> Tracer | None:
    """None where no spans are to be sent."""
    if settings.tracing in ("", TRACES_TO_LOGS):
        return None
    # A deployment that sends no spans does not pay for its import.
    from carillon.executor.tracing.collector import collector_of

    stack = settings.stack_name or "carillon"
    return Tracer(collector_of(settings.tracing), clock, settings.trace_percent, stack)
