"""Who is told: callbacks and events of the runs that have ended, and the missed-run watch."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain

from carillon.audit.evidence import JobVersion, Violation
from carillon.audit.known import Indexed
from carillon.audit.outcomes import in_gap
from carillon.domain.job import MOST_REPLACED, Job, JobState
from carillon.domain.run import NO_RUNS, Run, RunKind, RunStatus
from tests.simulation.judging.checker_calls import lag_of, recovery
from tests.simulation.judging.known import Known, had_passed

_DEAD = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})
_EVENTS = {
    RunStatus.SUCCEEDED: "run.succeeded",
    RunStatus.DEAD: "run.dead",
    RunStatus.TIMED_OUT: "run.dead",
    RunStatus.SKIPPED: "run.skipped",
    RunStatus.MISSED: "run.missed",
}
_LATE = frozenset({"catch_up", "misfire"})
"""Why what came late was skipped."""
_MEANT = frozenset({"paused", "deleted", "changed", "calendar", "catch_up"})
"""Skips of which the watch tells nothing, or of the last of them alone (`catch_up`)."""


def called_back(known: Known) -> Iterator[Violation]:
    """Each end that a job wants to hear of has its callback, and no other run has one.

    Lenient: of jobs that were deleted, which stops all. That callbacks end: `unfinished`.
    """
    for job_id, rows in known.rows.items():
        jobs = [version.job for version in known.evidence.versions.get(job_id, ())]
        told = {row.key.called_back for row in rows if row.key.kind is RunKind.CALLBACK}
        for row in rows:
            if row.key.kind in NO_RUNS or row.key.kind is RunKind.CALLBACK:
                continue
            wanted = [_wants(job, row) for job in jobs]
            if row.key in told and not any(wanted):
                text = f"{row.key.run_id} is {row.status.value}, and its job wants no callback"
            elif row.key in told or not all(wanted) or not _must_be_told(known, jobs, row):
                continue
            else:
                text = f"{row.key.run_id} is {row.status.value}, and no callback tells of it"
            yield Violation("callback", job_id, text, row.key.fire_at)
        for key in told - {row.key for row in rows}:
            text = f"a callback tells of {key.run_id}, which is not there"
            yield Violation("callback", job_id, text, key.fire_at)


def _wants(job: Job, run: Run) -> bool:
    if run.status is RunStatus.SUCCEEDED:
        return job.spec.on_success is not None
    return run.status in _DEAD and job.spec.on_failure is not None


def _must_be_told(known: Known, jobs: list[Job], row: Run) -> bool:
    """Whether what follows from the end of a run has surely been done by now. One that a calendar
    moves to before its job is due when its message comes."""
    if not jobs or any(job.state is JobState.DELETED for job in jobs):
        return False
    due_at, job = row.key.fire_at, jobs[-1]
    if job.spec.calendar is not None and due_at <= job.generation.from_at:
        due_at = row.started_at or due_at
    return due_at <= known.evidence.until


def told_of(known: Known) -> Iterator[Violation]:
    """Jobs with events: at least one for each run that has ended, and each call; and none of what
    did not happen. Of jobs that were deleted nothing need be told."""
    if not known.evidence.is_complete:
        return
    told: defaultdict[tuple[str, str], list[datetime]] = defaultdict(list)
    for each in known.evidence.told:
        told[each.what, each.subject].append(each.at)
    for job_id, rows in known.rows.items():
        jobs = [version.job for version in known.evidence.versions.get(job_id, ())]
        if not jobs or not all(job.spec.events for job in jobs):
            continue
        for row in rows:
            what = _EVENTS.get(row.status)
            if what is None or not _must_be_told(known, jobs, row):
                continue
            if (what, row.key.run_id) not in told:
                text = f"{row.key.run_id} is {row.status.value}, and no event {what} tells of it"
                yield Violation("event", job_id, text, row.key.fire_at)
    yield from _untrue(known, told)
    for ack in known.evidence.acks:
        jobs = [version.job for version in known.evidence.versions.get(ack.job_id, ())]
        is_awaited = ack.what == "pause" and jobs and all(job.spec.events for job in jobs)
        if is_awaited and ("job.paused", ack.job_id) not in told:
            text = f"its pause was answered at {ack.answered_at}, and no event tells of it"
            yield Violation("event", ack.job_id, text)


def _untrue(known: Known, told: dict[tuple[str, str], list[datetime]]) -> Iterator[Violation]:
    for (what, subject), times in told.items():
        row = known.by_run_id.get(subject)
        if what in _EVENTS.values() and (row is None or _EVENTS.get(row.status) != what):
            status = "absent" if row is None else row.status.value
            text = f"{what} was told of {subject} at {times[0]}, which is {status}"
            yield Violation("event", "" if row is None else row.key.job_id, text)
    for run_id, deliveries in known.deliveries.items():
        job = known.job_at(deliveries[0].job_id, deliveries[0].job_revision)
        times = told.get(("run.started", run_id), [])
        if (
            job is not None
            and job.spec.events
            and not any(at <= deliveries[0].begun_at for at in times)
        ):
            text = f"{run_id} was called at {deliveries[0].begun_at}, before any event run.started"
            yield Violation("event", job.job_id, text)


def watched(known: Known) -> Iterator[Violation]:
    """A row of the watch where no success was recorded in time, and nowhere else.

    Lenient where it is not sure what is expected: jobs that were deleted, occurrences of a pause or
    of closed days, those that somebody cancelled or ran again, what an outage passed over.
    """
    for job_id, rows in known.rows.items():
        versions = known.evidence.versions.get(job_id, ())
        expected = {version.job.spec.expect_within for version in versions}
        alarms = {row.key.fire_at: row for row in rows if row.key.kind is RunKind.WATCH}
        if len(expected) != 1:
            continue
        within_seconds = expected.pop()
        if within_seconds is None:
            for row in alarms.values():
                text = f"{row.key.run_id} is there, and nobody expects anything"
                yield Violation("watch", job_id, text, row.key.fire_at)
            continue
        within = timedelta(seconds=within_seconds)
        successes = _successes(known, rows)
        for fire_at, row in alarms.items():
            spread_seconds = min(version.job.spread_seconds for version in versions)
            by_at = fire_at + timedelta(seconds=spread_seconds) + within
            if any(at < by_at for at in successes.get(fire_at, ())):
                text = f"{row.key.run_id} rings; a success was there before {by_at}"
                yield Violation("watch", job_id, text, fire_at)
            for by in _passed_over_by(known, rows, row):
                text = f"{row.key.run_id} rings; {by.key.run_id} had passed over it by then"
                yield Violation("watch", job_id, text, fire_at)
        if any(version.job.state is JobState.DELETED for version in versions):
            continue
        successes = _successes(known, [*rows, *_rows_elsewhere(known, versions)])
        for indexed in known.generations[job_id]:
            yield from _unwatched(known, indexed, rows, within, successes, set(alarms))


def _passed_over_by(known: Known, rows: Sequence[Run], alarm: Run) -> Iterator[Run]:
    """The rows of catch-ups that covered an occurrence without a row of its own before its check
    began. One may be gone since: an executor had claimed it for what never counted, and died."""
    fire_at = alarm.key.fire_at
    own = known.writes.get(replace(alarm.key, kind=RunKind.SCHEDULED), ())
    had_row = [write.after is not None for write in own if write.at < alarm.updated_at][-1:]
    has_row = (row.key.fire_at == fire_at and row.key.kind is RunKind.SCHEDULED for row in rows)
    if any(had_row) or any(has_row):
        return
    for row in rows:
        if row.covers_from is not None and row.covers_from <= fire_at <= row.key.fire_at:
            writes = known.writes.get(row.key, ())
            if any(write.at < alarm.updated_at for write in writes):
                yield row


def _rows_elsewhere(known: Known, versions: Sequence[JobVersion]) -> Iterator[Run]:
    """The rows of the jobs that a job was renamed or handed over to: a backfill is of the job that
    it is now, which may have gone back since. So it may keep the watch from telling, and does not
    show that it told needlessly."""
    others = {version.job.renamed_to for version in versions} - {""}
    return chain.from_iterable(known.rows.get(job_id, ()) for job_id in sorted(others))


def _successes(known: Known, rows: Sequence[Run]) -> dict[datetime, list[datetime]]:
    """When successes of occurrences were recorded, by fire time."""
    found: defaultdict[datetime, list[datetime]] = defaultdict(list)
    for row in rows:
        is_of_occurrence = row.key.kind in (RunKind.SCHEDULED, RunKind.BACKFILL)
        is_success = row.status is RunStatus.SUCCEEDED
        if not is_success or not is_of_occurrence or row.finished_at is None:
            continue
        # Its writer may have stood still after it had looked at the clock.
        written = (
            write.at
            for write in known.writes.get(row.key, ())
            if write.after is not None and write.after.status is RunStatus.SUCCEEDED
        )
        found[row.key.fire_at].append(min(written, default=row.finished_at))
    return found


def _looked_until(known: Known, by_at: datetime) -> datetime:
    """Until when the watch may have looked, which it does at its time only where nothing is
    broken."""
    terms = known.evidence.circumstances
    looked_at = by_at + lag_of(terms)
    is_calm = known.is_calm(by_at - recovery(terms), looked_at)
    return looked_at if is_calm else datetime.max.replace(tzinfo=UTC)


def _is_passed_over(indexed: Indexed, row: Run, rows: Sequence[Run], alarms: set[datetime]) -> bool:
    """Whether it came late, and a later one that was due then is looked at in its place. Of a
    generation that was replaced the watch knows later ones by their rows only: the next may have
    none yet, and is told of. The row of a catch-up may be that of the next, too."""
    if row.reason not in _LATE or row.finished_at is None:
        return False
    following = indexed.job.schedule.next(row.key.fire_at)
    if following is None or following + indexed.spread > row.finished_at:
        return False
    if following in alarms or row.reason == "catch_up":
        return True
    return any(
        other.reason in _LATE
        and other.key.kind in (RunKind.SCHEDULED, RunKind.MISSED)
        and (other.covers_from or other.key.fire_at) <= following <= other.key.fire_at
        for other in rows
    )


def _was_left_to_another(
    known: Known, row: Run, rows: Sequence[Run], by_at: datetime, until: datetime
) -> bool:
    """Whether the watch may have found the row of a catch-up that covers it, and none of its own:
    its message was hidden, as by a throttled invocation, while a tick sent others once more."""
    claims = (write.at for write in known.writes.get(row.key, ()) if write.before is None)
    came_at = max(claims, default=by_at)
    covering = (
        write.at
        for other in rows
        if other.covers_from is not None and other.covers_from <= row.key.fire_at
        if row.key.fire_at <= other.key.fire_at
        for write in known.writes.get(other.key, ())
    )
    return by_at < came_at and any(at <= min(until, came_at) for at in covering)


def _is_far_back(known: Known, indexed: Indexed, at: datetime) -> bool:
    """Whether more generations had replaced this one by then than its job's row remembers."""
    others = known.generations[indexed.job.job_id]
    return sum(indexed.committed_at < each.committed_at <= at for each in others) > MOST_REPLACED


