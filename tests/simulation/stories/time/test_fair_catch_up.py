"""After an outage an owner's few occurrences do not wait for another's many (ATTACK A5)."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import carillon.domain.wheel.segment as segment
import carillon.tick.counting as counting
from carillon.domain.chunks.message import Order
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.pace import bucket_of
from carillon.errors import QueueUnavailableError
from carillon.simulation.run import Plan, Simulation
from tests.simulation.stories.story import MINUTE, SECOND, row_of
from tests.support.manifests import workload_of
from tests.support.world import World

START = datetime(2026, 12, 1, 0, 15, tzinfo=UTC)
OUT_FROM, OUT_UNTIL = START + timedelta(minutes=5), START + timedelta(minutes=25)
TASK = {"type": "task", "name": "echo"}
MODEST = {"name": "modest", "schedule": "*/30 * * * *", "target": TASK}
GREEDY = {"name": "greedy", "schedule": "*/2 * * * * *", "target": TASK, "catch_up": "all"}


def lags(*bodies: dict[str, Any]) -> dict[str, float]:
    """The longest lag of each definition's jobs, where no tick comes for twenty minutes."""
    profile = {"modest": {"copies": 40, "owner": "b"}, "greedy": {"copies": 16, "owner": "a"}}
    names = [body["name"] for body in bodies]
    workload = workload_of(bodies, simulate={name: profile[name] for name in names})
    down = [(OUT_FROM, OUT_UNTIL)]
    simulation = Simulation(
        workload,
        Plan(START, START + timedelta(minutes=34), ticks_down=down),
    )
    simulation.advance(simulation.plan.until_at)
    lines = simulation.summary()["jobs"]
    return {line["name"]: line["max_lag_seconds"] for line in lines}


def test_forty_jobs_do_not_wait_for_sixteen_greedy_ones_of_another_owner() -> None:
    assert bucket_of("a") != bucket_of("b")
    alone = lags(MODEST)["modest"]
    beside = lags(MODEST, GREEDY)
    assert alone > 590, "they were missed"
    assert beside["modest"] <= 1.1 * alone
    assert beside["greedy"] > 1.1 * alone, "the share is what it was"


SHARE = 60


def behind(*owners: tuple[str, str, int]) -> World:
    """Twenty minutes behind: of each owner so many jobs with this schedule, all to be caught up."""
    world = World(START, segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=SHARE)
    for owner, schedule, count in owners:
        for number in range(count):
            job = world.new_job(f"{owner}-{number}", schedule, catch_up=CatchUp.ALL)
            assert world.indexer.index_job(replace(job, owner=owner), None)
    world.run_until(OUT_FROM)
    world.run_until(OUT_UNTIL - SECOND, ticking=False)
    world.targets.calls.clear()
    return world


def started(world: World, minutes: int) -> list[tuple[str, datetime, datetime]]:
    """Whose, of when and when started, of what was late."""
    found = []
    deliver = world.targets.behave

    def note(call: Any) -> Any:
        if call.fire_at < OUT_UNTIL:
            found.append((call.owner, call.fire_at, world.clock.now()))
        return deliver(call)

    world.targets.behave = note
    world.run_until(OUT_UNTIL + timedelta(minutes=minutes))
    return found


def test_the_pace_of_all_owners_together_is_never_more_than_the_share() -> None:
    world = behind(("a", "every 5s", 4), ("b", "*/5 * * * *", 9), ("c", "every 20s", 1))
    starts = started(world, 25)
    per_minute = Counter((at - OUT_UNTIL) // MINUTE for _, _, at in starts)
    assert max(per_minute.values()) <= SHARE + 1, "places are whole seconds"
    busy = [per_minute[minute] for minute in range(max(per_minute))]
    assert min(busy) >= SHARE - 1, "none is left unused while anybody waits"
    last_of_b = max(at for owner, _, at in starts if owner == "b")
    assert last_of_b - OUT_UNTIL < timedelta(minutes=3)


def test_one_row_for_all_owners_would_hold_up_the_modest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bug planted: the share is not divided."""
    for module in (counting, segment):
        monkeypatch.setattr(module, "bucket_of", lambda owner: 0)
    starts = started(behind(("a", "every 5s", 4), ("b", "*/5 * * * *", 9)), 25)
    assert max(at for owner, _, at in starts if owner == "b") - OUT_UNTIL > timedelta(minutes=10)


def test_nor_do_few_wait_for_many_where_ticks_came_and_the_queue_took_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of it was announced, and its jobs are plain: what is in no chunk has turns, too."""
    world = World(START - timedelta(minutes=90), segments=1)
    world.tick_ports = replace(world.tick_ports, catch_up_share=SHARE)
    for owner, name, schedule in (
        *(("a", f"a-{number}", f"every 5s offset {number}s") for number in range(4)),
        ("b", "b", "every 5m offset 4s"),
    ):
        job = world.new_job(name, schedule, catch_up=CatchUp.ALL)
        assert world.indexer.index_job(replace(job, owner=owner), None)
    world.leap_to(START)
    world.run_until(OUT_FROM)

    def refuse(messages: Sequence[Order], *terms: Any) -> None:
        raise QueueUnavailableError(len(messages), "it takes nothing")

    with monkeypatch.context() as patched:
        patched.setattr(world.queue, "send", refuse)
        world.run_until(OUT_UNTIL - SECOND)
    starts = started(world, 20)
    last = {owner: max(at for each, _, at in starts if each == owner) for owner in "ab"}
    assert last["b"] - OUT_UNTIL < timedelta(minutes=2)
    assert last["a"] - OUT_UNTIL > timedelta(minutes=10)


@pytest.mark.parametrize("dies_after", [1, 3, 7, 20])
def test_nothing_is_lost_when_a_tick_dies_in_the_middle(
    monkeypatch: pytest.MonkeyPatch, dies_after: int
) -> None:
    """Between two sends, and so between two checkpoints: its lease lapses, and another goes on."""

    class Died(BaseException):
        pass

    world = behind(("a", "every 5s", 4), ("b", "*/5 * * * *", 9))
    jobs = [job for owner in "ab" for job in world.jobs.list(owner, 100).items]
    sends = 0
    send = world.queue.send

    def dying(*terms: Any) -> None:
        nonlocal sends
        sends += 1
        if sends == dies_after:
            raise Died
        send(*terms)

    with monkeypatch.context() as patched:
        patched.setattr(world.queue, "send", dying)
        with suppress(Died):
            world.tick()
    world.clock.advance(60)
    world.run_until(OUT_UNTIL + timedelta(minutes=40))
    for job in jobs:
        due = list(row_of(world, job).schedule.between(job.generation.from_at, OUT_UNTIL))
        assert [run.key.fire_at for run in world.history(job)][: len(due)] == due
