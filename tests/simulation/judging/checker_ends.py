"""What is to come to an end, or to stop: jobs with a last run, jobs whose runs fail in a row,
operations; and requests under one key, which are one request."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

from carillon.audit.evidence import JobVersion, Violation
from carillon.domain.admission.limits import is_note_of
from carillon.domain.job import Job, JobState
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import OnComplete
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.schedules import Delay, Schedule
from tests.simulation.judging.known import Known

_DEAD = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})
_LIST_LAG = timedelta(seconds=30)
"""How far a list of dead letters may be behind."""
_REPORT_LAG = timedelta(seconds=15)
"""A success that was reported counts once its message is handled."""


def uncompleted(known: Known) -> Iterator[Violation]:
    """A job that is to go with its last run has gone when that has ended; and none goes before.

    Lenient: under calendars, which may open a day again; and where the generation has no occurrence
    at all, as after a resume that came too late: then no run ends.
    """
    for job_id, versions in known.evidence.versions.items():
        job, indexed = versions[-1].job, known.generations[job_id][-1]
        left = None
        if indexed.is_computable and job.spec.calendar is None:
            started_by = known.evidence.until - indexed.spread
            left = job.schedule.next(max(started_by, indexed.from_at))
            due = next(iter(indexed.occurrences(known.evidence.until)), None)
            is_to_go = all(
                version.job.spec.on_complete is OnComplete.DELETE for version in versions
            )
            if job.state is JobState.ACTIVE and is_to_go and left is None and due is not None:
                text = f"{job.schedule.text!r} has no occurrence left, and the job is still there"
                yield Violation("complete", job_id, text)
        if job.state is JobState.COMPLETED and job.spec.calendar is None:
            since = job.updated_at - timedelta(seconds=job.spread_seconds)
            following = job.schedule.next(max(since, indexed.from_at))
            if isinstance(job.schedule, Delay):
                # What follows a run is known to its message alone, but the first one follows none.
                rows = _outcomes(known, job_id)
                has_begun = any(row.key.fire_at > indexed.from_at for row in rows)
                following = None if has_begun else job.schedule.next(indexed.from_at)
            if following is not None:
                text = f"it was completed at {job.updated_at}, before its occurrence {following}"
                yield Violation("complete", job_id, text, following)


def too_many_runs(known: Known) -> Iterator[Violation]:
    """No job has more than `max_runs` occurrences: with a row, or else covered by one. Of revived
    jobs nothing is said: they count anew."""
    for job_id, generations in known.generations.items():
        jobs = [version.job for version in known.evidence.versions.get(job_id, ())]
        if any(job.is_tombstone for job in jobs[:-1]):
            continue
        if len({job.spec.timing_text for job in jobs}) != 1:
            continue  # it may count anew
        wanted = generations[-1].job.spec.max_runs
        if wanted is None or not all(indexed.is_computable for indexed in generations):
            continue
        rows = _outcomes(known, job_id)
        schedule = generations[-1].job.schedule
        counted = {fire_at for row in rows for fire_at in _decided(row, schedule)}
        if len(counted) > wanted:
            text = f"{len(counted)} occurrences have an outcome, and {wanted} may"
            yield Violation("max_runs", job_id, text)


def _outcomes(known: Known, job_id: str) -> list[Run]:
    """The rows with outcomes of a job's occurrences: not of those that an executor had for a
    generation that never counted, as somebody cancelled the run."""
    counted = {indexed.generation_id for indexed in known.generations[job_id]}

    def is_outcome(row: Run) -> bool:
        if row.status is RunStatus.SKIPPED and row.reason in ("paused", "deleted", "changed"):
            return row.key.kind is RunKind.MISSED
        if row.status is RunStatus.CANCELLED and row.generation_id not in counted:
            return False
        return row.key.is_occurrence or row.key.kind is RunKind.MISSED

    return [row for row in known.rows.get(job_id, ()) if is_outcome(row)]


def _decided(row: Run, schedule: Schedule) -> Iterator[datetime]:
    """The occurrences of which a row has the outcome: its own, or those that a catch-up's covers;
    several may cover the same."""
    yield row.key.fire_at
    if row.covers_from is not None:
        yield row.covers_from
        yield from schedule.between(row.covers_from, row.key.fire_at)


def failing_on(known: Known) -> Iterator[Violation]:
    """`pause_after_failures`: a job is paused once so many scheduled runs in a row have died under
    its generation, and not by fewer. Lenient: those that ended near a success, which may be counted
    in another order; and before the generation was committed, which may be counted under the one
    before."""
    for job_id, versions in known.evidence.versions.items():
        limits = {version.job.spec.pause_after_failures for version in versions}
        if len(limits) != 1 or not known.evidence.is_complete:
            continue
        limit = limits.pop()
        ends = _ends(known, job_id)
        if limit is None:
            continue
        last = versions[-1].job
        committed_at = known.generations[job_id][-1].committed_at
        since = [(at, success) for at, success in ends if committed_at < at <= known.evidence.until]
        tail = 0
        for _, is_success in reversed(since):
            if is_success:
                break
            tail += 1
        if last.state is JobState.ACTIVE and tail >= limit:
            text = f"{tail} runs in a row have died since {committed_at}; {limit} pause it"
            yield Violation("failures", job_id, text)
        yield from _paused_early(known, job_id, versions, ends, limit)


def _ends(known: Known, job_id: str) -> list[tuple[datetime, bool]]:
    """When scheduled runs of the job, or those after another job's, ended, and whether by success,
    in order."""
    return sorted(
        (row.finished_at, row.status is RunStatus.SUCCEEDED)
        for row in known.rows.get(job_id, ())
        if row.key.kind in (RunKind.SCHEDULED, RunKind.AFTER) and row.finished_at is not None
        if row.status in _DEAD or row.status is RunStatus.SUCCEEDED
    )


def _paused_early(
    known: Known,
    job_id: str,
    versions: Sequence[JobVersion],
    ends: list[tuple[datetime, bool]],
    limit: int,
) -> Iterator[Violation]:
    for before, version in zip([None, *versions], versions, strict=False):
        job = version.job
        if job.state is not JobState.PAUSED or not job.note:
            continue
        if before is not None and before.job.paused_at == job.paused_at:
            continue  # it was changed, or moved, in its pause
        if (before is None or before.job.is_tombstone) and _was_paused(known, job):
            continue
        from_at, paused_at = job.generation.from_at, version.at
        count = sum(1 for at, success in ends if not success and from_at < at <= paused_at)
        if count < limit:
            text = f"it was paused at {paused_at}, {job.note!r}: {count} had died by then"
            yield Violation("failures", job_id, text)
            continue
        calm_from = paused_at - timedelta(minutes=10)
        named = (row.finished_at for row in known.rows.get(job_id, ()) if is_note_of(job.note, row))
        paused_by = max(filter(None, named), default=paused_at)
        if paused_by <= calm_from:
            continue  # its executor came again for a death of long ago
        counted_by = paused_by - (_REPORT_LAG if job.spec.target.completion else timedelta())
        recent = [
            (at, success)
            for at, success in ends
            if from_at < at <= paused_at
            and not (success and (at <= calm_from or counted_by <= at <= paused_by))
        ]
        # A success behind that run may come while it is being counted, and so may a death.
        number = sum(at <= paused_by for at, _ in recent)
        parts = (reversed(recent[:number]), recent[number:])
        in_a_row = sum(1 for part in parts for _ in takewhile(lambda end: not end[1], part))
        if in_a_row < limit and known.is_calm(calm_from, paused_at):
            text = f"it was paused at {paused_at}, {job.note!r}, though one had succeeded"
            yield Violation("failures", job_id, text)


def _was_paused(known: Known, job: Job) -> bool:
    """True if it was paused so under another name, or by another owner: it says why, too."""
    others = known.evidence.versions.get(job.renamed_from, ())
    return any(
        other.job.renamed_to == job.job_id
        and other.job.paused_at is not None
        and other.job.note == job.note
        for other in others
    )


def operations(known: Known) -> Iterator[Violation]:
    """What an operation says that it has done is there; one that has succeeded has left nothing of
    what it was for; one that was cancelled is so. (That they end: `left_over`.)"""
    by_id = {each.operation_id: each for each in known.evidence.operations}
    for ack in known.evidence.acks:
        found = by_id.get(ack.made)
        if ack.made and found is None:
            text = f"{ack.what} was answered with operation {ack.made}, which is not there"
            yield Violation("operation", ack.job_id, text)
        elif found is not None and ack.what == "cancel_all" and not _is_cancelled(found):
            text = f"{ack.made} was cancelled by {ack.answered_at}: it is {found.state.value}"
            yield Violation("operation", ack.job_id, text)
    for each in by_id.values():
        for text in _undone(known, each):
            yield Violation("operation", each.job_id, f"{each.kind.value} {text}")


def _is_cancelled(operation: Operation) -> bool:
    return operation.state is OperationState.CANCELLED


def _undone(known: Known, operation: Operation) -> Iterator[str]:
    if operation.kind is OperationKind.BACKFILL:
        yield from _unfilled(known, operation)
        return
    if operation.kind is OperationKind.HAND_OVER:
        yield from _half_handed_over(operation)
        return
    if operation.state is not OperationState.SUCCEEDED:
        return
    before = operation.created_at - _LIST_LAG
    for job_id, rows in known.rows.items():
        jobs = [each.job for each in known.evidence.versions.get(job_id, ())]
        # Dead letters of a job that was deleted meanwhile are passed over, also if it is revived.
        owned = {job.owner for job in jobs} == {operation.owner}
        is_meant = owned and not any(job.is_tombstone for job in jobs)
        if operation.job_id not in ("", job_id) or not is_meant:
            continue
        for row in rows:
            if row.is_dead_letter and _dead_since(known, row) < before:
                yield f"of {operation.created_at} succeeded, and {row.key.run_id} is still dead"


def _half_handed_over(operation: Operation) -> Iterator[str]:
    """It ends only where no job is between two owners."""
    if operation.is_final and operation.in_hand:
        yield f"is {operation.state.value}, and {', '.join(operation.in_hand)} are still in hand"


def _dead_since(known: Known, row: Run) -> datetime:
    """When it was written so: its writer may have stood still after it had looked at the clock."""
    written = (
        write.at
        for write in known.writes.get(row.key, ())
        if write.after is not None and write.after.status is row.status
    )
    return min(written, default=row.updated_at)


def _unfilled(known: Known, operation: Operation) -> Iterator[str]:
    rows = [
        row
        for row in known.rows.get(operation.job_id, ())
        if row.key.kind is RunKind.BACKFILL and row.key.request_id == operation.operation_id
    ]
    filled = {row.key.fire_at for row in rows}
    if len(filled) < operation.done:
        yield f"{operation.operation_id} sent {operation.done}, and has {len(filled)} rows"
    generations = known.generations.get(operation.job_id, [])
    is_whole = operation.state is OperationState.SUCCEEDED and not operation.only_missed
    if not is_whole or len({indexed.job.schedule.text for indexed in generations}) != 1:
        return
    assert operation.from_at is not None
    assert operation.until_at is not None
    job = generations[0].job
    if job.spec.calendar is not None or not generations[0].is_computable:
        return
    if any(indexed.job.schedule != job.schedule for indexed in generations):
        return
    wanted = job.schedule.between(operation.from_at - timedelta(seconds=1), operation.until_at)
    missing = [at for at in wanted if at not in filled]
    if missing:
        yield f"{operation.operation_id} succeeded, and {missing[0]} was not run"


def answered_otherwise(known: Known) -> Iterator[Violation]:
    """Requests under one idempotency key that were answered with two runs, or two operations."""
    answers: dict[tuple[str, str, str], str] = {}
    for ack in known.evidence.acks:
        answer = ack.run_id or ack.made
        if not ack.key or not answer:
            continue
        first = answers.setdefault((ack.what, ack.job_id, ack.key), answer)
        if first != answer:
            text = f"{ack.what} under the key {ack.key!r} was answered with {first} and {answer}"
            yield Violation("key", ack.job_id, text)
