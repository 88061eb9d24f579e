"""The newest rows of a job's history: its last run, and how often it has failed in a row."""

from collections.abc import Iterable

from carillon.domain.run import (
    DEAD_LETTER,
    NO_RUNS,
    Resolution,
    Run,
    RunKind,
    RunStatus,
)


def last_run(newest_first: Iterable[Run]) -> Run | None:
    """The newest run; neither a callback nor a row that stands for runs that were missed."""
    return next(filter(_is_run, newest_first), None)


def failures_in_a_row(newest_first: Iterable[Run]) -> int:
    """The dead runs since the last success. What is under way, was skipped, was cancelled, or was
    redriven counts for neither."""
    failures = 0
    for run in filter(_is_run, newest_first):
        if run.status is RunStatus.SUCCEEDED:
            break
        failures += run.status in DEAD_LETTER and run.settled is not Resolution.REDRIVEN
    return failures


def _is_run(run: Run) -> bool:
    return run.key.kind not in NO_RUNS and run.key.kind is not RunKind.CALLBACK
