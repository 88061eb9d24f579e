"""What 200 hanging webhooks of one owner cost another owner's jobs in the same lane.

`make drill-neighbours`, or `python -m tests.e2e.drills.neighbours [--minutes 5] [--culprits 200]`:
a stack of its own, with the defaults as deployed; with `--concurrent-runs 5` under a quota of the
culprit's own. The figures mean little while the machine has other work.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from socket import create_server, socket
from threading import Thread
from time import monotonic, sleep

from carillon.local.deployment import Deployment
from tests.e2e.conftest import Json, Person, deployed, instant, owner_of, person

BYSTANDERS = 20
CULPRITS = 200
FIRST_MINUTE = timedelta(seconds=60)
"""The culprits' runs are known as slow by then."""
ANNOUNCED = timedelta(minutes=3)
"""What was announced of the culprits goes on to come for so long after their deletion at most."""
CALM = timedelta(seconds=60)
"""How long is measured after that."""
P99_SECONDS, MOST_SECONDS, CALM_SECONDS = 3.0, 10.0, 1.5
QUOTA_SECONDS = 1.5
"""Nothing is later under load than this while the culprit's concurrent runs are held to a few."""
_AT_A_TIME = 20
_KEPT = 400
"""Connections of the hanging host that are kept open; older ones have timed out."""


@dataclass(frozen=True)
class Lags:
    """Seconds from when occurrences were due to their starts, in order."""

    seconds: tuple[float, ...]

    def quantile(self, share: float) -> float:
        return self.seconds[max(0, ceil(share * len(self.seconds)) - 1)]

    def __str__(self) -> str:
        figures = (self.quantile(0.5), self.quantile(0.99), self.seconds[-1])
        return "{} runs: p50 {:.2f} s, p99 {:.2f} s, max {:.2f} s".format(
            len(self.seconds), *figures
        )


@dataclass(frozen=True)
class Drill:
    """The bystanders' lags under load, while what was announced of the deleted culprits still came,
    and (None if it was not waited for) after that; `missing` of their occurrences did not run.

    `moved` of the culprits were in lane slow at the end of the first minute, and at the end.
    """

    under_load: Lags
    announced: Lags
    calm: Lags | None
    missing: int
    moved: tuple[int, int]

    @property
    def held_up_nobody(self) -> bool:
        """Every occurrence ran, none more than ten seconds late."""
        latest = max(self.under_load.seconds[-1], self.announced.seconds[-1])
        return self.missing == 0 and latest <= MOST_SECONDS

    @property
    def holds_under_a_quota(self) -> bool:
        """As `holds`, and every occurrence under load is within the narrower bound."""
        return self.holds and self.under_load.seconds[-1] <= QUOTA_SECONDS

    @property
    def holds(self) -> bool:
        """Nobody was held up, and the lags are as promised; true only of a machine left alone."""
        return (
            self.held_up_nobody
            and self.under_load.quantile(0.99) <= P99_SECONDS
            and (self.calm is None or self.calm.quantile(0.99) < CALM_SECONDS)
        )

    def __str__(self) -> str:
        return (
            f"under load, from the second minute on: {self.under_load}\n"
            f"while what was announced of the deleted culprits comes: {self.announced}\n"
            f"after that: {self.calm or 'not measured'}\n"
            f"occurrences that did not run: {self.missing}\n"
            f"culprits in lane slow after a minute, at the end: {self.moved[0]}, {self.moved[1]}"
        )


