"""What a page of packed history reads, and where it ends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.chunks.history import newest_first
from carillon.domain.chunks.placing import Plan
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import minute_of
from carillon.stores.chunks import Minute, Read
from carillon.stores.cursors import pages
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import BUSY, DUE_AT
from tests.unit.executor.packed_kit import HOUR, S, World, renewed


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


def test_a_row_from_before_a_long_outage_waits_for_its_page() -> None:
    """Nothing is known yet of what lies between."""
    world = World()
    job = world.make("a", "* * * * *")
    world.answer(a=BUSY)
    world.pack()
    world.clock.set(DUE_AT + 20 * HOUR)
    found = [*pages(lambda cursor: world.past.page(job.owner, job.job_id, 5, cursor))]
    assert found[0].items == ()
    assert [run.key.fire_at for page in found for run in page.items] == [DUE_AT]


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


@pytest.mark.parametrize("is_changed", [True, False], ids=["the later one", "the one before"])
def test_of_two_generations_either_may_have_run_an_instant(is_changed: bool) -> None:
    """Which one its chunk has seen depends on when the change was committed."""
    world = World("a", "b")
    job, changed_at = world.by_name["a"], DUE_AT - timedelta(minutes=20)
    later = replace(renewed(world, job, DUE_AT - HOUR), updated_at=changed_at)
    if not is_changed:
        world.pack()
    assert world.executor_ports.jobs.replace(later, job.revision)
    world.by_name["a"] = later
    world.pack()
    (run,) = world.past.page(job.owner, job.job_id, 9, from_at=DUE_AT, until_at=DUE_AT).items
    ran = later if is_changed else job
    assert (run.status, run.generation_id) == (S, ran.generation.generation_id)


def test_the_last_row_of_a_page_hides_no_success_either() -> None:
    """It is the claim of a second message, and rows follow behind it."""
    world = World("a", "b")
    world.hours(2)
    job = world.by_name["a"]
    runs = world.past.page(job.owner, job.job_id, 9).items
    for run in runs:
        claim = replace(run, status=RunStatus.RUNNING, claim_id="another", finished_at=None)
        assert world.runs.claim(claim, None)
    assert world.past.page(job.owner, job.job_id, 1).items == runs[:1]


def spoilt_plans(world: World, monkeypatch: pytest.MonkeyPatch, *bad: Minute) -> None:
    """These plans cannot be read."""
    get_plans = world.chunks.get_plans

    def spoilt(minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        rows = get_plans(minutes, consistent=consistent).rows
        good = {each: plan for each, plan in rows.items() if each not in bad}
        return Read(good, {each: "spoilt" for each in minutes if each in bad})

    monkeypatch.setattr(world.chunks, "get_plans", spoilt)


@pytest.mark.parametrize("by_hand", [0, 1, 2])
def test_what_a_plan_hides_is_named_once(monkeypatch: pytest.MonkeyPatch, by_hand: int) -> None:
    """On the page that comes to it, be it the last position there, and on no other."""
    world = World("a", "b")
    world.hours(2)
    job = world.by_name["a"]
    asked = [world.ask(job) for _ in range(by_hand)]
    spoilt_plans(world, monkeypatch, (0, minute_of(DUE_AT)))
    found = [*pages(lambda cursor: world.past.page(job.owner, job.job_id, 2, cursor))]
    assert {run.key for page in found for run in page.items} == {
        *asked,
        replace(world.alone("a").key, fire_at=DUE_AT + HOUR),
    }
    named = [key for page in found for key in page.unreadable]
    assert named == [replace(world.alone("a").key, fire_at=DUE_AT).sort_key]


def test_what_runs_in_one_of_two_places_may_have_ended_in_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that one is named where it cannot be read."""
    world = World("a", "b")
    world.crash_after_claim(world.order())
    job = world.by_name["a"]
    later = replace(renewed(world, job, DUE_AT - HOUR), updated_at=DUE_AT, segment=3)
    assert world.executor_ports.jobs.replace(later, job.revision)
    spoilt_plans(world, monkeypatch, (3, minute_of(DUE_AT)))
    page = world.past.page(job.owner, job.job_id, 9, from_at=DUE_AT, until_at=DUE_AT)
    assert [run.status for run in page.items] == [RunStatus.RUNNING]
    assert [*page.unreadable.values()] == ["spoilt"]


def test_plans_are_read_once_but_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carillon.services.packed._MOST_PLANS", 4)
    world = World("a", "b")
    world.hours(5)
    job, past, asked = world.by_name["a"], world.past, asked_of(world, monkeypatch)
    for _ in range(3):
        assert len(past.page(job.owner, job.job_id, 5).items) == 5
    assert [len(minutes) for minutes in asked] == [5, 0, 5]
