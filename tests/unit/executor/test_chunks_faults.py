"""Chunks whose store or queue fails."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.chunks.chunk import Outcome
from carillon.domain.run import RunStatus
from carillon.errors import (
    QueueUnavailableError,
    UnreadableRowError,
)
from carillon.executor.batch import Handled
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World
from tests.unit.executor.kit import SECOND

OK, ALONE, DIED = Outcome.OK, Outcome.ALONE, Outcome.DIED
STORE_WAIT_SECONDS = 10


@pytest.fixture
def world() -> World:
    return World("a", "b", "c")


class TestStoreFailures:
    def test_before_the_claim_the_whole_chunk_waits(self, world: World) -> None:
        with world.failing(world.chunks, "claim"):
            report = world.handle_chunk(world.order())
        assert (report.handled, report.reason) == (Handled.DEFERRED, "the store failed")
        assert world.sent() == [("chunk", 1)]
        world.run_until(DUE_AT + STORE_WAIT_SECONDS * SECOND, ticking=False)
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]
        assert world.ends() == {"a": OK, "b": OK, "c": OK}

    def test_without_the_jobs_nothing_is_called_and_no_attempt_counts(self, world: World) -> None:
        with world.failing(world.jobs, "get_all"):
            world.handle_chunk(world.order())
        assert world.called() == []
        assert world.ends() == {"a": ALONE, "b": ALONE, "c": ALONE}
        assert world.sent() == [("chunk", 1)]
        world.run_until(DUE_AT + STORE_WAIT_SECONDS * SECOND, ticking=False)
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    @pytest.mark.parametrize("late", [0, 30])
    @pytest.mark.parametrize(("hours", "is_given_up"), [(23.9, False), (24, True)])
    def test_a_row_that_cannot_be_read_for_a_day_lets_each_go_alone(
        self, world: World, late: int, hours: float, is_given_up: bool
    ) -> None:
        """However late the chunk is when it is first met."""
        world.crash_after_claim(world.order())
        world.clock.set(DUE_AT + timedelta(hours=late))
        with world.failing(world.chunks, "get", UnreadableRowError("of a later version")):
            report = world.handle_chunk(world.order())
            assert (report.handled, report.reason) == (Handled.DEFERRED, "a row cannot be read")
            assert world.sent() == [("chunk", 1)]
            world.clock.advance(hours * 3600)
            (kept,) = world.queue.kept()
            world.queue.delete(kept.receipt)
            world.executor.lane(kept.body, world.ends_at())
        alone = [("a", 1), ("b", 1), ("c", 1)]
        assert world.sent() == (alone if is_given_up else [("chunk", 2)])
        assert world.called() == []

    def test_a_success_whose_chunk_cannot_be_read_is_not_repeated(self, world: World) -> None:
        world.handle_chunk(world.order())
        since = world.clock.now()
        world.queue.send([replace(world.order(), unreadable_since=since, store_waits=9)], [0])
        with world.failing(world.chunks, "get", UnreadableRowError("of a later version")):
            world.run_until(since + timedelta(days=1, minutes=1), ticking=False)
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]
        world.run_until(since + timedelta(days=1, hours=2), ticking=False)
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]
        assert world.sent() == []

    def test_a_dead_letter_whose_chunk_cannot_be_read_goes_back_to_its_lane(
        self, world: World
    ) -> None:
        world.crash_after_claim(world.order())
        with world.failing(world.chunks, "get", UnreadableRowError("of a later version")):
            world.handle_dead_chunk(world.order())
        assert world.sent() == [("chunk", 1)]
        world.run_until(DUE_AT + timedelta(minutes=8), ticking=False)
        assert all(row and row.status is RunStatus.SUCCEEDED for row in map(world.row, "abc"))

    def test_a_store_that_does_not_answer_is_waited_for_however_long(self, world: World) -> None:
        world.crash_after_claim(world.order())
        message = replace(world.order(), unreadable_since=DUE_AT, store_waits=9)
        world.clock.set(DUE_AT + timedelta(days=3))
        with world.failing(world.chunks, "get"):
            world.handle_chunk(message)
        assert world.sent() == [("chunk", 10)]

    def test_a_queue_that_takes_no_message_gets_them_at_the_next_reception(
        self, world: World
    ) -> None:
        world.pause(world.by_name["b"])
        down = QueueUnavailableError(1, "down")
        with world.failing(world.queue, "send", down), pytest.raises(QueueUnavailableError):
            world.handle_chunk(world.order())
        assert world.called() == []
        world.handle_chunk(world.order())
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]

    def test_a_finish_that_is_not_stored_counts_as_a_death(self, world: World) -> None:
        """Nobody knows the ends: they are called again, as after a crash."""
        with world.failing(world.chunks, "finish"):
            world.handle_chunk(world.order())
        assert world.sent() == [("chunk", 1)]
        world.run_until(DUE_AT + timedelta(minutes=8), ticking=False)
        assert world.called()[3:] == [("a", 2), ("b", 2), ("c", 2)]
        assert all(row and row.status is RunStatus.SUCCEEDED for row in map(world.row, "abc"))

    def test_the_attempt_of_a_failure_that_gets_no_row_counts(self, world: World) -> None:
        world.answer(b=BUSY)
        with world.failing(world.runs, "claim"):
            world.handle_chunk(world.order())
        assert world.ends() == {"a": OK, "b": DIED, "c": OK}
        world.answer()
        world.run_until(DUE_AT + STORE_WAIT_SECONDS * SECOND, ticking=False)
        assert world.called() == [("a", 1), ("b", 1), ("c", 1), ("b", 2)]
