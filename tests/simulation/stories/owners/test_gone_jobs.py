"""Jobs that are gone cost nothing, and lose nothing that they owed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from inspect import getmembers, ismethod
from typing import Any

import pytest

from carillon.api.jobs.service import JobService
from carillon.domain.job import Job, JobState
from carillon.domain.policies import CatchUp, OnComplete, Overlap, RetryPolicy
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import Entry
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Success
from carillon.schedules import SlotKind
from tests.simulation.stories.owners.test_operations_by_request import job_service
from tests.simulation.stories.story import MINUTE, NOON, REFUSED, SECOND, row_of, runs_of_kind
from tests.support.requests import job_patch
from tests.support.world import OWNER, World

LAST_ANNOUNCED = NOON + 3 * MINUTE - SECOND
"""By the tick of noon, with a look-ahead of two minutes."""
TO_EVERY_HOUR = job_patch({"schedule": "0 5 * * *"})

End = Callable[[JobService, Job], Any]
ENDS: dict[str, End] = {
    "delete": lambda api, job: api.delete(OWNER, job.job_id),
    "pause": lambda api, job: api.pause(OWNER, job.job_id),
    "change": lambda api, job: api.change(OWNER, job.job_id, TO_EVERY_HOUR, None),
}
every_end = pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)


@pytest.fixture
def world() -> World:
    """One segment, which the tick of 11:59 has seen."""
    world = World(NOON - MINUTE, segments=1)
    world.run_until(NOON)
    return world


def entries_of(world: World, job: Job) -> list[Entry]:
    """The entries of the job's generation as it was."""
    slots = [entries.values() for entries in world.wheel._slots.values()]
    return [e for slot in slots for e in slot if e.generation_id == job.generation.generation_id]


