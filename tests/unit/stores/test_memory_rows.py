"""The memory stores of runs, entries and jobs: their indexes, and what expires when asked to."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.run import Resolution, Run, RunStatus
from carillon.domain.wheel.entry import DATED_ENTRY_LIFETIME, Entry, Slot, minute_of, minute_start
from carillon.schedules import SlotKind, parse_schedule
from carillon.stores.memory import MemoryJobStore, MemoryRunStore, MemoryWheelStore
from tests.contract.samples import FIRE_AT, a_job, a_key, a_run, an_entry, job_id

OWNER = "owner"
DAY = timedelta(days=1)
MIDNIGHT = datetime(2026, 12, 1, tzinfo=FIRE_AT.tzinfo)


class TestExpiryOfRuns:
    @pytest.fixture
    def runs(self) -> MemoryRunStore:
        return MemoryRunStore()

    def claimed(self, runs: MemoryRunStore, days: float, number: int = 0) -> Run:
        """A run that expires so many days after MIDNIGHT."""
        key = a_key(OWNER, FIRE_AT + timedelta(seconds=number))
        run = a_run(key, expires_at=MIDNIGHT + days * DAY)
        assert runs.claim(run, None)
        return run

    def test_rows_go_at_their_instant_and_not_before(self, runs: MemoryRunStore) -> None:
        late, soon = self.claimed(runs, 9, 1), self.claimed(runs, 2, 2)
        assert runs.expire(MIDNIGHT + 2 * DAY - timedelta(seconds=1)) == []
        assert runs.expire(MIDNIGHT + 2 * DAY) == [soon]
        assert runs.get(soon.key) is None
        assert runs.list(OWNER, job_id(), 10).items == (late,)
        assert runs.expire(MIDNIGHT + 2 * DAY) == []

    def test_a_row_lives_as_long_as_its_last_write_says(self, runs: MemoryRunStore) -> None:
        run = self.claimed(runs, 2)
        later = replace(run, status=RunStatus.SUCCEEDED, expires_at=MIDNIGHT + 5 * DAY)
        assert runs.finish(later)
        assert runs.expire(MIDNIGHT + 3 * DAY) == []
        assert runs.get(run.key) == later
        assert runs.expire(MIDNIGHT + 5 * DAY) == [later]

    def test_a_write_may_bring_its_end_forward(self, runs: MemoryRunStore) -> None:
        run = self.claimed(runs, 9)
        sooner = replace(run, status=RunStatus.SUCCEEDED, expires_at=MIDNIGHT + DAY)
        assert runs.finish(sooner)
        assert runs.expire(MIDNIGHT + DAY) == [sooner]
        assert runs.expire(MIDNIGHT + 99 * DAY) == []

    def test_what_expires_is_told_by_its_instant(self, runs: MemoryRunStore) -> None:
        first, second = self.claimed(runs, 1, 1), self.claimed(runs, 2, 2)
        last = replace(first, status=RunStatus.SUCCEEDED, expires_at=MIDNIGHT + 3 * DAY)
        assert runs.finish(last)
        assert runs.expire(MIDNIGHT + 9 * DAY) == [second, last]

    def test_a_claim_withdrawn_and_made_again_is_one_row(self, runs: MemoryRunStore) -> None:
        run = self.claimed(runs, 1)
        for _ in range(50):
            assert runs.discard_claim(run)
            assert runs.list(OWNER, job_id(), 10).items == ()
            assert runs.claim(run, None)
        assert runs.list(OWNER, job_id(), 10).items == (run,)
        assert runs.expire(MIDNIGHT + DAY) == [run]
        assert runs.expire(MIDNIGHT + 9 * DAY) == []

    def test_an_expired_dead_letter_is_none_any_more(self, runs: MemoryRunStore) -> None:
        run = self.claimed(runs, 1)
        dead = replace(run, status=RunStatus.DEAD)
        assert runs.finish(dead)
        assert runs.dead_letters(OWNER, 10).items == (dead,)
        assert runs.expire(MIDNIGHT + DAY) == [dead]
        assert runs.dead_letters(OWNER, 10).items == ()
        assert runs.claim(run, None)
        assert runs.finish(dead)
        assert runs.dead_letters(OWNER, 10).items == (dead,)


def test_a_dead_letter_that_is_settled_leaves_the_list_between_two_pages() -> None:
    runs = MemoryRunStore()
    keys = [a_key(OWNER, FIRE_AT - timedelta(seconds=n)) for n in range(40)]
    for key in keys:
        assert runs.claim(a_run(key), None)
        assert runs.finish(a_run(key, status=RunStatus.DEAD))
    cursor, seen = None, []
    while True:
        page = runs.dead_letters(OWNER, 7, cursor)
        for run in page.items:
            assert runs.claim(replace(run, settled=Resolution.DISCARDED), run)
            seen.append(run.key)
        if (cursor := page.next_cursor) is None:
            break
    assert seen == keys
    assert runs.dead_letters(OWNER, 7).items == ()


class TestEntries:
    @pytest.fixture
    def wheel(self) -> MemoryWheelStore:
        return MemoryWheelStore(page_size=3)

    def dated(self, days: int, number: int = 0) -> Entry:
        slot = Slot(SlotKind.DATED, minute_of(MIDNIGHT + days * DAY))
        return an_entry(OWNER, 1, number, slot=slot)

    def test_dated_entries_go_two_weeks_after_their_minute(self, wheel: MemoryWheelStore) -> None:
        entries = [self.dated(2), self.dated(1, 1), self.dated(1, 2), an_entry(OWNER, 1)]
        wheel.put_entries(entries)
        first_end = minute_start(entries[1].slot.number) + DATED_ENTRY_LIFETIME
        assert wheel.expire(first_end - timedelta(seconds=1)) == []
        assert wheel.expire(first_end) == entries[1:3]
        assert wheel.query(1, entries[1].slot).items == ()
        assert wheel.query(1, entries[0].slot).items == (entries[0],)
        assert wheel.expire(first_end + 999 * DAY) == [entries[0]]
        assert wheel.query(1, entries[3].slot).items == (entries[3],)

    def test_a_standing_entry_goes_after_the_end_of_its_schedule(
        self, wheel: MemoryWheelStore
    ) -> None:
        schedule = parse_schedule("17 * * * *", end_at=MIDNIGHT)
        entry = an_entry(OWNER, 1, schedule=schedule)
        wheel.put_entries([entry])
        assert entry.expires_at is not None
        assert wheel.expire(entry.expires_at - timedelta(seconds=1)) == []
        assert wheel.expire(entry.expires_at) == [entry]

    def test_what_was_removed_does_not_expire_and_what_came_again_does_once(
        self, wheel: MemoryWheelStore
    ) -> None:
        gone, again = self.dated(1, 1), self.dated(1, 2)
        wheel.put_entries([gone, again])
        for entry in (gone, again):
            wheel.remove_entries(1, [(entry.slot, entry.key)])
        wheel.put_entries([again])
        assert wheel.expire(MIDNIGHT + 99 * DAY) == [again]

    def test_an_entry_put_or_removed_between_two_pages_is_seen_by_its_key(
        self, wheel: MemoryWheelStore
    ) -> None:
        entries = sorted((an_entry(OWNER, 1, n) for n in range(9)), key=lambda entry: entry.key)
        slot = entries[0].slot
        wheel.put_entries(entries[:4] + entries[5:])
        page = wheel.query(1, slot)
        assert page.items == tuple(entries[:3])
        wheel.put_entries([entries[4], entries[0]])
        wheel.remove_entries(1, [(slot, entries[3].key)])
        assert wheel.query(1, slot, page.next_cursor).items == tuple(entries[4:7])

    def test_slots_that_are_empty_take_no_room(self, wheel: MemoryWheelStore) -> None:
        entries = [self.dated(days) for days in range(20)]
        wheel.put_entries(entries)
        wheel.remove_entries(1, [(entries[0].slot, entries[0].key)])
        wheel.expire(MIDNIGHT + 99 * DAY)
        assert (wheel._slots, wheel._orders) == ({}, {})


def test_an_owners_jobs_are_listed_without_looking_at_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = MemoryJobStore()
    for number in range(200):
        assert jobs.create(a_job(f"owner-{number % 50}", job_id=job_id(number)))
    looked_at: list[object] = []
    monkeypatch.setattr(jobs, "_rows", _Counting(jobs._rows, looked_at.append))
    expected = sorted(job_id(number) for number in range(7, 200, 50))
    first = jobs.list("owner-7", 3)
    second = jobs.list("owner-7", 3, first.next_cursor)
    assert [job.job_id for job in (*first.items, *second.items)] == expected
    assert len(looked_at) == 4 + 1


class _Counting(dict[tuple[str, str], object]):
    """Tells of each row that is read."""

    def __init__(self, rows: object, tell: Callable[[object], None]) -> None:
        super().__init__(rows)  # type: ignore[call-overload]
        self._tell = tell

    def __getitem__(self, key: tuple[str, str]) -> object:
        self._tell(key)
        return super().__getitem__(key)
