"""The trace of a run, by W3C Trace Context: all its ids follow from the run's own, so that whoever
knows a run knows its trace, and nothing is stored or passed on for it."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache


class Step(StrEnum):
    """The spans of a run's trace: one RUN, and one of the others for each attempt at most."""

    RUN = "run"
    WAIT = "wait"
    """From the instant at which the attempt may start to its reception by an executor."""
    ATTEMPT = "attempt"
    CALL = "call"
    """The parent of what the target does."""
    FOLLOW_UP = "follow-up"
    """The record of the attempt's end, and all that follows from it."""


@lru_cache(maxsize=1_024)
def trace_id(run_id: str) -> str:
    """32 hexadecimal digits: the fire time in seconds, as X-Ray's own ids begin, then a hash.

    Attempts share it; a redrive, a callback and a run that follows another have their own.
    """
    fire_at = datetime.fromisoformat(run_id.split("_")[1])
    return f"{int(fire_at.timestamp()) & 0xFFFFFFFF:08x}{_digest(run_id)[:24]}"


def span_id(run_id: str, step: Step, attempt: int = 0) -> str:
    """16 hexadecimal digits; RUN has no attempt."""
    return _digest(f"{run_id}/{attempt}/{step.value}")[:16]


def is_sampled(trace: str, percent: int) -> bool:
    """True for `percent` of all traces, the same at each call, by OpenTelemetry's rule for the last
    56 bits of an id: services that go by it keep the same traces."""
    return int(trace[-14:], 16) * 100 >= (100 - percent) << 56


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The place in a trace that a target is told: its own spans are below `span_id`."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @classmethod
    def of_call(cls, run_id: str, attempt: int, percent: int) -> "TraceContext":
        """That of an attempt's call, in a deployment that keeps `percent` of all traces."""
        trace = trace_id(run_id)
        return cls(trace, span_id(run_id, Step.CALL, attempt), is_sampled(trace, percent))

    @property
    def traceparent(self) -> str:
        """The header of W3C Trace Context."""
        return f"00-{self.trace_id}-{self.span_id}-{self.is_sampled:02x}"

    @property
    def xray(self) -> str:
        """The same as AWS's services pass it on (X-Amzn-Trace-Id)."""
        root = f"1-{self.trace_id[:8]}-{self.trace_id[8:]}"
        return f"Root={root};Parent={self.span_id};Sampled={self.is_sampled:d}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
