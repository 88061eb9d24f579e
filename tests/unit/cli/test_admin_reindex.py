"""`carillon admin reindex` on moto: what it says, and that the audit finds all indexed again."""

import json
from datetime import UTC, datetime

import pytest
import time_machine

from carillon.clock import SystemClock
from carillon.domain.wheel.segment import first_control
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.memory.wheel import MemoryWheelStore
from tests.unit.audit.planting import an_hour
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_admin import deployment
from tests.unit.cli.test_admin_audit import SPAN, copied, later

__all__ = ["deployment", "later"]


@pytest.fixture
def emptied(deployment: Settings) -> None:
    """The tables of an hour, but for what stood on the wheel."""
    world = an_hour()
    vars(world.wheel).update(vars(MemoryWheelStore()))
    world.indexer.control(0)  # as the next tick makes it
    copied(world, deployment)


def test_what_an_emptied_wheel_lacks_is_there_again(run: Run, emptied: None) -> None:
    before = run("admin", "audit", *SPAN)
    assert before.exit_code == 1
    assert before.stdout.count("indexed nowhere") == 5, before.stdout
    told = run("admin", "reindex", "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["jobs"] == 7
    assert list(answer["since"]) == ["0"]
    after = run("admin", "audit", *SPAN)
    assert "indexed nowhere" not in after.stdout, after.stdout
    repeated = json.loads(run("admin", "reindex", "--json").stdout)
    assert repeated == answer


@time_machine.travel(datetime(2026, 12, 1, 13, 40, tzinfo=UTC))
def test_it_says_what_it_did(run: Run, emptied: None) -> None:
    told = run("admin", "reindex", "--segment", "0", "--since", "2026-12-01T13:30:00Z")
    assert told.exit_code == 0, told.output
    assert "7 jobs read" in told.stdout
    assert "ticks go on from 2026-12-01T12:59:59Z" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--segment", "1"), 4, "segments 0 to 0"),
        (("--since", "noon"), 3, "since"),
        (("--since", "9000-01-01T00:00"), 3, "9000-01-01T00:00:00Z is to come"),
    ],
)
def test_what_it_cannot_do_is_refused(
    run: Run, emptied: None, arguments: tuple[str, ...], code: int, said: str
) -> None:
    told = run("admin", "reindex", *arguments)
    assert told.exit_code == code
    assert said in told.stderr


def test_a_segment_beyond_a_lowered_number_of_them_is_filed_anew(
    run: Run, emptied: None, deployment: Settings
) -> None:
    stores = open_stores(deployment, SystemClock())
    assert stores.wheel.put_control(first_control(1, datetime.now(UTC)), None)
    assert run("admin", "reindex", "--segment", "1").exit_code == 0
