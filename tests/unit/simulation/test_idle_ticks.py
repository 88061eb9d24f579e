"""Ticks that are passed over leave everything as if they had run."""

from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.api.http.requests import Precondition
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import Run, RunError
from carillon.executor.targets import Call, Failure, Success
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Draws, Faults
from carillon.simulation.run import loop_of
from carillon.simulation.services import Api, job_body
from carillon.simulation.targets import Behaviour, SimulatedTargets

START = datetime(2027, 3, 27, 22, tzinfo=UTC)
UNTIL = START + timedelta(hours=8)
OWNER = "user/owner-1"
DOWN = (START + timedelta(hours=4), START + timedelta(hours=5, minutes=10))
RETRY = {"max_attempts": 3, "backoff": {"type": "fixed", "base_seconds": 1200}}
JOBS: dict[str, dict[str, Any]] = {
    "hourly": {"schedule": "17 * * * *", "catch_up": "all"},
    "nightly": {"schedule": "30 3 * * *", "timezone": "Europe/Riga"},
    "spread": {"schedule": "0 */2 * * *", "window": "20m", "retry": RETRY},
    "missed": {"schedule": "5,20 * * * *", "expect_within": "10m"},
    "delayed": {"schedule": "every 40m after finish"},
    "once": {"schedule": "at 2027-03-28T04:44:10"},
}


def behave(target: Deliverable, call: Call, draws: Draws) -> Behaviour:
    """Every first attempt of two jobs fails."""
    if call.job_name in ("spread", "missed") and call.attempt == 1:
        return Behaviour(1, Failure(RunError("failed", "as asked")), is_done=False)
    return Behaviour(0, Success(None))


def played(*, skips: bool, faults: Faults | None = None) -> tuple[list[tuple[Any, ...]], int]:
    """All rows of runs, and the number of ticks that ran."""
    loop = loop_of(START, 0, faults or Faults())
    targets = SimulatedTargets(loop, behave)
    deployment = Deployment(loop, Options(), targets, ticks_down=[DOWN], skips_idle_ticks=skips)
    ticks: list[object] = []
    deployment.on_tick = ticks.append
    deployment.start()
    loop.run(loop.us_of(START))
    api, target = Api.of(deployment), {"type": "task", "name": "t"}
    jobs = []
    for name, members in JOBS.items():
        spec = job_body({"name": name, "target": target, **members})
        jobs.append(api.jobs.put(OWNER, spec, Precondition()).job)
    loop.run(loop.us_of(UNTIL))
    rows = [
        (job.spec.name, run.key.kind, run.key.fire_at, *told(run))
        for job in jobs
        for run in deployment.stores.runs.list(OWNER, job.job_id, 1000).items
    ]
    loop.close()
    assert not deployment.crashes
    return rows, len(ticks)


def told(run: Run) -> tuple[Any, ...]:
    return run.status, run.attempt, run.started_at, run.reason, run.covers_count


def test_runs_are_the_same_with_and_without_idle_ticks() -> None:
    rows, ticks = played(skips=False)
    skipped_rows, few_ticks = played(skips=True)
    assert {row[0] for row in rows} == {*JOBS}
    assert skipped_rows == rows
    assert few_ticks < ticks / 3


def test_no_tick_is_passed_over_where_faults_may_strike() -> None:
    _, ticks = played(skips=True, faults=Faults(target_fails=0.1))
    assert ticks == played(skips=False)[1]
