"""Missed runs: detection, and the check of `expect_within`."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.clock import seconds_after
from carillon.domain.calendar import local_date, resolve
from carillon.domain.decisions import SkipReason
from carillon.domain.execution.lateness import follows_its_schedule, grace_of, latest_due
from carillon.domain.job import Job, JobState
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import Resolution, Run, RunKey, RunKind, RunStatus
from carillon.schedules import ClosedDays

JUST_DUE = timedelta(minutes=1)
"""An occurrence due within it may have no row yet, without being missed: unless its job was paused
then."""

Pause = tuple[datetime, datetime | None]
"""Its beginning, and the last instant that belongs to it; None while it lasts."""

_OF_OCCURRENCES = frozenset({RunKind.SCHEDULED, RunKind.BACKFILL})
"""The kinds of runs that are runs of an occurrence."""


@dataclass(frozen=True, slots=True)
class MissedOccurrence:
    """`status`, `reason` and `run_id` are those of its row: the newest run of it, or the row of the
    catch-up that passed over it. None without any: it was never sent, as while its job is
    paused."""

    fire_at: datetime
    status: RunStatus | None = None
    reason: str | None = None
    run_id: str | None = None

    @classmethod
    def by(cls, fire_at: datetime, row: Run) -> "MissedOccurrence":
        return cls(fire_at, row.status, row.reason, row.key.run_id)


def pauses_of(job: Job) -> Iterator[Pause]:
    """The job's pauses that are remembered, newest first."""
    if job.paused_at is not None:
        yield job.paused_at, None
    resumed_at = job.generation.from_at
    for replaced in job.replaced:
        if replaced.until_at < resumed_at:
            yield replaced.until_at, resumed_at
        resumed_at = replaced.from_at


def known_since(job: Job, kept_since: datetime) -> datetime:
    """The instant before which it is not known of any occurrence whether it was missed.

    Rows that were written before `kept_since` may have expired. Nothing can have run in a pause
    before that ended.
    """
    return min([kept_since, *(began for began, _ in _known_pauses(job, kept_since))])


def missed_among(
    job: Job,
    fire_times: Iterable[datetime],
    rows: Iterable[Run],
    now: datetime,
    kept_since: datetime,
) -> list[MissedOccurrence]:
    """Those of the job's `fire_times` that were missed, in their order.

    `rows` are all of the job's at these fire times, and those of catch-ups that cover them. Missed
    is what has no success and is not under way, except what somebody has decided about: cancelled
    runs and discarded dead letters; and what may have had a row that has expired, as those may have
    that were written before `kept_since`.
    """
    by_fire_time: defaultdict[datetime, list[Run]] = defaultdict(list)
    covering = []
    for row in rows:
        if row.key.kind in _OF_OCCURRENCES:
            by_fire_time[row.key.fire_at].append(row)
        elif row.key.kind is RunKind.MISSED:
            covering.append(row)
    pauses, known_pauses = list(pauses_of(job)), _known_pauses(job, kept_since)
    certain_until = now - timedelta(seconds=job.spread_seconds) - JUST_DUE
    found = []
    for fire_at in fire_times:
        missed = _missed(fire_at, by_fire_time[fire_at], covering)
        has_row = missed is not None and missed.run_id is not None
        if not has_row and fire_at < kept_since and not _is_within(fire_at, known_pauses):
            continue
        if missed and (has_row or fire_at <= certain_until or _is_within(fire_at, pauses)):
            found.append(missed)
    return found


def _missed(
    fire_at: datetime, runs: Sequence[Run], covering: Sequence[Run]
) -> MissedOccurrence | None:
    if any(settles(run) for run in runs):
        return None
    if runs:
        newest = max(runs, key=lambda run: (run.updated_at, run.key.redrive))
        return MissedOccurrence.by(fire_at, newest)
    for row in covering:
        if row.covers_from is not None and row.covers_from <= fire_at <= row.key.fire_at:
            return MissedOccurrence.by(fire_at, row)
    return MissedOccurrence(fire_at)


def _known_pauses(job: Job, kept_since: datetime) -> list[Pause]:
    """The pauses whose occurrences can have had no row before `kept_since`."""
    return [each for each in pauses_of(job) if each[1] is None or each[1] >= kept_since]


def _is_within(fire_at: datetime, pauses: Sequence[Pause]) -> bool:
    return any(began < fire_at and (end is None or fire_at <= end) for began, end in pauses)


def settles(run: Run) -> bool:
    """True if its occurrence needs no other run: succeeded, under way, or decided about."""
    is_done = run.status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED)
    return is_done or not run.is_final or run.settled is Resolution.DISCARDED


NOT_SUCCEEDED = "not_succeeded"
"""The reason in rows of the missed-run check."""

_MEANT = frozenset({SkipReason.PAUSED, SkipReason.DELETED, SkipReason.CHANGED, SkipReason.CALENDAR})
"""Skips that are what the owner wants: nobody expects a success then."""
MOST_CHECKS = 6
"""A check that came late waits for the row of a run this often: 45 minutes in all."""
_FIRST_CHECK_SECONDS = 60


def is_expected(job: Job | None, message: Message, closed: ClosedDays | None) -> bool:
    """True if a success is expected by now for the occurrence that the check's message names.

    Not of a job that was deleted or is not watched any more, of an occurrence that its generation
    does not cover, such as those of a pause, or on a day that is `closed` in the job's calendar.
    What came before a pause, or before the job was completed, is looked after.
    """
    if job is None or job.state is JobState.DELETED or job.spec.expect_within is None:
        return False
    fire_at = message.key.fire_at
    covered = _is_covered(job, message.generation_id, fire_at)
    return covered and (closed is None or local_date(job.schedule, fire_at) not in closed)


