"""Where in chunks the runs of a job are looked for, by its generations."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SeededEntropy
from carillon.domain.chunks.history import (
    GenerationRecord,
    left_by,
    looks_at,
    newest_first,
    records_of,
)
from carillon.domain.chunks.placing import Place
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.wheel.entry import COMMITTED_WITHIN, minute_of
from carillon.schedules import parse_schedule
from tests.contract.samples import a_job

LIFETIME = timedelta(days=30)
MADE = datetime(2026, 11, 20, 12, 0, 10, tzinfo=UTC)
CHUNKED = datetime(2026, 11, 20, 13, 1, tzinfo=UTC)
"""The first minute that goes in chunks, an hour after that."""
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
ENTROPY = SeededEntropy(0)


def generation(at: datetime) -> Generation:
    return Generation(ENTROPY.new_id(at), at)


def a_plain_job(schedule: str = "every 20m", **changes: Any) -> Job:
    fields = {"generation": generation(MADE), "updated_at": MADE, **changes}
    return a_job("owner", schedule=parse_schedule(schedule), **fields)


def found(
    records: list[GenerationRecord], now: datetime, newest: datetime | None = None
) -> list[str]:
    each = newest_first(records, newest or now, MADE - LIFETIME, now)
    return [f"{at:%H:%M:%S}" for at, _ in each]


def own(job: Job, now: datetime) -> list[GenerationRecord]:
    return records_of(job, (), now, LIFETIME)


class TestOwnGeneration:
    def test_it_begins_when_its_entries_are_settled(self) -> None:
        now = MADE + 2 * HOUR
        assert found(own(a_plain_job(), now), now) == ["14:00:00", "13:40:00", "13:20:00"]

    def test_an_offset_in_the_window_counts(self) -> None:
        """Effective times decide what goes in chunks, and what may have gone by now."""
        job, now = a_plain_job(spread_seconds=1200), MADE + 2 * HOUR
        assert found(own(job, now), now) == ["13:40:00", "13:20:00", "13:00:00"]
        (record,) = own(job, now)
        at = MADE.replace(hour=13, minute=40, second=0)
        look = record.look(at)
        assert look is not None
        assert look.minute == minute_of(at + timedelta(minutes=20))

    def test_the_bounds_are_inclusive(self) -> None:
        job, now = a_plain_job(), MADE + 3 * HOUR
        at = MADE.replace(hour=14, minute=20, second=0)
        within = newest_first(own(job, now), at, at - timedelta(minutes=20), now)
        assert [each for each, _ in within] == [at, at - timedelta(minutes=20)]

    def test_what_is_due_before_the_second_is_over_is_to_come(self) -> None:
        job, now = a_plain_job(), MADE.replace(hour=13, minute=59, second=59, microsecond=700_000)
        assert found(own(job, now), now) == ["13:40:00", "13:20:00"]

    def test_it_begins_behind_its_from_at(self) -> None:
        """Its window is longer than the hour in which its entries settle."""
        begun = generation(MADE.replace(second=0))
        job, now = a_plain_job(spread_seconds=7200, generation=begun), MADE + 3 * HOUR
        assert found(own(job, now), now) == ["13:00:00", "12:40:00", "12:20:00"]

    def test_a_pause_ends_it(self) -> None:
        job = a_plain_job().paused(MADE + 2 * HOUR)
        now = MADE + 10 * HOUR
        # A chunk may have read the row until the pause was committed.
        assert found(own(job, now), now)[:2] == ["14:20:00", "14:00:00"]

    def test_what_is_not_plain_has_none(self) -> None:
        assert own(a_plain_job("every 20m after finish"), MADE + 9 * HOUR) == []
        assert own(a_plain_job(overlap="skip"), MADE + 9 * HOUR) == []
        assert records_of(None, (), MADE, LIFETIME) == []


class TestRecords:
    def test_what_fires_alike_leaves_none(self) -> None:
        job = a_plain_job()
        assert left_by(job, job.paused(MADE + HOUR), LIFETIME) is None
        assert left_by(job, job.deleted(MADE + HOUR, MADE + LIFETIME), LIFETIME) is None

    @pytest.mark.parametrize("hours", [3, 9])
    def test_both_generations_are_searched(self, hours: int) -> None:
        changed_at, now = MADE + 2 * HOUR, MADE + hours * HOUR
        job = a_plain_job()
        after = replace(
            job.in_new_generation(generation(changed_at), changed_at),
            schedule=parse_schedule("30 * * * *"),
        )
        record = left_by(job, after, LIFETIME)
        assert record is not None
        shown = found(records_of(after, [record], now, LIFETIME), now)
        assert shown[-4:] == ["14:20:00", "14:00:00", "13:40:00", "13:20:00"]
        assert shown[:-4] == [f"{hour}:30:00" for hour in range(MADE.hour + hours - 1, 15, -1)] + (
            ["15:30:00"] if hours > 3 else []
        )

    def test_one_instant_of_both_is_one_occurrence_with_two_looks(self) -> None:
        changed_at = MADE + 2 * HOUR
        now, job = changed_at + 2 * HOUR, a_plain_job("0 * * * *")
        after = job.in_new_generation(generation(changed_at - 2 * HOUR + SECOND), changed_at)
        record = left_by(job, after, LIFETIME)
        assert record is not None
        records = records_of(after, [record], now, LIFETIME)
        looks = {f"{at:%H:%M}": len(each) for at, each in newest_first(records, now, MADE, now)}
        assert looks == {"16:00": 1, "15:00": 1, "14:00": 2}
        at = now.replace(hour=14, minute=0, second=0)
        assert len(looks_at(after, records, at)) == 2

    def test_a_lost_commit_tells_less_than_the_row(self) -> None:
        job, now = a_plain_job(), MADE + 9 * HOUR
        after = job.in_new_generation(generation(MADE + 2 * HOUR), MADE + 2 * HOUR)
        record = left_by(job, after, LIFETIME)
        assert record is not None
        assert records_of(job, [record], now, LIFETIME) == own(job, now)

    def test_the_order_in_which_they_are_read_decides_nothing(self) -> None:
        """A generation has fired as the first of its records says."""
        job = a_plain_job().paused(MADE + 2 * HOUR)
        moved = replace(job, segment=job.segment + 1, revision=job.revision + 1)
        again = moved.in_new_generation(generation(MADE + 5 * HOUR), MADE + 5 * HOUR)
        first, second = left_by(job, moved, LIFETIME), left_by(moved, again, LIFETIME)
        assert first is not None
        assert second is not None
        assert records_of(None, [second, first], MADE + 9 * HOUR, LIFETIME) == [first]

    def test_what_is_not_plain_for_a_while_in_a_pause_hides_nothing(self) -> None:
        """The first record of its generation says where it went, whatever comes after it."""
        job = a_plain_job().paused(MADE + 2 * HOUR)
        other = replace(
            job, spec=a_plain_job(overlap="skip").spec, revision=job.revision + 1, segment=9
        )
        again = replace(job, revision=other.revision + 1)
        left = [left_by(job, other, LIFETIME), left_by(other, again, LIFETIME)]
        stored, now = [each for each in left if each is not None], MADE + 9 * HOUR
        assert len(stored) == 2
        assert found(records_of(again, stored, now, LIFETIME), now) == found(own(job, now), now)

    @pytest.mark.parametrize("spread_seconds", [0, 7200], ids=["at once", "in a long window"])
    def test_a_renamed_job_has_the_past_alone(self, spread_seconds: int) -> None:
        job, now = a_plain_job(spread_seconds=spread_seconds), MADE + 2 * HOUR
        tombstone = job.renamed(generation(now), now, now + LIFETIME, job.author, "other")
        record = left_by(job, tombstone, LIFETIME)
        assert record is not None
        later = now + 9 * HOUR
        assert records_of(tombstone, [record], later, LIFETIME) == [record]

    def test_it_lives_as_long_as_its_chunks(self) -> None:
        window = timedelta(hours=8)
        job = a_plain_job(spread_seconds=int(window.total_seconds()))
        deleted = job.deleted(MADE + 2 * HOUR, MADE + LIFETIME)
        revived = deleted.in_new_generation(generation(MADE + 9 * HOUR), MADE + 9 * HOUR)
        record = left_by(deleted, revived, LIFETIME)
        assert record is not None
        assert record.until_at == MADE + 2 * HOUR
        last_due_at = record.until_at + COMMITTED_WITHIN + window
        last_claimed_at = last_due_at + timedelta(days=1)
        assert record.expires_at == last_claimed_at + LIFETIME

    def test_that_of_a_job_that_was_deleted_in_a_pause_ends_at_the_pause(self) -> None:
        paused = a_plain_job().paused(MADE + 2 * HOUR)
        deleted = paused.deleted(MADE + 5 * HOUR, MADE + LIFETIME)
        revived = deleted.in_new_generation(generation(MADE + 9 * HOUR), MADE + 9 * HOUR)
        record = left_by(deleted, revived, LIFETIME)
        assert record is not None
        assert record.until_at == paused.paused_at

    @pytest.mark.parametrize("spread_seconds", [0, 90], ids=["at once", "in a window"])
    def test_a_generation_leaves_one_if_any_of_it_may_have_gone_in_a_chunk(
        self, spread_seconds: int
    ) -> None:
        """At the last what is due while the change is committed."""
        job = a_plain_job(spread_seconds=spread_seconds)
        first = CHUNKED - COMMITTED_WITHIN - timedelta(seconds=spread_seconds)
        for changed_at, is_left in ((first - SECOND, False), (first, True)):
            after = job.in_new_generation(generation(changed_at), changed_at)
            assert (left_by(job, after, LIFETIME) is not None) is is_left

    def test_it_looks_for_what_it_covers(self) -> None:
        """Its window is longer than the hour in which its entries settle."""
        ended_at = MADE + 4 * HOUR
        job = a_plain_job(spread_seconds=7200)
        record = left_by(job, job.in_new_generation(generation(ended_at), ended_at), LIFETIME)
        assert record is not None
        last = ended_at + COMMITTED_WITHIN
        instants = (MADE, MADE + SECOND, last, last + SECOND)
        assert [record.look(at) is not None for at in instants] == [False, True, True, False]

    def test_its_place_is_that_of_the_row_that_it_was_taken_from(self) -> None:
        job = a_plain_job(priority=Lane.HIGH, segment=5, spread_seconds=30)
        after = job.in_new_generation(generation(MADE + HOUR), MADE + HOUR)
        record = left_by(job, after, LIFETIME)
        assert record is not None
        assert record.place == Place(5, Lane.HIGH, 30)
        assert record.look(CHUNKED - timedelta(seconds=31)) is None
        assert record.look(CHUNKED - timedelta(seconds=30)) is not None
