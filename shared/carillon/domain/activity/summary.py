"""Sums over a span: the outcomes of runs and of occurrences, by evidence alone.

A success is counted where a result shows it, never for want of bad news: while executors are away
nothing fails.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from carillon.domain.activity.results import Result
from carillon.domain.run import NO_RUNS, RunKey, RunKind, RunStatus
from carillon.domain.wheel.catch_up import COUNT_LIMIT

PENDING = "pending"
"""Of a run that is under way, and of an occurrence without evidence that has been due for a short
while, or of which not all evidence was read."""
UNKNOWN = "unknown"
"""Of an occurrence that has been due for `KNOWN_AFTER` without evidence."""
KNOWN_AFTER = timedelta(minutes=15)
OUTCOMES = (
    *(
        status.value
        for status in RunStatus
        if status not in (RunStatus.SCHEDULED, RunStatus.RUNNING)
    ),
    PENDING,
    UNKNOWN,
)
UNCOUNTED = NO_RUNS | {RunKind.CALLBACK, RunKind.NOTICE}
"""Kinds of which no run counts: of no occurrence, or of no job."""
_UNBEGUN = (RunStatus.SCHEDULED, RunStatus.CANCELLED)
"""Statuses of a redrive without an attempt: it waits for its message, or marks a dead letter that
was discarded."""


@dataclass(frozen=True, slots=True)
class Due:
    """The occurrences of a job that its schedule made due in the span, as far as it is known: after
    `since`, where its generation begins, before the span or in it. `spread` is added to each.
    `is_read`: what evidence there is was read."""

    job_id: str
    job_name: str
    tags: tuple[tuple[str, str], ...]
    fire_times: Sequence[datetime]
    since: datetime
    spread: timedelta = timedelta()
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Counted:
    """One run, occurrence, or `count` skipped ones, and its outcome."""

    job_id: str
    job_name: str
    tags: tuple[tuple[str, str], ...]
    fire_at: datetime
    outcome: str
    lag_seconds: float | None = None
    count: int = 1


@dataclass(slots=True)
class Bucket:
    """The sums of a part of the span; `lags` in seconds, in no order."""

    counts: Counter[str] = field(default_factory=Counter)
    lags: list[float] = field(default_factory=list)

    def percentile(self, percent: int) -> float:
        """By nearest rank; needs a lag."""
        ordered = sorted(self.lags)
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


class Evidence:
    """The knowledge of runs: the newest result of each, redrives in the place of what they run
    again."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._runs: dict[RunKey, Result] = {}
        self._covering: defaultdict[str, list[Result]] = defaultdict(list)
        seen: set[RunKey] = set()
        for result in results:
            key = result.key
            if key.redrive and not result.attempt and result.status in _UNBEGUN:
                continue  # what it is to run again stays what it was
            if key.kind is RunKind.MISSED:
                if key not in seen:
                    seen.add(key)
                    self._covering[key.job_id].append(result)
                continue
            first = RunKey(key.owner, key.job_id, key.kind, key.fire_at, key.request_id)
            known = self._runs.get(first)
            if known is None or _newness(known) < _newness(result):
                self._runs[first] = result

    def of(self, owner: str, job_id: str, fire_at: datetime) -> Result | None:
        """The result of the run of an occurrence."""
        return self._runs.get(RunKey(owner, job_id, RunKind.SCHEDULED, fire_at))

    def unresolved(self, owner: str, due: Due) -> list[datetime]:
        """The fire times without the final result of a run, or of a skip that covers them."""
        return [
            fire_at
            for fire_at in due.fire_times
            if not self._is_covered(due.job_id, fire_at)
            and ((found := self.of(owner, due.job_id, fire_at)) is None or not found.is_final)
        ]

    def unfinished(self) -> list[Result]:
        """Of the runs of which the last known attempt was not their last, that attempt."""
        return [result for result in self._runs.values() if not result.is_final]

    def counted(
        self, owner: str, dues: Iterable[Due], from_at: datetime, until_at: datetime, now: datetime
    ) -> Iterator[Counted]:
        """All that counts of [from_at, until_at)."""
        by_job = {due.job_id: due for due in dues}
        for result in self._runs.values():
            key = result.key
            if not from_at <= key.fire_at < until_at:
                continue
            is_alone = self.of(owner, key.job_id, key.fire_at) is None
            if key.kind not in UNCOUNTED or (key.kind is RunKind.WATCH and is_alone):
                yield _of(result)
        for row in self._covers_of_old(by_job, from_at, until_at):
            is_unknown = row.covers_from is not None and row.covers_count is None
            yield _of(row, COUNT_LIMIT if is_unknown else row.covers_count or 1)
        for due in by_job.values():
            yield from self._of_due(owner, due, now)

    def are_covers_counted(
        self, dues: Iterable[Due], from_at: datetime, until_at: datetime
    ) -> bool:
        """False where more were skipped at once than are counted: they count as `COUNT_LIMIT`."""
        covers = self._covers_of_old({due.job_id: due for due in dues}, from_at, until_at)
        return all(row.covers_from is None or row.covers_count is not None for row in covers)

    def _covers_of_old(
        self, by_job: Mapping[str, Due], from_at: datetime, until_at: datetime
    ) -> Iterator[Result]:
        """The covers in the span whose occurrences are not among those due."""
        for job_id, covering in self._covering.items():
            known = by_job.get(job_id)
            for row in covering:
                is_single = known is not None and (row.covers_from or row.key.fire_at) > known.since
                if from_at <= row.key.fire_at < until_at and not is_single:
                    yield row

    def _of_due(self, owner: str, due: Due, now: datetime) -> Iterator[Counted]:
        """The occurrences of which no run is known."""
        for fire_at in due.fire_times:
            if self.of(owner, due.job_id, fire_at) is not None:
                continue
            if RunKey(owner, due.job_id, RunKind.WATCH, fire_at) in self._runs:
                continue
            outcome = UNKNOWN if now >= fire_at + due.spread + KNOWN_AFTER else PENDING
            if not due.is_read:
                outcome = PENDING
            if self._is_covered(due.job_id, fire_at):
                outcome = RunStatus.SKIPPED.value
            yield Counted(due.job_id, due.job_name, due.tags, fire_at, outcome)

    def _is_covered(self, job_id: str, fire_at: datetime) -> bool:
        return any(
            row.covers_from is not None and row.covers_from <= fire_at <= row.key.fire_at
            for row in self._covering.get(job_id, ())
        )


