"""Results of attempts, as the activity feed has them, and which of them are told."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from carillon.domain.job import Job
from carillon.domain.run import FINAL, Run, RunKey, RunKind, RunStatus

DENSE = 10
"""Results of one owner in one batch from which on all are told, deviations or not."""
_BY_ITSELF = frozenset({RunKind.SCHEDULED, RunKind.AFTER, RunKind.CALLBACK})
"""The kinds of runs that nobody asked for: their successes are ordinary."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of an attempt: RETRYING if another one follows, else the run's final status.

    `at` is when it ended. `lag_seconds` is the run's. A row that covers skipped occurrences has
    `covers_from` and `covers_count`, as in Run. Name and tags are the job's at that time, empty
    where it could not be read.
    """

    key: RunKey
    status: RunStatus
    attempt: int
    at: datetime
    job_name: str = ""
    tags: tuple[tuple[str, str], ...] = field(default=())
    lag_seconds: float | None = None
    duration_seconds: float | None = None
    reason: str | None = None
    error_kind: str | None = None
    covers_from: datetime | None = None
    covers_count: int | None = None

    @property
    def identity(self) -> tuple[str, int]:
        """Run id and attempt: what tells doubles."""
        return self.key.run_id, self.attempt

    @property
    def is_final(self) -> bool:
        """True if no attempt of the run follows."""
        return self.status in FINAL

    @property
    def is_deviation(self) -> bool:
        """False for the success of an ordinary run at its first attempt only."""
        is_ordinary = self.key.kind in _BY_ITSELF and not self.key.redrive and self.attempt == 1
        return self.status is not RunStatus.SUCCEEDED or not is_ordinary


def results_of(run: Run, job: Job | None) -> Iterator[Result]:
    """The results that the row of an ended attempt shows; an open or waiting run has none of its
    own.

    A final row tells all attempts again, any other the last one: the executor of an earlier one
    may have died before it told it.
    """
    name = "" if job is None else job.spec.name
    tags = () if job is None else tuple(sorted(job.spec.tags.items()))
    for record in run.attempts if run.is_final else run.attempts[-1:]:
        if not run.is_final or record.attempt < run.attempt:
            yield Result(
                run.key,
                RunStatus.RETRYING,
                record.attempt,
                record.finished_at,
                name,
                tags,
                _milliseconds(run.lag_seconds),
                _milliseconds((record.finished_at - record.started_at).total_seconds()),
                error_kind=record.error.kind,
            )
    if run.is_final:
        yield result_of(run, name, tags)


def result_of(run: Run, job_name: str = "", tags: tuple[tuple[str, str], ...] = ()) -> Result:
    """The row itself as a result, whatever its status: its end, or its last change."""
    began, ended = run.attempt_started_at, run.finished_at
    duration = None if began is None or ended is None else (ended - began).total_seconds()
    return Result(
        run.key,
        run.status,
        run.attempt,
        run.finished_at or run.updated_at,
        job_name,
        tags,
        _milliseconds(run.lag_seconds),
        _milliseconds(duration),
        run.reason,
        None if run.error is None else run.error.kind,
        run.covers_from,
        run.covers_count,
    )


def told(results: Sequence[Result]) -> bool:
    """True if one owner's results of a batch are written to the feed; successes among them
    only as far as rows cost no more than they may (ActivityWriter)."""
    return len(results) >= DENSE or any(result.is_deviation for result in results)


def without_doubles(results: Iterable[Result]) -> list[Result]:
    """One result for each attempt, in the order of their first: a final one, if there is any, and
    of such one that names its job."""
    found: dict[tuple[str, int], Result] = {}
    for result in results:
        known = found.get(result.identity)
        if known is None or _says_more(result, known):
            found[result.identity] = result
    return list(found.values())


def _says_more(result: Result, known: Result) -> bool:
    return (result.is_final, bool(result.job_name)) > (known.is_final, bool(known.job_name))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