def requests_of(world: World, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts, from now on, the calls of stores by their names."""
    asked: Counter[str] = Counter()

    def counted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            asked[name] += 1
            return method(*given, **named)

        return call

    for store in (world.jobs, world.runs, world.wheel, world.admission_rows, world.calendars):
        for name, method in getmembers(store, ismethod):
            if not name.startswith("_"):
                told = f"{type(store).__name__}.{name}"
                monkeypatch.setattr(store, name, counted(told, method))
    return asked


@every_end
def test_a_job_of_every_second_that_is_ended_at_once_costs_what_was_announced(
    world: World, end: End
) -> None:
    job = world.create("job", "every 1s")
    assert len(entries_of(world, job)) == 60
    end(job_service(world), job)
    assert entries_of(world, job) == []
    world.run_until(NOON + 65 * MINUTE)
    assert [run.key.fire_at for run in world.history(job) if run.key.fire_at > LAST_ANNOUNCED] == []
    assert len(world.history(job)) <= 180


@every_end
def test_what_ticks_have_yet_to_dispatch_is_not_lost(world: World, end: End) -> None:
    """Ended in an outage: what came before stands in the backlog of the tick that comes back."""
    job = world.create("job", "* * * * *", catch_up=CatchUp.ALL)
    world.run_until(NOON + 10 * MINUTE + timedelta(seconds=30), ticking=False)
    ended_at = world.clock.now()
    end(job_service(world), job)
    assert len(entries_of(world, job)) == 60, "today's rule keeps them"
    world.run_until(NOON + 90 * MINUTE)
    runs = [run for run in world.history(job) if run.key.fire_at <= ended_at]
    assert [run.key.fire_at for run in runs] == [NOON + n * MINUTE for n in range(1, 11)]
    assert entries_of(world, job) == []


@every_end
def test_what_waits_for_its_place_in_the_window_is_not_lost(world: World, end: End) -> None:
    """Nominally at 12:10, ended at 12:11, to start at 12:15."""
    job = world.create("job", "*/10 * * * *", window="9m59s", fraction=0.5)
    assert 240 < job.spread_seconds < 360
    world.run_until(NOON + 11 * MINUTE)
    end(job_service(world), job)
    assert entries_of(world, job) != []
    world.run_until(NOON + 80 * MINUTE)
    assert [
        run.key.fire_at for run in world.history(job) if run.key.fire_at <= NOON + 11 * MINUTE
    ] == [NOON + 10 * MINUTE]
    assert entries_of(world, job) == []


def test_the_watch_looks_after_what_came_before_a_pause(world: World) -> None:
    world.targets.behave = lambda call: REFUSED
    job = world.create("job", "*/10 * * * *", expect_within=1200)
    world.run_until(NOON + 11 * MINUTE)
    job_service(world).pause(OWNER, job.job_id)
    assert {entry.is_watch for entry in entries_of(world, job)} == {True}
    world.run_until(NOON + 120 * MINUTE)
    looked = [run.key.fire_at for run in runs_of_kind(world, job, RunKind.WATCH)]
    assert looked == [NOON + 10 * MINUTE]
    assert entries_of(world, job) == []


def test_the_watch_of_a_deleted_job_goes_at_once(world: World) -> None:
    job = world.create("job", "*/10 * * * *", expect_within=1200)
    world.run_until(NOON + 11 * MINUTE)
    job_service(world).delete(OWNER, job.job_id)
    assert entries_of(world, job) == []


def test_a_job_that_failures_have_paused_has_no_entries(world: World) -> None:
    world.targets.behave = lambda call: REFUSED
    job = world.create(
        "job", "every 10s", pause_after_failures=2, retry=RetryPolicy(max_attempts=1)
    )
    world.run_until(NOON + MINUTE)
    assert row_of(world, job).state is JobState.PAUSED
    assert entries_of(world, job) == []
    assert len(world.history(job)) <= 18


def test_a_job_that_is_completed_and_deleted_has_no_entries(world: World) -> None:
    job = world.create("job", "every 10s", max_runs=3, on_complete=OnComplete.DELETE)
    world.run_until(NOON + MINUTE)
    assert row_of(world, job).state is JobState.COMPLETED
    assert [run.status for run in world.history(job)] == [RunStatus.SUCCEEDED] * 3
    assert entries_of(world, job) == []


def test_a_one_shot_that_is_deleted_leaves_nothing_to_its_minute(world: World) -> None:
    job = world.create("job", "at 2026-12-01T12:30:00Z")
    job_service(world).delete(OWNER, job.job_id)
    world.run_until(NOON + 31 * MINUTE)
    assert (entries_of(world, job), world.history(job)) == ([], [])


def test_the_end_of_a_one_shot_costs_no_read_of_the_control_item(world: World) -> None:
    job = world.create("job", "at 2026-12-01T12:30:00Z", on_complete=OnComplete.DELETE)
    world.run_until(NOON + 29 * MINUTE + timedelta(seconds=58))
    asked: list[int] = []
    read = world.wheel.get_control
    world.wheel.get_control = lambda segment: asked.append(segment) or read(segment)  # type: ignore[method-assign,func-returns-value]
    world.run_until(NOON + 30 * MINUTE + timedelta(seconds=5), ticking=False)
    assert row_of(world, job).state is JobState.COMPLETED
    assert asked == []


@every_end
def test_what_was_announced_of_it_costs_no_look_for_its_entry(
    world: World, monkeypatch: pytest.MonkeyPatch, end: End
) -> None:
    """Its entries went with the commit."""
    job = world.create("job", "every 10s")
    end(job_service(world), job)
    asked = requests_of(world, monkeypatch)
    world.run_until(LAST_ANNOUNCED, ticking=False)
    assert [run.status for run in world.history(job)] == [RunStatus.SKIPPED] * 17
    assert not {name for name in asked if name.startswith("MemoryWheelStore")}


def test_what_was_announced_of_a_deleted_job_costs_three_requests(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two hundred of them in one second were six each, and held up what was due in the next."""
    job = world.create("job", "every 10s", overlap=Overlap.SKIP)
    job_service(world).delete(OWNER, job.job_id)
    asked = requests_of(world, monkeypatch)
    world.run_until(LAST_ANNOUNCED, ticking=False)
    assert asked == dict.fromkeys(
        ("CheckedRuns.claim", "MemoryJobStore.get", "CheckedRuns.finish"), 17
    )


def test_a_store_that_fails_after_the_commit_fails_no_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left goes entry by entry, when it is next met by a later announcement."""
    job = world.create("job", "* * * * *")

    def fails(segment: int) -> None:
        raise StoreUnavailableError("throttled")

    with monkeypatch.context() as patched:
        patched.setattr(world.wheel, "get_control", fails)
        job_service(world).delete(OWNER, job.job_id)
    assert row_of(world, job).state is JobState.DELETED
    assert len(entries_of(world, job)) == 60
    world.run_until(NOON + 75 * MINUTE)
    assert entries_of(world, job) == []


@pytest.mark.parametrize("name", ["delete", "pause"])
def test_a_commit_whose_answer_is_lost_removes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job = world.create("job", "* * * * *")
    put = world.jobs.replace

    def lost(row: Job, revision: int) -> bool:
        put(row, revision)
        raise StoreUnavailableError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(world.jobs, "replace", lost)
        with pytest.raises(StoreUnavailableError):
            ENDS[name](job_service(world), job)
    assert len(entries_of(world, job)) == 60


def test_a_change_while_it_is_paused_leaves_the_entries_to_those_who_meet_them(
    world: World,
) -> None:
    """Its row does not say any more where they stand, nor by which place in a window."""
    job = world.create("job", "*/10 * * * *", window="9m59s", fraction=0.5)
    service = job_service(world)
    world.run_until(NOON + 11 * MINUTE)
    service.pause(OWNER, job.job_id)
    service.change(OWNER, job.job_id, job_patch({"window": None}), None)
    service.delete(OWNER, job.job_id)
    assert entries_of(world, job) != []
    world.run_until(NOON + 80 * MINUTE)
    assert NOON + 10 * MINUTE in {run.key.fire_at for run in world.history(job)}
    assert entries_of(world, job) == []


def test_a_resumed_job_fires_from_its_new_entries(world: World) -> None:
    job = world.create("job", "* * * * *")
    service = job_service(world)
    service.pause(OWNER, job.job_id)
    assert entries_of(world, job) == []
    world.run_until(NOON + 10 * MINUTE + timedelta(seconds=30))
    resumed = service.resume(OWNER, job.job_id).job
    assert {e.slot.kind for e in entries_of(world, resumed)} == {SlotKind.HOURLY}
    world.targets.behave = lambda call: Success(None)
    world.run_until(NOON + 20 * MINUTE)
    assert world.fired(replace(job))[-10:] == [NOON + n * MINUTE for n in range(11, 21)]
