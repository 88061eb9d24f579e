"""Overlap, minimum spacing and misfire: may a due run start beside or after another."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.admission.limits import KEPT
from carillon.domain.admission.state import (
    AdmissionRow,
    Verdict,
    poll,
    poll_behind_others,
    waiting_until,
)
from carillon.domain.decisions import Proceed, Skip, SkipReason
from carillon.domain.execution.lateness import follows_its_schedule, grace_of, is_kept_waiting
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp, Overlap
from carillon.domain.run import Run, RunKind


def misfire(job: Job, run: Run, message: Message, now: datetime) -> Skip | None:
    """The skip of an occurrence whose first attempt would start too late; None if it is in time.

    Its time is the effective one. A grace that the job states counts whatever has held it back
    since: a queue, an outage of the executors, another policy. But not the pace of catching up:
    what was in time by then stays so. Without one, what a policy holds back is not late.
    """
    if job.spec.catch_up is not CatchUp.SKIP or message.in_time or not is_first_of_occurrence(run):
        return None
    if job.spec.grace is None and (is_kept_waiting(message) or not follows_its_schedule(job)):
        return None
    if message.in_time is not None and message.generation_id != job.generation.generation_id:
        return None  # a tick has caught up on it by the policy of its own, replaced generation
    late, grace = now - (run.effective_at or run.key.fire_at), grace_of(job)
    if late <= grace:
        return None
    seconds, grace_seconds = int(late.total_seconds()), int(grace.total_seconds())
    return Skip(SkipReason.MISFIRE, f"{seconds} s late, with {grace_seconds} s of grace")


def misfire_to_come(job: Job, run: Run, message: Message, at: datetime) -> Skip | None:
    """The skip of one that a rate lets start at `at` at the earliest, which is too late.

    It must not wait for that: the starts of runs that are skipped in the end would be all that a
    rate grants to a job that is due more often. A start may be used a little later than it is
    granted.
    """
    if misfire(job, run, waiting_until(message, at), at + KEPT) is None:
        return None
    grace_seconds = int(grace_of(job).total_seconds())
    note = f"it may start at {at:%Y-%m-%dT%H:%M:%SZ}, too late for {grace_seconds} s of grace"
    return Skip(SkipReason.MISFIRE, note)


def is_first_of_occurrence(run: Run) -> bool:
    """True if a claimed run is an occurrence of the schedule, or follows a run of another job, at
    its first attempt: not a retry, a takeover, a redrive or a manual run."""
    return (
        run.key.kind in (RunKind.SCHEDULED, RunKind.AFTER)
        and run.attempt == 1
        and run.key.redrive == 0
    )


@dataclass(frozen=True, slots=True)
class Others:
    """The rows of the runs that the gate names as active, as waiting, and as the one that started
    last, where they are needed."""

    active: Run | None = None
    waiting: Run | None = None
    started: Run | None = None


def has_job_admission(job: Job, run: Run) -> bool:
    """True if runs of the job pass its gate; a callback never does, as it reports a past run."""
    if run.key.kind is RunKind.CALLBACK:
        return False
    return job.spec.overlap is not Overlap.ALLOW or _spacing(job, run) is not None


def check_job(
    job: Job,
    run: Run,
    message: Message,
    gate: AdmissionRow,
    others: Others,
    now: datetime,
    fraction: float,
) -> Verdict:
    """The verdict on a claimed run: first by the time since the last start, then by the overlap.

    The run that passes is named as active, and as the one that started last: when it is
    redelivered, since another gate kept it waiting, it passes, and counts from then on. Before its
    first attempt the gate is put, though unchanged: a run that has read no row for it loses.
    `fraction` in [0, 1) is the jitter of those that wait.
    """
    too_soon, spacing = spaced(job, run, gate, now), _spacing(job, run)
    # The run that is named may wait behind another gate.
    has_yet_to_start = others.started is not None and others.started.started_at is None
    if too_soon is not None and not has_yet_to_start:
        return Verdict(too_soon)
    held = _queued_by_overlap(job, run, message, gate, others, now, fraction)
    if held is not None:
        return held
    run_id, passed, until = run.key.run_id, gate, run.expires_at
    if job.spec.overlap is not Overlap.ALLOW and gate.active != run_id:
        # The run that is named as waiting is this one, or waits no more.
        passed = replace(passed, active=run_id, waiting="", waiting_generation="")
    elif job.spec.overlap is not Overlap.ALLOW and run.attempt == 1:
        # Its row may have been withdrawn, and be there again: who has found none is about to take
        # its place.
        passed = passed.next_revision()
    if spacing is not None:
        passed = replace(passed, started=run_id, started_at=now)
        until = max(until, now + spacing)
    return Verdict(Proceed(), passed.lasting(until))


def _spacing(job: Job, run: Run) -> timedelta | None:
    """The least time between the start before and that of the run; None if any will do.

    The next attempts of a run are neither measured nor measured against.
    """
    if job.spec.tolerance is None or job.interval_seconds is None:
        return None
    if not is_first_of_occurrence(run):
        return None
    return timedelta(seconds=job.interval_seconds - job.spec.tolerance)


def spaced(job: Job, run: Run, gate: AdmissionRow, now: datetime) -> Skip | None:
    """The seed's rule (004_0db9a28ac7739f5f): dropped if now < last start + `spacing`, which is the
    interval less the tolerance."""
    spacing = _spacing(job, run)
    if spacing is None or gate.started_at is None or gate.started == run.key.run_id:
        return None
    since = now - gate.started_at
    if since >= spacing:
        return None
    seconds, due_seconds = int(since.total_seconds()), int(spacing.total_seconds())
    note = f"{seconds} s after the start of {gate.started}; {due_seconds} s are due"
    return Skip(SkipReason.SPACING, note)


def _queued_by_overlap(
    job: Job,
    run: Run,
    message: Message,
    gate: AdmissionRow,
    others: Others,
    now: datetime,
    fraction: float,
) -> Verdict | None:
    """The verdict on a run that is not alone; None if it may start.

    There is no release: the rows of the runs that the gate names show whether they are under way.
    Occurrences are skipped, but for the first under `queue_one`; what was requested, or has begun,
    waits. One of those that wait has the place of the next, and is woken by the end of the active
    run; the others check again, ever less often, until its place is free.
    """
    run_id = run.key.run_id
    if job.spec.overlap is Overlap.ALLOW or gate.active == run_id:
        return None
    active = _is_under_way(others.active)
    taken = gate.waiting != run_id and _is_under_way(others.waiting)
    if not active and not taken:
        return None
    if is_first_of_occurrence(run) and (taken or job.spec.overlap is Overlap.SKIP):
        is_skipping = active and job.spec.overlap is Overlap.SKIP
        was = f"{gate.active} was active"
        note = was if is_skipping else f"{gate.waiting} was waiting for its turn"
        return Verdict(Skip(SkipReason.OVERLAP, note))
    if taken:
        reason = f"waits behind {gate.waiting}"
        return Verdict(poll_behind_others(message, now, reason, fraction))
    # The end of the active run wakes it; an open one may last for days.
    is_open = others.active is not None and others.active.is_open
    look_again = poll_behind_others if is_open else poll
    waits = look_again(message, now, f"waits for the end of {gate.active}", fraction)
    placed = replace(gate, waiting=run_id, waiting_generation=message.generation_id)
    if placed == gate and run.token == 1:  # as above, of who takes the place of the next
        placed = placed.next_revision()
    return Verdict(waits, placed.lasting(run.expires_at))


def _is_under_way(run: Run | None) -> bool:
    """True if it runs, or will: a run that waits for a retry is active, too."""
    return run is not None and not run.is_final
