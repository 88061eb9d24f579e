"""Decisions about a message, as values with their reasons."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

from carillon.domain.message import Message
from carillon.domain.run import Run, RunStatus

LONGEST_BRIEF_WAIT = timedelta(seconds=30)
"""The longest wait for what mostly passes within seconds."""


class SkipReason(StrEnum):
    """The closed list of reasons why an occurrence did not run.

    docs/running.md explains each, and tests/simulation/judging/checker_skips.py judges it.
    `execution/missed.py` says which of them the missed-run check accepts.
    """

    PAUSED = "paused"
    DELETED = "deleted"
    CHANGED = "changed"
    """The schedule was changed between the occurrence's dispatch and its start."""
    CATCH_UP = "catch_up"
    """An outage left it out, and the job's catch-up policy does not run it."""
    CALENDAR = "calendar"
    """Its day is closed in the job's calendar."""
    MISFIRE = "misfire"
    """It came later than the job's grace, or may only start then, and the catch-up policy is to
    skip; or the run that it follows ended later than its job's `within`."""
    OVERLAP = "overlap"
    """Another run of the job was active."""
    SPACING = "spacing"
    """It would have started too soon after the start before (`tolerance`)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Write `run` over `over` (None: there is no row), then proceed under it."""

    run: Run
    over: Run | None

    @property
    def is_takeover(self) -> bool:
        """True if an executor died on the attempt before."""
        return self.over is not None and self.over.status is RunStatus.RUNNING

    @property
    def has_announced(self) -> bool:
        """True if an attempt before had announced its call: its target may have begun, or
        reported."""
        return any(each.token_hash for each in self.run.attempts)


@dataclass(frozen=True, slots=True)
class Defer:
    """Send a copy of the message that becomes visible at `at`, and acknowledge."""

    at: datetime
    reason: str

    @classmethod
    def twice_as_late(
        cls,
        since: datetime,
        now: datetime,
        reason: str,
        *,
        shortest: timedelta = timedelta(seconds=1),
        longest: timedelta = timedelta.max,
    ) -> Self:
        """For an end that nobody announces: when it is waited for twice as long as from `since`
        until now, after `shortest` to `longest`. Each copy may be doubled: so they stay few."""
        return cls(now + min(max(now - since, shortest), longest), reason)


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the message with the queue, which delivers it again after its visibility timeout."""

    reason: str


@dataclass(frozen=True, slots=True)
class CheckLater:
    """The message is the current check of an open run, whose lease has moved: send it again for the
    lease's end, as `run`, written over `over`, says."""

    run: Run
    over: Run


@dataclass(frozen=True, slots=True)
class Lapse:
    """Nobody has reported about the open run `over` for too long: its attempt has failed."""

    over: Run


@dataclass(frozen=True, slots=True)
class Redirect:
    """Send `message` in the place of the one received, for when it is due, and acknowledge."""

    message: Message
    reason: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The run is retrying or final: repeat what follows from it, and acknowledge."""

    run: Run


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing is to be recorded; acknowledge. `ended`: the run, where it has succeeded in a chunk:
    it may have been the last one of its job."""

    reason: str
    ended: Run | None = None


@dataclass(frozen=True, slots=True)
class Proceed:
    """Deliver the run to its target. `died`: the row of an attempt at it that died in a chunk and
    is yet to count."""

    note: str | None = None
    died: Run | None = None


@dataclass(frozen=True, slots=True)
class YieldToLatest:
    """It is late, and the occurrence of `latest` is to run in its place. `go` is the decision
    instead if one of its attempts has begun already."""

    latest: Message
    go: Proceed


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that the occurrence does not run."""

    reason: SkipReason
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The claimed run goes back to its row, with the `reason`; `message` is delivered again at its
    `wait_until`."""

    message: Message
    reason: str


Start = Proceed | YieldToLatest | Skip | Defer | Redirect | Drop
"""The results of `decide_start`."""