def _is_covered(job: Job, generation_id: str, fire_at: datetime) -> bool:
    """True if an occurrence at this instant would be of that generation."""
    if generation_id == job.generation.generation_id:
        return job.generation.from_at < fire_at <= (job.paused_at or fire_at)
    return any(known.covers(generation_id, fire_at) for known in job.replaced)


def is_known_by_schedule(job: Job, generation_id: str) -> bool:
    """True if the job's schedule and policy are those of the generation: of an older one they are
    gone, and so they are of its own once it was changed in its pause."""
    return job.is_as_filed and generation_id == job.generation.generation_id


def last_run(key: RunKey, get: Callable[[RunKey], Run | None]) -> Run | None:
    """The row of the occurrence that a watch's `key` names: of its run, or of the run that runs it
    again after it was a dead letter."""
    run = get(replace(key, kind=RunKind.SCHEDULED))
    while run is not None and run.settled is Resolution.REDRIVEN:
        again = get(run.key.redriven)
        if again is None:
            return run
        run = again
    return run


def has_success(fire_at: datetime, rows: Iterable[Run]) -> bool:
    """True if any run of the occurrence at `fire_at` has succeeded: its own, one that runs it again
    or one of a backfill."""
    return any(
        row.key.fire_at == fire_at
        and row.key.kind in (RunKind.SCHEDULED, RunKind.BACKFILL)
        and row.status is RunStatus.SUCCEEDED
        for row in rows
    )


def gave_way(run: Run) -> bool:
    """True if the latest occurrence that was due ran in its place, as its note says. What a
    catch-up skips by the policy `skip` has the same reason; the job's may be another by now."""
    return run.reason == SkipReason.CATCH_UP and run.note is not None


def came_late(run: Run | None) -> bool:
    """True if the occurrence of this row was skipped since ticks or executors were late."""
    return run is not None and run.reason in (SkipReason.CATCH_UP, SkipReason.MISFIRE)


def another_is_checked(
    job: Job, run: Run, closed: ClosedDays | None, get: Callable[[RunKey], Run | None]
) -> bool:
    """True if the next occurrence is checked in the place of one that came late and gave way to
    none, `run`: it was skipped for the same outage.

    The next one was too late by then, too: what only waits until its own grace is over, one after
    the other, as for a key that is never free, would be left to none that is told of.
    """
    if not follows_its_schedule(job) or run.finished_at is None:
        return False
    following = resolve(job.schedule, job.spec.calendar, closed).open.next(run.key.fire_at)
    longest = timedelta(seconds=job.spread_seconds) + grace_of(job)
    if following is None or following + longest >= run.finished_at:
        return False
    return came_late(get(replace(run.key, fire_at=following)))


def is_followed(job: Job, run: Run, later: Iterable[Run]) -> bool:
    """The same where the schedule of its generation is gone: by its `later` rows."""
    if run.finished_at is None:
        return False
    own = [
        row
        for row in later
        if row.key.kind is RunKind.SCHEDULED
        and _is_covered(job, run.generation_id, row.key.fire_at)
    ]
    following = min(own, key=lambda row: row.key.fire_at, default=None)
    if following is None or (following.effective_at or following.key.fire_at) > run.finished_at:
        return False
    return came_late(following)


def check_again(
    job: Job,
    message: Message,
    closed: ClosedDays | None,
    now: datetime,
    *,
    is_behind: bool = False,
) -> Message | None:
    """The message of the next look, where this one came late and found no run: the run's own
    message may be as late, and its row says whether a later occurrence stands for it. So it is
    where ticks are behind with the occurrence itself.

    None once it has checked MOST_CHECKS times. Each waits longer, so that their copies are few.
    """
    as_sent = replace(message, waits=0, wait_until=None)
    if message.waits >= MOST_CHECKS:
        return None
    may_be_left = job.spec.catch_up is not CatchUp.ALL and follows_its_schedule(job)
    if not (is_behind and may_be_left) and latest_due(job, as_sent, closed, now) is None:
        return None
    delay_seconds = min(_FIRST_CHECK_SECONDS << message.waits, LONGEST_DELAY_SECONDS)
    at = seconds_after(now, delay_seconds)
    return replace(message, wait_until=at, waits=message.waits + 1)


def alert(run: Run | None) -> str | None:
    """Why the occurrence counts as missed; None if it succeeded or was skipped on purpose."""
    if run is None:
        return "no run of it was recorded"
    status, reason = run.status, run.reason
    if status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED):
        return None
    if status is RunStatus.SKIPPED and reason in _MEANT:
        return None
    why = f" ({reason})" if reason else ""
    error = f": {run.error.kind}: {run.error.message}" if run.error else ""
    return f"{run.key.run_id} is {status.value}{why}{error}"


def watch_row(job: Job, message: Message, note: str, now: datetime, expires_at: datetime) -> Run:
    """The row of the missed-run check: no success was recorded in time."""
    effective_at = message.key.fire_at + timedelta(seconds=job.spread_seconds)
    return Run(
        key=message.key,
        status=RunStatus.MISSED,
        attempt=0,
        token=0,
        claim_id="",
        generation_id=message.generation_id,
        updated_at=now,
        expires_at=expires_at,
        finished_at=now,
        reason=NOT_SUCCEEDED,
        note=note,
        effective_at=effective_at if job.spread_seconds else None,
    )
