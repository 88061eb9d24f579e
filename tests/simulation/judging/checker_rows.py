"""I4 by the writes of run rows: which status may follow which, under which claim; what dead letters
say; and that what was acknowledged is there."""

from bisect import bisect_right
from collections.abc import Iterator
from datetime import timedelta

from carillon.audit.evidence import Violation
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.job import JobState
from carillon.domain.run import DeadReason, Resolution, Run, RunKind, RunStatus
from tests.simulation.judging.evidence import BY_CHUNK, Ack, RunWrite
from tests.simulation.judging.known import Known

_I4 = "I4"
_R = RunStatus
_NEXT: dict[RunStatus | None, frozenset[RunStatus | None]] = {
    None: frozenset({_R.RUNNING, _R.SCHEDULED, _R.SKIPPED, _R.MISSED, _R.CANCELLED}),
    _R.SCHEDULED: frozenset({_R.RUNNING, _R.CANCELLED}),
    _R.RETRYING: frozenset({_R.RUNNING, _R.CANCELLED}),
    _R.RUNNING: frozenset(
        {
            None,
            _R.RUNNING,
            _R.SCHEDULED,
            _R.RETRYING,
            _R.SUCCEEDED,
            _R.DEAD,
            _R.TIMED_OUT,
            _R.SKIPPED,
            _R.CANCELLED,
        }
    ),
    _R.DEAD: frozenset({_R.DEAD}),
    _R.TIMED_OUT: frozenset({_R.TIMED_OUT}),
}
"""The states of docs/running.md, with what they take in the table: None is no row. A dead letter is
written again when it is settled."""
_BORN_SO = {RunStatus.SKIPPED: RunKind.MISSED, RunStatus.MISSED: RunKind.WATCH}
"""Rows of these kinds alone begin with these statuses. CANCELLED, too, begins a row: that of the
redrive which a discard forbids, and of a run whose executor died in a chunk."""
_NEVER_STARTED = timedelta(days=10)
_DEAD = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})


def wrong_ways(known: Known) -> Iterator[Violation]:
    """Writes that change a status as it may not change, or let a token fall."""
    for key, writes in known.writes.items():
        for write in writes:
            fault = _fault_of(write)
            if fault:
                text = f"{key.run_id}: {fault}, by {write.process} at {write.at} ({write.method})"
                yield Violation(_I4, key.job_id, text, key.fire_at)


def _died_in_chunk(cancelled: Run) -> bool:
    return [each.error for each in cancelled.attempts] == [EXECUTOR_DIED]


def _fault_of(write: RunWrite) -> str | None:
    before, after = write.before, write.after
    was = None if before is None else before.status
    now = None if after is None else after.status
    if now not in _NEXT.get(was, frozenset()):
        return f"{_said(was)} became {_said(now)}"
    if before is None and after is not None:
        if after.status is RunStatus.CANCELLED and not (after.key.redrive or _died_in_chunk(after)):
            return f"it began as {_said(now)}"
        kind = _BORN_SO.get(after.status)
        if kind is not None and after.key.kind is not kind:
            return f"it began as {_said(now)}"
        return None
    if before is None or after is None:
        return None
    if after.token < before.token:
        return f"its token fell from {before.token} to {after.token}"
    if was in _DEAD and after.settled in (None, before.settled):
        return f"{_said(was)}, {before.settled or 'not settled'}, was written again"
    return None


def unfenced(known: Known) -> Iterator[Violation]:
    """Finishes that are not of the claim under which the row is, and claims of what another holds.

    Who finishes made the claim: the same process, the same claim id and token.
    """
    for key, writes in known.writes.items():
        holder: RunWrite | None = None
        for write in writes:
            if write.method in BY_CHUNK:
                continue
            if write.method == "claim":
                fault = _wrong_claim(write)
                is_held = write.after is not None and write.after.status is RunStatus.RUNNING
                holder = write if is_held else None
            else:
                fault = _wrong_finish(write, holder)
            if fault:
                text = f"{key.run_id}: {write.process} {fault} at {write.at} ({write.method})"
                yield Violation(_I4, key.job_id, text, key.fire_at)


def _wrong_claim(write: RunWrite) -> str | None:
    before, after = write.before, write.after
    if before is None or after is None:
        return None
    is_stop = after.status is RunStatus.CANCELLED
    if before.status is RunStatus.RUNNING and not is_stop and not _is_reported(before, after):
        if before.lease_until is not None and before.lease_until > write.at:
            return f"took over a run whose lease lasts until {before.lease_until}"
        if after.attempt <= before.attempt and not _notes_a_death(write, before, after):
            return f"took over attempt {before.attempt}, as attempt {after.attempt}"
    if after.token <= before.token:
        return f"wrote token {after.token} over {before.token}"
    return None


def _notes_a_death(write: RunWrite, before: Run, after: Run) -> bool:
    """Whether a chunk notes in the row of an attempt that died, for another generation, that its
    own did, too: nobody holds the row, and the next claim counts an attempt."""
    is_held = after.lease_until is None or after.lease_until > write.at
    return after.attempt == before.attempt and not is_held and bool(after.other_generations)


def _is_reported(before: Run, after: Run) -> bool:
    """Whether a report ends the attempt, or one about an open run is put off, or ends it."""
    is_same = before.completion is not None and after.attempt == before.attempt
    return is_same and (before.is_open or after.status is not RunStatus.RUNNING or after.is_open)


