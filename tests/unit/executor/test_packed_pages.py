"""What a page of packed history reads, and where it ends."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.chunks.history import newest_first
from carillon.domain.chunks.placing import Plan
from carillon.stores.chunks import Minute, Read
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import BUSY, DUE_AT
from tests.unit.executor.packed_kit import HOUR, World


def asked_of(world: World, monkeypatch: pytest.MonkeyPatch) -> list[list[Minute]]:
    """The minutes whose plans are asked for, by request."""
    get_plans, asked = world.chunks.get_plans, list[list[Minute]]()

    def noted(minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        asked.append([*minutes])
        return get_plans(minutes, consistent=consistent)

    monkeypatch.setattr(world.chunks, "get_plans", noted)
    return asked


@pytest.mark.parametrize(
    ("limit", "sizes"), [(5, [5, 10, 20, 40, 80, 100]), (100, [100, 100, 100])]
)
def test_what_finds_nothing_asks_for_ever_more_at_once(
    monkeypatch: pytest.MonkeyPatch, limit: int, sizes: list[int]
) -> None:
    """Up to what one request reads, and until it has found none of 200 beyond its limit."""
    world = World()
    job = world.make("a", "* * * * *")
    world.clock.set(DUE_AT + 20 * HOUR)
    asked = asked_of(world, monkeypatch)
    assert world.past.page(job.owner, job.job_id, limit).items == ()
    assert [len(minutes) for minutes in asked] == sizes


def test_rows_from_before_an_outage_are_on_the_page_behind_it() -> None:
    """They fill no page that has not come to them."""
    world = World("a", "b")
    world.answer(a=BUSY)
    world.hours(2)
    world.clock.set(DUE_AT + 9 * HOUR)
    job = world.by_name["a"]
    page = world.past.page(job.owner, job.job_id, 2)
    assert [run.key.fire_at for run in page.items] == [DUE_AT + HOUR, DUE_AT]


def test_occurrences_are_looked_for_between_two_cursors_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or each page of a job that is due every second would go through a month of them."""
    world, spans = World("a", "b"), list[tuple[datetime, datetime]]()
    world.answer(a=BUSY)
    world.hours(5)
    job = world.by_name["a"]

    def noted(records: Any, newest: datetime, oldest: datetime, now: datetime) -> Any:
        spans.append((newest, oldest))
        return newest_first(records, newest, oldest, now)

    monkeypatch.setattr("carillon.services.packed.newest_first", noted)
    first = world.past.page(job.owner, job.job_id, 2)
    world.past.page(job.owner, job.job_id, 2, first.next_cursor)
    assert spans == [
        (world.clock.now(), DUE_AT + 3 * HOUR),
        (DUE_AT + 3 * HOUR, DUE_AT + HOUR),
    ]


def test_a_cursor_does_not_widen_the_span() -> None:
    world = World("a", "b")
    world.hours(6)
    job = world.by_name["a"]
    first = world.past.page(job.owner, job.job_id, 1)
    page = world.past.page(job.owner, job.job_id, 9, first.next_cursor, until_at=DUE_AT + HOUR)
    assert [run.key.fire_at for run in page.items] == [DUE_AT + HOUR, DUE_AT]


def test_records_beside_a_job_that_cannot_be_read_are_those_of_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may just have been changed."""
    world = World("a", "b")
    world.hours(2)
    job, get_records = world.by_name["a"], world.chunks.get_records
    stale = get_records(job.owner, job.job_id, consistent=False)
    world.new_generation(job, "30 * * * *")
    world.jobs.spoil(job.job_id)
    monkeypatch.setattr(
        world.chunks,
        "get_records",
        lambda *scope, consistent: get_records(*scope, consistent=True) if consistent else stale,
    )
    page = world.past.page(job.owner, job.job_id, 10)
    assert [run.key.fire_at for run in page.items] == [DUE_AT + HOUR, DUE_AT]


@pytest.mark.parametrize("consistent", [True, False])
def test_all_of_a_page_is_read_as_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, consistent: bool
) -> None:
    """Strong reads cost twice as much."""
    world, asked = World("a", "b"), list[tuple[str, bool]]()
    world.hours(1)
    world.clock.advance(600)
    for name in ("get_records", "get_plans", "get_all"):
        method = getattr(world.chunks, name)

        def noted(*more: Any, name: str = name, method: Any = method, consistent: bool) -> Any:
            asked.append((name, consistent))
            return method(*more, consistent=consistent)

        monkeypatch.setattr(world.chunks, name, noted)
    job = world.by_name["a"]
    world.past.page(job.owner, job.job_id, 10, consistent=consistent)
    assert asked == [(name, consistent) for name in ("get_records", "get_plans", "get_all")]


def test_the_longest_offset_of_all_generations_counts() -> None:
    """Chunks live from their claims on, which come that much later."""
    world = World()
    job = world.make("a", window="50m", fraction=0.5)
    offset = timedelta(seconds=job.spread_seconds)
    world.pack(at=DUE_AT + offset)
    world.new_generation(job, spread_seconds=0, window=None)
    world.clock.set(DUE_AT + offset + LIFETIME - timedelta(minutes=1))
    page = world.past.page(job.owner, job.job_id, 9, from_at=DUE_AT, until_at=DUE_AT)
    assert [run.key.fire_at for run in page.items] == [DUE_AT]
