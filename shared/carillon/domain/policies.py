"""A job's policies: what is done about failures, lateness, overlap and load."""

from dataclasses import dataclass, field
from enum import StrEnum

from carillon.domain.run import FAIL_KIND, RETRY_KIND, RunError

LONGEST_RETRY_DELAY_SECONDS = 7 * 86_400
"""A target that asks for a later retry (Retry-After, `Retry(after=...)`) gets this one."""


class CatchUp(StrEnum):
    """What is done with occurrences that an outage passed over, of ticks or of executors."""

    SKIP = "skip"
    """None of them runs; one row of the history covers them."""
    LATEST = "latest"
    """Only the last of them runs; one row covers the others."""
    ALL = "all"
    """Each of them runs."""


class Overlap(StrEnum):
    """What is done with an occurrence that is due while another run of its job is active."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    """One waits for the end of the active run; those that come while it waits are skipped."""


class OnComplete(StrEnum):
    """What becomes of a job when no occurrence is left and its last run has ended."""

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

    base_seconds: int = 2
    factor: float = 2.0
    cap_seconds: int = 3600
    type: BackoffType = BackoffType.EXPONENTIAL

    def delay_seconds(self, failed_attempt: int, fraction: float) -> int:
        """Whole seconds to wait after attempt `failed_attempt` (from 1); fraction in [0, 1)."""
        if self.type is BackoffType.FIXED:
            return self.base_seconds
        # 64 doublings pass any cap; beyond them the power of a float would overflow.
        growth = self.factor ** min(failed_attempt - 1, 64)
        ceiling = min(float(self.cap_seconds), self.base_seconds * growth)
        return max(1, round(ceiling * (1 - fraction)))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`retry_on` are error kinds (`timeout`, `http_503`, `http_5xx`, an exception's class name):
    with any, these are retried and no others; without, all but those that no retry can help. What a
    task itself says, by raising Retry or Fail, stands above both."""

    max_attempts: int = 3
    backoff: Backoff = field(default_factory=Backoff)
    retry_on: tuple[str, ...] = ()

    def retries(self, error: RunError) -> bool:
        """Whether a further attempt may follow this error, as far as its kind goes."""
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

    key: str
    limit: int


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `limit` starts in `per_seconds` of all the owner's jobs that name this `key`."""

    limit: int
    per_seconds: int
    key: str = ""
