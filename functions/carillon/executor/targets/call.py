"""What a target is given and what it answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from carillon.domain.run import RunError


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt, and everything a target may know about it.

    `payload` is compact JSON text, rendered if it was a template. `timeout_seconds` is the hard
    limit of the attempt. `effective_at` is when the run was to start; None where that is `fire_at`.
    `tags` are the job's, pairs of key and value.
    """

    run_id: str
    job_id: str
    job_name: str
    owner: str
    attempt: int
    fire_at: datetime
    payload: str
    timeout_seconds: float
    effective_at: datetime | None = None
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Success:
    """`result` is one line, already cut to what the history keeps."""

    result: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """`timed_out`: the call was stopped at its limit; whether it had an effect is not known.

    `retry_after_seconds`, at least 0, is when the target asks to be tried again, counted from now.
    """

    error: RunError
    timed_out: bool = False
    retry_after_seconds: float | None = None


Outcome = Success | Failure


class Caller(Protocol):
    """Delivers calls to targets of one type; usable from several threads."""

    def deliver(self, target: Any, call: Call) -> Outcome:
        """Answer within the call's limit; raises nothing for what the target does."""
        ...

    def prepare(self, count: int) -> None:
        """Get ready for `count` calls at once, without waiting."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...
