"""What a target is given and what it answers."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.domain.run import RunError


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt, and everything a target may know about it.

    `payload` is compact JSON text, `timeout_seconds` the hard limit of the attempt.
    """

    run_id: str
    job_id: str
    job_name: str
    owner: str
    attempt: int
    fire_at: datetime
    payload: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Success:
    """`result` is one line, already cut to what the history keeps."""

    result: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """`timed_out`: the call was stopped at its limit; whether it had an effect is not known."""

    error: RunError
    timed_out: bool = False


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
