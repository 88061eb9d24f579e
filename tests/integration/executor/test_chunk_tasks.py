"""Tasks of a chunk in real child processes: some wait a little, the others go alone."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from threading import Timer
from time import monotonic
from typing import Any

from carillon.clock import SideBySideThreads, ThreadTimers
from carillon.domain.targets import TaskTarget
from carillon.executor.router import Router
from carillon.executor.targets.call import Call, Outcome
from carillon.executor.targets.task import TaskCaller
from carillon.executor.task_process.parent import TaskCode
from carillon.executor.task_process.pool import ChildPool
from carillon.executor.task_process.room import Room
from tests.integration.executor.processes import SAMPLES
from tests.unit.executor.chunk_kit import DUE_AT, World

SHARED = 2
PATIENT = 60.0


class Echoing:
    """Every call is one of the task `echo`, in a child."""

    def __init__(self, caller: TaskCaller) -> None:
        self._caller = caller

    def deliver(self, target: Any, call: Call) -> Outcome:
        return self._caller.deliver(TaskTarget(name="echo"), replace(call, payload="1"))


@contextmanager
def tasks_of(
    *names: str, standstill_seconds: float = PATIENT, longest_seconds: float = PATIENT
) -> Iterator[tuple[World, TaskCaller]]:
    """A world with these jobs by the machine's clock, whose calls of chunks share two places."""
    world = World(*names)
    pool = ChildPool(TaskCode((SAMPLES,)), limit=SHARED)
    caller = TaskCaller(pool, room=Room(SHARED, standstill_seconds, longest_seconds))
    began = monotonic()
    world.clock.now = lambda: DUE_AT + timedelta(seconds=monotonic() - began)  # type: ignore[method-assign]
    ports = replace(
        world.executor_ports,
        targets=Echoing(caller),
        side_by_side=SideBySideThreads(len(names)),
        timers=ThreadTimers(),
        room=lambda target: caller.room(),
    )
    world.executor = Router(ports)
    try:
        yield world, caller
    finally:
        pool.close()


def test_many_share_few_children() -> None:
    names = [f"job-{number}" for number in range(20)]
    with tasks_of(*names) as (world, _):
        world.handle_chunk(world.order())
        assert world.sent() == []


def test_one_that_finds_no_room_soon_goes_alone_and_has_not_failed() -> None:
    with tasks_of("quick", longest_seconds=0.2) as (world, caller), ExitStack() as taken:
        for _ in range(SHARED):
            assert taken.enter_context(caller.room())
        world.handle_chunk(world.order())
        assert world.sent() == [("quick", 1)]
        assert world.row("quick") is None


def test_the_wait_for_room_is_no_part_of_the_attempt() -> None:
    with tasks_of("quick") as (world, caller), ExitStack() as taken:
        for _ in range(SHARED):
            assert taken.enter_context(caller.room())
        Timer(0.3, taken.close).start()
        world.handle_chunk(world.order())
        run = world.run("quick")
        assert run is not None
        assert run.started_at is not None
        assert run.started_at >= DUE_AT + timedelta(seconds=0.3)
