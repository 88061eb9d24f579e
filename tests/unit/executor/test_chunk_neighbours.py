"""What one occurrence of a chunk may not do to the others."""

from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.run import RunError, RunKey, RunStatus
from carillon.domain.targets import WebhookTarget
from carillon.errors import (
    HeldError,
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
)
from carillon.executor.batch import Handled, PartlyHandledError
from carillon.executor.targets import Call, Failure, Success
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World
from tests.unit.executor.kit import LEASE_SECONDS

HANGING = WebhookTarget(url="https://hangs.example.com/x")
HOUR = timedelta(hours=1)


def test_a_row_that_cannot_be_read_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor has died with the chunk, and one of its runs has a row of a later version."""
    world = World("a", "b", "c")
    world.crash_after_claim(world.order())
    world.claim_for_another("a")
    get, spoilt = world.runs.get, world.alone("a").key

    def get_or_refuse(key: RunKey) -> Any:
        if key == spoilt:
            raise UnreadableRowError("of a later version")
        return get(key)

    monkeypatch.setattr(world.runs, "get", get_or_refuse)
    world.clock.advance(3 * 3600)
    world.handle_chunk(world.order())
    world.run_until(DUE_AT + 6 * HOUR, ticking=False)
    assert {name for name, _ in world.called()} == {"b", "c"}


def test_jobs_whose_host_hangs_delay_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """To mark one takes a read and a write of its row, 30 ms each here: its own message does it."""
    world = World()
    for number in range(20):
        world.make(f"slow-{number:02}", target=HANGING)
    world.make("quick")
    hosts = world.executor._runs.slow_lane._hosts
    for _ in range(5):
        hosts.note(world.by_name["slow-00"], world.clock.now(), timed_out=True)

    def slowed(call: Any) -> Any:
        def whole(*args: Any) -> Any:
            world.clock.advance(0.03)
            return call(*args)

        return whole

    monkeypatch.setattr(world.jobs, "get", slowed(world.jobs.get))
    monkeypatch.setattr(world.jobs, "replace", slowed(world.jobs.replace))
    began = []

    def note(call: Call) -> Success:
        began.append(world.clock.now() - DUE_AT)
        return Success("done")

    world.answer(quick=note)
    world.handle_chunk(world.order())
    assert len(began) == 1
    assert began[0] < timedelta(seconds=0.2)
    assert len(world.sent()) == 20


def test_the_second_part_of_what_is_too_much_for_one_message_does_not_wait_for_the_first() -> None:
    """Ticks send more than a message takes, under a plan that stands, as several of one key."""
    world = World("a", "b", "c", "d")
    first, second = world.order("a", "b"), world.order("c", "d")

    def meanwhile(call: Call) -> Success:
        world.handle_chunk(second)
        return Success("done")

    world.answer(a=meanwhile)
    world.handle_chunk(first)
    assert sorted(world.sent()) == [("c", 1), ("d", 1)]
    assert {name for name, _ in world.called()} == {"a", "b"}


def test_what_has_died_for_good_is_told_though_anothers_retry_is_not_taken() -> None:
    world = World("a", "b", "c")
    world.answer(b=Failure(RunError("bad", "for good", permanent=True)), c=BUSY)
    down = QueueUnavailableError(1, "down")
    with (
        world.failing(world.executor_ports.indexer, "schedule_message", down),
        pytest.raises(PartlyHandledError) as raised,
    ):
        world.handle_chunk(world.order())
    assert raised.value.__cause__ is down
    ends = {each.run.status for each in raised.value.report.whole if each.run is not None}
    assert ends == {RunStatus.SUCCEEDED, RunStatus.DEAD}


def test_where_the_store_fails_one_the_chunk_waits_and_the_others_are_told() -> None:
    world = World("a", "b")
    world.answer(b=BUSY)
    down = StoreUnavailableError("down")
    with world.failing(world.executor_ports.indexer, "schedule_message", down):
        report = world.handle_chunk(world.order())
    ends = [each.run.status for each in report.whole if each.run is not None]
    assert ends == [RunStatus.SUCCEEDED]
    assert report.whole[-1].handled is Handled.DEFERRED


def test_they_are_told_though_the_queue_does_not_take_the_chunk_either() -> None:
    """Of one that has died for good no other message tells."""
    world = World("a", "b", "c")
    world.answer(b=Failure(RunError("bad", "for good", permanent=True)), c=BUSY)
    down = StoreUnavailableError("down")
    with (
        world.failing(world.executor_ports.indexer, "schedule_message", down),
        world.failing(world.queue, "send", QueueUnavailableError(1, "down")),
        pytest.raises(PartlyHandledError) as raised,
    ):
        world.handle_chunk(world.order())
    assert raised.value.__cause__ is down
    ends = {each.run.status for each in raised.value.report.whole if each.run is not None}
    assert ends == {RunStatus.SUCCEEDED, RunStatus.DEAD}


def test_one_of_them_is_told_though_what_follows_from_its_end_fails() -> None:
    world = World("a", "b")
    world.answer(b=Failure(RunError("bad", "for good", permanent=True)))
    down = StoreUnavailableError("down")
    with world.failing(world.executor_ports.indexer, "schedule_messages", down):
        report = world.handle_chunk(world.order())
    ends = {each.run.status for each in report.whole if each.run is not None}
    assert ends == {RunStatus.SUCCEEDED, RunStatus.DEAD}
    assert report.whole[-1].handled is Handled.DEFERRED


def test_what_has_died_for_good_is_told_though_the_finish_is_refused() -> None:
    """The process sleeps past its lease, and another one disbands its chunk."""
    world = World("a", "b")
    order = world.order()

    def sleep_on(call: Call) -> Success:
        world.answer()
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(order)
        return Success("late")

    world.answer(a=Failure(RunError("bad", "for good", permanent=True)), b=sleep_on)
    report = world.handle_chunk(order)
    assert [each.run.status for each in report.whole if each.run is not None] == [RunStatus.DEAD]


def test_nor_is_that_left_to_others_where_the_chunk_is_taken_for_a_cancellation() -> None:
    world = World("a", "b")

    def sleep_on(call: Call) -> Success:
        world.clock.advance(LEASE_SECONDS)
        assert world.chunks.fence(world.chunk(), "another")
        return Success("late")

    world.answer(a=Failure(RunError("bad", "for good", permanent=True)), b=sleep_on)
    with pytest.raises(PartlyHandledError) as raised:
        world.handle_chunk(world.order())
    assert isinstance(raised.value.__cause__, HeldError)
    ends = [each.run.status for each in raised.value.report.whole if each.run is not None]
    assert ends == [RunStatus.DEAD]
