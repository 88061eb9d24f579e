"""`carillon admin`: on the tables of a deployment, and cut off between any two calls."""

import json
import zoneinfo
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from carillon.cli.commands.admin import mend
from carillon.cli.exits import CliError
from carillon.domain.wheel.segment import Control
from carillon.errors import UnreadableRowError
from carillon.settings import Settings
from tests.support.tables import create_deployment
from tests.support.world import World
from tests.unit.cli.conftest import Run, name_deployment

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
CALLS = ("examine_control", "mend_control")


class Cut(BaseException):
    """The operator's process ends here."""


@pytest.fixture
def deployment(moto: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    settings = create_deployment("test")
    name_deployment(monkeypatch, settings, 16)
    yield settings
    zoneinfo.reset_tzpath()  # what puts jobs on the wheel has left the machine's files


def put_control(settings: Settings, **members: dict[str, Any]) -> None:
    key = {"segment_slot": {"S": "3#control"}, "entry_key": {"S": "control"}}
    boto3.client("dynamodb").put_item(TableName=settings.wheel_table, Item=key | members)


def test_a_segment_is_mended_on_the_tables_that_the_environment_names(
    run: Run, deployment: Settings
) -> None:
    put_control(
        deployment, horizon={"N": "29700002"}, watermark={"N": "29700000"}, token={"S": "seven"}
    )
    told = run("admin", "mend-segment", "3", "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert list(answer["mended"]) == ["token"]
    assert answer["watermark_at"] == "2026-06-21T00:00:59Z"
    assert answer["token"] > 1_790_000_000_000
    again = run("admin", "mend-segment", "3")
    assert again.exit_code == 0
    assert "nothing was changed" in again.stdout


def test_a_segment_beyond_a_lowered_number_is_mended(
    run: Run, deployment: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGMENTS", "3")
    put_control(
        deployment, horizon={"N": "29700002"}, watermark={"N": "29700000"}, token={"S": "seven"}
    )
    told = run("admin", "mend-segment", "3")
    assert told.exit_code == 0, told.output
    beyond = run("admin", "mend-segment", "4")
    assert beyond.exit_code == 4
    assert "segments 0 to 3" in beyond.stderr


@pytest.mark.parametrize(
    ("segment", "said"), [("16", "segments 0 to 15"), ("5", "nothing to mend")]
)
def test_what_cannot_be_mended_is_refused(
    run: Run, deployment: Settings, segment: str, said: str
) -> None:
    told = run("admin", "mend-segment", segment)
    assert told.exit_code == 4
    assert said in told.stderr


def test_a_deployment_that_cannot_be_reached_is_said(
    run: Run, deployment: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGMENTS", "many")
    told = run("admin", "mend-segment", "3")
    assert told.exit_code == 2
    assert "SEGMENTS" in told.stderr


def cut_at(world: World, patch: pytest.MonkeyPatch, number: int) -> None:
    """End the process at the `number`-th step: before or after each of the mend's calls."""
    steps = iter(range(number))

    def cutting(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **named: Any) -> Any:
            if next(steps, None) is None:
                raise Cut
            answer = call(*arguments, **named)
            if next(steps, None) is None:
                raise Cut
            return answer

        return called

    for name in CALLS:
        patch.setattr(world.wheel, name, cutting(getattr(world.wheel, name)))


@pytest.mark.parametrize("lost", [["token"], ["watermark"], ["horizon"], ["backlog", "cursor"]])
@pytest.mark.parametrize("number", range(2 * len(CALLS) + 1))
def test_a_mend_cut_off_anywhere_loses_no_occurrence(number: int, lost: list[str]) -> None:
    world = World(START, segments=1)
    job = world.create("job", "* * * * *")
    world.run_until(START + timedelta(minutes=2))
    world.wheel.spoil_control(0, lost)
    world.run_until(START + timedelta(minutes=9))
    with pytest.MonkeyPatch.context() as patch:
        cut_at(world, patch, number)
        try:
            mend(world.wheel, 0, world.clock.now)
        except Cut:
            pass
        else:
            assert number == 2 * len(CALLS)
    mend(world.wheel, 0, world.clock.now)
    world.run_until(START + timedelta(minutes=14))
    fired = world.fired(job)
    assert len(fired) == len(set(fired)), "nothing runs twice"
    minutes = [START + timedelta(minutes=n) for n in range(1, 15)]
    recorded = {
        minute
        for row in world.history(job)
        for minute in minutes
        if (row.covers_from or row.key.fire_at) <= minute <= row.key.fire_at
    }
    assert set(minutes) == recorded, "what came late is skipped, each with its row"
    assert minutes[-1] in fired


def test_a_mend_loses_against_a_tick_that_still_holds_the_segment() -> None:
    world = World(START, segments=1)
    world.tick()
    world.wheel.spoil_control(0, ["idle"])
    held = Control(0, horizon=30_000_000, watermark=30_000_000, token=9)

    class Overtaken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.wheel, name)

        def mend_control(self, control: Control, over: Any) -> bool:
            stored = world.wheel._controls[0]
            assert world.wheel.put_control(held, over=stored)
            return world.wheel.mend_control(control, over)

    with pytest.raises(UnreadableRowError):
        world.wheel.get_control(0)
    with pytest.raises(CliError, match="changed meanwhile"):
        mend(Overtaken(), 0, world.clock.now)
    assert world.wheel.get_control(0) == held