def _unwatched(
    known: Known,
    indexed: Indexed,
    rows: Sequence[Run],
    within: timedelta,
    successes: dict[datetime, list[datetime]],
    alarms: set[datetime],
) -> Iterator[Violation]:
    evidence, job = known.evidence, indexed.job
    if not indexed.is_computable or job.spec.calendar is not None:
        return
    gaps = [gap for gap in evidence.gaps if gap.segment == job.segment]
    own = {row.key.fire_at: row for row in rows if row.key.kind is RunKind.SCHEDULED}
    again = {row.key.fire_at for row in rows if row.key.redrive or row.settled}
    for fire_at in indexed.occurrences(evidence.until - within):
        by_at = fire_at + indexed.spread + within
        row = own.get(fire_at)
        if fire_at in alarms or fire_at in again or row is None or in_gap(gaps, by_at):
            continue
        until = _looked_until(known, by_at)
        if had_passed(indexed, fire_at) or _is_far_back(known, indexed, until):
            continue
        is_meant = row.status is RunStatus.CANCELLED or row.reason in _MEANT
        is_meant = is_meant or _is_passed_over(indexed, row, rows, alarms)
        is_meant = is_meant or _was_left_to_another(known, row, rows, by_at, until)
        if is_meant or any(at <= until for at in successes.get(fire_at, ())):
            continue
        text = (
            f"{row.key.run_id} is {row.status.value} since {row.finished_at}, no success was there"
            f" by {by_at}, and the watch has told nobody"
        )
        yield Violation("watch", job.job_id, text, fire_at)
