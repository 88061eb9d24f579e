"""Entries: effective slots, dated links, messages of fixed delays."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.domain.calendar import CalendarUse, resolve
from carillon.domain.job import Generation, Job, JobState, Lane, fires_differently
from carillon.domain.message import Missed
from carillon.domain.policies import CatchUp, OnComplete
from carillon.domain.run import RunKind
from carillon.domain.wheel.due import continues_sequence, messages_of
from carillon.domain.wheel.entry import (
    Entry,
    Slot,
    entries_of,
    entry_of_message,
    message_of,
    messages_until,
    minute_of,
    slots_of_minute,
    watch_entries_of,
    watch_messages_until,
)
from carillon.domain.wheel.segment import Backlog
from carillon.schedules import CalendarRule, ClosedDays, Schedule, SlotKind, parse_schedule
from tests.support.jobs import job_with
from tests.unit.domain.samples import CURRENT, NEWER_YOUNG, NOON, OLDER, job, message
from tests.unit.schedules.strategies import exact, schedules

HOUR = timedelta(hours=1)


def indexed(schedule: str, timezone: str = "UTC", **changes: object) -> Job:
    return job(schedule=parse_schedule(schedule, timezone), **changes)


def entry_in(minute: int, spread_seconds: int, schedule: str = "*/10 * * * * *") -> Entry:
    (entry, *_) = entries_of(indexed("0 * * * *", spread_seconds=spread_seconds))
    slot = Slot(SlotKind.HOURLY, minute % 60)
    return replace(entry, slot=slot, schedule=parse_schedule(schedule))


class TestStandingEntries:
    def test_slots_count_effective_times(self) -> None:
        (entry,) = entries_of(indexed("17 * * * *", spread_seconds=125))
        assert entry.slot == Slot(SlotKind.HOURLY, 19)
        assert entry.spread_seconds == 125

    @pytest.mark.parametrize("spread_seconds", [0, 1, 25, 60, 61, 3599, 86_399])
    def test_a_minute_yields_what_is_effective_in_it(self, spread_seconds: int) -> None:
        minute = minute_of(NOON)
        entry = entry_in(minute, spread_seconds)
        entry = replace(entry, from_at=NOON - timedelta(days=3))
        sent = list(messages_of(entry, minute, minute + 2, ()))
        spread = timedelta(seconds=spread_seconds)
        begins = NOON - spread - timedelta(seconds=1)
        assert entry.schedule is not None
        nominal = list(entry.schedule.between(begins, begins + timedelta(minutes=1)))
        assert [message.key.fire_at for message in sent] == nominal
        assert [message.due_at for message in sent] == [t + spread for t in nominal]
        assert len(sent) == 6
        assert {minute_of(message.due_at) for message in sent} == {minute}

    def test_nothing_nominally_before_its_filing_is_sent(self) -> None:
        minute = minute_of(NOON)
        entry = replace(entry_in(minute, 90), from_at=NOON - timedelta(seconds=60))
        sent = list(messages_of(entry, minute, minute + 2, ()))
        assert [m.key.fire_at for m in sent] == [NOON - timedelta(seconds=n) for n in (50, 40)]

    def test_they_say_by_which_rules_of_their_zone_they_were_filed(self) -> None:
        (utc,) = entries_of(indexed("0 9 * * *"))
        local = {entry.zone_digest for entry in entries_of(indexed("0 9 * * *", "Europe/Riga"))}
        assert utc.zone_digest == ""
        assert len(local) == 1
        assert "" not in local


@pytest.mark.parametrize("rule", CalendarRule)
@pytest.mark.parametrize("text", ["every 1s", "* * * * * * except 0 0 1 1 *"])
@pytest.mark.parametrize("grace_seconds", [0, 1])
def test_after_an_outage_a_calendar_that_is_closed_for_years_takes_no_time(
    grace_seconds: int, text: str, rule: CalendarRule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each occurrence of a minute it is asked whether a later one runs: the visit of a tick, on
    which all owners of the segment wait, must not last for that."""
    minute, use = minute_of(NOON), CalendarUse("season", rule)
    closed = ClosedDays.of(set(), [(date(2000, 1, 1), date(2190, 1, 1))])
    entry = entry_in(minute - 100, 0, text)
    entry = replace(
        entry, from_at=NOON - timedelta(days=3), calendar=use, grace_seconds=grace_seconds
    )
    assert entry.schedule is not None
    looks: list[date] = []
    is_closed = ClosedDays.__contains__

    def counted(days: ClosedDays, day: date) -> bool:
        looks.append(day)
        if len(looks) > 50_000:
            pytest.fail("it takes too long")
        return is_closed(days, day)

    monkeypatch.setattr(ClosedDays, "__contains__", counted)
    gap = Backlog(minute - 120, done=minute - 101, until=minute, taken_up_at=NOON)
    resolved = resolve(entry.schedule, use, closed)
    assert len(list(messages_of(entry, minute - 100, minute, (gap,), resolved))) <= 60