@contextmanager
def hanging_host() -> Iterator[str]:
    """The URL of a host that takes every connection and never answers."""
    held: list[socket] = []
    with create_server(("127.0.0.1", 0), backlog=1024) as server:

        def take() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return
                if len(held) > _KEPT:
                    held.pop(0).close()

        thread = Thread(target=take, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"
    for each in held:
        each.close()


def drill(
    culprit: Person,
    bystander: Person,
    measured: timedelta,
    culprits: int,
    announced: timedelta = ANNOUNCED,
    bystanders: int = BYSTANDERS,
) -> Drill:
    """Let one hang and the other be on time; `measured` begins with the second minute, `announced`
    with the deletion. What follows is looked at only where that is the whole of ANNOUNCED."""
    theirs = [
        bystander.create("every 5s", name=f"bystander {number}", parent="drill")
        for number in range(bystanders)
    ]
    with hanging_host() as url:
        _create_culprits(culprit, culprits, url)
        began = datetime.now(UTC)
        _sleep_until(began + FIRST_MINUTE)
        moved = _moved(culprit)
        _sleep_until(began + FIRST_MINUTE + measured)
        under_load = _lags(bystander, theirs, began + FIRST_MINUTE, measured)
        moved_at_last = _moved(culprit)
        _delete_all(culprit)
        deleted_at = datetime.now(UTC)
        _sleep_until(deleted_at + announced)
        at_first = _lags(bystander, theirs, deleted_at, announced)
        calm: list[float | None] = []
        if announced >= ANNOUNCED:
            _sleep_until(deleted_at + announced + CALM)
            calm = _lags(bystander, theirs, deleted_at + announced, CALM)
    _delete_all(bystander)
    return Drill(
        _ordered(under_load),
        _ordered(at_first),
        _ordered(calm) if calm else None,
        sum(lag is None for lag in (*under_load, *at_first, *calm)),
        (moved, moved_at_last),
    )


def _create_culprits(person: Person, count: int, url: str) -> None:
    """In calls that end in time on a busy machine, too."""
    body = {"schedule": "every 10s", "target": {"type": "webhook", "url": url}, "parent": "drill"}
    keys = [f"culprit {number}" for number in range(count)]
    for first in range(0, count, _AT_A_TIME):
        some = keys[first : first + _AT_A_TIME]
        items = [{**body, "name": key, "idempotency_key": key} for key in some]
        for _ in range(5):
            answer = person.http.post("/jobs/bulk", json={"items": items})
            if answer.status_code == 200 and answer.json()["unavailable"] == 0:
                break
        assert answer.json()["refused"] == 0, answer.text


def _lags(
    person: Person, jobs: Sequence[Json], since: datetime, span: timedelta
) -> list[float | None]:
    """A lag for each occurrence of the span; None for one that did not run."""
    # The last ones may still be under way: wait for what the promise allows.
    sleep(MOST_SECONDS)
    lags: list[float | None] = []
    for job in jobs:
        sleep(0.1)  # within the owner's rate of requests
        path, span_from = f"/jobs/{job['job_id']}/runs", f"{since:%Y-%m-%dT%H:%M:%SZ}"
        runs = person.every(path, **{"from": span_from})
        found = {instant(run["fire_at"]): run["lag_seconds"] for run in runs}
        due_at = datetime.fromtimestamp(ceil(since.timestamp() / 5) * 5, UTC)
        while due_at < since + span:
            lags.append(found.get(due_at))
            due_at += timedelta(seconds=5)
    return lags


def _ordered(lags: Sequence[float | None]) -> Lags:
    return Lags(tuple(sorted(lag for lag in lags if lag is not None)))


def _moved(person: Person) -> int:
    """How many of the person's jobs are served in lane slow."""
    return sum(job["lane"] == "slow" for job in person.every("/jobs"))


def _delete_all(person: Person) -> None:
    query = {"parent": "drill"}
    while True:
        answer = person.http.delete("/jobs", params=query)
        assert answer.status_code == 200, answer.text
        if answer.json()["next_cursor"] is None:
            return
        query["cursor"] = answer.json()["next_cursor"]


def _sleep_until(instant: datetime) -> None:
    sleep(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.drills.neighbours")
    parser.add_argument("--minutes", type=float, default=5, help="that are measured under load")
    parser.add_argument("--culprits", type=int, default=CULPRITS, help="hanging webhooks")
    parser.add_argument("--concurrent-runs", type=int, help="a quota of the culprit's own")
    given = parser.parse_args(arguments)
    with deployed() as deployment:
        began = monotonic()
        with person(deployment, "culprit") as culprit, person(deployment, "bystander") as other:
            if given.concurrent_runs is not None:
                _limit(deployment, culprit, given.concurrent_runs)
            found = drill(culprit, other, timedelta(minutes=given.minutes), given.culprits)
    took = monotonic() - began
    holds = found.holds if given.concurrent_runs is None else found.holds_under_a_quota
    verdict = "holds" if holds else "does not hold"
    sys.stdout.write(f"{found}\nthe promise {verdict}; {took:.0f} s\n")
    return 0 if holds else 1


def _limit(deployment: Deployment, culprit: Person, runs: int) -> None:
    """As an operator does it by `carillon quota set`."""
    with person(deployment, "operator", operator=True) as operator:
        path = f"/owners/{owner_of(culprit)}/quota"
        answer = operator.http.put(path, json={"concurrent_runs": runs})
        assert answer.status_code == 200, answer.text


if __name__ == "__main__":
    raise SystemExit(main())
