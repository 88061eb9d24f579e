"""A job's own gate: what is done about overlapping runs, and the minimum spacing of its starts."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.domain.decisions import Go, Skip, SkipReason
from shared.domain.gate import Gate
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.misfire import is_first_of_occurrence
from shared.domain.passage import Passage
from shared.domain.policies import Overlap
from shared.domain.run import Run, RunKind
from shared.domain.waiting import poll


@dataclass(frozen=True, slots=True)
class Others:
    """The rows of the runs that the gate names as active and as waiting, where they are needed."""

    active: Run | None = None
    waiting: Run | None = None


def has_job_gate(job: Job, run: Run) -> bool:
    """Whether runs of the job pass its gate; a callback never does, it tells of a past run."""
    if run.key.kind is RunKind.CALLBACK:
        return False
    return job.overlap is not Overlap.ALLOW or _is_spaced(job, run)


def pass_job_gate(
    job: Job, run: Run, message: Message, gate: Gate, others: Others, now: datetime
) -> Passage:
    """Whether a claimed run passes: first by the time since the last start, then by the overlap.

    The run that passes is named as active, and as the one that started last: when it comes again,
    since another gate held it back, it passes, and counts from then on.
    """
    too_soon = _too_soon(job, run, gate, now)
    if too_soon is not None:
        return Passage(too_soon)
    held = _held_by_overlap(job, run, message, gate, others, now)
    if held is not None:
        return held
    run_id, passed = run.key.run_id, gate
    if job.overlap is not Overlap.ALLOW:
        passed = replace(passed, active=run_id)
        if gate.waiting == run_id:
            passed = replace(passed, waiting="", waiting_filing="")
    if _is_spaced(job, run):
        passed = replace(passed, started=run_id, started_at=now)
    return Passage(Go(), None if passed == gate else passed)


def _is_spaced(job: Job, run: Run) -> bool:
    if job.tolerance_seconds is None or job.interval_seconds is None:
        return False
    return is_first_of_occurrence(run)


def _too_soon(job: Job, run: Run, gate: Gate, now: datetime) -> Skip | None:
    """The seed's rule (004_0db9a28ac7739f5f): dropped if now < last start + interval - tolerance.

    The next attempts of a run are neither measured nor measured against.
    """
    if job.tolerance_seconds is None or job.interval_seconds is None or not _is_spaced(job, run):
        return None
    if gate.started_at is None or gate.started == run.key.run_id:
        return None
    least = timedelta(seconds=job.interval_seconds - job.tolerance_seconds)
    since = now - gate.started_at
    if since >= least:
        return None
    seconds = int(since.total_seconds())
    return Skip(
        SkipReason.SPACING,
        f"{seconds} s after the start of {gate.started}; {int(least.total_seconds())} s are due",
    )


def _held_by_overlap(
    job: Job, run: Run, message: Message, gate: Gate, others: Others, now: datetime
) -> Passage | None:
    """What a run meets that is not alone; None if it may start.

    There is no release: the row of the run that the gate names tells whether it is active.
    """
    run_id = run.key.run_id
    if job.overlap is Overlap.ALLOW or gate.active == run_id:
        return None
    active = _is_under_way(others.active)
    if run.key.kind is not RunKind.SCHEDULED or run.key.redrive > 0 or run.attempt > 1:
        # Somebody asked for it, or it has begun: it waits for its turn, but holds no place.
        return Passage(poll(message, now, f"{gate.active} is active")) if active else None
    if job.overlap is Overlap.SKIP:
        note = f"{gate.active} was active"
        return Passage(Skip(SkipReason.OVERLAP, note)) if active else None
    if gate.waiting not in ("", run_id) and _is_under_way(others.waiting):
        return Passage(Skip(SkipReason.OVERLAP, f"{gate.waiting} was waiting for its turn"))
    if not active:
        return None
    queued = replace(gate, waiting=run_id, waiting_filing=message.filing_id)
    waits = poll(message, now, f"waits for the end of {gate.active}")
    return Passage(waits, None if queued == gate else queued)


def _is_under_way(run: Run | None) -> bool:
    """Whether it runs, or will: a run that waits for a retry is active, too."""
    return run is not None and not run.is_final
