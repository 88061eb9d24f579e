"""Which entries may be removed: of what a job has ended, those that owe nothing any more."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.job import Generation, Job, JobState
from carillon.domain.run import RunKind
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.domain.wheel.segment import Backlog, Control
from carillon.domain.wheel.stale import ANNOUNCED_FOR, ended_entries, ended_entry, removable
from carillon.schedules import SlotKind, parse_schedule
from tests.unit.domain.samples import KEY, NEWER_YOUNG, NOON, OLD, OLDER, job, message

MINUTE = timedelta(minutes=1)
SPREAD = timedelta(seconds=90)
LATER = NOON + timedelta(days=1)
AT_NOON = minute_of(NOON)


def deleted(before: Job) -> Job:
    return before.deleted(NOON, LATER)


def control(watermark: int, *backlog: Backlog) -> Control:
    return Control(0, horizon=watermark, watermark=watermark, backlog=backlog)


class TestOfAMessage:
    """An entry may go once the effective minute of its last nominal time is dispatched; none is
    looked for by what may have been announced before its generation ended."""

    MET_AT = NOON + ANNOUNCED_FOR + MINUTE
    MET = message(
        key=replace(KEY, fire_at=MET_AT - SPREAD),
        due_at=MET_AT,
        slot_key="h1",
    )

    def test_of_a_paused_deleted_completed_or_refiled_job(self) -> None:
        paused = job(state=JobState.PAUSED, paused_at=NOON - MINUTE)
        (ended,) = ended_entry(paused, self.MET, NOON)
        assert ended.key == (Slot(SlotKind.HOURLY, 1), f"job#{self.MET.generation_id}")
        assert ended.owes_until == NOON - MINUTE + SPREAD
        for state in (JobState.COMPLETED, JobState.DELETED):
            (ended,) = ended_entry(job(state=state, updated_at=NOON), self.MET, NOON)
            assert ended.owes_until == NOON + SPREAD
        (ended,) = ended_entry(job(), replace(self.MET, generation_id=OLD), NOON)
        assert ended.owes_until == job().generation.from_at + SPREAD

    def test_of_an_active_job_never(self) -> None:
        assert ended_entry(job(), self.MET, NOON + timedelta(days=400)) == []

    def test_of_no_job_when_its_filing_is_old(self) -> None:
        assert ended_entry(None, replace(self.MET, generation_id=NEWER_YOUNG), NOON) == []
        assert len(ended_entry(None, replace(self.MET, generation_id=OLDER), NOON)) == 1

    @pytest.mark.parametrize("later", [timedelta(), timedelta(seconds=1)])
    def test_not_by_what_may_have_been_announced_before_the_end(self, later: timedelta) -> None:
        met = replace(self.MET, due_at=NOON + ANNOUNCED_FOR + later)
        assert bool(ended_entry(deleted(job()), met, met.due_at)) == bool(later)
        in_new_generation = replace(
            job(), generation=Generation(job().generation.generation_id, NOON)
        )
        old = replace(met, generation_id=OLD)
        assert bool(ended_entry(in_new_generation, old, met.due_at)) == bool(later)

    @pytest.mark.parametrize("slot_key", ["", f"m{AT_NOON}"])
    def test_of_no_standing_entry_never(self, slot_key: str) -> None:
        assert ended_entry(deleted(job()), replace(self.MET, slot_key=slot_key), NOON) == []

    def test_a_watch_looks_after_what_came_before_a_pause_but_not_before_a_deletion(self) -> None:
        look = replace(self.MET, key=replace(KEY, kind=RunKind.WATCH), due_at=NOON + 60 * MINUTE)
        (ended,) = ended_entry(job(state=JobState.PAUSED, paused_at=NOON), look, NOON)
        assert ended.key[1].endswith("#watch")
        assert ended.owes_until == NOON + 60 * MINUTE
        (ended,) = ended_entry(deleted(job()), look, NOON)
        assert ended.owes_until == NOON


class TestOfAChange:
    def test_all_sixty_and_those_of_the_watch(self) -> None:
        before = job(schedule=parse_schedule("every 1s"), expect_within=600)
        ended = ended_entries(before, before.paused(NOON), NOON)
        assert len({entry.key for entry in ended}) == 120
        assert {entry.owes_until for entry in ended} == {NOON, NOON + 10 * MINUTE}
        assert {entry.owes_until for entry in ended_entries(before, deleted(before), NOON)} == {
            NOON
        }

    def test_the_place_in_the_window_counts(self) -> None:
        before = job(spread_seconds=90)
        assert {entry.owes_until for entry in ended_entries(before, deleted(before), NOON)} == {
            NOON + SPREAD
        }

    def test_those_of_the_old_filing_and_schedule(self) -> None:
        before = job()
        after = replace(before, schedule=parse_schedule("5 * * * *")).in_new_generation(
            Generation(NEWER_YOUNG, NOON), NOON
        )
        keys = [entry.key for entry in ended_entries(before, after, NOON)]
        assert [slot.number for slot, _ in keys] == [0, 10, 20, 30, 40, 50]
        assert {key for _, key in keys} == {f"job#{before.generation.generation_id}"}

    def test_none_of_a_filing_that_goes_on(self) -> None:
        assert ended_entries(job(), job(revision=2, name="another"), NOON) == []

    def test_none_of_a_job_that_was_not_active(self) -> None:
        """It may have been changed since: its entries say what its row does not say any more."""
        paused = job().paused(NOON - MINUTE)
        assert ended_entries(paused, deleted(paused), NOON) == []

    @pytest.mark.parametrize(
        ("at", "count"), [("2026-12-01T12:30:00Z", 1), ("2026-12-01T11:30:00Z", 0)]
    )
    def test_a_dated_one_only_where_it_is_to_come(self, at: str, count: int) -> None:
        before = job(schedule=parse_schedule(f"at {at}"))
        assert len(ended_entries(before, deleted(before), NOON)) == count


class TestRemovable:
    ENDED = tuple(ended_entries(job(), deleted(job()), NOON))

    def test_what_is_dispatched(self) -> None:
        keys = [entry.key for entry in self.ENDED]
        assert removable(self.ENDED, control(AT_NOON)) == keys

    def test_nothing_before_the_minute_of_the_end_is_dispatched(self) -> None:
        assert removable(self.ENDED, control(AT_NOON - 1)) == []

    def test_nothing_while_a_backlog_has_minutes_before_the_end(self) -> None:
        behind = Backlog(
            announced=AT_NOON - 9, done=AT_NOON - 8, until=AT_NOON - 5, taken_up_at=NOON
        )
        assert removable(self.ENDED, control(AT_NOON + 2, behind)) == []

    def test_nothing_where_nobody_knows_the_segment(self) -> None:
        assert removable(self.ENDED, None) == []
