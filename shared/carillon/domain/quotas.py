"""Quotas: what an owner may have and take, and whether a change of its jobs is within that.

The number of an owner's jobs stands in a row as a *bound*: it rises before a job is created, and
falls after one is deleted. Whatever the row does not hear of, a job that has completed, a process
that has died between the two writes, leaves it too high. So before it refuses the jobs are counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from carillon.domain.changes.change import KeptChange
from carillon.errors import CarillonError
from carillon.schedules import NEVER, Recurrence
from carillon.schedules.insight.rates import most_fires_per_day

COUNTED_FOR = timedelta(seconds=10)
"""A refusal relies on a count for so long: one who repeats it does not read all jobs each time."""
COUNTED_AT_LEAST = timedelta(days=1)
"""A row is counted so often while jobs are made: it may be from before a time without a limit."""
MINUTES_PER_DAY = 1_440


class Quota(StrEnum):
    """The closed list of quotas. An option of the deployment, `owner_` and the name, has the limit
    of each for all owners; 0 is none."""

    JOBS = "jobs"
    SCHEDULED = "scheduled_per_minute"
    """Mean starts of all jobs, each by the fullest day that its schedule can have."""
    STARTS = "starts_per_minute"
    RUNS = "concurrent_runs"
    REQUESTS = "requests_per_second"


MOST: Mapping[Quota, int] = {
    Quota.JOBS: 100_000,
    Quota.SCHEDULED: 10_000_000,
    Quota.STARTS: 10_000_000,
    Quota.RUNS: 1_000,
    Quota.REQUESTS: 1_000,
}
"""The largest limit of each: all jobs of an owner are counted within a request, and all permits of
an owner are in one row."""

Limits = Mapping[Quota, int]
"""The limit of every quota; 0 is none."""

NO_LIMITS: Limits = dict.fromkeys(Quota, 0)


def limits_in(options: object) -> Limits:
    """The limits in options, whose members are named `owner_` and the quota."""
    return {quota: getattr(options, f"owner_{quota}", 0) for quota in Quota}


QUOTAS_OWNER = "system/quotas"
"""The limits of owners are in one partition, so that one read has all."""


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """The limits that operators have set for the owner `of`, in place of the deployment's."""

    of: str
    revision: int
    updated_at: datetime
    limits: Mapping[Quota, int]
    last_change: KeptChange = None
    owner: str = QUOTAS_OWNER

    @property
    def name(self) -> str:
        """Its key."""
        return self.of


class Firing(Protocol):
    """A job, or its summary."""

    @property
    def schedule(self) -> Recurrence: ...


class Stored(Firing, Protocol):
    @property
    def is_tombstone(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Load:
    """A number of jobs, and how often they fire in a day; or by how much these change."""

    jobs: int = 0
    fires_per_day: int = 0

    @classmethod
    def of(cls, job: Stored | None) -> "Load":
        """That of a job, paused ones included, since they may be resumed; none of a tombstone."""
        if job is None or job.is_tombstone:
            return cls()
        return cls(1, fires_of(job))

    def __add__(self, other: "Load") -> "Load":
        return Load(self.jobs + other.jobs, self.fires_per_day + other.fires_per_day)

    def __sub__(self, other: "Load") -> "Load":
        return Load(self.jobs - other.jobs, self.fires_per_day - other.fires_per_day)

    @property
    def rise(self) -> "Load":
        """The part that quotas may refuse."""
        return Load(max(0, self.jobs), max(0, self.fires_per_day))

    @property
    def fall(self) -> "Load":
        """The rest."""
        return Load(min(0, self.jobs), min(0, self.fires_per_day))


NOTHING = Load()


def fires_of(job: Firing) -> int:
    """The most that a job's schedule can yield in a day: the same whenever it is asked, so that a
    deletion takes away what the creation has added."""
    return 0 if job.schedule == NEVER else most_fires_per_day(job.schedule)


@dataclass(frozen=True, slots=True)
class Use:
    """An owner's jobs, as far as its row knows: never too low but for what was under way while they
    were counted last, at `counted_at`. `fires_per_day` is None where no limit asks for it.
    `writer` makes each version its writer's own."""

    owner: str
    revision: int
    counted_at: datetime
    jobs: int
    fires_per_day: int | None = None
    writer: str = ""
    name: str = "jobs"

    def with_load(self, load: Load) -> "Use":
        fires = self.fires_per_day
        return replace(
            self,
            jobs=max(0, self.jobs + load.jobs),
            fires_per_day=None if fires is None else max(0, fires + load.fires_per_day),
        )

    @property
    def scheduled_per_minute(self) -> float | None:
        fires = self.fires_per_day
        return None if fires is None else round(fires / MINUTES_PER_DAY, 2)


@dataclass(frozen=True, slots=True)
class Recount:
    """The jobs are to be counted before this is decided."""


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit that is exceeded by what is asked for; `use` is what there is without it."""

    quota: Quota
    limit: int
    use: float

    def __str__(self) -> str:
        return f"its use of {self.quota} is {self.use:,} of {self.limit:,}"


class QuotaExceededError(CarillonError):
    """A change of an owner's jobs that a quota refuses."""

    def __init__(self, exceeded: Exceeded) -> None:
        super().__init__(_REASONS[exceeded.quota].format(exceeded.use, exceeded.limit))
        self.exceeded = exceeded


_REASONS = {
    Quota.JOBS: "you have {:,} jobs of the {:,} that you may have: delete some, or ask an operator",
    Quota.SCHEDULED: "your jobs are to start {:,} times a minute of the {:,} that they may: let "
    "some start less often, or ask an operator",
}


def decide(use: Use | None, load: Load, limits: Limits, now: datetime) -> Use | Recount | Exceeded:
    """The use with the load; or that the owner's limits refuse it, by a count that is 10 s old at
    most. What lessens the load is never refused, and needs no count."""
    is_scheduled, is_rising = limits[Quota.SCHEDULED] > 0, load.rise != NOTHING
    if use is None:
        return Recount()
    is_unknown = is_scheduled and use.fires_per_day is None
    if is_rising and (is_unknown or now - use.counted_at >= COUNTED_AT_LEAST):
        return Recount()
    if not is_scheduled:
        use = replace(use, fires_per_day=None)
    after = use.with_load(load)
    beyond = _beyond(use, after, load, limits)
    if beyond is None:
        return after
    return beyond if timedelta() <= now - use.counted_at < COUNTED_FOR else Recount()


def _beyond(use: Use, after: Use, load: Load, limits: Limits) -> Exceeded | None:
    most_jobs, most_scheduled = limits[Quota.JOBS], limits[Quota.SCHEDULED]
    if load.jobs > 0 and 0 < most_jobs < after.jobs:
        return Exceeded(Quota.JOBS, most_jobs, use.jobs)
    fires = after.fires_per_day or 0
    if load.fires_per_day > 0 and 0 < most_scheduled * MINUTES_PER_DAY < fires:
        return Exceeded(Quota.SCHEDULED, most_scheduled, use.scheduled_per_minute or 0.0)
    return None
