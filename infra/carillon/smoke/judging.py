"""The expectations of a probe's runs: pure functions of its history."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

Json = Mapping[str, Any]

P99_SECONDS = 3.0
"""The default of `--most-lag`, since a cold start on a busy machine has no bound. A start is
promised within about a second, a third of this, while executors are warm."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of a probe, and the figure that shows it."""

    holds: bool
    text: str


Judge = Callable[[Sequence[Json]], Judgement | None]
"""Judges a probe's runs, oldest first; None while it is too early."""


def of_kind(runs: Sequence[Json], kind: str) -> list[Json]:
    return [run for run in runs if run["kind"] == kind]


def lags(runs: Sequence[Json]) -> list[float]:
    """Of first attempts that were called, ascending."""
    return sorted(
        float(run["lag_seconds"])
        for run in of_kind(runs, "scheduled")
        if run["lag_seconds"] is not None
    )


def percentile(ascending: Sequence[float], share: float) -> float:
    """The smallest value that `share` of all do not exceed; raises ValueError for none."""
    if not ascending:
        raise ValueError("no values")
    return ascending[max(0, ceil(share * len(ascending)) - 1)]


def lag_text(ascending: Sequence[float]) -> str:
    p50, p99 = percentile(ascending, 0.5), percentile(ascending, 0.99)
    longest = ascending[-1]
    return f"{len(ascending)} starts, lag p50 {p50:.2f} s, p99 {p99:.2f} s, longest {longest:.2f} s"


def one_run(status: str, reason: str = "", error: str = "", attempts: int = 1) -> Judge:
    """Exactly one run, that ended so; `error` is the kind of its last error."""

    def judge(runs: Sequence[Json]) -> Judgement | None:
        own = [run for run in runs if run["kind"] in ("scheduled", "manual")]
        if not own or own[0]["status"] in ("scheduled", "running", "retrying"):
            return None
        run = own[0]
        found = (run["status"], run["attempt"], len(own))
        kind = (run["error"] or {}).get("kind", "")
        holds = found == (status, attempts, 1)
        holds = holds and reason in ("", run["reason"]) and error in ("", kind)
        why = f", {run['reason']}" if run["reason"] else ""
        told = f" ({kind})" if kind else ""
        times = (
            f"after {run['attempt']} attempts" if attempts > 1 else f"lag {run['lag_seconds']} s"
        )
        return Judgement(holds, f"{run['status']}{why}{told}, {times}")

    return judge


def steady(seconds: int, count: int, p99_seconds: float) -> Judge:
    """This many occurrences in a row, none left out, that start on time: of 100, 99 within these
    seconds, and 50 within a third of them."""

    def judge(runs: Sequence[Json]) -> Judgement | None:
        own = [run for run in of_kind(runs, "scheduled") if run["status"] == "succeeded"]
        if len(own) < count:
            return None
        fired = [_instant(run["fire_at"]) for run in own[:count]]
        step = timedelta(seconds=seconds)
        gaps = sum(after - before != step for before, after in pairwise(fired))
        found = lags(own)
        limits = ((0.5, p99_seconds / 3), (0.99, p99_seconds))
        on_time = all(percentile(found, share) <= most for share, most in limits)
        text = lag_text(found) + (f", {gaps} gaps" if gaps else ", no gap")
        return Judgement(on_time and not gaps, text)

    return judge


def chain(hops: int) -> Judge:
    """A fixed delay that continues: each run follows the end of the one before."""

    def judge(runs: Sequence[Json]) -> Judgement | None:
        own = of_kind(runs, "scheduled")
        ended = [run for run in own if run["status"] == "succeeded"]
        if len(ended) <= hops:
            return None
        follows = all(
            _instant(after["fire_at"]) > _instant(before["started_at"])
            for before, after in pairwise(ended)
        )
        took = _instant(ended[hops]["started_at"]) - _instant(ended[0]["started_at"])
        text = f"{hops} hops in a row, one in {took.total_seconds() / hops:.2f} s"
        return Judgement(follows and len(ended) >= len(own) - 1, text)

    return judge


def missed(runs: Sequence[Json]) -> Judgement | None:
    """The missed-run check rings for the run that failed."""
    rang = of_kind(runs, "watch")
    if not rang:
        return None
    after = _instant(rang[0]["updated_at"]) - _instant(rang[0]["effective_at"])
    is_told = rang[0]["status"] == "missed" and len(rang) == 1
    return Judgement(is_told, f"told {after.total_seconds():.1f} s after the fire time")


def retried_late(runs: Sequence[Json]) -> Judgement | None:
    """The second attempt, which came by the wheel."""
    judgement = one_run("succeeded", attempts=2)(runs)
    if judgement is None:
        return None
    run = of_kind(runs, "scheduled")[0]
    text = f"{judgement.text}, ended at {run['finished_at']}"
    return Judgement(judgement.holds, text)


def called_back(runs: Sequence[Json]) -> Judgement | None:
    """A run that died, and the callback that reports it."""
    ended, told = one_run("dead", "exhausted", attempts=3)(runs), of_kind(runs, "callback")
    if ended is None or not told or told[0]["status"] in ("scheduled", "running"):
        return None
    holds = ended.holds and told[0]["status"] == "succeeded"
    return Judgement(holds, f"{ended.text}; callback {told[0]['status']}")


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
