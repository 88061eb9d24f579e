"""Failures in a row: when they pause a job (`pause_after_failures`)."""

from shared.domain.job import Job
from shared.domain.run import Run


def with_failure(failed: tuple[str, ...], run_id: str, limit: int) -> tuple[str, ...]:
    """The run ids that count with one more, oldest first: each once, and no more than matter."""
    return failed if run_id in failed else (*failed, run_id)[-limit:]


def is_past(run: Run, job: Job) -> bool:
    """Whether the run ended before the job's filing began: a resume or a change starts afresh."""
    return (run.finished_at or run.updated_at) <= job.filing.from_at


def note_of(run: Run, limit: int) -> str:
    """What the row of a job says that the failure of `run` has paused."""
    runs = "a run" if limit == 1 else f"{limit} runs in a row"
    return f"paused since {runs} failed, last {run.key.run_id}"
