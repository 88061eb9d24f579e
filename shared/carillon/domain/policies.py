"""A job's policies about failures, lateness, overlap and load, and its lane."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from carillon.domain.run import FAIL_KIND, RETRY_KIND, RunError
from carillon.domain.spec.fields import (
    DAY_SECONDS,
    PLAIN,
    NullsAreDefaults,
    Seconds,
    UniqueValues,
)
from carillon.domain.spec.options import Cli

LONGEST_RETRY_DELAY_SECONDS = 7 * DAY_SECONDS
"""A target that asks for a later retry (Retry-After, `Retry(after=...)`) gets this one."""


def _retried(kind: str) -> str:
    if kind == FAIL_KIND:
        raise ValueError(f'must not be "{FAIL_KIND}": a task that raises Fail has failed for good')
    return kind


ErrorKind = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}$", examples=["timeout", "http_5xx"]),
    AfterValidator(_retried),
]


class Lane(StrEnum):
    """A queue with executors of its own: one for each priority, and one for slow jobs."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"
    SLOW = "slow"
    """The lane of jobs whose attempts keep lasting long (admission/slowness.py)."""

    @property
    def batch_size(self) -> int:
        """The number of messages that an executor takes at a time. A slow one goes alone: an
        invocation lasts as long as the slowest of its messages, and the others would wait for
        it."""
        return 1 if self is Lane.SLOW else 10


Priority = Literal[Lane.HIGH, Lane.NORMAL, Lane.LOW]
"""The lanes that an owner may choose."""


class CatchUp(StrEnum):
    """The treatment of occurrences that an outage left out, of ticks or of executors."""

    SKIP = "skip"
    """None of them runs; one row of the history covers them."""
    LATEST = "latest"
    """Only the last of them runs; one row covers the others."""
    ALL = "all"
    """Each of them runs."""


class Overlap(StrEnum):
    """The treatment of an occurrence that is due while another run of its job is active."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    """One waits for the end of the active run; those that come while it waits are skipped."""


class InitialState(StrEnum):
    """The state of a job when it is created, or again after it was deleted."""

    ACTIVE = "active"
    PAUSED = "paused"


class ResultKept(StrEnum):
    """The part of a run's result that the history keeps."""

    BEGINNING = "beginning"
    FULL = "full"


class OnComplete(StrEnum):
    """The end of a job when no occurrence is left and its last run has ended."""

    KEEP = "keep"
    DELETE = "delete"


class BackoffType(StrEnum):
    EXPONENTIAL = "exponential"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays between attempts: full jitter under an exponential ceiling, or always the same.

    Exponential: the delay before attempt n + 1 is uniform in (0, min(cap, base * factor**(n - 1))],
    in whole seconds and at least one (Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
    Fixed: `base_seconds` exactly; factor and cap do not count.
    """

    base_seconds: Annotated[
        int,
        Field(ge=1, le=DAY_SECONDS, strict=True),
        Cli("--backoff-base", "The first delay, in seconds.", "Attempts"),
    ] = 2
    factor: Annotated[
        float,
        Field(ge=1, le=100, strict=True),
        Cli("--backoff-factor", "How much longer each next one is.", "Attempts"),
    ] = 2.0
    cap_seconds: Annotated[
        int,
        Field(ge=1, le=7 * DAY_SECONDS, strict=True),
        Cli("--backoff-cap", "The longest delay, in seconds.", "Attempts"),
    ] = 3600
    type: Annotated[
        BackoffType,
        Cli("--backoff", "Between attempts: exponential (with jitter) or fixed.", "Attempts"),
    ] = BackoffType.EXPONENTIAL

    def delay_seconds(self, failed_attempt: int, fraction: float) -> int:
        """Whole seconds to wait after attempt `failed_attempt` (from 1); fraction in [0, 1)."""
        if self.type is BackoffType.FIXED:
            return self.base_seconds
        # 64 doublings pass any cap; beyond them the power of a float would overflow.
        growth = self.factor ** min(failed_attempt - 1, 64)
        ceiling = min(float(self.cap_seconds), self.base_seconds * growth)
        return max(1, round(ceiling * (1 - fraction)))


MOST_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`retry_on` are error kinds (`timeout`, `http_503`, `http_5xx`, an exception's class name):
    with any, these are retried and no others; without, all but those that no retry can help. A task
    that raises Retry or Fail overrides both."""

    max_attempts: Annotated[
        int,
        Field(ge=1, le=MOST_ATTEMPTS, strict=True),
        Cli("--max-attempts", "Attempts before a dead letter.", "Attempts"),
    ] = 3
    backoff: Annotated[Backoff, NullsAreDefaults()] = Backoff()
    retry_on: Annotated[
        tuple[ErrorKind, ...],
        Field(
            max_length=20,
            description="Error kinds: with any, these are retried and no others; without, all but "
            "those that no retry can help.",
        ),
        UniqueValues,
        Cli(
            "--retry-on",
            "Retry this kind of error only, as timeout or http_5xx; repeatable.",
            "Attempts",
        ),
    ] = ()

    def retries(self, error: RunError) -> bool:
        """True if a further attempt may follow this error, as far as its kind goes."""
        if not self.retry_on:
            return not error.permanent
        if error.kind in (FAIL_KIND, RETRY_KIND):
            return error.kind == RETRY_KIND
        kinds = {error.kind}
        if error.kind.startswith("http_") and len(error.kind) == 8:
            kinds.add(f"{error.kind[:6]}xx")
        return not kinds.isdisjoint(self.retry_on)


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most `limit` runs at once of all the owner's jobs that name this `key`."""

    key: Annotated[str, Field(min_length=1, max_length=128, pattern=PLAIN)]
    limit: Annotated[int, Field(ge=1, le=100, strict=True)]


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` starts within `per` seconds; those above wait."""

    limit: Annotated[int, Field(ge=1, le=10_000, strict=True)]
    per: Annotated[int, Seconds(1, DAY_SECONDS, "The time that `limit` starts count for.")]
    key: Annotated[
        str,
        Field(
            max_length=128,
            pattern=r"^[^\x00-\x1f\x7f]*$",
            description="All the owner's jobs that name it share the rate; empty: this job alone.",
        ),
    ] = ""
