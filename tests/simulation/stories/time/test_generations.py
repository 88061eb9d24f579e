"""Jobs that are changed, paused and resumed: each generation has its say about its own span
only."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.decisions import SkipReason
from carillon.domain.job import MOST_REPLACED, Generation, Job, Lane
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind, RunStatus
from carillon.schedules import CalendarRule, parse_schedule
from tests.simulation.stories.story import MIDNIGHT, MINUTE, SECOND, succeeded
from tests.support.jobs import job_with
from tests.support.world import FUNCTION_SECONDS, World, times

TICKS_STOP = MIDNIGHT + timedelta(minutes=2)
TICKS_RETURN = MIDNIGHT + timedelta(hours=1, minutes=1)
NEVER_SOON = "30 5 * * *"


def minutes(*numbers: int) -> list[datetime]:
    """The instants so many minutes after midnight."""
    return [MIDNIGHT + timedelta(minutes=number) for number in numbers]


def outage(world: World, *steps: tuple[int, Callable[[], object]]) -> None:
    """No tick from TICKS_STOP until TICKS_RETURN; each step is done at its minute after midnight.
    Then two minutes with ticks."""
    world.run_until(TICKS_STOP)
    for minute, step in steps:
        world.run_until(*minutes(minute), ticking=False)
        step()
    world.run_until(TICKS_RETURN - SECOND, ticking=False)
    world.run_until(TICKS_RETURN + timedelta(minutes=2))


def covered(world: World, job: Job) -> list[datetime]:
    """What the rows of missed occurrences cover, by the job's schedule."""
    instants: list[datetime] = []
    for run in world.history(job):
        if run.key.kind is RunKind.MISSED:
            assert run.covers_from is not None
            before = run.covers_from - SECOND
            found = list(job.schedule.between(before, run.key.fire_at))
            assert run.covers_count == len(found)
            instants += found
    return instants


class TestFixedDelays:
    @pytest.mark.parametrize("before", ["* * * * * *", "*/30 * * * * *"])
    def test_a_job_changed_to_a_fixed_delay_goes_on(self, before: str) -> None:
        """What the older generation sends for the second of the new one's first occurrence is
        nothing that was to happen: no row of it may end the chain."""
        world = World(MIDNIGHT)
        job = world.create("job", before)
        world.run_until(MIDNIGHT + timedelta(minutes=1, seconds=59))
        world.tick()
        changed_at = world.clock.now()
        world.new_generation(job, "every 1m after finish")
        world.run_until(MIDNIGHT + timedelta(minutes=20))
        assert len([fire_at for fire_at in world.fired(job) if fire_at > changed_at]) >= 16

    def test_one_renewed_in_the_second_in_which_its_run_ended_goes_on(self) -> None:
        world = World(MIDNIGHT)
        job = world.create("job", "every 10m after finish")
        world.run_until(*minutes(10))
        world.clock.set(MIDNIGHT + timedelta(minutes=10, milliseconds=400))
        world.new_generation(job, priority=Lane.HIGH)
        world.clock.set(MIDNIGHT + timedelta(minutes=10, seconds=1))
        world.run_until(*minutes(60))
        assert len(world.fired(job)) >= 5


