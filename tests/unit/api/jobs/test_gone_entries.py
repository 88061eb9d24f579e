"""Entries of jobs that requests have ended leave the wheel, after all else that was asked for."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from carillon.api.jobs.bulk_service import PAGE_SIZE, TIME_BUDGET
from carillon.domain.job import Job
from carillon.domain.wheel.entry import Entry, EntryKey, minute_of
from carillon.domain.wheel.segment import Control
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryJobStore, MemoryWheelStore
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import Client, Json

DISPATCHED = minute_of(NOW + timedelta(minutes=2))
BULK = (("POST", "/jobs/pause"), ("DELETE", "/jobs"))


class Told(MemoryWheelStore):
    """Notes each removal among the `steps`."""

    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self.steps = steps

    def remove_entries(self, segment: int, keys: Sequence[EntryKey]) -> None:
        self.steps.append("remove")
        super().remove_entries(segment, keys)


class Written(MemoryJobStore):
    def __init__(self, steps: list[str]) -> None:
        super().__init__()
        self.steps = steps

    def replace(self, job: Job, revision: int) -> bool:
        self.steps.append("commit")
        return super().replace(job, revision)


@pytest.fixture
def steps(world: World) -> list[str]:
    """What was committed and removed, in order; ticks have dispatched all that is due."""
    steps: list[str] = []
    world.jobs, world.wheel = Written(steps), Told(steps)
    for segment in range(world.settings.segments):
        assert world.wheel.put_control(Control(segment, DISPATCHED, DISPATCHED), over=None)
    return steps


def entries(world: World) -> list[Entry]:
    return [entry for slot in world.wheel._slots.values() for entry in slot.values()]


def made(client: Client, count: int = 1) -> list[str]:
    body: Json = BODY | {"schedule": "every 5m", "parent": "p"}
    return [client.post("/jobs", body).json["job_id"] for _ in range(count)]


def test_a_pause_a_deletion_and_a_change_remove_them_after_the_commit(
    world: World, steps: list[str]
) -> None:
    client = Client(world.api())
    paused, deleted, changed = made(client, 3)
    assert len(entries(world)) == 36
    assert client.post(f"/jobs/{paused}/pause").status == 200
    assert client.send("DELETE", f"/jobs/{deleted}").status == 204
    assert client.patch(f"/jobs/{changed}", {"schedule": "0 5 * * *"}, 1).status == 200
    assert {entry.job_id for entry in entries(world)} == {changed}
    assert [entry.slot.key for entry in entries(world)] == ["d300"]
    assert steps == ["commit", "remove"] * 3


def test_what_is_paused_already_removes_nothing(world: World, steps: list[str]) -> None:
    client = Client(world.api())
    (job_id,) = made(client)
    for _ in range(2):
        client.post(f"/jobs/{job_id}/pause")
    assert steps == ["commit", "remove"]


@pytest.mark.parametrize(("method", "path"), BULK)
def test_of_many_all_are_changed_before_any_entry_is_removed(
    world: World, steps: list[str], method: str, path: str
) -> None:
    client, count = Client(world.api()), PAGE_SIZE + 7
    made(client, count)
    assert client.send(method, path, query={"parent": "p"}).json["changed"] == count
    assert steps == ["commit"] * count + ["remove"] * count
    assert entries(world) == []


@pytest.mark.parametrize(("method", "path"), BULK)
def test_what_there_is_no_time_for_is_left(
    world: World, steps: list[str], method: str, path: str
) -> None:
    """The answer comes in time: those entries go one by one, as they are met."""

    class Slow(Written):
        def list(self, *arguments: Any, **named: Any) -> Any:
            world.clock.advance(TIME_BUDGET.total_seconds())
            return super().list(*arguments, **named)

    world.jobs = Slow(steps)
    client = Client(world.api())
    made(client, 3)
    assert client.send(method, path, query={"parent": "p"}).json["changed"] == 3
    assert steps == ["commit"] * 3
    assert len(entries(world)) == 36


def test_a_removal_that_fails_fails_no_request(world: World, steps: list[str]) -> None:
    class Failing(Told):
        def remove_entries(self, segment: int, keys: Sequence[EntryKey]) -> None:
            raise StoreUnavailableError("throttled")

    failing = Failing(steps)
    for segment in range(world.settings.segments):
        failing.put_control(Control(segment, DISPATCHED, DISPATCHED), over=None)
    world.wheel = failing
    client = Client(world.api())
    (job_id,) = made(client)
    assert client.send("DELETE", f"/jobs/{job_id}").status == 204
    assert client.get(f"/jobs/{job_id}").status == 404
    assert len(entries(world)) == 12
