"""Moves jobs to the segments that their ids have now, one after the other, by the protocol of every
change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from carillon.clock import Clock, Entropy
from carillon.domain.job import Generation, Job, JobState, segment_of
from carillon.errors import UnreadableRowError
from carillon.reindexing.scanning import scanned
from carillon.schedules import Delay
from carillon.services.indexer import Indexer
from carillon.stores.ports import Stores

_ROUNDS = 4
"""The row of a job may change under its move this often before it is left where it is."""


@dataclass(slots=True)
class Moves:
    """The progress so far. `moved` counts jobs by the segments from and to which they were moved;
    `left` are the reasons why a job was left where it is."""

    jobs: int = 0
    moved: Counter[tuple[int, int]] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)


class Spread:
    """Moves each job whose segment is another than its id has among `segments`; with `is_rehearsal`
    it only counts, by rows that may be a second old. Raises StoreUnavailableError and
    QueueUnavailableError.

    It can be cut off anywhere and begun anew: a job whose row was not written is where it was.
    """

    def __init__(
        self,
        stores: Stores,
        clock: Clock,
        entropy: Entropy,
        longest_delay_seconds: int,
        segments: int,
        *,
        is_rehearsal: bool = False,
    ) -> None:
        self.done = Moves()
        self._jobs = stores.jobs
        self._indexer = Indexer.of(stores, clock, longest_delay_seconds)
        self._clock = clock
        self._entropy = entropy
        self._segments = segments
        self._is_rehearsal = is_rehearsal

    def run(self, on_progress: Callable[[Moves], None] = lambda done: None) -> None:
        """Do all of it; `on_progress` hears of each job."""
        for job in scanned(self._jobs, self.done.left):
            self.done.jobs += 1
            planned = self._planned(job)
            if planned is not None and self._is_rehearsal:
                self._note(job, planned)
            elif planned is not None:
                self._move(job)
            on_progress(self.done)

    def _move(self, seen: Job) -> None:
        """Move a job by a strong read of its row; who loses against another change begins anew."""
        try:
            for _ in range(_ROUNDS):
                job = self._jobs.get(seen.owner, seen.job_id)
                planned = None if job is None else self._planned(job)
                if job is None or planned is None:
                    return
                if self._committed(job, planned):
                    self._note(job, planned)
                    return
            self.done.left.append(f"job {seen.job_id} of {seen.owner} changed at every step")
        except UnreadableRowError as error:
            self.done.left.append(f"job {seen.job_id} of {seen.owner}: {error}")

    def _planned(self, job: Job) -> Job | None:
        now = self._clock.now()
        new_id = self._entropy.new_id(job.generation.next_id_at(now))
        return moved(job, self._segments, Generation(new_id, now.replace(microsecond=0)), now)

    def _committed(self, job: Job, planned: Job) -> bool:
        if planned.generation == job.generation:
            return self._jobs.replace(planned, job.revision)
        won = self._indexer.index_job(planned, job.revision)
        if won:
            self._indexer.remove_ended_entries(job, planned)
        return won

    def _note(self, job: Job, planned: Job) -> None:
        self.done.moved[job.segment, planned.segment] += 1


def moved(job: Job, segments: int, generation: Generation, now: datetime) -> Job | None:
    """The job in the segment that its id has among `segments`; None where it stays.

    Its occurrences go there under the new generation; the one before still covers what was due, in
    the segment that it has. A paused job keeps its generation, since it resumes under another; so
    does a fixed delay, since its only message is on its way, and what follows goes by the row. What
    has no occurrence left, or runs after another job, has nothing to be moved.
    """
    segment = segment_of(job.job_id, segments)
    if segment == job.segment or job.is_tombstone:
        return None
    if job.state is JobState.PAUSED or isinstance(job.schedule, Delay):
        # No change of its settings: the audit goes by when these were changed.
        return replace(job, segment=segment, revision=job.revision + 1)
    again = replace(job.in_new_generation(generation, now), segment=segment)
    is_over = again.schedule.next(again.generation.from_at) is None
    return None if is_over else again
