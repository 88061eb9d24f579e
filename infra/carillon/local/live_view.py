"""A view of runs as they happen: a line for each change in a job's history, and the lags."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carillon.cli.client import ApiClient, Json

#: What the local stack promises of runs that are on time, once warm.
LAG_LIMIT_SECONDS = 1.5

#: States that last a moment on the way to another; a line for each would only distract.
PASSING = frozenset({"scheduled", "running"})

_NAME_WIDTH = 13

#: Kinds of runs that start long after the fire time that they carry.
_OF_EARLIER_TIMES = frozenset({"backfill", "callback", "watch"})


@dataclass(frozen=True)
class SeenRun:
    """A run as the API shows it, at one poll."""

    run_id: str
    job_name: str
    fire_at: datetime
    status: str
    attempt: int
    updated_at: datetime
    lag_seconds: float | None
    remark: str
    #: Its kind, for an earlier fire time: its lag means nothing then.
    afterwards: str

    @classmethod
    def from_answer(cls, job_name: str, item: dict[str, Any]) -> SeenRun:
        """Read one item of `GET /jobs/{job_id}/runs`."""
        return cls(
            run_id=item["run_id"],
            job_name=job_name,
            fire_at=datetime.fromisoformat(item["fire_at"]),
            status=item["status"],
            attempt=item["attempt"],
            updated_at=datetime.fromisoformat(item["updated_at"]),
            lag_seconds=item["lag_seconds"],
            remark=_remark(item),
            afterwards=_afterwards(item),
        )


def _remark(item: dict[str, Any]) -> str:
    words = [] if item["reason"] is None else [str(item["reason"])]
    if item["error"] is not None:
        words += [str(item["error"]["kind"]), str(item["error"]["message"])]
    if item["covers_count"] is not None:
        words.append(f"covers {item['covers_count']} occurrences")
    return ": ".join(words)


def _afterwards(item: dict[str, Any]) -> str:
    if item["redrive"]:
        return "redrive"
    return str(item["kind"]) if item["kind"] in _OF_EARLIER_TIMES else ""


class Watch:
    """Remembers what it was shown, and yields the changes.

    Runs last written before `since` are history. Those that fired after `warm_at` count for lag.
    """

    def __init__(self, since: datetime, warm_at: datetime) -> None:
        self._since = since
        self._warm_at = warm_at
        self._seen: dict[str, tuple[str, int]] = {}
        self._lags: dict[str, float] = {}

    def news(self, runs: Iterable[SeenRun]) -> list[SeenRun]:
        """The runs whose state is new and worth a line, the earliest fire time first."""
        fresh = []
        for run in runs:
            if run.updated_at < self._since or run.status in PASSING:
                continue
            if self._seen.get(run.run_id) == (run.status, run.attempt):
                continue
            self._seen[run.run_id] = (run.status, run.attempt)
            if self.is_on_time(run) and run.lag_seconds is not None:
                self._lags[run.run_id] = run.lag_seconds
            fresh.append(run)
        return sorted(fresh, key=lambda run: (run.fire_at, run.job_name))

    def is_on_time(self, run: SeenRun) -> bool:
        """True if the run fired while everything was up and warm: no catch-up, no cold start."""
        return run.fire_at >= self._warm_at and not run.afterwards

    def _standing(self, run: SeenRun) -> str:
        if run.afterwards:
            return f"  {run.afterwards}"
        if self.is_on_time(run):
            return ""
        return "  catch-up" if run.fire_at < self._since else "  not warm yet"

    def line(self, run: SeenRun, now: datetime) -> str:
        """The printed line of a run."""
        lag = "" if run.lag_seconds is None else f"lag {run.lag_seconds:6.3f} s"
        remark = f"  {run.remark}" if run.remark else ""
        return (
            f"{now:%H:%M:%S}  {run.job_name:<{_NAME_WIDTH}} fire {run.fire_at:%H:%M:%S}  "
            f"{run.status:<9}  attempt {run.attempt}  {lag}{self._standing(run)}{remark}"
        ).rstrip()

    @property
    def lags(self) -> list[float]:
        """The lag of every run that was on time, in seconds."""
        return list(self._lags.values())


@dataclass(frozen=True)
class LagSummary:
    """The lag of runs that were on time, in seconds."""

    count: int
    median: float
    least: float
    most: float

    @classmethod
    def of(cls, lags: Sequence[float]) -> LagSummary | None:
        """None without a single run."""
        if not lags:
            return None
        return cls(len(lags), statistics.median(lags), min(lags), max(lags))

    @property
    def kept(self) -> bool:
        """True if no run was early, nor later than the local stack promises."""
        return self.least >= 0 and self.most <= LAG_LIMIT_SECONDS

    def __str__(self) -> str:
        verdict = "kept" if self.kept else "BROKEN"
        return (
            f"{self.count} runs on time: lag median {self.median:.3f} s, max {self.most:.3f} s, "
            f"min {self.least:.3f} s; limit {LAG_LIMIT_SECONDS} s {verdict}"
        )


#: A job that has nothing left to do is read in one round of this many.
REST_ROUNDS = 8

#: Runs read of a job's history: at first, when there may be an outage to catch up, and later.
FIRST_LOOK_BACK = 100
LOOK_BACK = 30

_FINAL = frozenset({"succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"})


class Follower:
    """Reads the runs of every job of the caller, also of those created meanwhile."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._round = 0
        #: By job id: whether all of its runs were final at the last look.
        self._at_rest: dict[str, bool] = {}

    def look(self) -> list[SeenRun]:
        """The newest runs of the jobs that may have changed. Raises CliError."""
        self._round += 1
        runs: list[SeenRun] = []
        for job in self._api.items("/jobs", None):
            if self._may_have_changed(job):
                runs += self._runs_of(job)
        return runs

    def _may_have_changed(self, job: Json) -> bool:
        if job["next_fire_at"] is not None or self._round % REST_ROUNDS == 0:
            return True
        return not self._at_rest.get(job["job_id"], False)

    def _runs_of(self, job: Json) -> list[SeenRun]:
        job_id = str(job["job_id"])
        limit = LOOK_BACK if job_id in self._at_rest else FIRST_LOOK_BACK
        items = self._api.get(f"/jobs/{job_id}/runs", {"limit": limit})["items"]
        over = job["next_fire_at"] is None and bool(items)
        self._at_rest[job_id] = over and all(item["status"] in _FINAL for item in items)
        return [SeenRun.from_answer(str(job["name"]), item) for item in items]
