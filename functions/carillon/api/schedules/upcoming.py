"""Upcoming occurrences and the forecast, over all jobs of an owner."""

import heapq
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from carillon.api.jobs.service import JobService
from carillon.api.schedules.outlook import FAR, Occurrence, after_finish, coming
from carillon.api.schedules.response_models import (
    ForecastForm,
    HourForm,
    MinuteForm,
    MinuteJobForm,
    MinuteJobsForm,
    OccurrenceForm,
    PeakForm,
    UpcomingForm,
)
from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind
from carillon.errors import InvalidFieldError
from carillon.schedules import Delay, Recurrence
from carillon.schedules.insight.rates import most_fires_per_day
from carillon.services.calendar_reader import CalendarReader
from carillon.services.history import History
from carillon.stores.ports import VersionedRows

DEFAULT_SPAN = timedelta(days=1)
LONGEST_SPAN = timedelta(days=7)

MOST_STEPS = 3_000_000
LONGEST_SECONDS = 10
"""The bounds of counting, in occurrences and in time; jobs beyond them are left out. The function
has 29 s, and 8 bytes for an occurrence."""

MOST_PEAKS = 5
MOST_NAMES = 5

_DENSE_FIRES_PER_DAY = 300
"""From about this many on, asking every minute is quicker than asking for each next occurrence."""


@dataclass(frozen=True, slots=True)
class Group:
    """The common part of jobs that start at the same instants: the occurrences of a schedule from a
    nominal epoch second on, each an offset later."""

    schedule: Recurrence
    first: int
    offset: int

    @classmethod
    def of(cls, job: Job, opened: Recurrence, first: int) -> "Group":
        """The job's group in a forecast from an epoch second on; `opened` are those that run."""
        indexed = int(job.generation.from_at.timestamp())
        return cls(opened, max(first - job.spread_seconds, indexed + 1), job.spread_seconds)


