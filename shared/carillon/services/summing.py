"""Summaries: the occurrences that were due, and what the feed and the history show of them."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from carillon.clock import Clock
from carillon.domain.activity.results import Result, result_of
from carillon.domain.activity.summary import Counted, Due, Evidence
from carillon.domain.calendar import Calendar
from carillon.domain.execution.missed import pauses_of
from carillon.domain.job import Job
from carillon.domain.run import RunKey
from carillon.schedules import Delay
from carillon.schedules.base import EPOCH
from carillon.services.activity import Activity
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import PARALLEL_JOBS, History
from carillon.services.missed_search import CHUNK, MissedSearch
from carillon.stores.ports import VersionedRows

MOST_DUE = 50_000
"""Occurrences that one summary looks for."""
MOST_JOBS_READ = 500
"""Jobs of which one summary reads the history, since the feed does not show all of their runs."""
MOST_READ_OF_A_JOB = 4 * CHUNK
"""Occurrences of one job that are looked for in its history, the newest ones."""
MOST_ROWS = 200
"""Rows that one summary reads singly."""
LATE = timedelta(hours=1)
"""The time after the span in which the feed is to show the ends of its runs; others are read."""


_Wanted = tuple[Job, Sequence[datetime]]
_Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Sums:
    """The runs and occurrences that count; `is_complete`: no limit has left anything out."""

    counted: tuple[Counted, ...]
    is_complete: bool


class Summing:
    """Sums up an owner's runs; writes nothing. Raises StoreUnavailableError."""

    def __init__(
        self,
        activity: Activity,
        history: History,
        calendars: VersionedRows[Calendar],
        clock: Clock,
        threads: int = PARALLEL_JOBS,
    ) -> None:
        self._activity = activity
        self._history = history
        self._search = MissedSearch(history)
        self._calendars = calendars
        self._clock = clock
        self._threads = threads

    def of(
        self,
        owner: str,
        jobs: Iterable[Job],
        from_at: datetime,
        until_at: datetime,
        shown_since: datetime = EPOCH,
    ) -> Sums:
        """The fate of what was due, and of what ran besides, in [from_at, until_at); the feed is
        read from `shown_since` on."""
        now = self._clock.now()
        by_id = {job.job_id: job for job in jobs}
        shown, is_whole = self._activity.all(
            owner, max(from_at, shown_since), min(until_at, now) + LATE
        )
        dues, are_all = self._dues(by_id.values(), from_at, min(until_at, now))
        evidence = Evidence(shown)
        missing = {due.job_id: times for due in dues if (times := evidence.unresolved(owner, due))}
        missing |= {job_id: [] for job_id, job in by_id.items() if not is_by_schedule(job)}
        chosen = dict(islice(missing.items(), MOST_JOBS_READ))
        span = (from_at, min(until_at, now))
        read = self._read([(by_id[job_id], times) for job_id, times in chosen.items()], span)
        evidence = Evidence([*shown, *read])
        evidence = Evidence([*shown, *read, *self._as_they_are(evidence.unfinished())])
        unread = {job_id for job_id, times in missing.items() if len(times) > MOST_READ_OF_A_JOB}
        unread |= missing.keys() - chosen.keys()
        dues = [replace(due, is_read=due.job_id not in unread) for due in dues]
        counted = tuple(evidence.counted(owner, dues, from_at, until_at, now))
        return Sums(counted, is_whole and are_all and not unread)

    def _dues(
        self, jobs: Iterable[Job], from_at: datetime, until_at: datetime
    ) -> tuple[list[Due], bool]:
        """Those of each job, and False where MOST_DUE has left some out."""
        calendars, found, left = CalendarReader(self._calendars), list[Due](), MOST_DUE
        for job in jobs:
            due = due_of(job, calendars, from_at, until_at, left)
            left -= len(due.fire_times)
            found.append(due)
        return found, left > 0

    def _as_they_are(self, keys: Sequence[RunKey]) -> Iterator[Result]:
        """The rows of runs whose end the feed does not show, some of them: it may come later."""
        for key in keys[:MOST_ROWS]:
            run = self._history.get(key)
            if run is not None:
                yield result_of(run)

    def _read(self, wanted: Sequence[_Wanted], span: _Span) -> list[Result]:
        if not wanted:
            return []
        with ThreadPoolExecutor(self._threads) as pool:
            parts = pool.map(lambda each: self._read_job(each[0], each[1], span), wanted)
            return [result for part in parts for result in part]

    def _read_job(self, job: Job, fire_times: Sequence[datetime], span: _Span) -> list[Result]:
        """The rows at these fire times, or in the span for a job without a schedule."""
        newest = fire_times[-MOST_READ_OF_A_JOB:]
        chunks = [newest[start : start + CHUNK] for start in range(0, len(newest), CHUNK)]
        rows = [run for chunk in chunks for run in self._search.rows(job, chunk)]
        if not fire_times:
            from_at, until_at = span
            limit = MOST_READ_OF_A_JOB
            rows = list(
                self._history.page(
                    job.owner, job.job_id, limit, from_at=from_at, until_at=until_at
                ).items
            )
        tags = tuple(sorted(job.spec.tags.items()))
        return [result_of(run, job.spec.name, tags) for run in rows]


def is_by_schedule(job: Job) -> bool:
    """True if a schedule says when the job is due: not of a fixed delay, nor of a job that runs
    after another one."""
    return not isinstance(job.schedule, Delay) and job.spec.after is None


def due_of(
    job: Job, calendars: CalendarReader, from_at: datetime, until_at: datetime, most: int
) -> Due:
    """The occurrences in [from_at, until_at) that the job's present generation has made due, at
    most so many: not those of a pause, and none of an earlier generation, whose schedule is gone.

    A job that is not `is_by_schedule` has none.
    """
    since = max(from_at - timedelta(microseconds=1), job.generation.from_at)
    spread = timedelta(seconds=job.spread_seconds)
    due = Due(job.job_id, job.spec.name, tuple(sorted(job.spec.tags.items())), (), since, spread)
    if not is_by_schedule(job) or since >= until_at:
        return due
    fire_times = _outside_pauses(job, calendars.opened(job).between(since, until_at), until_at)
    return replace(due, fire_times=tuple(islice(fire_times, most)))


def _outside_pauses(
    job: Job, fire_times: Iterable[datetime], until_at: datetime
) -> Iterator[datetime]:
    paused_at = next((began for began, end in pauses_of(job) if end is None), until_at)
    return (each for each in fire_times if each <= paused_at and each < until_at)
