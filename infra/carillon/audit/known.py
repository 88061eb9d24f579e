"""Evidence in order: by job, by run, by revision; and the generations that a job's rows show."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from carillon.audit.evidence import Evidence, JobVersion
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run
from carillon.schedules import CalendarRule, Delay
from carillon.schedules.base import seconds_down


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
            job_id: self._generations(versions) for job_id, versions in evidence.versions.items()
        }

    def _generations(self, versions: Sequence[JobVersion]) -> Sequence[Indexed]:
        """Those of a job whose schedules are known, oldest first."""
        return [current_generation(version) for version in versions[-1:]]

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


def current_generation(version: JobVersion) -> Indexed:
    """The generation that a job's row shows; it ends at the pause or the deletion.

    What a completed job still owes is all that it has left: it may be completed only when that is
    nothing.
    """
    job = version.job
    is_stopped = job.state in (JobState.PAUSED, JobState.DELETED, JobState.RENAMED)
    return Indexed(
        generation_id=job.generation.generation_id,
        job=job,
        from_at=job.generation.from_at,
        committed_at=version.at,
        until_at=(job.paused_at or job.updated_at) if is_stopped else None,
        ended_revision=job.revision if is_stopped else None,
    )


def moves(job: Job) -> bool:
    """True if the job's calendar moves occurrences to other days."""
    return job.spec.calendar is not None and job.spec.calendar.rule is not CalendarRule.SKIP