class ForecastService:
    """Nothing here writes; raises StoreUnavailableError."""

    def __init__(self, jobs: JobService, calendars: VersionedRows[Calendar], clock: Clock) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._clock = clock

    def of_owner(
        self, owner: str, from_at: datetime | None, to_at: datetime | None, *, by_hour: bool = False
    ) -> ForecastForm:
        """The forecast over the owner's first 1,000 jobs, by name; raises InvalidFieldError.

        It begins now and spans a day by default. It uses the rows and calendars as they are now:
        paused jobs do not count, and nothing before a job's generation does.
        """
        started_at = self._clock.now()
        first = from_at or started_at
        last = to_at or first + DEFAULT_SPAN
        if last <= first:
            raise InvalidFieldError("to", "must lie after from, which is now unless given")
        if last - first > LONGEST_SPAN:
            raise InvalidFieldError("to", f"must lie within {LONGEST_SPAN.days} days after from")
        groups, after_finish, has_more = self._groups(owner, _second_from(first))
        tally = Tally(_second_from(first), _second_from(last))
        is_complete = not has_more
        for group, jobs in groups.items():
            if tally.is_full or self._is_late(started_at):
                is_complete = False
                break
            tally.add(group, [job.spec.name for job in jobs])
        return ForecastForm(
            **{"from": first},  # no name of Python's
            to=last,
            complete=is_complete,
            jobs_counted=tally.jobs,
            jobs_after_finish=after_finish,
            total=tally.total,
            peaks=list(tally.peaks()),
            minutes=[] if by_hour else list(tally.minutes()),
            hours=list(tally.hours()) if by_hour else [],
        )

    def of_minute(self, owner: str, instant: datetime) -> MinuteJobsForm:
        """The jobs, of the owner's first 1,000, that are expected to start in an instant's minute:
        the most frequent first, then by name."""
        first = int(instant.timestamp()) // 60 * 60
        groups, _, has_more = self._groups(owner, first)
        found: list[MinuteJobForm] = []
        for group, jobs in groups.items():
            starts = _seconds_between(group.schedule, group.first, first + 60 - group.offset)
            if fires := sum(1 for _ in starts):
                most = most_fires_per_day(group.schedule)
                found += [MinuteJobForm.of(job, fires, most) for job in jobs]
        found.sort(key=lambda job: (-job.fires, job.name))
        return MinuteJobsForm(minute=_minute_start(first // 60), items=found, complete=not has_more)

    def _groups(self, owner: str, first: int) -> tuple[dict[Group, list[Job]], int, bool]:
        """The jobs to count; the number of fixed delays; whether there are more, or some that
        cannot be read, or their calendar."""
        calendars = CalendarReader(self._calendars)
        groups: defaultdict[Group, list[Job]] = defaultdict(list)
        after_finish = 0
        has_more = is_left_out = False
        for page in self._jobs.first_pages(owner):
            for job in page.items:
                if job.state is not JobState.ACTIVE:
                    continue
                if isinstance(job.schedule, Delay):
                    after_finish += 1
                elif calendars.can_read(job):
                    groups[Group.of(job, calendars.opened(job), first)].append(job)
                else:
                    is_left_out = True
            is_left_out = is_left_out or bool(page.unreadable)
            has_more = page.next_cursor is not None
        return groups, after_finish, has_more or is_left_out

    def _is_late(self, started_at: datetime) -> bool:
        return (self._clock.now() - started_at).total_seconds() > LONGEST_SECONDS


class Tally:
    """Counts starts in the epoch seconds first <= s < last, minute by minute.

    Groups with one schedule share its occurrences.
    """

    def __init__(self, first: int, last: int) -> None:
        self.jobs = 0
        self._first = first
        self._last = last
        self._steps = 0
        self._seconds: dict[Recurrence, tuple[int, array[int]]] = {}
        self._names: dict[Group, Sequence[str]] = {}
        self._fires: Counter[int] = Counter()

    @property
    def total(self) -> int:
        return self._fires.total()

    @property
    def is_full(self) -> bool:
        """True if counting more would take too long."""
        return self._steps >= MOST_STEPS

    def add(self, group: Group, names: Sequence[str]) -> None:
        """Count a group of jobs by their names."""
        starts = self._starts(group, self._first, self._last)
        shape = Counter(start // 60 for start in starts)
        for minute, fires in shape.items():
            self._fires[minute] += fires * len(names)
        self._steps += shape.total()
        self._names[group] = names
        self.jobs += len(names)

    def minutes(self) -> Iterator[MinuteForm]:
        """Each minute with fires, ascending."""
        for minute in sorted(self._fires):
            yield MinuteForm(minute=_minute_start(minute), fires=self._fires[minute])

    def hours(self) -> Iterator[HourForm]:
        """Each hour of the span, ascending."""
        fires: Counter[int] = Counter()
        for minute, count in self._fires.items():
            fires[minute // 60] += count
        for hour in range(self._first // 3600, (self._last - 1) // 3600 + 1):
            yield HourForm(hour=_minute_start(hour * 60), fires=fires[hour])

    def peaks(self) -> Iterator[PeakForm]:
        """The minutes with the most fires, the highest and then the earliest first."""
        highest = sorted(self._fires.items(), key=lambda found: (-found[1], found[0]))
        for minute, fires in highest[:MOST_PEAKS]:
            yield PeakForm(minute=_minute_start(minute), fires=fires, jobs=self._names_in(minute))

    def _names_in(self, minute: int) -> list[str]:
        first, last = max(self._first, minute * 60), min(self._last, minute * 60 + 60)
        found: list[tuple[int, str]] = []
        for group, names in self._names.items():
            fires = len(self._starts(group, first, last))
            if fires:
                found += [(-fires, name) for name in names]
        return [name for _, name in sorted(found)[:MOST_NAMES]]

    def _starts(self, group: Group, first: int, last: int) -> list[int]:
        """The effective times of a group's jobs in first <= s < last."""
        nominal = self._nominal(group.schedule, group.first)
        begin = bisect_left(nominal, max(first - group.offset, group.first))
        end = bisect_left(nominal, last - group.offset)
        return [second + group.offset for second in nominal[begin:end]]

    def _nominal(self, schedule: Recurrence, first: int) -> "array[int]":
        """The schedule's occurrences from a second on, or from an earlier one."""
        known = self._seconds.get(schedule)
        if known is not None and known[0] <= first:
            return known[1]
        seconds = array("q", _seconds_between(schedule, first, self._last))
        self._seconds[schedule] = (first, seconds)
        self._steps += len(seconds)
        return seconds


def _seconds_between(schedule: Recurrence, first: int, last: int) -> Iterator[int]:
    """The occurrences first <= s < last in epoch seconds, ascending."""
    if most_fires_per_day(schedule) < _DENSE_FIRES_PER_DAY:
        after = datetime.fromtimestamp(first - 1, UTC)
        until = datetime.fromtimestamp(last - 1, UTC)
        return (int(found.timestamp()) for found in schedule.between(after, until))
    minutes = range(first // 60, (last - 1) // 60 + 1)
    found = (minute * 60 + s for minute in minutes for s in schedule.seconds_of_minute(minute))
    return (second for second in found if first <= second < last)


def _second_from(instant: datetime) -> int:
    """The first whole second from an instant on."""
    return -int(-instant.timestamp() // 1)


def _minute_start(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, UTC)


_RUNS_READ = 100
"""The newest runs among which the last scheduled one is searched: manual ones lie between."""


class OccurrenceService:
    """Nothing here writes; raises MissingError, StoreUnavailableError as JobService."""

    def __init__(
        self, jobs: JobService, calendars: VersionedRows[Calendar], history: History, clock: Clock
    ) -> None:
        self._jobs = jobs
        self._calendars = calendars
        self._history = history
        self._clock = clock

    def of_job(self, owner: str, job_id: str, count: int) -> UpcomingForm:
        """The job's next occurrences, which its calendar leaves; a paused job has none.

        Of a fixed delay there is at most one, counted from the end of its newest run.
        """
        job = self._jobs.get(owner, job_id)
        calendars = CalendarReader(self._calendars)
        now = self._clock.now()
        found: Iterator[Occurrence] = coming(job, calendars, now)
        if isinstance(job.schedule, Delay) and job.state is JobState.ACTIVE:
            following = after_finish(job, self._newest_run(job), calendars, now)
            found = iter(() if following is None else (following,))
        return _listed(islice(found, count), is_complete=True)

    def of_owner(self, owner: str, count: int, until: datetime | None) -> UpcomingForm:
        """The next occurrences across the owner's first 1,000 jobs, at most until an instant.

        They are in the order of their effective times; fixed delays have none here.
        """
        now = self._clock.now()
        last = FAR if until is None else until
        calendars = CalendarReader(self._calendars)
        nearest: list[Occurrence] = []
        has_more = is_left_out = False
        for page in self._jobs.first_pages(owner):
            jobs = [job for job in page.items if calendars.can_read(job)]
            streams = [coming(job, calendars, now, last) for job in jobs]
            merged = heapq.merge(nearest, *streams, key=_order)
            nearest = list(islice(merged, count))
            has_more = page.next_cursor is not None
            is_left_out = is_left_out or bool(page.unreadable) or len(jobs) < len(page.items)
        return _listed(nearest, is_complete=not (has_more or is_left_out))

    def _newest_run(self, job: Job) -> Run | None:
        """The newest scheduled run under the job's generation, if there is one."""
        newest = self._history.latest(job.owner, job.job_id, _RUNS_READ)
        for run in newest:
            is_scheduled = run.key.kind is RunKind.SCHEDULED
            if is_scheduled and run.generation_id == job.generation.generation_id:
                return run
        return None


def _listed(occurrences: Iterable[Occurrence], *, is_complete: bool) -> UpcomingForm:
    items = [OccurrenceForm.of(found) for found in occurrences]
    return UpcomingForm(items=items, complete=is_complete)


def _order(occurrence: Occurrence) -> tuple[datetime, str]:
    return occurrence.effective_at, occurrence.job.job_id