def _wrong_finish(write: RunWrite, holder: RunWrite | None) -> str | None:
    before, after = write.before, write.after
    if before is None or before.status is not RunStatus.RUNNING:
        return f"wrote over a row that is {_said(None if before is None else before.status)}"
    if holder is None or holder.after is None:
        return "wrote over a run that nobody had claimed"
    if holder.process != write.process:
        return f"wrote over the claim of {holder.process}"
    claim, token = holder.after.claim_id, holder.after.token
    if (before.claim_id, before.token) != (claim, token):
        return f"wrote over claim {before.claim_id}/{before.token}, having {claim}/{token}"
    if after is not None and (after.claim_id, after.token) != (claim, token):
        return f"wrote claim {after.claim_id}/{after.token}, having {claim}/{token}"
    return None


def unwitnessed(known: Known) -> Iterator[Violation]:
    """Successes without a call that was answered so, by the same process, for the same attempt."""
    for key, writes in known.writes.items():
        for write in writes:
            row, before = write.after, write.before
            if row is None or row.status is not RunStatus.SUCCEEDED or row.status is _of(before):
                continue
            calls = known.deliveries.get(key.run_id, ())
            is_reported = before is not None and before.completion is not None
            if is_reported and any(each.attempt == row.attempt for each in calls):
                continue
            if not any(
                each.is_success
                and each.attempt == row.attempt
                and each.process == write.process
                and each.ended_at is not None
                and each.ended_at <= write.at
                for each in calls
            ):
                text = (
                    f"{key.run_id} is succeeded by {write.process} at attempt {row.attempt}, which"
                    " no target has answered so"
                )
                yield Violation("I2", key.job_id, text, key.fire_at)


def left_over(known: Known) -> Iterator[Violation]:
    """Messages, operations under way and crashes that were not to be there at the end."""
    for text in known.evidence.leftovers:
        yield Violation("I1", "", text)


def miscounted(known: Known) -> Iterator[Violation]:
    """No attempts are left only where all were made, or none could be begun for longer than a queue
    keeps messages; and none follows the last one."""
    for key, writes in known.writes.items():
        for write in writes:
            after = write.after
            job = known.job_at(key.job_id, write.job_revision)
            if after is None or job is None or _of(write.before) is not RunStatus.RUNNING:
                continue
            most = job.spec.retry.max_attempts
            fault = _wrong_count(after, most) or _given_up_early(known, after, write)
            if fault:
                text = f"{key.run_id}: {fault}, of {most}, by {write.process} at {write.at}"
                yield Violation("attempts", key.job_id, text, key.fire_at)


def died_of_nothing(known: Known) -> Iterator[Violation]:
    """Nobody says that executors died on a run while nothing at all was broken.

    Of a deployment of which only the rows are known it is not known what was.
    """
    evidence = known.evidence
    if not evidence.is_complete or evidence.outages:
        return
    for rows in known.rows.values():
        for row in rows:
            if row.reason != DeadReason.EXECUTOR_DIED.value:
                continue
            if bisect_right(evidence.faults, row.updated_at) == 0:
                text = f"{row.key.run_id} is dead: {row.reason}, and no fault had struck"
                yield Violation("dead", row.key.job_id, text, row.key.fire_at)


def _given_up_early(known: Known, row: Run, write: RunWrite) -> str | None:
    """What was never begun waits for ten days, and what died is tried as often as any row of the
    job has allowed."""
    if row.reason == DeadReason.NEVER_STARTED.value:
        late = write.at - (row.effective_at or row.key.fire_at)
        return None if late > _NEVER_STARTED else f"given up as never started, {late} late"
    if row.reason == DeadReason.EXECUTOR_DIED.value and known.evidence.is_complete:
        versions = known.evidence.versions.get(row.key.job_id, ())
        fewest = min(version.job.spec.retry.max_attempts for version in versions)
        if len(row.attempts) < fewest:
            return f"dead after {len(row.attempts)} attempts"
    return None


def _wrong_count(row: Run, most: int) -> str | None:
    if row.status in _DEAD and row.reason == DeadReason.EXHAUSTED.value and row.attempt < most:
        return f"exhausted at attempt {row.attempt}"
    if row.status is RunStatus.RETRYING and row.attempt >= most and row.next_attempt_at is None:
        return f"retrying after attempt {row.attempt}"
    return None


def forgotten(known: Known) -> Iterator[Violation]:
    """What was acknowledged was committed before the answer; and runs that were asked for are
    there. (That they have ended is `outcomes.unfinished`.)"""
    for ack in known.evidence.acks:
        text = _forgotten(known, ack)
        if text:
            yield Violation("I1", ack.job_id, f"{ack.what} answered at {ack.answered_at}: {text}")


def _forgotten(known: Known, ack: Ack) -> str | None:
    versions = known.evidence.versions.get(ack.job_id, ())
    if ack.what == "create" and not versions:
        return "there is no such job"
    if ack.what in ("run", "redrive", "cancel", "stop", "discard") and ack.run_id:
        row = known.by_run_id.get(ack.run_id)
        if row is None:
            return f"there is no run {ack.run_id}"
        if ack.what in ("cancel", "stop") and row.status is not RunStatus.CANCELLED:
            return f"{ack.run_id} is {row.status.value}"
        if ack.what == "discard" and row.settled is not Resolution.DISCARDED:
            return f"{ack.run_id} is {row.settled or 'not settled'}"
    if ack.what in ("pause", "delete") and known.evidence.is_complete:
        wanted = JobState.PAUSED if ack.what == "pause" else JobState.DELETED
        before = [version for version in versions if version.at < ack.requested_at][-1:]
        during = [v for v in versions if ack.requested_at <= v.at <= ack.answered_at]
        if not any(version.job.state is wanted for version in (*before, *during)):
            return f"the job never was {wanted.value} from {ack.requested_at} on"
    return None


def _of(row: Run | None) -> RunStatus | None:
    return None if row is None else row.status


def _said(status: RunStatus | None) -> str:
    return "absent" if status is None else status.value