class TestOutages:
    def test_a_change_within_the_first_span_leaves_the_generation_nothing_to_catch_up(self) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "10 * * * *")
        outage(world, (8, lambda: world.new_generation(job, NEVER_SOON)))
        assert [run.reason for run in world.history(job)] == [SkipReason.CHANGED]

    @pytest.mark.parametrize("resumed", [True, False])
    def test_a_pause_ends_what_is_caught_up(self, resumed: bool) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "*/5 * * * *")
        box: list[Job] = []
        steps: list[tuple[int, Callable[[], object]]] = [(12, lambda: box.append(world.pause(job)))]
        if resumed:
            steps.append((52, lambda: world.new_generation(box[0])))
        outage(world, *steps)
        assert covered(world, job) == minutes(5, *([55] if resumed else []))
        last = next(run for run in world.history(job) if run.key.fire_at == minutes(10)[0])
        assert last.status is (RunStatus.SUCCEEDED if resumed else RunStatus.SKIPPED)

    @pytest.mark.parametrize("resumed", [True, False])
    def test_what_a_window_puts_off_beyond_a_rare_schedules_end_runs(self, resumed: bool) -> None:
        """The link before it in its chain is first visited when the generation has ended."""
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "1,51 0 1 12 *", window="50m", fraction=0.9)

        def end() -> None:
            if resumed:
                world.new_generation(world.pause(job))
            else:
                world.new_generation(job, NEVER_SOON)

        outage(world, (55, end))
        world.run_until(*minutes(100))
        assert succeeded(world, job) == minutes(1, 51)

    def test_so_is_what_it_puts_off_beyond_the_deletion_recorded(self) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "1,51 0 1 12 *", window="50m", fraction=0.9)

        def delete() -> None:
            now = world.clock.now()
            deleted = job.deleted(now, now + timedelta(days=30))
            assert world.jobs.replace(deleted, job.revision)

        outage(world, (55, delete))
        world.run_until(*minutes(100))
        reasons = {run.key.fire_at: run.reason for run in world.history(job)}
        assert reasons == dict.fromkeys(minutes(1, 51), SkipReason.DELETED)

    def test_closed_days_before_a_change_are_recorded_and_not_run(self) -> None:
        start = MIDNIGHT - timedelta(minutes=30)
        world = World(start, segments=1)
        world.close("holidays", "2026-12-01")
        calendar = ("holidays", CalendarRule.SKIP)
        job = world.create("job", "*/5 * * * *", calendar=calendar)
        world.run_until(start + timedelta(minutes=2))
        world.run_until(*minutes(12), ticking=False)
        world.new_generation(job, "30 5 5 * *")
        open_again = MIDNIGHT + timedelta(days=1, minutes=7)
        world.clock.set(open_again)
        world.run_until(open_again + MINUTE)
        assert succeeded(world, job) == minutes(-5)
        reasons = {run.key.fire_at: run.reason for run in world.history(job) if run.attempt}
        assert reasons == {minutes(-5)[0]: None, minutes(10)[0]: SkipReason.CALENDAR}
        assert covered(world, job) == minutes(-25, -20, -15, -10, 0, 5)


class TestWhoseCatchUpCounts:
    def test_the_jobs_own_policy_decides_from_its_generation_on(self) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "*/5 * * * *", catch_up=CatchUp.SKIP)
        outage(world, (32, lambda: world.new_generation(job, catch_up=CatchUp.ALL)))
        assert succeeded(world, job) == minutes(*range(35, 61, 5))
        assert covered(world, job) == minutes(5, 10, 15, 20, 25)

    @pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
    def test_what_the_replaced_generation_would_all_have_run_is_left_to_the_jobs_own(
        self, policy: CatchUp
    ) -> None:
        """Found by seed 77001325: a job that was to skip ran all that its old generation had
        missed."""
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "*/5 * * * *", catch_up=CatchUp.ALL)
        outage(world, (32, lambda: world.new_generation(job, catch_up=policy)))
        last = [60] if policy is CatchUp.LATEST else []
        assert succeeded(world, job) == minutes(*range(5, 31, 5), *last)
        assert covered(world, job) == minutes(35, 40, 45, 50, 55)

    def test_noise_of_a_change_that_never_committed_skips_nothing(self) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "*/20 * * * *", catch_up=CatchUp.ALL)
        world.run_until(*minutes(1))
        now = world.clock.now()
        generation = Generation(world.entropy.new_id(now), now)
        noise = job_with(job.in_new_generation(generation, now), catch_up=CatchUp.SKIP)
        assert not world.indexer.index_job(noise, revision=99)
        world.run_until(TICKS_STOP)
        world.run_until(TICKS_RETURN - SECOND, ticking=False)
        world.tick()
        ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
        for kept in sorted(world.queue.kept(), key=lambda kept: kept.message.generation_id)[::-1]:
            world.executor.handle(kept.message, ends_at)
            world.queue.delete(kept.receipt)
        assert succeeded(world, job) == minutes(20, 40, 60)
        assert len(world.history(job)) == 3

    @pytest.mark.parametrize("deleted", [True, False])
    def test_noise_of_a_change_that_lost_against_a_pause_or_deletion_leaves_no_row(
        self, deleted: bool
    ) -> None:
        world = World(MIDNIGHT, segments=1)
        job = world.create("job", "*/20 * * * *", catch_up=CatchUp.SKIP)
        outage(world, (12, lambda: lose_a_change(world, job, deleted=deleted)))
        assert {run.key.fire_at for run in world.history(job)} <= set(minutes(20, 40, 60))
        assert succeeded(world, job) == []


