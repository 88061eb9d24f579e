"""Rates and concurrency keys in virtual time: how many start, when, and nothing is lost."""

from dataclasses import replace
from itertools import pairwise

import pytest

from carillon.domain.job import Job
from carillon.domain.policies import Concurrency, Overlap, Rate, RetryPolicy
from carillon.domain.run import Run, RunError, RunStatus
from carillon.executor.router import Router
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.simulation.stories.load.test_policies import Slow
from tests.simulation.stories.story import NOON, SECOND
from tests.support.world import World, quotas_of

AT = "at 2026-12-01T12:00:30"
FIRST = NOON + 30 * SECOND


@pytest.fixture
def world() -> World:
    return World(NOON)


def one_shots(world: World, count: int, **options: object) -> list[Job]:
    return [world.create(f"job-{n}", AT, **options) for n in range(count)]


def runs_of(world: World, jobs: list[Job]) -> list[Run]:
    return [run for job in jobs for run in world.history(job)]


def starts(world: World, jobs: list[Job]) -> list[int]:
    """Seconds after the first, in order."""
    started = [run.started_at for run in runs_of(world, jobs) if run.started_at is not None]
    return sorted(int((at - FIRST).total_seconds()) for at in started)


class TestRate:
    def test_those_beyond_it_start_at_the_slots_that_were_reserved(self, world: World) -> None:
        jobs = one_shots(world, 12, rate=Rate(5, 60, "mail"))
        world.run_until(FIRST + 130 * SECOND)
        assert starts(world, jobs) == [0] * 5 + [60] * 5 + [120] * 2
        runs = runs_of(world, jobs)
        assert {(run.status, run.attempt) for run in runs} == {(RunStatus.SUCCEEDED, 1)}
        assert len(world.targets.calls) == 12

    def test_without_a_key_each_job_has_its_own(self, world: World) -> None:
        jobs = one_shots(world, 3, rate=Rate(1, 60))
        world.run_until(FIRST)
        assert starts(world, jobs) == [0, 0, 0]

    def test_every_attempt_is_a_start(self, world: World) -> None:
        def first_fails(call: Call) -> Outcome:
            busy = Failure(RunError("busy", "later"), retry_after_seconds=1)
            return busy if call.attempt == 1 else Success(None)

        world.targets.behave = first_fails
        (job,) = one_shots(world, 1, rate=Rate(1, 60))
        world.run_until(FIRST + 70 * SECOND)
        (run,) = world.history(job)
        assert run.status is RunStatus.SUCCEEDED
        assert run.attempt_started_at == FIRST + 60 * SECOND

    def test_a_wait_longer_than_a_queue_can_delay_goes_by_the_wheel(self, world: World) -> None:
        jobs = one_shots(world, 3, rate=Rate(1, 1200, "slow"))
        world.run_until(FIRST + 600 * SECOND)
        waiting = [run for run in runs_of(world, jobs) if run.status is RunStatus.SCHEDULED]
        reached = "1 starts in 1200 s are reached, it may start at 2026-12-01T"
        assert {run.note for run in waiting} == {f"{reached}12:20:30Z", f"{reached}12:40:30Z"}
        assert sorted(run.next_attempt_at for run in waiting if run.next_attempt_at) == [
            FIRST + 1200 * SECOND,
            FIRST + 2400 * SECOND,
        ]
        world.run_until(FIRST + 2500 * SECOND)
        assert starts(world, jobs) == [0, 1200, 2400]

    def test_the_owners_limit_counts_all_jobs_and_callbacks(self, world: World) -> None:
        ports = replace(world.executor_ports, quotas=quotas_of(starts_per_minute=4))
        world.executor = Router(ports)
        jobs = one_shots(world, 3, rate=Rate(2, 60, "mail"))
        others = [world.create(f"other-{n}", AT) for n in range(3)]
        world.run_until(FIRST + 200 * SECOND)
        assert len(world.targets.calls) == 6
        for start in starts(world, jobs + others):
            within = [at for at in starts(world, jobs + others) if start <= at < start + 60]
            assert len(within) <= 4
        assert starts(world, jobs)[2] >= 60, "the job's own limit counts too"

    def test_who_waits_for_the_jobs_own_takes_nothing_from_the_owners(self, world: World) -> None:
        world.executor = Router(
            replace(world.executor_ports, quotas=quotas_of(starts_per_minute=10))
        )
        slow = world.create("slow", "at 2026-12-01T18:00:00Z", rate=Rate(1, 3600))
        live = world.create("live", "* * * * *")
        for _ in range(50):
            world.ask(slow)
        world.run_until(NOON + 300 * SECOND)
        runs = world.history(live)
        assert [run.status for run in runs] == [RunStatus.SUCCEEDED] * 5
        assert {run.lag_seconds for run in runs} == {0}

    def test_who_waits_for_a_concurrency_key_takes_no_slot(self, world: World) -> None:
        """Or all would start at once when the key is free, each with a slot of long ago."""
        slow = Slow(world, 50)
        key = Concurrency("db", 1)
        world.create("holder", AT, concurrency=key, timeout_seconds=55)
        rate = Rate(1, 15)
        paced = world.create("paced", "at 2026-12-01T18:00:00Z", concurrency=key, rate=rate)
        world.run_until(FIRST)
        slow.lasts = SECOND
        for _ in range(5):
            world.ask(paced)
        world.run_until(FIRST + 300 * SECOND)
        at = sorted(start for _, start in slow.starts)
        assert len(at) == 6
        gaps = [later - before for before, later in pairwise(at[1:])]
        assert min(gaps) >= 13 * SECOND
        assert max(gaps) <= 40 * SECOND


