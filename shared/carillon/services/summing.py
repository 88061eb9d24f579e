"""Summaries: the occurrences that were due, and what the feed and the history show of them."""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from carillon.clock import Clock
from carillon.domain.activity.results import Result, result_of
from carillon.domain.activity.summary import UNCOUNTED, Counted, Due, Evidence
from carillon.domain.calendar import Calendar
from carillon.domain.execution.missed import pauses_of
from carillon.domain.job import Job
from carillon.domain.run import Run, RunKind
from carillon.domain.wheel.entry import COMMITTED_WITHIN
from carillon.errors import UnreadableRowError
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
MOST_OF_A_SPAN = 2_000
"""Rows that are read of a job in a span in which its occurrences are not known, the newest ones: a
day of a run each minute."""
PAGE = 1_000
"""Of these at once."""
MOST_ROWS = 200
"""Rows that one summary reads singly."""
LATE = timedelta(hours=1)
"""The time after the span in which the feed is to show the ends of its runs; others are read."""


_Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The part of a job's history to be read: the rows at fire times, and those of a span."""

    job: Job
    fire_times: Sequence[datetime]
    span: _Span | None

    @property
    def is_too_much(self) -> bool:
        return len(self.fire_times) > MOST_READ_OF_A_JOB


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
        span = (from_at, min(until_at, now))
        shown, is_whole = self._activity.all(owner, max(from_at, shown_since), span[1] + LATE)
        dues, are_all = self._dues(by_id.values(), *span)
        evidence = Evidence(shown)
        wanted = [
            each
            for due in dues
            if (each := _wanted(by_id[due.job_id], evidence.unresolved(owner, due), span))
        ]
        chosen = wanted[:MOST_JOBS_READ]
        read, are_whole, unreadable = self._read(chosen)
        evidence = Evidence([*shown, *read])
        unfinished = [each for each in evidence.unfinished() if _is_in(each, span)]
        as_they_are, are_known = self._as_they_are(unfinished[:MOST_ROWS])
        evidence = Evidence([*shown, *read, *as_they_are])
        covers, are_covered = self._covers_after(owner, evidence, dues, span[1] + LATE)
        evidence = Evidence([*shown, *read, *as_they_are, *covers])
        unread = {each.job.job_id for each in wanted[MOST_JOBS_READ:]}
        unread |= {each.job.job_id for each in chosen if each.is_too_much} | unreadable
        dues = [replace(due, is_read=due.job_id not in unread) for due in dues]
        counted = tuple(evidence.counted(owner, dues, from_at, until_at, now))
        is_complete = (
            (is_whole and are_all and are_whole and are_known and are_covered and not unread)
            and len(unfinished) <= MOST_ROWS
            and evidence.are_covers_counted(dues, from_at, until_at)
            and not any(_is_of_a_gone_job(each, by_id, span) for each in shown)
        )
        return Sums(counted, is_complete)

    def _dues(
        self, jobs: Collection[Job], from_at: datetime, until_at: datetime
    ) -> tuple[list[Due], bool]:
        """Those of each job, and False where MOST_DUE has left some out, or a calendar that cannot
        be read."""
        calendars, found, left = CalendarReader(self._calendars), list[Due](), MOST_DUE
        known = [job for job in jobs if calendars.can_read(job)]
        for job in known:
            due = due_of(job, calendars, from_at, until_at, left)
            left -= len(due.fire_times)
            found.append(due)
        return found, left > 0 and len(known) == len(jobs)

    def _covers_after(
        self, owner: str, evidence: Evidence, dues: Iterable[Due], read_until: datetime
    ) -> tuple[list[Result], bool]:
        """The rows of catch-ups in the feed after that: those of a long outage. They are looked for
        only where occurrences are without evidence. False beside them where there are more."""
        now = self._clock.now()
        if read_until >= now or not any(evidence.unresolved(owner, due) for due in dues):
            return [], True
        later, is_whole = self._activity.all(owner, read_until, now)
        return [each for each in later if each.key.kind is RunKind.MISSED], is_whole

    def _as_they_are(self, unfinished: Iterable[Result]) -> tuple[list[Result], bool]:
        """The rows of runs whose end the feed does not show: it may come later. False beside them
        where one cannot be read."""
        found, are_known = list[Result](), True
        for known in unfinished:
            try:
                run = self._history.get(known.key)
            except UnreadableRowError:
                run, are_known = None, False
            if run is not None:
                found.append(result_of(run, known.job_name, known.tags))
        return found, are_known

    def _read(self, wanted: Sequence[_Wanted]) -> tuple[list[Result], bool, set[str]]:
        """The rows, False where a span has more of them, and the jobs of which some cannot be
        read."""
        if not wanted:
            return [], True, set()
        with ThreadPoolExecutor(self._threads) as pool:
            parts = list(pool.map(self._read_job, wanted))
        pairs = zip(wanted, parts, strict=True)
        unreadable = {each.job.job_id for each, part in pairs if part is None}
        read = [part for part in parts if part is not None]
        return [one for found, _ in read for one in found], all(w for _, w in read), unreadable

    def _read_job(self, wanted: _Wanted) -> tuple[list[Result], bool] | None:
        job, newest = wanted.job, wanted.fire_times[-MOST_READ_OF_A_JOB:]
        chunks = [newest[start : start + CHUNK] for start in range(0, len(newest), CHUNK)]
        try:
            rows = [run for chunk in chunks for run in self._search.rows(job, chunk)]
        except UnreadableRowError:
            return None
        of_span, is_whole = self._rows_of(job, wanted.span)
        tags = tuple(sorted(job.spec.tags.items()))
        return [result_of(run, job.spec.name, tags) for run in [*rows, *of_span]], is_whole

    def _rows_of(self, job: Job, span: _Span | None) -> tuple[list[Run], bool]:
        """The newest rows of the span, and False where there are more, or unreadable ones."""
        found: list[Run] = []
        if span is None:
            return found, True
        cursor, is_whole = None, True
        while len(found) < MOST_OF_A_SPAN:
            limit = min(PAGE, MOST_OF_A_SPAN - len(found))
            page = self._history.page(
                job.owner, job.job_id, limit, cursor, from_at=span[0], until_at=span[1]
            )
            found += page.items
            cursor, is_whole = page.next_cursor, is_whole and not page.unreadable
            if cursor is None:
                break
        return found, is_whole and cursor is None