class TestDatedLinks:
    def test_the_first_lies_at_the_effective_minute(self) -> None:
        (entry,) = entries_of(indexed("every 1001m", spread_seconds=3600))
        assert entry.schedule is not None
        first = entry.schedule.next(entry.from_at)
        assert first is not None
        assert entry.slot == Slot(SlotKind.DATED, minute_of(first + HOUR))
        assert entry.zone_digest == ""

    def test_of_a_zone_it_looks_twenty_six_hours_ahead_unless_that_is_past(self) -> None:
        (far,) = entries_of(indexed("0 9 24 12 *", "Europe/Riga", spread_seconds=60))
        at = datetime(2026, 12, 24, 7, 1, tzinfo=UTC)
        assert far.slot.number == minute_of(at - 26 * HOUR)
        assert list(far.chain(at - HOUR)) == []
        next_link = far.next_entry_at(at - timedelta(minutes=1), far.slot.number + 2)
        assert next_link.slot.number == minute_of(at)
        (near,) = entries_of(indexed("at 2026-12-02T09:00:00", "Europe/Riga"))
        assert near.slot.number == minute_of(datetime(2026, 12, 2, 7, tzinfo=UTC))

    def test_new_rules_of_the_zone_hang_the_day_before_on_it(self) -> None:
        (link,) = entries_of(indexed("0 9,10 24 12 *", "Europe/Riga"))
        nine, ten = (datetime(2026, 12, 24, hour, tzinfo=UTC) for hour in (7, 8))
        at_ten = replace(link, slot=Slot(SlotKind.DATED, minute_of(ten)))
        assert list(at_ten.chain(ten)) == [ten]
        assert list(at_ten.chain(ten, since=nine - HOUR)) == [nine, ten]
        assert list(at_ten.chain(ten, since=nine + HOUR / 2)) == [ten]
        assert list(at_ten.chain(ten, since=ten - 25 * HOUR)) == [nine, ten]
        assert list(at_ten.chain(ten, since=ten - 26 * HOUR)) == [ten], "put here by the same rules"
        utc = replace(at_ten, schedule=parse_schedule("0 7,8 24 12 *"))
        assert list(utc.chain(ten, since=nine - HOUR)) == [ten], "no zone, no new rules"


class TestFixedDelays:
    DELAY = "every 40m after finish"

    def test_the_entry_is_the_message_of_the_first_occurrence(self) -> None:
        delayed = indexed(self.DELAY, spread_seconds=30)
        (entry,) = entries_of(delayed)
        first = delayed.generation.from_at + timedelta(minutes=40)
        assert entry.message == message_of(delayed, first)
        assert entry.message.after_finish
        assert entry.message.due_at == first + timedelta(seconds=30)
        assert entry.slot.number == minute_of(first)

    def test_however_far_is_announced_there_is_but_one_message(self) -> None:
        delayed = indexed(self.DELAY, spread_seconds=30)
        first = delayed.generation.from_at + timedelta(minutes=40)
        schedule = delayed.schedule
        assert messages_until(delayed, schedule, first + timedelta(seconds=29)) == []
        assert messages_until(delayed, schedule, first + 10 * HOUR) == [message_of(delayed, first)]

    def test_no_other_schedules_messages_follow_the_end_of_a_run(self) -> None:
        assert not message_of(job(), NOON).after_finish


def test_a_schedule_without_another_occurrence_has_no_entry() -> None:
    assert entries_of(indexed("at 2026-12-01T09:00:00")) == []
    ended = parse_schedule("*/10 * * * *", end_at=NOON - 2 * HOUR)
    assert entries_of(job(schedule=ended)) == []


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"name": "other"}, False),
        ({"on_complete": OnComplete.DELETE}, False),
        ({"window": "5m"}, False),
        ({"spread_seconds": 5}, True),
        ({"schedule": parse_schedule("*/10 * * * *", end_at=NOON)}, True),
        ({"calendar": CalendarUse("holidays", CalendarRule.SKIP)}, True),
    ],
)
def test_a_job_fires_differently_when_its_entries_would_say_so(
    changes: dict[str, object], differs: bool
) -> None:
    assert fires_differently(job(), job(**changes)) is differs


