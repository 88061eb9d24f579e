"""Looking for what was missed in a history that is far denser than the schedule."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.job import HandOver, Job
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.services.history import History
from carillon.services.missed_search import CHUNK, MOST_READ, MissedSearch
from carillon.stores.memory import MemoryRunStore
from carillon.stores.ports import Page
from tests.unit.api.conftest import BODY, new_world
from tests.unit.api.gateway import OWNER, Client
from tests.unit.api.runs.test_runs import make_run

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOON_BEFORE = NOW - 12 * HOUR


class Counting(MemoryRunStore):
    """Counts what is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for = 0

    def list(self, owner: str, job_id: str, limit: int, *more: Any, **bounds: Any) -> Page[Run]:
        self.asked_for += limit
        return super().list(owner, job_id, limit, *more, **bounds)


@pytest.fixture
def job() -> Job:
    """It fires each hour now."""
    world = new_world(NOW - timedelta(days=365))
    job_id = Client(world.api()).post("/jobs", BODY | {"schedule": "0 * * * *"}).json["job_id"]
    found = world.jobs.get(OWNER, job_id)
    assert found is not None
    return found


@pytest.fixture
def runs(job: Job) -> Counting:
    """It fired each second once, with success: for some minutes around each of 24 hours."""
    store = Counting()
    for hour in range(24):
        for second in range(-100, 100):
            fire_at = NOW - hour * HOUR + timedelta(seconds=second)
            put(store, make_run(job.job_id, fire_at, status=RunStatus.SUCCEEDED))
    return store


def put(store: MemoryRunStore, run: Run) -> None:
    assert store.claim(run, None)


def test_a_dense_history_is_asked_for_the_fire_times_alone(job: Job, runs: Counting) -> None:
    found = MissedSearch(History(runs)).newest(job, job.schedule, NOW - 30 * HOUR, NOW, NOW, 100)

    assert [missed.fire_at for missed in found.items] == [NOW - n * HOUR for n in range(24, 31)]
    assert found.is_complete
    assert runs.asked_for < 24 * 200, "fewer rows than there are"


def test_all_rows_of_a_fire_time_count(job: Job, runs: Counting) -> None:
    fire_at = NOW - 23 * HOUR
    at = next(iter(runs.list(OWNER, job.job_id, 1, from_at=fire_at, until_at=fire_at).items))
    dead = replace(at, status=RunStatus.DEAD, token=at.token + 1)
    assert runs.claim(dead, at)
    search = MissedSearch(History(runs))

    def is_missed() -> bool:
        found = search.newest(job, job.schedule, fire_at, NOW, NOW, 100)
        return fire_at in [missed.fire_at for missed in found.items]

    for number in range(100):
        key = replace(dead.key, kind=RunKind.BACKFILL, request_id=f"{number:03}")
        put(runs, replace(dead, key=key))
    assert is_missed()
    key = replace(dead.key, kind=RunKind.BACKFILL, request_id="100")
    put(runs, replace(dead, key=key, status=RunStatus.SUCCEEDED))
    assert not is_missed()


def test_one_search_is_bounded_and_says_how_far_it_came(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Endless(Counting):
        """Each page is full, whatever is asked for."""

        def list(self, owner: str, job_id: str, limit: int, *more: Any, **bounds: Any) -> Page[Run]:
            self.asked_for += limit
            run = make_run(job.job_id, bounds["until_at"], status=RunStatus.DEAD)
            return Page((run,) * limit, "more")

    runs = Endless()
    found = MissedSearch(History(runs)).newest(job, job.schedule, NOW - 2000 * HOUR, NOW, NOW, 5000)

    assert runs.asked_for < 2 * MOST_READ
    assert not found.is_complete
    assert len(found.items) == CHUNK
    assert found.from_at == found.items[-1].fire_at


def test_what_ran_under_another_owner_is_not_missed_nor_named(job: Job) -> None:
    """Of its runs that have not succeeded the new owner sees that nothing has."""
    store, former = MemoryRunStore(), "team/billing"
    old_id = job_id_of(former, job.spec.name)
    mark = HandOver(former, "ended")
    handed = replace(job, renamed_from=old_id, renamed_at=NOW - HOUR, handed_from=mark)
    for hours, status in ((1, RunStatus.SUCCEEDED), (2, RunStatus.DEAD), (3, RunStatus.SUCCEEDED)):
        run = make_run(old_id, NOW - hours * HOUR, status=status)
        assert store.claim(replace(run, key=replace(run.key, owner=former)), None)
    search = MissedSearch(History(store))
    found = search.newest(handed, handed.schedule, NOW - 4 * HOUR, NOW - HOUR, NOW, 10)
    shown = [(each.fire_at, each.run_id, each.status) for each in found.items]
    assert shown == [(NOW - 2 * HOUR, None, None), (NOW - 4 * HOUR, None, None)]


def test_the_row_that_covers_an_occurrence_is_found_however_many_follow_it(job: Job) -> None:
    store = MemoryRunStore()
    from_at, until_at = NOON_BEFORE, NOON_BEFORE + timedelta(minutes=14)
    covering = make_run(job.job_id, until_at, status=RunStatus.SKIPPED, covers_from=from_at)
    put(store, replace(covering, key=replace(covering.key, kind=RunKind.MISSED, request_id="g")))
    for second in range(1, 900):
        fire_at = until_at + timedelta(seconds=second)
        put(store, make_run(job.job_id, fire_at, status=RunStatus.SUCCEEDED))
    history = History(store)

    def found(fire_at: datetime) -> bool:
        return history.covering(OWNER, job.job_id, fire_at, NOW) is not None

    inside = [from_at + timedelta(seconds=second) for second in range(0, 841, 60)]
    assert all(map(found, inside))
    assert not found(from_at - timedelta(seconds=1))
    assert not any(found(until_at + timedelta(seconds=second)) for second in (1, 450, 899, 900))
