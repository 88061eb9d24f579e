"""Gates: small rows that runs pass by before they start, for policies that need a memory.

A job's own gate (overlap, spacing, failures in a row), the gate of a concurrency key, the gate of a
rate. They stand apart from the job row: that is large, and its revision is its owner's.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

_SPARE = timedelta(days=1)
"""How much longer than it must a gate lives, so that it need not be put again at every turn."""
_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Holder:
    """The claim of a run that holds a place of a concurrency key, until its lease ends at most."""

    claim_id: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """A run that has waited for a place since `due_at`; its turn is kept until `until`, unless it
    looks again before."""

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
    """What one limit counts of all the starts of a rate's key, and the slots reserved under it.

    `last_at` is the last slot of those who asked under this limit: beyond now, they wait one behind
    the other, and `starts` tells of the last `per_seconds` before it. `line_id` is another once
    the slots that were reserved in it are forgotten.
    """

    limit: int
    per_seconds: int
    line_id: str
    last_at: datetime
    starts: tuple[Starts, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate row, whole; every write of it is conditional on the revision that was seen.

    Of a job: `active` is the run id whose row decides whether the job has an active run, `waiting`
    the one that waits for its end, with its filing; `started` is the run that started last, at
    `started_at`; `failed` are the run ids that died since the last success, oldest first, and
    `failed_filing` the filing that the job had then; `slow_at` is when its last slow attempts
    ended, oldest first (shared/carillon/domain/admission/slowness.py). Of a concurrency key, of an
    owner's share of lane slow, and of an owner's permits: `holders`, and `turns`, those that have
    waited for long, first come first. Of a rate: `lines`, one for each limit that jobs of the key
    have, the one that granted last first; `started_at`, the slot granted last, which may be yet to
    come, and `started`, the claim that it was granted to. Empty members are those of the others.
    """

    owner: str
    name: str
    revision: int
    expires_at: datetime
    active: str = ""
    waiting: str = ""
    waiting_filing: str = ""
    started: str = ""
    started_at: datetime | None = None
    failed: tuple[str, ...] = ()
    failed_filing: str = ""
    slow_at: tuple[datetime, ...] = ()
    holders: tuple[Holder, ...] = ()
    turns: tuple[Turn, ...] = ()
    lines: tuple[Line, ...] = ()

    def next_revision(self) -> "Gate":
        """The gate as its next version begins: change members of that with `replace`."""
        return replace(self, revision=self.revision + 1)

    def lasting(self, until: datetime) -> "Gate":
        """The gate, which is to live until then at least: it must not expire before what it
        names."""
        return self if self.expires_at >= until else replace(self, expires_at=until + _SPARE)


def first_gate(owner: str, name: str) -> Gate:
    """A gate that nobody has passed yet: whoever changes it says how long it is to last."""
    return Gate(owner, name, 0, _NEVER)


def job_gate(job_id: str) -> str:
    return f"job/{job_id}"


def key_gate(key: str) -> str:
    return f"key/{key}"


def rate_gate(key: str, job_id: str) -> str:
    """The gate of a rate's key; without one the job has a rate of its own."""
    return f"rate/{key}" if key else f"rate-of-job/{job_id}"


OWNER_GATE = "owner"
"""The gate of the deployment's own limit for each owner."""
SLOW_LANE_GATE = "lane/slow"
"""The gate of each owner's share of lane slow."""
PERMITS_GATE = "permits"
"""The gate of each owner's runs that last."""
