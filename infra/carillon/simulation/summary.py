"""The results of a simulation, summed up as they come: no run is kept."""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappush, heappushpop
from typing import Any

from carillon.clock import utc_text
from carillon.domain.run import DEAD_LETTER, Run, RunKey, RunKind, RunStatus
from carillon.schedules import Recurrence
from carillon.simulation.loop import Loop

MOST_PEAKS = 5
MOST_NAMES = 5


class Peaks:
    """Of spans of `seconds` each, those with the most marks, and who made most of them."""

    def __init__(self, seconds: int) -> None:
        self._span_us = seconds * 1_000_000
        self._span = -1
        self._names: Counter[str] = Counter()
        self._highest: list[tuple[int, int, tuple[str, ...]]] = []

    def mark(self, at_us: int, name: str) -> None:
        """One more at this instant, in microseconds since the epoch; instants never fall."""
        span = at_us // self._span_us
        if span != self._span:
            self._close()
            self._span = span
        self._names[name] += 1

    def highest(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Epoch seconds of a span's begin, marks and names: the highest and earliest first."""
        self._close()
        found = sorted(self._highest, key=lambda peak: (-peak[0], -peak[1]))
        return [(-began, count, names) for count, began, names in found]

    def _close(self) -> None:
        count = self._names.total()
        if count:
            # Of equals the earliest stays: its begin, negated, is the greatest.
            began = -(self._span * self._span_us // 1_000_000)
            full = len(self._highest) == MOST_PEAKS
            if not full or (count, began) > self._highest[0][:2]:
                peak = (count, began, self._busiest())
                (heappushpop if full else heappush)(self._highest, peak)
        self._names.clear()

    def _busiest(self) -> tuple[str, ...]:
        found = sorted(self._names.items(), key=lambda item: (-item[1], item[0]))
        return tuple(name for name, _ in found[:MOST_NAMES])


_COARSE_MS = 10_000
"""Lags are kept to the millisecond up to here, and to a tenth of a second beyond."""


@dataclass(slots=True)
class Line:
    """The outcomes of the occurrences of one definition.

    `fires` were started at least once. `first` are the first fire times of these.
    """

    name: str
    jobs: int
    fires: int = 0
    statuses: Counter[RunStatus] = field(default_factory=Counter)
    longest_lag_ms: int = 0
    first: list[datetime] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "jobs": self.jobs,
            "fires": self.fires,
            "outcomes": _sorted(self.statuses),
            "max_lag_seconds": self.longest_lag_ms / 1000,
            "first": [utc_text(instant) for instant in self.first],
        }


@dataclass(frozen=True, slots=True)
class Place:
    """The line to which a job's figures belong, and its occurrences. `spread_seconds`: from its
    fire times to its effective ones."""

    line: Line
    job_name: str
    spread_seconds: int
    schedule: Recurrence


class Tally:
    """Counts the occurrences that are effective in [from_at, until_at)."""

    def __init__(self, loop: Loop, from_at: datetime, until_at: datetime, most_first: int) -> None:
        self.places: dict[str, Place] = {}
        self.lines: list[Line] = []
        self.seconds = Peaks(1)
        self.minutes = Peaks(60)
        self.calls = 0
        self.retries = 0
        self.accounted: Counter[str] = Counter()
        self.on_ended: Callable[[Run, str], None] = lambda run, name: None
        self._loop = loop
        self._from_at = from_at
        self._until_at = until_at
        self._most_first = most_first
        self._last: dict[RunKey, tuple[int, RunStatus]] = {}
        self._kinds: Counter[tuple[RunKind, RunStatus]] = Counter()
        self._skips: Counter[str] = Counter()
        self._deaths: Counter[str] = Counter()
        self._lags: Counter[int] = Counter()

    def written(self, run: Run) -> None:
        """A row of a run was put, or withdrawn."""
        if run.status is RunStatus.RETRYING or run.is_final:
            state = (run.attempt, run.status)
            # A write whose answer was lost is repeated: it has one effect.
            if self._last.get(run.key) != state:
                self._last[run.key] = state
                self._count(run)

    def called(self, job_id: str, fire_at: datetime) -> None:
        """A target is called for this occurrence."""
        place, at_us = self.places[job_id], self._loop.us
        self.calls += self._is_in_span(place, fire_at)
        if at_us < self._loop.us_of(self._until_at):
            name = place.line.name
            self.seconds.mark(at_us, name)
            self.minutes.mark(at_us, name)

    def forget(self, runs: Iterable[Run]) -> None:
        """These rows have expired."""
        for run in runs:
            self._last.pop(run.key, None)

    def as_json(self) -> dict[str, Any]:
        """All that is known now."""
        statuses: Counter[RunStatus] = Counter()
        for line in self.lines:
            statuses.update(line.statuses)
        return {
            "fires": sum(line.fires for line in self.lines),
            "outcomes": _sorted(statuses),
            "skips": _sorted(self._skips),
            "retries": self.retries,
            "dead_letters": _sorted(self._deaths),
            "callbacks": sum(n for (kind, _), n in self._kinds.items() if kind is RunKind.CALLBACK),
            "missed": self._kinds[RunKind.WATCH, RunStatus.MISSED],
            "target_calls": self.calls,
            "lag_seconds": self._lag_figures(),
            "peaks": {
                "seconds": [_peak(*peak) for peak in self.seconds.highest()],
                "minutes": [_peak(*peak) for peak in self.minutes.highest()],
            },
            "jobs": [line.as_json() for line in self.lines],
        }

    def _count(self, run: Run) -> None:
        key, place = run.key, self.places[run.key.job_id]
        if not self._is_in_span(place, run.covers_from or key.fire_at):
            return
        if not run.is_final:
            self.retries += 1
            return
        self._kinds[key.kind, run.status] += 1
        if run.status in DEAD_LETTER:
            self._deaths[run.reason or run.status.value] += 1
        if key.kind is RunKind.MISSED:
            count = self._covered(run, place)
            self.accounted[key.job_id] += count
            self._skips[run.reason or "missed"] += count
            place.line.statuses[RunStatus.SKIPPED] += count
        elif key.kind in (RunKind.SCHEDULED, RunKind.AFTER):
            self.accounted[key.job_id] += key.kind is RunKind.SCHEDULED
            self._occurrence_ended(run, place.line)
        self.on_ended(run, place.job_name)

    def _is_in_span(self, place: Place, fire_at: datetime) -> bool:
        effective_at = fire_at + timedelta(seconds=place.spread_seconds)
        return self._from_at <= effective_at < self._until_at

    def _covered(self, run: Run, place: Place) -> int:
        """The number of occurrences of the span that a skip row covers; the row may reach beyond
        its end."""
        if run.covers_from is None or self._is_in_span(place, run.key.fire_at):
            return run.covers_count or 1
        second = timedelta(seconds=1)
        until_at = self._until_at - timedelta(seconds=place.spread_seconds)
        return sum(1 for _ in place.schedule.between(run.covers_from - second, until_at - second))

    def _occurrence_ended(self, run: Run, line: Line) -> None:
        line.statuses[run.status] += 1
        if run.status is RunStatus.SKIPPED:
            self._skips[run.reason or "unknown"] += 1
        lag_seconds = run.lag_seconds
        if lag_seconds is None:
            return
        line.fires += 1
        lag_ms = round(lag_seconds * 1000)
        line.longest_lag_ms = max(line.longest_lag_ms, lag_ms)
        self._lags[lag_ms if lag_ms < _COARSE_MS else lag_ms // 100 * 100] += 1
        first = line.first
        if run.key.fire_at not in first:
            insort(first, run.key.fire_at)
            del first[self._most_first :]

    def _lag_figures(self) -> dict[str, float | None]:
        count = self._lags.total()
        if not count:
            return {"median": None, "p99": None, "max": None}
        longest = max(line.longest_lag_ms for line in self.lines)
        return {
            "median": self._lag_at(-(-count // 2)) / 1000,
            "p99": self._lag_at(-(-count * 99 // 100)) / 1000,
            "max": longest / 1000,
        }

    def _lag_at(self, rank: int) -> int:
        """The lag, in milliseconds, that this many runs do not exceed."""
        passed = 0
        for lag_ms in sorted(self._lags):
            passed += self._lags[lag_ms]
            if passed >= rank:
                return lag_ms
        raise ValueError(f"there are not {rank} lags")


def _peak(began: int, starts: int, names: tuple[str, ...]) -> dict[str, Any]:
    at = datetime.fromtimestamp(began, UTC)
    return {"at": utc_text(at), "starts": starts, "jobs": list(names)}


def _sorted(counts: "Counter[Any]") -> dict[str, int]:
    """By falling count."""
    named = [(str(getattr(name, "value", name)), count) for name, count in counts.items()]
    return dict(sorted(named, key=lambda item: (-item[1], item[0])))