def lose_a_change(world: World, job: Job, *, deleted: bool) -> None:
    """A change to other instants puts its entries, and comes too late with its row."""
    now = world.clock.now()
    generation = Generation(world.entropy.new_id(job.generation.next_id_at(now)), now)
    stopped = job.deleted(now, now + timedelta(days=30)) if deleted else job.paused(now)
    assert world.jobs.replace(stopped, job.revision)
    lost = replace(job.in_new_generation(generation, now), schedule=parse_schedule("*/7 * * * *"))
    assert not world.indexer.index_job(lost, job.revision)


def test_short_pauses_before_its_place_in_the_window_do_not_cost_the_run() -> None:
    """00:10 is effective at 00:50; none of the pauses is at either time."""
    world = World(MIDNIGHT)
    job = world.create("job", "10 * * * *", window="50m", fraction=0.8)
    box = [job]
    for minute in range(12, 12 + MOST_REPLACED):
        world.run_until(*minutes(minute))
        box.append(world.new_generation(world.pause(box[-1])))
    world.run_until(*minutes(55))
    (run,) = world.history(job)
    assert (run.status, run.key.fire_at) == (RunStatus.SUCCEEDED, *minutes(10))
    assert run.started_at == times("00:50", MIDNIGHT)[0]


class TestCommits:
    @pytest.mark.parametrize("still", [25, 40, 70, 150, 1_000, 2_100])
    def test_one_that_stands_still_loses_nothing(self, still: int) -> None:
        """Seed 9780000060: executors drop messages of a generation that nobody has committed for a
        minute."""
        world = World(MIDNIGHT + 50 * SECOND)
        commit = world.jobs.create

        def late(job: Job) -> bool:
            world.run_until(world.clock.now() + timedelta(seconds=still))
            return commit(job)

        world.jobs.create = late  # type: ignore[method-assign]
        job = world.create("job", "* * * * *", catch_up=CatchUp.ALL)
        world.run_until(MIDNIGHT + timedelta(minutes=40))
        assert succeeded(world, job) == minutes(*range(1, 41))

    @pytest.mark.parametrize("still", [40, 150, 1_000])
    def test_one_whose_answer_comes_late_calls_nothing_missed(self, still: int) -> None:
        """Seed 9850000575: what it sends once more has run since, row by row."""
        world = World(MIDNIGHT + 50 * SECOND)
        commit = world.jobs.create

        def late(job: Job) -> bool:
            committed = commit(job)
            world.run_until(world.clock.now() + timedelta(seconds=still))
            return committed

        world.jobs.create = late  # type: ignore[method-assign]
        job = world.create("job", "* * * * *")
        world.run_until(MIDNIGHT + timedelta(minutes=20))
        assert succeeded(world, job) == minutes(*range(1, 21))
        assert {run.key.kind for run in world.history(job)} == {RunKind.SCHEDULED}

    @pytest.mark.parametrize("catch_up", CatchUp)
    def test_what_ticks_catch_up_on_before_it_is_not_left_to_the_generation_before(
        self, catch_up: CatchUp
    ) -> None:
        """That has ended by the time at which the pace of the catch-up lets its message start."""
        world = World(MIDNIGHT, segments=1)
        world.tick_ports = replace(world.tick_ports, catch_up_share=60)
        for number in range(12):
            world.create(f"other {number}", "0 * * * *")
        job = world.create("job", "50 0 1 * * *", catch_up=catch_up)
        world.run_until(TICKS_STOP)
        world.run_until(TICKS_RETURN - 16 * SECOND, ticking=False)
        commit = world.jobs.replace

        def late(changed: Job, revision: int) -> bool:
            world.run_until(world.clock.now() + 27 * SECOND)
            return commit(changed, revision)

        world.jobs.replace = late  # type: ignore[method-assign, assignment]
        world.new_generation(job, "50 0 * * * *")
        world.run_until(TICKS_RETURN + 2 * MINUTE)
        (run,) = world.history(job)
        assert run.key.fire_at == TICKS_RETURN - 10 * SECOND
        assert (run.status is RunStatus.SKIPPED) is (catch_up is CatchUp.SKIP)