class TestWatchEntries:
    @pytest.mark.parametrize(
        ("changes", "number"),
        [
            ({}, 27),
            ({"spread_seconds": 90}, 28),
            ({"spread_seconds": 30, "priority": Lane.HIGH}, 27),
        ],
    )
    def test_they_stand_as_much_later_as_a_success_is_expected(
        self, changes: dict[str, object], number: int
    ) -> None:
        watched = job_with(indexed("17 * * * *", expect_within=600), **changes)
        (entry,) = watch_entries_of(watched)
        assert entry.slot == Slot(SlotKind.HOURLY, number)
        assert entry.key == f"{watched.job_id}#{watched.generation.generation_id}#watch"
        message = entry.message_at(NOON)
        assert message.key.kind is RunKind.WATCH
        assert message.due_at == NOON + timedelta(seconds=600 + watched.spread_seconds)
        assert message.lane is watched.lane

    def test_they_know_what_decides_whether_an_occurrence_is_passed_over(self) -> None:
        watched = indexed("17 * * * *", expect_within=600, catch_up=CatchUp.ALL, grace=60)
        (entry,) = watch_entries_of(watched)
        assert (entry.catch_up, entry.grace_seconds) == (CatchUp.ALL, 60)
        assert (entry.spread_seconds, entry.within_seconds, entry.is_watch) == (600, 600, True)
        (own,) = entries_of(watched)
        assert (own.spread_seconds, own.within_seconds, own.is_watch) == (0, 0, False)

    def test_what_has_no_instants_of_its_own_is_not_watched(self) -> None:
        rolling = CalendarUse("c", CalendarRule.NEXT_BUSINESS_DAY)
        assert watch_entries_of(indexed("17 * * * *")) == []
        assert watch_entries_of(indexed("every 10m after finish", expect_within=60)) == []
        assert watch_entries_of(indexed("17 * * * *", expect_within=60, calendar=rolling)) == []
        past = indexed("at 2026-12-01T09:00:00", expect_within=60)
        assert watch_entries_of(past) == []

    def test_a_filer_sends_what_is_announced(self) -> None:
        watched = indexed("*/10 * * * *", expect_within=600)
        from_at = watched.generation.from_at
        found = watch_messages_until(watched, from_at + timedelta(minutes=30))
        assert [m.key.fire_at - from_at for m in found] == [
            timedelta(minutes=10),
            timedelta(minutes=20),
        ]
        assert {(m.key.kind, m.slot_key) for m in found} == {(RunKind.WATCH, "")}
        assert watch_messages_until(indexed("*/10 * * * *"), NOON) == []

    @exact
    @given(
        schedule=schedules,
        since=st.integers(0, 700 * 86_400).map(lambda s: NOON - timedelta(seconds=s)),
        within_seconds=st.integers(1, 7 * 86_400),
        spread_seconds=st.sampled_from([0, 59, 86_399]),
    )
    def test_every_look_falls_in_a_slot_of_its_own(
        self, schedule: Schedule, since: datetime, within_seconds: int, spread_seconds: int
    ) -> None:
        watched = job(
            schedule=schedule,
            generation=Generation(CURRENT, since),
            expect_within=within_seconds,
            spread_seconds=spread_seconds,
        )
        entries = watch_entries_of(watched)
        later = timedelta(seconds=within_seconds + spread_seconds)
        for fire_at in islice(schedule.between(since, since + timedelta(days=800)), 60):
            minute = minute_of(fire_at + later)
            stands = {entry.slot for entry in entries} & {*slots_of_minute(minute)}
            is_chain = entries[0].slot.kind is SlotKind.DATED
            assert stands or (is_chain and entries[0].slot.number <= minute)


def test_a_message_that_waits_stands_where_it_may_start_under_a_key_of_its_own() -> None:
    waits = message(wait_until=NOON + HOUR, waits=2)
    entry = entry_of_message(waits)
    assert entry.slot == Slot(SlotKind.DATED, minute_of(NOON + HOUR))
    assert entry.key != entry_of_message(replace(waits, waits=3)).key
    assert entry.key == f"{entry_of_message(message()).key}#2"


def test_a_message_that_stands_for_others_is_not_replaced_by_one_of_its_run_alone() -> None:
    alone = message(wait_until=NOON + HOUR)
    missed = Missed(NOON - HOUR, CatchUp.LATEST, parse_schedule("* * * * *"))
    since = (NOON - HOUR, NOON - 2 * HOUR)
    others = [replace(alone, missed=replace(missed, since=each)) for each in since]
    assert len({entry_of_message(each).key for each in (alone, *others)}) == 3


def test_no_generation_begins_before_the_one_that_it_replaces() -> None:
    """Of a host whose clock is behind."""
    changed_at, behind = NOON, NOON - timedelta(seconds=4)
    first = job(generation=Generation(CURRENT, changed_at))
    again = first.in_new_generation(Generation(NEWER_YOUNG, behind), behind)
    assert again.generation.from_at == changed_at
    assert again.previous is not None
    assert again.previous.until_at == changed_at


@pytest.mark.parametrize("state", list(JobState))
def test_the_sequence_of_a_generation_in_the_making_goes_on(state: JobState) -> None:
    """Also of a revival: the tick may come to its entry before its commit."""
    entry = entries_of(job(generation=Generation(NEWER_YOUNG, NOON)))[0]
    stored = job(state=state, updated_at=NOON)
    assert continues_sequence(entry, stored, NOON)
    assert not continues_sequence(entry, stored, NOON + timedelta(days=1))
    older = replace(entry, generation_id=OLDER)
    assert not continues_sequence(older, stored, NOON)
