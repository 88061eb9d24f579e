"""An hour of a deployment in memory, and defects that can be planted in its tables."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carillon.domain.job import Job
from carillon.domain.policies import CatchUp
from carillon.domain.run import Resolution, Run, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import entries_of
from tests.support.world import OWNER, World

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
END = START + timedelta(hours=1)
OUTAGE = (START + timedelta(minutes=20), START + timedelta(minutes=32))


def an_hour() -> World:
    """Jobs of several kinds, an outage of the ticks in the middle, a pause and a change."""
    world = World(START, segments=1)
    world.create("steady", "every 20s")
    world.create("chain", "every 3m after finish")
    world.create("all", "every 1m", catch_up=CatchUp.ALL)
    world.create("once", "at 2026-12-01T12:17:00")
    world.create("rare", "every 7h")
    changed, paused = world.create("changed", "every 30s"), world.create("paused", "every 1m")
    world.run_until(START + timedelta(minutes=15))
    world.new_generation(changed, "every 50s")
    paused = world.pause(paused)
    world.run_until(OUTAGE[0])
    world.run_until(OUTAGE[1], ticking=False)
    world.new_generation(paused)
    world.run_until(END)
    return world


def job(world: World, name: str) -> Job:
    """The row of the job with this name, as it stands."""
    return next(each for each in world.jobs.list(OWNER, 100).items if each.spec.name == name)


def put(world: World, row: Run) -> None:
    """Write a row as it is, whatever stands there."""
    world.runs._put(row, None, allowed=True)


def remove(world: World, row: Run) -> None:
    world.runs._rows.pop(row.key)


def run_of(world: World, name: str, minute: float) -> Run:
    """The scheduled run of a job at so many minutes after the start."""
    at = START + timedelta(minutes=minute)
    found = world.runs.get(RunKey(OWNER, job(world, name).job_id, RunKind.SCHEDULED, at))
    assert found is not None
    return found


def a_row_is_lost(world: World) -> None:
    remove(world, run_of(world, "steady", 10))


def a_catch_up_is_lost(world: World) -> None:
    rows = world.history(job(world, "steady"))
    remove(world, next(row for row in rows if row.key.kind is RunKind.MISSED))


def a_catch_up_counts_wrong(world: World) -> None:
    rows = world.history(job(world, "steady"))
    row = next(row for row in rows if row.key.kind is RunKind.MISSED)
    put(world, replace(row, covers_count=3))


def a_run_is_no_occurrence(world: World) -> None:
    row = run_of(world, "steady", 10)
    at = row.key.fire_at + timedelta(seconds=7)
    put(world, replace(row, key=replace(row.key, fire_at=at)))


def a_run_never_ends(world: World) -> None:
    row = run_of(world, "steady", 10)
    put(world, replace(row, status=RunStatus.RUNNING, finished_at=None, lease_until=row.updated_at))


def a_chain_ends(world: World) -> None:
    rows = world.history(job(world, "chain"))
    for row in rows[-8:]:
        remove(world, row)


def a_run_succeeds_twice(world: World) -> None:
    row = run_of(world, "steady", 10)
    put(world, replace(row, key=replace(row.key, redrive=1)))


def a_dead_letter_has_no_reason(world: World) -> None:
    put(world, replace(run_of(world, "steady", 10), status=RunStatus.DEAD, reason=None))


def a_skip_has_no_reason(world: World) -> None:
    put(world, replace(run_of(world, "steady", 10), status=RunStatus.SKIPPED, reason="bored"))


def a_redrive_is_lost(world: World) -> None:
    row = run_of(world, "steady", 10)
    settled = replace(row, status=RunStatus.DEAD, reason="refused", settled=Resolution.REDRIVEN)
    put(world, settled)


def a_success_never_began(world: World) -> None:
    put(world, replace(run_of(world, "steady", 10), started_at=None))


def an_entry_is_lost(world: World) -> None:
    for name in ("steady", "rare"):
        row = job(world, name)
        for segment_slot in [place for place in world.wheel._slots if place[0] == row.segment]:
            keys = [key for key in world.wheel._slots[segment_slot] if key.startswith(row.job_id)]
            world.wheel.remove_entries(row.segment, [(segment_slot[1], key) for key in keys])
    assert entries_of(job(world, "rare"))


def a_segment_stands_still(world: World) -> None:
    control = world.wheel.get_control(0)
    assert control is not None
    world.wheel._controls[0] = replace(control, watermark=control.watermark - 20)


def a_control_item_is_unreadable(world: World) -> None:
    world.wheel.spoil_control(0, ["token"])


def a_control_item_is_lost(world: World) -> None:
    del world.wheel._controls[0]


DEFECTS: tuple[tuple[Callable[[World], None], str], ...] = (
    (a_row_is_lost, "at 2026-12-01 12:10:00+00:00 has no row"),
    (a_catch_up_is_lost, "has no row"),
    (a_catch_up_counts_wrong, "it counts 3"),
    (a_run_is_no_occurrence, "no generation of its job yields 2026-12-01 12:10:07+00:00"),
    (a_run_never_ends, "is running for ever"),
    (a_chain_ends, "its chain ended with"),
    (a_run_succeeds_twice, "one run of an occurrence may"),
    (a_dead_letter_has_no_reason, "is dead for None"),
    (a_skip_has_no_reason, "is skipped for 'bored'"),
    (a_redrive_is_lost, "is redriven, and there is no"),
    (a_success_never_began, "it began at None"),
    (an_entry_is_lost, "is indexed nowhere"),
    (a_segment_stands_still, "segment 0 has dispatched nothing after"),
    (a_control_item_is_unreadable, "control item of segment 0"),
    (a_control_item_is_lost, "no tick serves its segment, 0"),
)
"""With each, words of what an audit then says."""
