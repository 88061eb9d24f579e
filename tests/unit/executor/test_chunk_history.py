"""Outcomes of runs that have no row but their chunk."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.chunks.chunk import Ended, Outcome, finished
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.errors import UnreadableRowError
from carillon.services.history import History
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World, member_of
from tests.unit.executor.kit import LEASE_SECONDS

HOUR = timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World("a", "b")


@pytest.fixture
def history(world: World) -> History:
    return world.executor_ports.history


class TestOutcome:
    def test_one_in_its_window_is_found_by_its_nominal_time(self) -> None:
        world = World()
        world.make("job", "55 * * * *", window="10m", fraction=0.5)
        world.handle_chunk(world.order())
        key = world.alone("job").key
        run = world.run("job")
        assert key.fire_at == DUE_AT - timedelta(minutes=5)
        assert run is not None
        assert (run.key, run.effective_at) == (key, DUE_AT)

    def test_one_that_began_by_a_clock_ahead_is_found(self, world: World, history: History) -> None:
        world.handle_chunk(world.order())
        world.clock.set(DUE_AT - timedelta(minutes=1))
        run = history.get(world.alone("b").key, world.by_name["b"])
        assert run is not None
        assert run.status is RunStatus.SUCCEEDED

    def test_one_whose_chunk_cannot_be_read_is_not_said_to_be_none(
        self, world: World, history: History
    ) -> None:
        world.handle_chunk(world.order())
        spoilt = world.failing(world.chunks, "get", UnreadableRowError("spoilt"))
        with spoilt, pytest.raises(UnreadableRowError, match="spoilt"):
            history.get(world.alone("b").key, world.by_name["b"])

    def test_a_job_that_is_known_is_not_read(self, world: World, history: History) -> None:
        world.handle_chunk(world.order())
        with world.failing(world.jobs, "get"):
            assert history.get(world.alone("b").key, world.by_name["b"]) is not None

    def test_one_under_way_runs(self, world: World, history: History) -> None:
        world.crash_after_claim(world.order())
        run = history.get(world.alone("b").key, world.by_name["b"])
        assert run is not None
        assert (run.status, run.attempt) == (RunStatus.RUNNING, 1)
        assert (run.claim_id, run.lease_until) == (
            world.chunk().claim_id,
            world.chunk().lease_until,
        )

    def test_what_goes_on_by_itself_is_known_by_its_row(
        self, world: World, history: History
    ) -> None:
        job, key = world.by_name["b"], world.alone("b").key
        world.pause(job)
        world.handle_chunk(world.order())
        assert history.get(key, job) is None
        world.execute()
        run = history.get(key, job)
        assert run is not None
        assert run.status is RunStatus.SKIPPED

    def test_its_row_says_more_than_its_chunk(self, world: World, history: History) -> None:
        world.answer(b=BUSY)
        world.handle_chunk(world.order())
        row = world.row("b")
        assert row is not None
        assert history.get(row.key, world.by_name["b"]) == row

    def test_a_dead_attempt_is_known_by_its_row(self, world: World, history: History) -> None:
        order, key = world.order(), world.alone("b").key
        world.crash_after_claim(order)
        world.clock.advance(LEASE_SECONDS)
        with world.dying(world.runs, "claim"):
            world.handle_chunk(order)
        assert history.get(key, world.by_name["b"]) is None
        world.handle_chunk(order)
        assert history.get(key, world.by_name["b"]) == world.row("b")

    def test_it_is_found_under_a_generation_that_was_replaced(
        self, world: World, history: History
    ) -> None:
        key = world.alone("b").key
        world.handle_chunk(world.order())
        job = world.new_generation(world.by_name["b"], "30 * * * *")
        run = history.get(key, job)
        assert run is not None
        assert run.status is RunStatus.SUCCEEDED

    def test_records_are_read_as_they_are(
        self, world: World, history: History, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[bool] = []
        get = world.chunks.get_records

        def noted(owner: str, job_id: str, *, consistent: bool) -> Any:
            asked.append(consistent)
            return get(owner, job_id, consistent=consistent)

        monkeypatch.setattr(world.chunks, "get_records", noted)
        history.get(world.alone("b").key, world.by_name["b"])
        assert asked == [True]

    def test_a_chunk_without_the_run_is_not_fenced(self, world: World) -> None:
        world.crash_after_claim(world.order("a"))
        world.clock.advance(LEASE_SECONDS)
        held = world.chunk()
        assert not world.executor_ports.packed.fence(world.alone("b").key, "a canceller's")
        assert world.chunk() == held

    def test_it_is_found_under_the_generation_that_has_succeeded(
        self, world: World, history: History
    ) -> None:
        """That which counts now goes alone."""
        old = world.order("b")
        world.clock.set(DUE_AT - timedelta(minutes=61))
        job = world.new_generation(world.by_name["b"])
        world.clock.set(DUE_AT)
        world.crash_after_claim(replace(old, members=(*old.members, member_of(job))))
        held = world.chunk()
        succeeded = Ended(Outcome.OK, DUE_AT, DUE_AT + timedelta(seconds=1))
        ends = dict(zip(held.refs, [succeeded, Ended(Outcome.ALONE)], strict=True))
        assert world.chunks.finish(finished(held, ends))
        run = history.get(world.alone("b").key, job)
        assert run is not None
        assert (run.status, run.generation_id) == (
            RunStatus.SUCCEEDED,
            old.members[0].generation_id,
        )

    def test_there_is_none_without_plan_or_chunk_or_reference(
        self, world: World, history: History
    ) -> None:
        job, key = world.by_name["b"], world.alone("b").key
        assert history.get(key, job) is None, "there is no chunk"
        assert history.get(replace(key, fire_at=DUE_AT + HOUR), job) is None, "nor a plan"
        world.handle_chunk(world.order("a"))
        assert history.get(key, job) is None, "it is not in it"

    def test_what_goes_in_no_chunk_costs_no_look(self, world: World, history: History) -> None:
        job, key = world.by_name["b"], world.alone("b").key
        with world.failing(world.chunks, "get_plan"):
            for other in (
                RunKey(key.owner, key.job_id, RunKind.MANUAL, DUE_AT, "asked"),
                replace(key, redrive=1),
                replace(key, fire_at=DUE_AT - 2 * HOUR),
            ):
                assert history.get(other, job) is None
            assert history.get(key, world.change(job, overlap="skip")) is None
