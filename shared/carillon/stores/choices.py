"""Choices of jobs and of dead letters, and the numbers of jobs: values of the ports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from carillon.domain.job import Job, JobState
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.spec.names import list_name

EXPIRY_ATTRIBUTE = "ttl"
"""In all tables: by it DynamoDB deletes what has expired."""

LISTED_MEMBERS = (
    "name",
    "state",
    "times",
    "ends",
    "ends_at",
    "spread_seconds",
    "generation",
    "note",
    "resume_at",
    "parent",
    "tags",
    "managed_by",
)
"""Of a job, beside its keys: what lists filter by or show, and the index of an owner's jobs has."""


@dataclass(frozen=True, slots=True)
class JobFilter:
    """A choice of jobs: those with this `parent` ("" for any), all of these `tags`, (key, value),
    a name that begins with `name`, without regard to case, this `managed_by` and this `state` (""
    for any)."""

    parent: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    name: str = ""
    managed_by: str = ""
    state: str = ""

    def chooses(self, job: Job) -> bool:
        return (
            self.parent in ("", job.spec.parent)
            and self.managed_by in ("", job.managed_by)
            and self.state in ("", job.state)
            and set(self.tags) <= job.spec.tags.items()
            and job.list_key.startswith(list_name(self.name))
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of jobs by the state in their rows; `ending` are those active ones, not among
    them, of which no occurrence may be left. `unreadable` is the number of those that cannot be
    read. `next_cursor` continues behind them."""

    counts: Mapping[JobState, int]
    ending: Sequence[JobSummary]
    unreadable: int = 0
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterFilter:
    """A choice of dead letters; empty members leave none out. `reason` is a DeadReason's value,
    `error` an error kind, `from_at` and `until_at` bound fire times, inclusive, in whole
    seconds."""

    job_id: str = ""
    reason: str = ""
    error: str = ""
    from_at: datetime | None = None
    until_at: datetime | None = None