class TestConcurrency:
    def test_no_more_than_the_limit_hold_a_key_at_once(self, world: World) -> None:
        slow = Slow(world, 8)
        jobs = [
            world.create(
                f"job-{n}", f"at 2026-12-01T12:00:{30 + n}", concurrency=Concurrency("db", 2)
            )
            for n in range(6)
        ]
        world.run_until(FIRST + 180 * SECOND)
        assert slow.most_active == 2
        runs = runs_of(world, jobs)
        assert {(run.status, run.attempt) for run in runs} == {(RunStatus.SUCCEEDED, 1)}
        assert len(world.targets.calls) == 6
        assert world.queue.kept() == []

    def test_a_key_is_free_as_soon_as_its_run_ends(self, world: World) -> None:
        jobs = [
            world.create(
                f"job-{n}", f"at 2026-12-01T12:00:{30 + n}", concurrency=Concurrency("a", 1)
            )
            for n in range(3)
        ]
        world.run_until(FIRST + 5 * SECOND)
        assert starts(world, jobs) == [0, 1, 2]

    def test_a_failed_run_holds_no_place_while_it_waits_for_its_retry(self, world: World) -> None:
        def fail(call: Call) -> Outcome:
            return Failure(RunError("busy", "later"), retry_after_seconds=500)

        world.targets.behave = fail
        jobs = one_shots(world, 2, concurrency=Concurrency("a", 1), retry=RetryPolicy(2))
        world.run_until(FIRST + 5 * SECOND)
        assert len(starts(world, jobs)) == 2
        assert {run.status for run in runs_of(world, jobs)} == {RunStatus.RETRYING}


def test_a_run_that_a_rate_holds_back_keeps_its_turn(world: World) -> None:
    """It has passed the job's own gate: what is due meanwhile is skipped on its account."""
    job = world.create("job", "every 20s", overlap=Overlap.SKIP, rate=Rate(1, 60))
    world.run_until(NOON + 150 * SECOND)
    history = {(run.key.fire_at - NOON).seconds: run for run in world.history(job)}
    ran = {due for due, run in history.items() if run.status is RunStatus.SUCCEEDED}
    assert ran == {20, 40, 100}
    assert (history[40].started_at, history[100].started_at) == (
        NOON + 80 * SECOND,
        NOON + 140 * SECOND,
    )
    assert history[60].note == f"{history[40].key.run_id} was active"