def _wanted(job: Job, unresolved: Sequence[datetime], span: _Span) -> _Wanted | None:
    """None where the feed has shown all there is. The span is that in which it is not known when
    the job was due: before `known_since`, or the commit of the change that has the job begin there,
    until when runs may have read it as it was; or all of it without a schedule, and with a
    calendar, which may have had other days."""
    from_at, until_at = span
    if is_by_schedule(job) and job.spec.calendar is None:
        committed = COMMITTED_WITHIN if job.revision > 1 else timedelta()
        until_at = min(until_at, known_since(job) + committed)
    if from_at <= until_at:
        return _Wanted(job, unresolved, (from_at, until_at))
    return _Wanted(job, unresolved, None) if unresolved else None


def _is_in(result: Result, span: _Span) -> bool:
    return span[0] <= result.key.fire_at < span[1]


def _is_of_a_gone_job(result: Result, jobs: Container[str], span: _Span) -> bool:
    """True if its job has been deleted: nobody knows what else of it has succeeded."""
    key = result.key
    return key.kind not in UNCOUNTED and key.job_id not in jobs and _is_in(result, span)


def is_by_schedule(job: Job) -> bool:
    """True if a schedule says when the job is due: not of a fixed delay, nor of a job that runs
    after another one."""
    return not isinstance(job.schedule, Delay) and job.spec.after is None


def known_since(job: Job) -> datetime:
    """The instant from which on the job's row says when it was due: where its present generation
    begins. Of one that was changed in its pause the schedule of before is gone."""
    if job.paused_at is None or job.updated_at <= job.paused_at:
        return job.generation.from_at
    return job.paused_at


def due_of(
    job: Job, calendars: CalendarReader, from_at: datetime, until_at: datetime, most: int
) -> Due:
    """The occurrences in [from_at, until_at) that the job's present generation has made due, at
    most so many: not those of a pause, and none of before `known_since`.

    A job that is not `is_by_schedule` has none.
    """
    since = known_since(job)
    begin = max(from_at - timedelta(microseconds=1), since)
    spread = timedelta(seconds=job.spread_seconds)
    due = Due(job.job_id, job.spec.name, tuple(sorted(job.spec.tags.items())), (), since, spread)
    if not is_by_schedule(job) or begin >= until_at:
        return due
    resolved = calendars.resolved(job.owner, job.schedule, job.spec.calendar)
    fire_times = _outside_pauses(job, resolved.open_between(begin, until_at, since), until_at)
    return replace(due, fire_times=tuple(islice(fire_times, most)))


def _outside_pauses(
    job: Job, fire_times: Iterable[datetime], until_at: datetime
) -> Iterator[datetime]:
    paused_at = next((began for began, end in pauses_of(job) if end is None), until_at)
    return (each for each in fire_times if each <= paused_at and each < until_at)
