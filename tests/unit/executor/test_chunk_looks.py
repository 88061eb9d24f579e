"""Runs of changed jobs: a chunk may have run them under the generation before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.chunks.looking import CLAIMED_WITHIN
from carillon.domain.job import Generation, Job, JobState, Lane
from carillon.domain.message import Message
from carillon.domain.policies import OnComplete
from carillon.domain.run import Run, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Outcome, Success
from carillon.schedules import parse_schedule
from tests.support.jobs import job_with
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World
from tests.unit.executor.kit import LEASE_SECONDS, SECOND

LAST = f"at {DUE_AT:%Y-%m-%dT%H:%M:%S}"


@pytest.fixture
def world() -> World:
    return World("a", "b", "c")


def changed(world: World, name: str) -> Job:
    """The job under another generation, made ten seconds before its occurrence, which that yields
    too; yet to be committed."""
    job, made_at = world.by_name[name], DUE_AT - 10 * SECOND
    generation = Generation(world.entropy.new_id(made_at), made_at)
    return job.in_new_generation(generation, made_at)


def commit(world: World, job: Job) -> Message:
    """The message that its filing has sent."""
    assert world.jobs.replace(job, job.revision - 1)
    return message_of(job, DUE_AT)


class TestLooks:
    def test_what_has_succeeded_in_a_chunk_is_not_run_again(self, world: World) -> None:
        """The chunk read the job before the change."""
        job = changed(world, "b")
        world.handle_chunk(world.order())
        message = commit(world, job)
        assert world.handle(message).handled is Handled.DROPPED
        assert world.row("b") is None, "its claim is withdrawn"
        world.handle_chunk(world.order())
        world.execute()
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    def test_the_last_occurrence_of_its_job_completes_that(self, world: World) -> None:
        """The chunk read the job when it had others to come, and nobody else meets the run."""
        job = changed(world, "b")
        job = job_with(job, schedule=parse_schedule(LAST), on_complete=OnComplete.DELETE)
        world.handle_chunk(world.order())
        report = world.handle(commit(world, job))
        assert (report.handled, report.completes) == (Handled.DROPPED, True)
        row = world.jobs.get(job.owner, job.job_id)
        assert row is not None
        assert row.state is JobState.COMPLETED
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    def test_it_waits_for_a_chunk_that_is_under_way(self, world: World) -> None:
        """It may have read the job before the change, and be about to call."""
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        message = commit(world, job)
        assert world.handle(message).handled is Handled.DEFERRED
        assert world.row("b") is None
        (again,) = world.queue.kept()
        assert again.message == message
        assert again.visible_at == DUE_AT + SECOND

    @pytest.mark.parametrize(("late", "wait"), [(7, 7), (25, 25), (100, 100), (1200, 120)])
    def test_it_waits_twice_as_long_for_one_whose_executor_has_died(
        self, world: World, late: int, wait: int
    ) -> None:
        """The chunk ends when its message comes again, after minutes: each copy of this one that
        came meanwhile might be doubled. Two minutes at most: after an outage it ends at once (seed
        9979110311)."""
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        message = commit(world, job)
        world.clock.advance(late)
        assert world.handle(message).handled is Handled.DEFERRED
        (again,) = world.queue.kept()
        assert again.visible_at == DUE_AT + (late + wait) * SECOND

    def test_one_from_before_the_chunk_waits_for_half_a_minute(self, world: World) -> None:
        """The chunk was claimed an hour late, as after an outage, and runs."""
        job = changed(world, "b")
        message = commit(world, job)
        world.clock.advance(3600)
        world.crash_after_claim(world.order())
        assert world.handle(message).handled is Handled.DEFERRED
        (again,) = world.queue.kept()
        assert again.visible_at == DUE_AT + 3630 * SECOND

    def test_it_follows_a_chunk_that_was_disbanded(self, world: World) -> None:
        """Under the generation that counts, in the attempt after the one that died."""
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(world.order())
        world.drain()
        message = commit(world, job)
        world.handle(message)
        row = world.row("b")
        assert row is not None
        assert (row.status, row.attempt) == (RunStatus.SUCCEEDED, 2)
        assert row.generation_id == job.generation.generation_id

    def test_it_counts_the_attempt_that_died_before_that_has_its_row(self, world: World) -> None:
        """Whoever disbanded the chunk has yet to put it; then it finds the attempt counted."""
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        world.clock.advance(LEASE_SECONDS)
        with world.dying(world.runs, "claim"):
            world.handle_chunk(world.order())
        message, others = commit(world, job), list[tuple[str, ...]]()

        def look(call: Call) -> Outcome:
            row = world.row("b")
            others.append(row.other_generations if row else ())
            return Success(None)

        world.answer(b=look)
        assert world.handle(message).handled is Handled.RAN
        assert world.called() == [("b", 2)]
        assert others == [(world.by_name["b"].generation.generation_id,)]
        world.handle_chunk(world.order())
        world.execute()
        assert world.called() == [("b", 2), ("a", 2), ("c", 2)]

    @pytest.mark.parametrize("has_claimed", [False, True])
    def test_an_attempt_that_died_counts_by_the_row_that_its_generation_has_claimed(
        self, world: World, has_claimed: bool
    ) -> None:
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        world.clock.advance(LEASE_SECONDS)
        with world.dying(world.runs, "claim"):
            world.handle_chunk(world.order())
        message = commit(world, job)
        row = Run.scheduled(message.key, message.generation_id, "claim", DUE_AT, DUE_AT + LIFETIME)
        old = world.by_name["b"].generation.generation_id
        row = replace(row, other_generations=(old,) if has_claimed else ())
        assert world.runs.claim(row, None)
        assert world.handle(message).handled is Handled.RAN
        assert world.called() == [("b", 1 if has_claimed else 2)]

    def test_it_keeps_the_attempts_that_died_before_the_one_in_the_chunk(
        self, world: World
    ) -> None:
        """Seed 6650000038 with a switch: the row forgot one of them, and the run was given up."""
        message = commit(world, changed(world, "b"))
        for _ in range(2):
            with world.dying(world.targets, "deliver"):
                world.handle(message)
            world.clock.advance(LEASE_SECONDS)
        world.crash_after_claim(world.order())
        world.clock.advance(LEASE_SECONDS)
        with world.dying(world.runs, "claim"):
            world.handle_chunk(world.order())
        assert world.handle(message).handled is Handled.RAN
        row = world.row("b")
        assert row is not None
        assert (row.status, row.attempt) == (RunStatus.SUCCEEDED, 3)
        assert [each.attempt for each in row.attempts] == [1, 2]

    def test_what_it_puts_off_leaves_the_attempt_that_died_to_be_counted(
        self, world: World
    ) -> None:
        job = changed(world, "b")
        world.crash_after_claim(world.order())
        world.clock.advance(LEASE_SECONDS)
        with world.dying(world.runs, "claim"):
            world.handle_chunk(world.order())
        assert world.handle(commit(world, job), seconds=5).handled is Handled.DEFERRED
        world.handle_chunk(world.order())
        world.execute()
        assert sorted(world.called()) == [("a", 2), ("b", 2), ("c", 2)]

    def test_what_failed_in_a_chunk_goes_on_by_its_row(self, world: World) -> None:
        job = changed(world, "b")
        world.answer(b=BUSY)
        world.handle_chunk(world.order())
        world.answer()
        message = commit(world, job)
        assert world.handle(message).handled is Handled.REPEATED
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    def test_a_chunk_that_saw_the_change_leaves_the_run_to_it(self, world: World) -> None:
        order = world.order()
        message = commit(world, changed(world, "b"))
        world.handle_chunk(order)
        world.handle(message)
        world.execute()
        assert sorted(world.called()) == [("a", 1), ("b", 1), ("c", 1)]

    def test_without_a_chunk_it_runs_and_the_chunk_to_come_sees_the_change(
        self, world: World
    ) -> None:
        order = world.order()
        message = commit(world, changed(world, "b"))
        assert world.handle(message).handled is Handled.RAN
        world.handle_chunk(order)
        world.execute()
        assert sorted(world.called()) == [("a", 1), ("b", 1), ("c", 1)]

    def test_a_chunk_without_it_is_none_of_its(self, world: World) -> None:
        job = changed(world, "b")
        world.crash_after_claim(world.order("a", "c"))
        assert world.handle(commit(world, job)).handled is Handled.RAN

    def test_a_job_that_was_not_changed_costs_no_read(self, world: World) -> None:
        with world.failing(world.chunks, "get_plan"), world.failing(world.chunks, "get"):
            assert world.handle(world.alone("b")).handled is Handled.RAN

    def test_a_store_that_fails_withdraws_the_claim(self, world: World) -> None:
        message = commit(world, changed(world, "b"))
        with world.failing(world.chunks, "get_plan"):
            assert world.lane(message) is Handled.DEFERRED
        assert world.row("b") is None
        world.run_until(DUE_AT + 10 * SECOND, ticking=False)
        assert world.called() == [("b", 1)]


class TestBacklogs:
    """A message that a tick has sent to catch up, whatever it had sent before."""

    @pytest.mark.parametrize(
        ("late", "handled"),
        [
            (timedelta(0), Handled.DEFERRED),
            (CLAIMED_WITHIN - SECOND, Handled.DEFERRED),
            (CLAIMED_WITHIN, Handled.RAN),
        ],
    )
    def test_it_waits_while_its_chunk_may_be_to_come(
        self, world: World, late: timedelta, handled: Handled
    ) -> None:
        world.make("w", "55 * * * *", window="10m", fraction=0.5)
        message = replace(world.alone("w"), in_time=True)
        assert message.due_at == DUE_AT
        world.clock.set(DUE_AT + late)
        assert world.handle(message).handled is handled

    def test_it_runs_where_the_plan_has_no_chunk_for_it(self, world: World) -> None:
        job = world.make("high", priority=Lane.HIGH)
        message = replace(message_of(job, DUE_AT), in_time=True)
        assert world.handle(message).handled is Handled.RAN


class TestSettledGenerations:
    """A message of another generation for an occurrence that the job's own entries bring."""

    @pytest.mark.parametrize(("minutes", "handled"), [(60, Handled.DROPPED), (59, Handled.RAN)])
    def test_its_own_chunk_runs_it(self, world: World, minutes: int, handled: Handled) -> None:
        old = world.alone("b")
        world.clock.set(DUE_AT - timedelta(minutes=minutes))
        world.new_generation(world.by_name["b"])
        world.clock.set(DUE_AT)
        world.drain()
        assert world.handle(old).handled is handled
        assert world.called() == [] if handled is Handled.DROPPED else [("b", 1)]