def buckets(
    counted: Iterable[Counted], begins: Sequence[datetime], groups: str
) -> Mapping[tuple[datetime, str | None], Bucket]:
    """Buckets by their begin and key, in order; `groups` is status (one key, None), job (ids) or
    tag (`key:value`, "" without any)."""
    found: dict[tuple[datetime, str | None], Bucket] = {}
    if groups == "status":
        found = {(at, None): Bucket() for at in begins}
    for each in counted:
        at = begins[bisect_right(begins, each.fire_at) - 1]
        for key in _keys(each, groups):
            bucket = found.setdefault((at, key), Bucket())
            bucket.counts[each.outcome] += each.count
            if each.lag_seconds is not None:
                bucket.lags.append(each.lag_seconds)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], item[0][1] or "")))


def _keys(each: Counted, groups: str) -> Sequence[str | None]:
    if groups == "status":
        return (None,)
    if groups == "job":
        return (each.job_id,)
    return [f"{key}:{value}" for key, value in each.tags] or [""]


def _of(result: Result, count: int = 1) -> Counted:
    is_counted = result.status.value in OUTCOMES
    return Counted(
        result.key.job_id,
        result.job_name,
        result.tags,
        result.key.fire_at,
        result.status.value if is_counted else PENDING,
        result.lag_seconds,
        count,
    )


def _newness(result: Result) -> tuple[int, int, bool]:
    return result.key.redrive, result.attempt, result.is_final
