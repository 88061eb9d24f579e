"""Failures in a row: when they pause a job (`pause_after_failures`)."""

from dataclasses import replace

from carillon.domain.admission.state import Gate
from carillon.domain.job import Job
from carillon.domain.run import Run


def with_failure(gate: Gate, run: Run, job: Job, limit: int) -> Gate:
    """The job's gate with one more failed run: each counts once, and no more than matter.

    Another filing (a resume, a change of the schedule) begins the count anew; one that is replaced
    counts no more.
    """
    filing_id, run_id = job.filing.filing_id, run.key.run_id
    if gate.failed_filing > filing_id:
        return gate
    failed = gate.failed if gate.failed_filing == filing_id else ()
    if run_id not in failed:
        failed = (*failed, run_id)
    return replace(gate, failed=failed[-limit:], failed_filing=filing_id)


def is_past(run: Run, job: Job) -> bool:
    """Whether the run ended before the job's filing began: a resume or a change starts afresh."""
    return (run.finished_at or run.updated_at) <= job.filing.from_at


def note_of(run: Run, limit: int) -> str:
    """What the row of a job says that the failure of `run` has paused."""
    runs = "a run" if limit == 1 else f"{limit} runs in a row"
    return f"paused since {runs} failed, last {run.key.run_id}"
