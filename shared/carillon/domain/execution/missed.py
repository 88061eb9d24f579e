"""Which occurrences were missed: those without a success that nobody has dealt with."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from carillon.domain.job import Job
from carillon.domain.run import Run, RunKind, RunStatus, Settled

JUST_DUE = timedelta(minutes=1)
"""An occurrence due within it may have no row yet, without being missed: unless its job was paused
then."""

Pause = tuple[datetime, datetime | None]
"""When it began, and the last instant that belongs to it; None while it goes on."""

_OF_OCCURRENCES = frozenset({RunKind.SCHEDULED, RunKind.BACKFILL})
"""The kinds of runs that are runs of an occurrence."""


@dataclass(frozen=True, slots=True)
class MissedOccurrence:
    """`status`, `reason` and `run_id` are of the row that stands for it: the newest run of it, or
    the row of the catch-up that passed over it. None without any: it was never sent, as while its
    job is paused."""

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
    resumed_at = job.filing.from_at
    for replaced in job.replaced:
        if replaced.until_at < resumed_at:
            yield replaced.until_at, resumed_at
        resumed_at = replaced.from_at


def missed_among(
    job: Job, fire_times: Iterable[datetime], rows: Iterable[Run], now: datetime
) -> list[MissedOccurrence]:
    """Those of the job's `fire_times` that were missed, in their order.

    `rows` are all of the job's at these fire times, and those of catch-ups that cover them. Missed
    is what has no success and is not under way, except what somebody has decided about: cancelled
    runs and discarded dead letters.
    """
    by_fire_time: defaultdict[datetime, list[Run]] = defaultdict(list)
    covering = []
    for row in rows:
        if row.key.kind in _OF_OCCURRENCES:
            by_fire_time[row.key.fire_at].append(row)
        elif row.key.kind is RunKind.MISSED:
            covering.append(row)
    pauses = list(pauses_of(job))
    certain_until = now - timedelta(seconds=job.spread_seconds) - JUST_DUE
    found = []
    for fire_at in fire_times:
        missed = _missed(fire_at, by_fire_time[fire_at], covering)
        has_row = missed is not None and missed.run_id is not None
        if missed and (has_row or fire_at <= certain_until or _is_within(fire_at, pauses)):
            found.append(missed)
    return found


def _missed(
    fire_at: datetime, runs: Sequence[Run], covering: Sequence[Run]
) -> MissedOccurrence | None:
    if any(_settles(run) for run in runs):
        return None
    if runs:
        newest = max(runs, key=lambda run: (run.updated_at, run.key.redrive))
        return MissedOccurrence.by(fire_at, newest)
    for row in covering:
        if row.covers_from is not None and row.covers_from <= fire_at <= row.key.fire_at:
            return MissedOccurrence.by(fire_at, row)
    return MissedOccurrence(fire_at)


def _is_within(fire_at: datetime, pauses: Sequence[Pause]) -> bool:
    return any(began < fire_at and (end is None or fire_at <= end) for began, end in pauses)


def _settles(run: Run) -> bool:
    """Whether its occurrence needs no other run: succeeded, under way, or decided about."""
    is_done = run.status in (RunStatus.SUCCEEDED, RunStatus.CANCELLED)
    return is_done or not run.is_final or run.settled is Settled.DISCARDED
