"""History of runs that have no row but only their chunk."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Generation, Lane
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import Run, RunStatus
from carillon.domain.wheel.entry import minute_of
from carillon.errors import InvalidFieldError, UnreadableRowError
from carillon.executor.targets import Success
from carillon.services.missed_search import MissedSearch
from carillon.stores.chunks import Minute, Read
from carillon.stores.cursors import encode_cursor, runs_of
from carillon.stores.pages import Page
from tests.support.jobs import job_with
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import BUSY, DUE_AT
from tests.unit.executor.packed_kit import HOUR, S, World, renewed


@pytest.fixture
def world() -> World:
    return World("a", "b")


class TestPages:
    def test_a_success_has_no_row_and_is_shown_as_if_it_had(self, world: World) -> None:
        world.pack()
        assert world.row("a") is None
        job = world.by_name["a"]
        (run,) = world.past.page(job.owner, job.job_id, 10).items
        assert (run.key, run.status, run.result) == (world.alone("a").key, S, "done")
        assert world.past.get(run.key) == run
        assert world.past.latest(job.owner, job.job_id) == (run,)

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
    def test_rows_and_chunks_come_in_one_order(self, world: World, limit: int) -> None:
        world.answer(a=lambda call: BUSY if call.fire_at.hour % 3 == 0 else Success("done"))
        world.hours(8)
        assert world.shown("a", limit) == [
            (hour, RunStatus.RETRYING if hour % 3 == 0 else S) for hour in range(9, 1, -1)
        ]
        assert world.shown("b", limit) == [(hour, S) for hour in range(9, 1, -1)]

    @pytest.mark.parametrize("limit", [1, 3, 100])
    def test_a_span_is_inclusive(self, world: World, limit: int) -> None:
        world.hours(8)
        span = {"from_at": DUE_AT + HOUR, "until_at": DUE_AT + 3 * HOUR}
        assert [hour for hour, _ in world.shown("a", limit, **span)] == [5, 4, 3]

    def test_what_has_neither_row_nor_chunk_is_not_shown(self, world: World) -> None:
        """As in an outage."""
        world.pack()
        world.pack(at=DUE_AT + 5 * HOUR)
        assert [hour for hour, _ in world.shown("a")] == [7, 2]

    def test_a_long_outage_ends_a_page_and_no_list(self) -> None:
        world = World()
        world.make("a", "* * * * *")
        world.pack()
        world.clock.set(DUE_AT + 20 * HOUR)
        job = world.by_name["a"]
        first = world.past.page(job.owner, job.job_id, 5)
        assert first.items == ()
        assert first.next_cursor is not None
        assert world.shown("a", 5) == [(2, S)]
        assert len(world.past.latest(job.owner, job.job_id)) == 1

    def test_what_is_under_way_is_shown_as_running(self, world: World) -> None:
        world.chunks.put_plan(
            Plan(0, minute_of(DUE_AT), "salt", DUE_AT + LIFETIME, {(0, Lane.NORMAL): 1})
        )
        world.crash_after_claim(world.order())
        assert world.shown("a") == [(2, RunStatus.RUNNING)]

    def test_a_claim_that_is_to_be_withdrawn_hides_no_success(self, world: World) -> None:
        world.pack()
        row = world.past.get(world.alone("a").key)
        assert row is not None
        claim = replace(row, status=RunStatus.RUNNING, claim_id="another", finished_at=None)
        assert world.runs.claim(claim, None)
        assert world.shown("a") == [(2, S)]
        assert world.past.get(row.key) == row

    def test_a_row_that_was_put_between_the_two_reads_is_shown(self, world: World) -> None:
        world.answer(a=BUSY)
        listed = world.runs.list
        job = world.by_name["a"]
        before = listed(job.owner, job.job_id, 10)
        world.pack()
        world.runs.list = lambda *a, **k: before  # type: ignore[method-assign]
        assert world.shown("a") == [(2, RunStatus.RETRYING)]

    def test_a_chunk_that_has_expired_is_looked_for_no_more(self, world: World) -> None:
        world.pack()
        world.clock.set(DUE_AT + LIFETIME + HOUR)
        asked: list[Minute] = []

        def get_plans(minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
            asked.extend(minutes)
            return Read({}, {})

        world.chunks.get_plans = get_plans  # type: ignore[method-assign]
        job = world.by_name["a"]
        world.past.page(job.owner, job.job_id, 1_000)
        assert asked
        assert minute_of(DUE_AT) not in [minute for _, minute in asked]

    def test_a_job_that_is_not_plain_costs_no_look(self, world: World) -> None:
        world.make("not plain", overlap="skip")
        job = world.by_name["not plain"]
        with world.failing(world.chunks, "get_plans"), world.failing(world.chunks, "get_all"):
            assert world.past.page(job.owner, job.job_id, 10).items == ()

    def test_what_cannot_be_read_is_named_and_hides_no_other(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.hours(3)
        get_all = world.chunks.get_all

        def spoilt(keys: object, *, consistent: bool) -> object:
            read = get_all(keys, consistent=consistent)  # type: ignore[arg-type]
            bad = next(key for key in read.rows if key.minute == minute_of(DUE_AT + HOUR))
            return Read({k: v for k, v in read.rows.items() if k != bad}, {bad: "spoilt"})

        monkeypatch.setattr(world.chunks, "get_all", spoilt)
        job = world.by_name["a"]
        page = world.past.page(job.owner, job.job_id, 10)
        assert [run.key.fire_at.hour - 12 for run in page.items] == [4, 2]
        assert list(page.unreadable.values()) == ["spoilt"]

    def test_a_row_that_was_put_between_the_two_reads_and_cannot_be_read_is_named(
        self, world: World
    ) -> None:
        world.answer(a=BUSY)
        job = world.by_name["a"]
        before = world.runs.list(job.owner, job.job_id, 10)
        world.hours(2)
        world.answer(a=Success("done"))
        world.pack(at=DUE_AT + 2 * HOUR)
        world.runs.list = lambda *a, **k: before  # type: ignore[method-assign]
        world.runs.spoil(world.alone("a").key)
        page = world.past.page(job.owner, job.job_id, 10)
        assert [(run.key.fire_at.hour - 12, run.status) for run in page.items] == [
            (4, S),
            (3, RunStatus.RETRYING),
        ]
        assert list(page.unreadable) == [world.alone("a").key.sort_key]

    @pytest.mark.parametrize("position", ["x", "9" * 18 + "#", "9" * 20 + "#", "~"])
    def test_a_forged_cursor_is_refused(self, world: World, position: str) -> None:
        job = world.by_name["a"]
        forged = encode_cursor(runs_of(job.owner, job.job_id), position)
        with pytest.raises(InvalidFieldError, match="cursor"):
            world.past.page(job.owner, job.job_id, 10, forged)


class TestGenerations:
    """What a job was is known after it has become another."""

    def test_a_window_that_is_given_in_a_pause_makes_no_run(self, world: World) -> None:
        """What ran at 14:00 without it is not the occurrence of 13:50, which would run then."""
        world.pack()
        jobs, job = world.executor_ports.jobs, world.by_name["a"]
        paused = job.paused(world.clock.now())
        assert jobs.replace(paused, job.revision)
        schedule = world.new_job("other", "50 * * * *").schedule
        changed = replace(
            paused, schedule=schedule, spread_seconds=600, revision=paused.revision + 1
        )
        assert jobs.replace(changed, paused.revision)
        world.clock.advance(1800)
        ghost = replace(world.alone("a").key, fire_at=DUE_AT - timedelta(minutes=10))
        assert world.past.get(ghost) is None
        resumed, search = world.new_generation(changed), MissedSearch(world.past)
        begin, now = DUE_AT - 2 * HOUR, world.clock.now()
        found = search.newest(resumed, resumed.schedule, begin, DUE_AT, now, 10).items
        assert [f"{each.fire_at:%H:%M}" for each in found] == ["13:50", "12:50"]

    def test_what_is_changed_in_a_pause_is_nothing_that_has_run(self, world: World) -> None:
        """By the former window the occurrence of 12:00 ran a minute later, when the next schedule,
        without a window, has one."""
        jobs, job = world.executor_ports.jobs, world.by_name["a"]
        spread = replace(job, spread_seconds=60, revision=job.revision + 1)
        assert world.jobs.replace(spread, job.revision)
        world.by_name["a"] = spread
        world.pack("a", at=DUE_AT + timedelta(minutes=1))
        paused = spread.paused(world.clock.now() + timedelta(minutes=1))
        assert jobs.replace(paused, spread.revision)
        schedule = world.new_job("other", "1 * * * *").schedule
        changed = replace(paused, schedule=schedule, spread_seconds=0, revision=paused.revision + 1)
        assert jobs.replace(changed, paused.revision)
        world.clock.advance(600)
        shown = world.past.page(job.owner, job.job_id, 10).items
        assert [run.key.fire_at for run in shown] == [DUE_AT]

    @pytest.mark.parametrize("times", [1, 7])
    def test_a_change_of_schedule_hides_nothing(self, world: World, times: int) -> None:
        world.hours(2)
        for number in range(times):
            world.clock.advance(600)
            world.by_name["a"] = world.new_generation(world.by_name["a"], f"{number + 1} * * * *")
        assert world.shown("a") == [(3, S), (2, S)]
        key = world.alone("b").key
        run = world.past.get(replace(key, job_id=world.by_name["a"].job_id))
        assert run is not None
        assert run.status is S

    def test_a_pause_and_a_deletion_hide_nothing(self, world: World) -> None:
        world.hours(2)
        job = world.by_name["a"]
        jobs = world.executor_ports.jobs
        paused = job.paused(world.clock.now())
        assert jobs.replace(paused, job.revision)
        assert world.shown("a") == [(3, S), (2, S)]
        now = world.clock.now()
        assert jobs.replace(paused.deleted(now, now + LIFETIME), paused.revision)
        assert world.shown("a") == [(3, S), (2, S)]

    def test_nor_does_a_change_of_a_paused_job(self, world: World) -> None:
        """It keeps its generation, and its segment or schedule becomes another."""
        world.hours(2)
        job, jobs = world.by_name["a"], world.executor_ports.jobs
        paused = job.paused(world.clock.now())
        assert jobs.replace(paused, job.revision)
        moved = replace(paused, segment=3, revision=paused.revision + 1)
        assert jobs.replace(moved, paused.revision)
        assert world.shown("a") == [(3, S), (2, S)]

    def test_what_is_changed_in_a_pause_costs_no_look(self, world: World) -> None:
        """By the next schedule it would have been due at each second of its generation."""
        world.hours(2)
        job, jobs = world.by_name["a"], world.executor_ports.jobs
        world.clock.set(DUE_AT + 9 * HOUR)
        paused = job.paused(world.clock.now())
        assert jobs.replace(paused, job.revision)
        schedule = world.new_job("other", "* * * * * *").schedule
        changed = replace(paused, schedule=schedule, revision=paused.revision + 1)
        assert jobs.replace(changed, paused.revision)
        assert len(world.past.latest(job.owner, job.job_id, 5)) == 2
        world.new_generation(changed, "* * * * *")
        page = world.past.page(job.owner, job.job_id, 5)
        assert ([run.key.fire_at.hour - 12 for run in page.items], page.next_cursor) == (
            [3, 2],
            None,
        )

    def test_nor_does_what_goes_in_chunks_only_since_a_change_in_a_pause(
        self, world: World
    ) -> None:
        """Its generation ran alone: its rows must not come behind thousands of empty pages."""
        job = world.make("d", retry=RetryPolicy(max_attempts=1))
        message, jobs = world.alone("d"), world.executor_ports.jobs
        world.executor.handle(message, world.ends_at())
        world.clock.set(DUE_AT + 9 * HOUR)
        paused = job.paused(world.clock.now())
        assert jobs.replace(paused, job.revision)
        schedule = world.new_job("other", "* * * * * *").schedule
        plain = job_with(paused, revision=paused.revision + 1, retry=RetryPolicy())
        changed = replace(plain, schedule=schedule)
        assert jobs.replace(changed, paused.revision)
        pages = [world.past.page(job.owner, job.job_id, 5)]
        world.new_generation(changed, "0 * * * *")
        pages.append(world.past.page(job.owner, job.job_id, 5))
        shown = [([run.key for run in page.items], page.next_cursor) for page in pages]
        assert shown == [([message.key], None)] * 2

    @pytest.mark.parametrize("way", ["schedule", "deletion and return", "move in a pause"])
    def test_a_record_that_was_just_put_is_read_though_lists_may_be_behind(
        self, world: World, monkeypatch: pytest.MonkeyPatch, way: str
    ) -> None:
        """Or all that ran before the change would be missing for as long as a replica is behind."""
        world.hours(2)
        job, jobs = world.by_name["a"], world.executor_ports.jobs
        now, get_records = world.clock.now(), world.chunks.get_records
        stale = get_records(job.owner, job.job_id, consistent=False)
        if way == "schedule":
            world.new_generation(job, "30 * * * *")
        elif way == "move in a pause":
            paused = job.paused(now)
            assert jobs.replace(paused, job.revision)
            world.clock.advance(3600)
            moved = replace(paused, segment=3, revision=paused.revision + 1)
            assert jobs.replace(moved, paused.revision)
        else:
            gone = job.deleted(now, now + LIFETIME)
            assert jobs.replace(gone, job.revision)
            world.new_generation(gone, "30 * * * *")

        def behind(owner: str, job_id: str, *, consistent: bool) -> object:
            return get_records(owner, job_id, consistent=True) if consistent else stale

        monkeypatch.setattr(world.chunks, "get_records", behind)
        world.clock.advance(30)
        assert world.shown("a") == [(3, S), (2, S)]

    def test_one_of_two_places_that_cannot_be_read_hides_no_success_in_the_other(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.pack()
        job = world.by_name["a"]
        world.clock.set(DUE_AT + timedelta(seconds=30))
        begun = DUE_AT - timedelta(minutes=2)
        generation = Generation(world.entropy.new_id(begun), begun)
        later = replace(job.in_new_generation(generation, world.clock.now()), segment=3)
        assert world.executor_ports.jobs.replace(later, job.revision)
        monkeypatch.setattr("carillon.domain.chunks.history.chunked_from", lambda generation_id: 0)
        get_plans = world.chunks.get_plans

        def spoilt(minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
            rows = get_plans(minutes, consistent=consistent).rows
            return Read(rows, {each: "spoilt" for each in minutes if each[0] == 3})

        monkeypatch.setattr(world.chunks, "get_plans", spoilt)
        page = world.past.page(job.owner, job.job_id, 10, from_at=DUE_AT, until_at=DUE_AT)
        assert ([run.status for run in page.items], dict(page.unreadable)) == ([S], {})

    def test_what_runs_until_the_commit_is_shown(self, world: World) -> None:
        """The change begins before the occurrence, and its commit comes after it."""
        job = world.by_name["a"]
        world.clock.set(DUE_AT - timedelta(minutes=3))
        begun = world.clock.now()
        world.pack()
        changed = job.in_new_generation(
            replace(job.generation, generation_id=world.entropy.new_id(begun), from_at=begun), begun
        )
        changed = replace(changed, schedule=world.new_job("other", "30 * * * *").schedule)
        assert world.indexer.index_job(changed, job.revision)
        world.by_name["a"] = changed
        assert world.shown("a") == [(2, S)]

    def test_a_commit_that_was_lost_leaves_no_doubles(self, world: World) -> None:
        world.hours(2)
        job = world.by_name["a"]
        with world.dying(world.jobs, "replace"):
            world.new_generation(job, "30 * * * *")
        world.pack(at=DUE_AT + 2 * HOUR)
        assert world.shown("a") == [(4, S), (3, S), (2, S)]

    def test_a_change_that_loses_after_a_sleep_hides_nothing(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An operator's machine slept in the middle of its command; by then the owner has changed
        the job, and the record of what that ended must not shrink to the beginning of the sleep."""
        job, put_record = world.by_name["a"], world.chunks.put_record

        def sleep_first(record: GenerationRecord) -> None:
            monkeypatch.undo()
            world.hours(3)
            world.new_generation(job, "30 * * * *")
            put_record(record)

        monkeypatch.setattr(world.chunks, "put_record", sleep_first)
        moved = replace(renewed(world, job, DUE_AT - timedelta(minutes=1)), segment=3)
        assert not world.executor_ports.jobs.replace(moved, job.revision)
        assert world.shown("a") == [(4, S), (3, S), (2, S)]

    def test_a_change_between_two_reads_hides_nothing(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The row is read before the records: it has what no record says yet."""
        world.hours(2)
        job, get_records = world.by_name["a"], world.chunks.get_records

        def and_change(owner: str, job_id: str, *, consistent: bool) -> object:
            read = get_records(owner, job_id, consistent=consistent)
            monkeypatch.undo()
            world.new_generation(job, "30 * * * *")
            return read

        monkeypatch.setattr(world.chunks, "get_records", and_change)
        assert world.shown("a") == [(3, S), (2, S)]

    def test_a_record_that_cannot_be_read_is_named(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.pack()
        bad: Read[int, object] = Read({}, {3: "spoilt", 4: "of another version"})
        monkeypatch.setattr(world.chunks, "get_records", lambda *a, **k: bad)
        job = world.by_name["a"]
        page = world.past.page(job.owner, job.job_id, 10)
        assert [run.status for run in page.items] == [S]
        assert list(page.unreadable.values()) == ["spoilt", "of another version"]
        with pytest.raises(UnreadableRowError):
            world.past.get(replace(world.alone("a").key, fire_at=DUE_AT - HOUR))


def test_a_row_is_shown_as_it_is_while_its_chunk_is_claimed() -> None:
    world = World("a", "b")
    world.crash_after_claim(world.order())
    row, job = world.claim_for_another("b"), world.by_name["b"]
    assert world.past.page(job.owner, job.job_id, 1, None).items == (row,)


def test_a_row_that_is_known_is_not_read_again() -> None:
    world = World("a", "b")
    world.answer(b=BUSY)
    world.pack()
    job = world.by_name["b"]
    with world.failing(world.runs, "get"):
        page = world.past.page(job.owner, job.job_id, 1, None)
    assert page.items == (world.row("b"),)


def test_a_row_that_cannot_be_read_is_all_that_is_said_of_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may tell more than the success in its chunk."""
    world = World("a", "b")
    world.pack()
    key, job = world.alone("b").key, world.by_name["b"]
    rows: Page[Run] = Page((), None, {key.sort_key: "spoilt"})
    monkeypatch.setattr(world.runs, "list", lambda *_, **__: rows)
    assert world.past.page(job.owner, job.job_id, 1, None) == rows


def test_a_job_that_cannot_be_read_is_named() -> None:
    """Its runs in chunks are not known then."""
    world = World("a", "b")
    world.pack()
    job = world.by_name["b"]
    world.jobs.spoil(job.job_id)
    page = world.past.page(job.owner, job.job_id, 1, None)
    assert (page.items, list(page.unreadable)) == ((), ["0 job"])
