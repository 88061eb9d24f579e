"""The catch-up table of docs/running.md, as it is written there."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from carillon.domain.policies import CatchUp
from carillon.domain.run import RunStatus
from carillon.schedules import parse_duration
from tests.support.world import World

PAGE = Path(__file__).resolve().parents[4] / "docs" / "running.md"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BACK = NOON + timedelta(hours=3)
ALL = [NOON + timedelta(minutes=10 * number) for number in range(18)]


def rows() -> list[list[str]]:
    (table,) = re.findall(r"\| `catch_up` \| `grace` .*?\n\n", PAGE.read_text(), re.S)
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")[2:-2]]


def at(clock: str) -> datetime:
    hour, minute = clock.split(":")
    return NOON.replace(hour=int(hour), minute=int(minute))


@pytest.mark.parametrize(("policy", "grace", "runs", "others"), rows())
def test_a_row_of_the_table(policy: str, grace: str, runs: str, others: str) -> None:
    world = World(NOON - timedelta(minutes=10))
    job = world.create(
        "job",
        "every 10m",
        catch_up=CatchUp(policy.split("`")[1]),
        grace=None if grace == "none" else parse_duration(grace),
    )
    world.run_until(NOON - timedelta(minutes=3))
    world.run_until(BACK - timedelta(seconds=1), ticking=False)
    world.run_until(BACK + timedelta(minutes=3))
    missed = [run for run in world.history(job) if NOON <= run.key.fire_at < BACK]
    ran = [run.key.fire_at for run in missed if run.status is RunStatus.SUCCEEDED]
    assert ran == (
        ALL if runs.startswith("all 18") else [at(c) for c in re.findall(r"\d+:\d+", runs)]
    )
    told = [
        f"{run.covers_from:%H:%M} to {run.key.fire_at:%H:%M} ({run.covers_count})"
        if run.covers_from
        else f"{run.key.fire_at:%H:%M}"
        for run in missed
        if run.status is RunStatus.SKIPPED
    ]
    assert (", and ".join(told) or "none") == others


def test_there_are_rows() -> None:
    assert len(rows()) == 5
