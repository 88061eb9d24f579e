"""Evidence in order: by job, by run, by revision; and the generations that a job's rows show."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from carillon.audit.evidence import Evidence, JobVersion
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind
from carillon.schedules import CalendarRule, Delay
from carillon.schedules.base import seconds_down

NO_RUNS = frozenset({RunKind.OPERATION, RunKind.MISSED, RunKind.WATCH})
"""Kinds of rows that no target is ever called for."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A generation: its occurrences are the nominal ones in (from_at, until_at] of the schedule
    that `job`, the first row with it, had. `until_at` is None while it goes on.

    A job that is changed while it is paused keeps its generation, whose entries stay as they were:
    that is why the first row counts. `ended_revision` is of the row that ended it.
    """

    generation_id: str
    job: Job
    from_at: datetime
    committed_at: datetime
    until_at: datetime | None = None
    ended_revision: int | None = None

    @property
    def spread(self) -> timedelta:
        return timedelta(seconds=self.job.spread_seconds)

    @property
    def is_computable(self) -> bool:
        """True if its fire times follow from its schedule alone: not those of a fixed delay, nor
        those that a calendar moves to other days."""
        return not isinstance(self.job.schedule, Delay) and not moves(self.job)

    def yields(self, fire_at: datetime) -> bool:
        return fire_at > self.from_at and self.job.schedule.has(seconds_down(fire_at))

    def covers(self, fire_at: datetime) -> bool:
        """True if an instant that it yields is one of its occurrences."""
        is_within = self.until_at is None or fire_at <= self.until_at
        return is_within and self.yields(fire_at)

    def occurrences(self, until: datetime, since: datetime | None = None) -> Iterator[datetime]:
        """Those after `since` that were to start by `until`."""
        last = until - self.spread
        if self.until_at is not None:
            last = min(last, self.until_at)
        return self.job.schedule.between(max(self.from_at, since or self.from_at), last)


class Known:
    """All that rules ask of the evidence, found once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.generations = {
            job_id: generations_of(versions, evidence.is_complete)
            for job_id, versions in evidence.versions.items()
        }

    @cached_property
    def rows(self) -> Mapping[str, Sequence[Run]]:
        """The rows at the end by job id."""
        rows: defaultdict[str, list[Run]] = defaultdict(list)
        for row in self.evidence.runs:
            rows[row.key.job_id].append(row)
        return rows

    @cached_property
    def by_run_id(self) -> Mapping[str, Run]:
        return {row.key.run_id: row for rows in self.rows.values() for row in rows}

    def was_called(self, run_id: str) -> bool:
        """True if a target is known to have been called for the run; rows alone do not show it."""
        return False

    def is_forsaken(self, row: Run) -> bool:
        """True if an unfinished row is known to have no purpose; nor do they show that."""
        return False


def generations_of(versions: Sequence[JobVersion], is_complete: bool = True) -> list[Indexed]:
    """The generations of a job, oldest first.

    A generation ends at the pause after which another follows, else where that other begins; the
    last one at the pause or the deletion. What a completed job still owes is all that it has left:
    it may be completed only when that is nothing. Where only the last row is known it shows those
    before it, and their schedules are taken to be its own.
    """
    found: list[Indexed] = []
    if not is_complete and versions:
        last = versions[-1]
        found = [
            Indexed(old.generation_id, last.job, old.from_at, last.job.created_at, old.until_at)
            for old in reversed(last.job.replaced)
        ]
        versions = [last]
    of_one: list[JobVersion] = []
    for version in versions:
        if (
            of_one
            and version.job.generation.generation_id != of_one[0].job.generation.generation_id
        ):
            found.append(_filed(of_one, version))
            of_one = []
        of_one.append(version)
    if of_one:
        found.append(_filed(of_one, None))
    return found


def _filed(versions: Sequence[JobVersion], following: JobVersion | None) -> Indexed:
    """The generation that these rows share."""
    first = versions[0].job
    stopped = (JobState.PAUSED, JobState.DELETED)
    end = next((version.job for version in versions if version.job.state in stopped), None)
    if end is not None:
        until_at: datetime | None = end.paused_at or end.updated_at
    else:
        end = None if following is None else following.job
        until_at = None if end is None else end.generation.from_at
    return Indexed(
        generation_id=first.generation.generation_id,
        job=first,
        from_at=first.generation.from_at,
        committed_at=versions[0].at,
        until_at=until_at,
        ended_revision=None if end is None else end.revision,
    )


def moves(job: Job) -> bool:
    """True if the job's calendar moves occurrences to other days."""
    return job.spec.calendar is not None and job.spec.calendar.rule is not CalendarRule.SKIP
