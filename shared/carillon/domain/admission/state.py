"""Rows in which admission remembers, a held run, and how it waits."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from carillon.clock import ceil_second, seconds_after
from carillon.domain.decisions import Proceed, Skip, Wait
from carillon.domain.message import Message

_SPARE = timedelta(days=1)
"""A gate lives longer than it must by this, so that it need not be put again at every check."""
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class PermitHolder:
    """The claim of a run that holds a place of a concurrency key, until its lease ends at most; of
    a run in a chunk, whose claim is that of others, too, an id of its own; of an open run the
    `holder` of its Completion, until its time is over."""

    claim_id: str
    until: datetime


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run that has waited for a permit since `due_at`; it stays queued until `until`, or its next
    check."""

    run_id: str
    due_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Starts:
    """`count` starts that a rate counts until the instant `until`."""

    count: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Line:
    """The starts of a rate's key that one limit counts, and the slots reserved under it.

    `last_at` is the last slot of those who asked under this limit: beyond now, they wait one behind
    the other, and `starts` covers the last `per_seconds` before it. `line_id` is another once the
    slots that were reserved in it are forgotten.
    """

    limit: int
    per_seconds: int
    line_id: str
    last_at: datetime
    starts: tuple[Starts, ...]


@dataclass(frozen=True, slots=True)
class AdmissionRow:
    """A gate row, whole; every write of it is conditional on the revision that was seen.

    Of a job: `active` is the run id whose row decides whether the job has an active run, `waiting`
    the one that waits for its end, with its generation; `started` is the run that started last, at
    `started_at`; `failed` are the run ids that died since the last success, oldest first, and
    `failed_generation` the generation that the job had then; `slow_at` is when its last slow
    attempts ended, oldest first (shared/carillon/domain/admission/slowness.py). Of a concurrency
    key, of an owner's share of lane slow, and of an owner's permits: `holders`, and `turns`, those
    that have waited for long, first come first. Of a rate: `lines`, one for each limit that jobs of
    the key have, the one that granted last first; `started_at`, the slot granted last, which may be
    yet to come, and `started`, the claim that it was granted to. Empty members are those of the
    others.
    """

    owner: str
    name: str
    revision: int
    expires_at: datetime
    active: str = ""
    waiting: str = ""
    waiting_generation: str = ""
    started: str = ""
    started_at: datetime | None = None
    failed: tuple[str, ...] = ()
    failed_generation: str = ""
    slow_at: tuple[datetime, ...] = ()
    holders: tuple[PermitHolder, ...] = ()
    turns: tuple[QueuedRun, ...] = ()
    lines: tuple[Line, ...] = ()

    def next_revision(self) -> "AdmissionRow":
        """The gate as its next version begins: change members of that with `replace`."""
        return replace(self, revision=self.revision + 1)

    def lasting(self, until: datetime) -> "AdmissionRow":
        """The gate, which is to live until then at least: it must not expire before what it
        names."""
        return self if self.expires_at >= until else replace(self, expires_at=until + _SPARE)


def first_admission(owner: str, name: str) -> AdmissionRow:
    """A gate that no run has passed yet: the first change sets how long it is to last."""
    return AdmissionRow(owner, name, 0, _NEVER)


def job_admission(job_id: str) -> str:
    return f"job/{job_id}"


def key_admission(key: str) -> str:
    return f"key/{key}"


def rate_admission(key: str, job_id: str) -> str:
    """The gate of a rate's key; without one the job has a rate of its own."""
    return f"rate/{key}" if key else f"rate-of-job/{job_id}"


OWNER_ROW = "owner"
"""The gate of the deployment's own limit for each owner."""
SLOW_LANE_ROW = "lane/slow"
"""The gate of each owner's share of lane slow."""
PERMITS_ROW = "permits"
"""The gate of each owner's runs that last."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the run, once `put`, if it is another than the gate, has been put over it."""

    outcome: Proceed | Skip | Wait
    put: AdmissionRow | None = None


LONGEST_POLL_SECONDS = 30
"""Between two checks of something that may end at any time."""
PATIENCE = timedelta(seconds=30)
_LONGEST_PAUSE = timedelta(minutes=15)


def wait_until(message: Message, at: datetime, reason: str) -> Wait:
    """Wait for an instant that is known, in whole seconds; never less."""
    return Wait(waiting_until(message, ceil_second(at)), reason)


def poll(
    message: Message,
    now: datetime,
    reason: str,
    fraction: float,
    most_seconds: int = LONGEST_POLL_SECONDS,
) -> Wait:
    """Look again after up to 2, 2, 4, 8 ... 30 seconds, or `most_seconds`, half of it at least,
    the longer the more often the message has waited: `fraction` in [0, 1) says how much, so that
    many who wait do not all come at once."""
    growing_seconds = 2 ** min(max(message.waits, 1), 10)
    longest_seconds = min(LONGEST_POLL_SECONDS, most_seconds, growing_seconds)
    at = seconds_after(now, longest_seconds * (1 + fraction) / 2)
    return Wait(waiting_until(message, at), reason)


def poll_behind_others(message: Message, now: datetime, reason: str, fraction: float) -> Wait:
    """The same of a run that others precede, whose number nobody knows. Once it has waited for
    PATIENCE it looks again after half of its wait so far at most: so a run takes few checks,
    however many wait."""
    waited = now - message.due_at
    if waited < PATIENCE:
        return poll(message, now, reason, fraction)
    longest = min(max(waited / 2, timedelta(seconds=LONGEST_POLL_SECONDS)), _LONGEST_PAUSE)
    return wait_until(message, now + longest * (1 + fraction) / 2, reason)


def waiting_until(message: Message, at: datetime) -> Message:
    """The message of the next check. The other occurrences that it represented are recorded by
    now."""
    return replace(message, wait_until=at, slot_key="", missed=None)
