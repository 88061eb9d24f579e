"""A call of a chunk that lasts gets its row as soon as the table takes it."""

from dataclasses import replace
from time import monotonic, sleep

import pytest

from carillon.clock import SideBySideThreads
from carillon.domain.run import RunStatus
from carillon.executor.router import Router
from carillon.executor.targets import Call, Outcome, Success
from tests.unit.executor.chunk_kit import World
from tests.unit.faults import failing


def test_one_put_that_fails_does_not_bind_all_others_to_a_call_that_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World("a", "b", "c")
    monkeypatch.setattr("carillon.executor.chunks.member_run.LOOK_SECONDS", 0.05)
    world.executor = Router(replace(world.executor_ports, side_by_side=SideBySideThreads(3)))
    seen: list[RunStatus | None] = []

    def last(call: Call) -> Outcome:
        until = monotonic() + 10
        while monotonic() < until and world.chunk().ends is None:
            sleep(0.02)
        seen.extend(run.status if run else None for run in map(world.run, "abc"))
        return Success("at last")

    world.answer(b=last)
    with failing(world.runs, "claim", times=1):
        world.handle_chunk(world.order())
    assert seen == [RunStatus.SUCCEEDED, RunStatus.RUNNING, RunStatus.SUCCEEDED]
