"""The future of a job, under its calendar and its window."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from carillon.clock import ceil_second
from carillon.domain.calendar import Resolved
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run
from carillon.domain.spec.job_summary import Timed
from carillon.schedules import Delay, OnOpenDays, Recurrence, Schedule
from carillon.schedules.base import ENDLESS_FROM
from carillon.schedules.zones.offsets import load_zone
from carillon.services.calendar_reader import CalendarReader

FAR = datetime(9998, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A coming occurrence of a job; `note` names the day from which a calendar moved it, or the
    closed day on which a fixed delay is skipped."""

    fire_at: datetime
    job: Job
    note: str | None = None

    @property
    def effective_at(self) -> datetime:
        return self.fire_at + timedelta(seconds=self.job.spread_seconds)


@dataclass(frozen=True, slots=True)
class Outlook:
    """`state` is COMPLETED for an active job that has nothing left; instants are nominal."""

    state: JobState
    next_fire_at: datetime | None
    next_effective_at: datetime | None
    ends_at: datetime | None


def outlook_of(job: Timed, calendars: CalendarReader, now: datetime) -> Outlook:
    """The future of a job at `now`.

    The next one is that with the first effective time after `now`: its nominal time may be past. It
    is None for a fixed delay, where it follows from the runs, and under a calendar that cannot be
    read.
    """
    ends_at = last_of(job.schedule)
    if job.state is not JobState.ACTIVE:
        return Outlook(job.state, None, None, ends_at)
    state = shown_state(job, calendars, now)
    next_fire_at = None
    if not isinstance(job.schedule, Delay) and calendars.can_read(job):
        next_fire_at = next(_to_run(job, calendars, nominal_start(job, now)), None)
    if next_fire_at is None:
        return Outlook(state, None, None, ends_at)
    effective_at = next_fire_at + timedelta(seconds=job.spread_seconds)
    return Outlook(state, next_fire_at, effective_at, ends_at)


def shown_state(job: Timed, calendars: CalendarReader, now: datetime) -> JobState:
    """COMPLETED for an active job that has no occurrence left, else the job's own state."""
    if job.spec.after is not None:
        return job.state
    after = nominal_start(job, now)
    # A calendar may open tomorrow what it closes today: only the schedule itself ends. But a moved
    # occurrence may lie behind its end.
    if job.state is not JobState.ACTIVE or job.schedule.next(after) is not None:
        return job.state
    is_left = calendars.can_read(job) and any(_to_run(job, calendars, after))
    return job.state if is_left else JobState.COMPLETED


def nominal_start(job: Timed, after: datetime) -> datetime:
    """The instant behind which the nominal times lie whose effective ones are after `after`."""
    return max(after - timedelta(seconds=job.spread_seconds), job.generation.from_at)


def _to_run(
    job: Timed, calendars: CalendarReader, after: datetime, until: datetime = FAR
) -> Iterator[datetime]:
    """The occurrences in (after, until] that are to run: none that is only moved there from before
    the job was made, or from a pause. Summaries do not say when that was."""
    resolved = calendars.resolved(job.owner, job.schedule, job.spec.calendar)
    for fire_at in resolved.open.between(after, until):
        if not isinstance(job, Job) or _is_on_its_way(job, resolved, fire_at):
            yield fire_at


def _is_on_its_way(job: Job, resolved: Resolved, fire_at: datetime) -> bool:
    return not resolved.is_of_before(fire_at, job.generation.from_at) or any(
        any(resolved.moved_to(fire_at, each.from_at, each.until_at)) for each in job.replaced
    )


def coming(
    job: Job, calendars: CalendarReader, now: datetime, until: datetime = FAR
) -> Iterator[Occurrence]:
    """The occurrences of an active job with effective times in (now, until], ascending."""
    if job.state is not JobState.ACTIVE or isinstance(job.schedule, Delay):
        return
    opened = calendars.opened(job)
    last = until - timedelta(seconds=job.spread_seconds)
    for fire_at in _to_run(job, calendars, nominal_start(job, now), last):
        name = "" if job.spec.calendar is None else job.spec.calendar.name
        yield Occurrence(fire_at, job, moved_note(opened, fire_at, name))


def after_finish(
    job: Job, newest: Run | None, calendars: CalendarReader, now: datetime
) -> Occurrence | None:
    """The next occurrence of a fixed delay, by the newest run of the job's generation (None: none
    yet).

    None while that run has not ended, and when what follows it is due already.
    """
    if newest is not None and newest.finished_at is None:
        return None
    before = job.generation.from_at
    if newest is not None and newest.finished_at is not None:
        before = max(before, ceil_second(newest.finished_at))
    opened = calendars.opened(job)
    fire_at = opened.next(before)
    if fire_at is None or Occurrence(fire_at, job).effective_at <= now:
        return None
    name = "" if job.spec.calendar is None else job.spec.calendar.name
    return Occurrence(fire_at, job, closed_note(opened, fire_at, name))


def moved_note(opened: Recurrence, fire_at: datetime, calendar: str) -> str | None:
    """From which closed days an occurrence was moved, in words; None when from none."""
    days = opened.moved_from(fire_at) if isinstance(opened, OnOpenDays) else ()
    if not days:
        return None
    return f"moved from {', '.join(map(str, days))} by {_called(calendar)}"


def closed_note(opened: Recurrence, fire_at: datetime, calendar: str) -> str | None:
    """That the local day of an instant is closed, in words; None when it is not."""
    if not isinstance(opened, OnOpenDays):
        return None
    day = fire_at.astimezone(load_zone(opened.timezone)).date()
    return f"{day} is closed in {_called(calendar)}" if day in opened.closed else None


def last_of(schedule: Schedule) -> datetime | None:
    """The last nominal occurrence; None when there is no last one, or it is unknown."""
    if isinstance(schedule, Delay):
        return None
    ends = schedule.end_at is not None or not schedule.is_recurring
    if not ends and schedule.next(ENDLESS_FROM) is not None:
        return None
    return schedule.previous(FAR)


def _called(calendar: str) -> str:
    return f"calendar {calendar}" if calendar else "the calendar"
