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
    """The newest run, as far as it is among the rows that which runs it again; neither a callback
    nor a row that stands for runs that were missed."""
    runs = list(filter(_is_run, newest_first))
    by_key = {run.key: run for run in runs}
    newest = again = runs[0] if runs else None
    while again is not None:
        newest = again
        again = by_key.get(newest.key.redriven) if is_run_again(newest) else None
    return newest


def is_run_again(run: Run) -> bool:
    """True of a dead letter that was redriven: another run has come in its place."""
    return run.settled is Resolution.REDRIVEN


def failures_in_a_row(newest_first: Iterable[Run]) -> int:
    """The dead runs since the last success. What is under way, was skipped, was cancelled, or was
    redriven counts for neither."""
    failures = 0
    for run in filter(_is_run, newest_first):
        if run.status is RunStatus.SUCCEEDED:
            break
        failures += run.status in DEAD_LETTER and not is_run_again(run)
    return failures


def _is_run(run: Run) -> bool:
    return run.key.kind not in NO_RUNS and run.key.kind is not RunKind.CALLBACK
