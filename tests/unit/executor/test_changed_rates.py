"""A run that waits for a slot looks each hour whether its job has the same rate still."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise

from carillon.domain.admission.state import (
    rate_admission,
)
from carillon.domain.job import Job
from carillon.domain.policies import Rate, RetryPolicy
from carillon.domain.run import RunError, RunStatus
from carillon.executor.targets import Failure
from carillon.schedules import CalendarRule
from tests.support.world import OWNER
from tests.unit.executor.kit import MINUTE, NOON, World


def waiting(world: World, job: Job, count: int) -> None:
    for _ in range(count + 1):
        world.ask(job)
    world.run_until(NOON + MINUTE)
    assert len(world.targets.calls) == 1


def test_it_costs_no_write_of_the_gate_and_keeps_the_place(
    world: World, calls: Counter[str]
) -> None:
    job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 3 * 3600))
    waiting(world, job, 1)
    writes = calls["put"]
    world.run_until(NOON + 180 * MINUTE)
    assert (len(world.targets.calls), calls["put"]) == (2, writes)
    first, second = sorted(run.started_at for run in world.history(job) if run.started_at)
    assert second - first <= timedelta(hours=3, seconds=1)


def test_a_raised_rate_starts_what_waits_within_the_hour_and_new_ones_at_once(world: World) -> None:
    job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400))
    waiting(world, job, 50)
    raised = world.change(job, rate=Rate(100, 60))
    world.ask(raised)
    world.run_until(NOON + 2 * MINUTE)
    assert len(world.targets.calls) == 2
    world.run_until(NOON + 62 * MINUTE)
    assert len(world.targets.calls) == 52


def test_a_lowered_rate_has_those_who_wait_ask_anew(world: World) -> None:
    job = world.create("quick", "0 0 1 1 *", rate=Rate(1, 3600))
    waiting(world, job, 5)
    world.change(job, rate=Rate(1, 7200))
    world.run_until(NOON + timedelta(hours=12))
    starts = sorted(run.started_at for run in world.history(job) if run.started_at)
    hours = [round((at - NOON).total_seconds() / 3600) for at in starts]
    assert hours[:2] == [0, 1], "what was granted within the hour stays granted"
    gaps = [later - before for before, later in pairwise(hours[1:])]
    assert gaps == [3, 2, 2, 2], "what was granted for the next hour counts, used or not"


def test_a_job_without_a_rate_any_more_gives_up_what_it_had_reserved(world: World) -> None:
    job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 86_400, "mail"))
    waiting(world, job, 20)
    other = world.create("other", "0 0 1 1 *", rate=Rate(1, 86_400, "mail"))
    world.change(job, rate=None)
    world.run_until(NOON + 62 * MINUTE)
    assert len(world.targets.calls) == 21
    asked = world.ask(other)
    world.run_until(NOON + 63 * MINUTE)
    run = world.runs.get(asked)
    assert run is not None
    assert run.next_attempt_at is not None
    slot = world.admission_rows.get(OWNER, rate_admission("mail", ""))
    assert slot is not None
    assert slot.started_at is not None
    assert slot.started_at <= NOON + timedelta(days=1, hours=2)


def test_nobody_waits_behind_starts_that_were_granted_to_runs_that_are_cancelled(
    world: World,
) -> None:
    job = world.create("slow", "0 0 1 1 *", rate=Rate(1, 3600, "mail"))
    waiting(world, job, 20)
    for row in world.history(job):
        if row.status is RunStatus.SCHEDULED:
            cancelled = row.cancelled("on request", "c", world.clock.now(), row.expires_at)
            assert world.runs.claim(cancelled, row)
    world.run_until(NOON + 62 * MINUTE)
    asked = world.ask(world.create("other", "0 0 1 1 *", rate=Rate(1, 3600, "mail")))
    world.run_until(NOON + timedelta(hours=3, minutes=2))
    run = world.runs.get(asked)
    assert run is not None
    assert run.status is RunStatus.SUCCEEDED


def test_nor_behind_those_of_runs_that_a_closed_day_moves(world: World) -> None:
    days = ("days", CalendarRule.NEXT_BUSINESS_DAY)
    end_at = NOON + 10 * MINUTE
    rate = Rate(1, 3600, "mail")
    world.close("days", "2026-12-25")
    job = world.create("slow", "* * * * *", end_at=end_at, rate=rate, calendar=days)
    world.run_until(NOON + 11 * MINUTE)
    assert len(world.fired(job)) == 1
    world.close("days", f"{NOON:%Y-%m-%d}")
    world.run_until(NOON + 75 * MINUTE)
    asked = world.ask(world.create("other", "0 0 1 1 *", rate=rate))
    world.run_until(NOON + timedelta(hours=3, minutes=2))
    run = world.runs.get(asked)
    assert run is not None
    assert run.status is RunStatus.SUCCEEDED


def test_starts_that_are_given_up_are_granted_again_no_sooner_than_the_rate_allows(
    world: World,
) -> None:
    rate = Rate(3, 86_400, "mail")
    job, other = (world.create(name, "0 0 1 1 *", rate=rate) for name in ("job", "other"))
    for each in (job, job, job, other):
        world.ask(each)
        world.execute()
    world.change(other, rate=None)
    world.run_until(NOON + 70 * MINUTE)
    assert len(world.fired(other)) == 1, "it is under no rate any more"
    world.ask(job)
    world.run_until(NOON + 150 * MINUTE)
    assert len(world.fired(job)) == 3, "all of this day"


def test_nobody_waits_behind_starts_of_retries_that_the_job_has_no_more(world: World) -> None:
    rate = Rate(1, 3600, "mail")
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    job = world.create("job", "0 0 1 1 *", retry=RetryPolicy(max_attempts=2))
    for _ in range(20):
        world.ask(job)
    world.execute()
    world.change(job, rate=rate)
    world.run_until(NOON + 2 * MINUTE)
    world.change(world.stored(job), retry=RetryPolicy(max_attempts=1))
    world.run_until(NOON + 70 * MINUTE)
    assert {run.status for run in world.history(job)} == {RunStatus.DEAD}
    asked = world.ask(world.create("other", "0 0 1 1 *", rate=rate))
    world.run_until(NOON + timedelta(hours=3, minutes=2))
    run = world.runs.get(asked)
    assert run is not None
    assert run.started_at is not None
