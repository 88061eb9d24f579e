"""Tasks of a chunk in real child processes: some wait a little, the others go alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from time import monotonic
from typing import Any

from carillon.clock import SideBySideThreads, ThreadTimers
from carillon.domain.targets import TaskTarget
from carillon.executor.router import Router
from carillon.executor.targets.call import Call, Outcome
from carillon.executor.targets.task import ROOM_SECONDS, TaskCaller
from carillon.executor.task_process.parent import TaskCode
from carillon.executor.task_process.pool import ChildPool
from tests.integration.executor.processes import SAMPLES
from tests.unit.executor.chunk_kit import DUE_AT, World

SHARED = 2


class Sleeping:
    """Each job sleeps as long as its name says, in seconds, in a child of its own."""

    def __init__(self, caller: TaskCaller) -> None:
        self._caller = caller

    def deliver(self, target: Any, call: Call) -> Outcome:
        seconds = call.job_name.partition(" ")[2]
        return self._caller.deliver(TaskTarget(name="sleep"), replace(call, payload=seconds))


@contextmanager
def chunk_of(*names: str) -> Iterator[World]:
    """A world whose chunk of these jobs has run, by the machine's clock."""
    world = World(*names)
    pool = ChildPool(TaskCode((SAMPLES,)), limit=SHARED + 1)
    caller = TaskCaller(pool, shared=SHARED)
    try:
        caller.deliver(TaskTarget(name="sleep"), _call(world))  # the first child has started
        pool.prepare(SHARED + 1)
        began = monotonic()
        world.clock.now = lambda: DUE_AT + timedelta(seconds=monotonic() - began)  # type: ignore[method-assign]
        world.executor = Router(
            replace(
                world.executor_ports,
                targets=Sleeping(caller),
                side_by_side=SideBySideThreads(len(names)),
                timers=ThreadTimers(),
                room=lambda target: caller.room(),
            )
        )
        world.handle_chunk(world.order())
        yield world
    finally:
        pool.close()


def _call(world: World) -> Call:
    return Call("run", "job", "warm up", "owner", 1, DUE_AT, "0", 20)


def test_many_quick_ones_share_few_children() -> None:
    with chunk_of(*(f"job-{number} 0.01" for number in range(20))) as world:
        assert world.sent() == []
        assert len(world.ends()) == 20


def test_one_behind_others_that_last_goes_alone_soon_and_has_not_failed() -> None:
    began = monotonic()
    with chunk_of("slow-a 3", "slow-b 3", "quick 0.01") as world:
        assert world.row("quick 0.01") is None
        assert world.sent() == [("quick 0.01", 1)]
    assert ROOM_SECONDS < 1 < monotonic() - began


def test_tasks_of_a_second_are_no_slow_ones() -> None:
    with chunk_of(*(f"job-{number} 1" for number in range(6))) as world:
        lasted = [
            run.updated_at - run.attempt_started_at
            for name in world.by_name
            if (run := world.row(name)) is not None and run.attempt_started_at is not None
        ]
        assert len(lasted) == SHARED
        assert max(lasted) < timedelta(seconds=2)
        assert len(world.sent()) == 6 - SHARED
