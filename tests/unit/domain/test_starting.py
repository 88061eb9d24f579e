"""Whether a claimed run starts: windows and calendars."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.decisions import Defer, Drop, Proceed, Redirect, Skip, SkipReason
from carillon.domain.execution.start_decision import decide_start
from carillon.domain.job import Generation, JobState, PastGeneration
from carillon.domain.message import Missed
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.schedules import CalendarRule, ClosedDays, parse_schedule
from tests.unit.domain.samples import (
    CURRENT,
    KEY,
    NEWER_STALE,
    NEWER_YOUNG,
    NOON,
    OLD,
    OLDER,
    job,
    message,
)

MINUTE = timedelta(minutes=1)
SKIP = CalendarUse("holidays", CalendarRule.SKIP)
NEXT = CalendarUse("holidays", CalendarRule.NEXT_BUSINESS_DAY)
PREVIOUS = CalendarUse("holidays", CalendarRule.PREVIOUS_BUSINESS_DAY)
TODAY = date(2026, 12, 1)
CLOSED = ClosedDays.of(set(), [(TODAY, TODAY)])
OPEN = ClosedDays()


class TestWindows:
    def test_another_filings_message_waits_for_the_jobs_own_place_in_the_window(self) -> None:
        spread = job(spread_seconds=90)
        start = decide_start(spread, message(NEWER_STALE, slot_key="h0"), NOON)
        assert isinstance(start, Redirect)
        assert start.message == message(NEWER_STALE, due_at=NOON + timedelta(seconds=90))

    @pytest.mark.parametrize("due_in", [90, 91])
    def test_at_its_place_or_later_it_runs(self, due_in: int) -> None:
        due_at = NOON + timedelta(seconds=due_in)
        late = message(NEWER_STALE, due_at=due_at)
        assert decide_start(job(spread_seconds=90), late, NOON) == Proceed()
        early = message(NEWER_STALE)
        assert decide_start(job(spread_seconds=90), early, due_at) == Proceed()

    def test_what_the_previous_filing_covers_keeps_the_place_it_had(self) -> None:
        changed = job(
            spread_seconds=90,
            generation=Generation(KEY.job_id, NOON + MINUTE),
            previous=PastGeneration(OLD, NOON - timedelta(days=1), NOON + MINUTE),
        )
        assert decide_start(changed, message(OLD), NOON) == Proceed()

    @pytest.mark.parametrize("policy", [CatchUp.SKIP, CatchUp.LATEST])
    def test_another_filings_catch_up_is_left_to_the_jobs_own(self, policy: CatchUp) -> None:
        missed = Missed(NOON - timedelta(hours=1), policy, job().schedule)
        passed = message(NEWER_STALE, missed=missed, in_time=False)
        assert isinstance(decide_start(job(), passed, NOON), Drop)
        met = message(missed=missed, in_time=False)
        own = decide_start(job(spread_seconds=90), met, NOON)
        assert own == (Skip(SkipReason.CATCH_UP) if policy is CatchUp.SKIP else Proceed())

    @pytest.mark.parametrize("in_time", [True, False])
    def test_so_is_what_another_filing_would_all_have_caught_up_on(self, in_time: bool) -> None:
        late = message(NEWER_STALE, in_time=in_time)
        assert isinstance(decide_start(job(), late, NOON), Drop)
        assert decide_start(job(), message(in_time=in_time), NOON) == Proceed()

    @pytest.mark.parametrize("in_time", [True, False])
    def test_what_a_change_is_to_catch_up_on_waits_for_its_commit(self, in_time: bool) -> None:
        """The generation before has ended then, and leaves it to the one that was dropped."""
        late = message(NEWER_YOUNG, in_time=in_time)
        assert isinstance(decide_start(job(), late, NOON), Defer)


class TestSettledJobs:
    """A job an hour after its generation was made: its occurrences may go in chunks."""

    SETTLED = job(generation=Generation(OLD, NOON - timedelta(days=1)))

    @pytest.mark.parametrize("generation_id", [OLDER, NEWER_STALE])
    def test_what_another_generation_has_sent_is_left_to_the_tick(self, generation_id: str) -> None:
        start = decide_start(self.SETTLED, message(generation_id), NOON)
        assert isinstance(start, Drop)

    def test_what_a_change_has_sent_waits_for_its_commit(self) -> None:
        """It may be all that is sent then: the entries of the generation before may be gone."""
        start = decide_start(self.SETTLED, message(NEWER_YOUNG), NOON)
        assert isinstance(start, Defer)


class TestCalendars:
    def test_a_closed_day_is_skipped_with_a_note(self) -> None:
        note = "2026-12-01 is closed in calendar holidays"
        skip = Skip(SkipReason.CALENDAR, note)
        assert decide_start(job(calendar=SKIP), message(), NOON, CLOSED) == skip
        assert decide_start(job(calendar=SKIP), message(), NOON, OPEN) == Proceed()

    def test_the_day_is_the_one_of_the_schedules_zone(self) -> None:
        schedule = parse_schedule("*/10 * * * *", "Pacific/Auckland")
        tomorrow = ClosedDays.of(set(), [(date(2026, 12, 2), date(2026, 12, 2))])
        there = job(calendar=SKIP, schedule=schedule)
        assert isinstance(decide_start(there, message(), NOON, tomorrow), Skip)
        assert decide_start(there, message(), NOON, CLOSED) == Proceed()

    @pytest.mark.parametrize(
        "waived",
        [
            message(attempt=2),
            message(key=replace(KEY, redrive=1)),
            message(key=replace(KEY, kind=RunKind.MANUAL, request_id="r")),
        ],
    )
    def test_retries_redrives_and_manual_runs_do_not_ask(self, waived: object) -> None:
        assert decide_start(job(calendar=SKIP), waived, NOON, CLOSED) == Proceed()  # type: ignore[arg-type]

    @pytest.mark.parametrize(("use", "days"), [(NEXT, 1), (PREVIOUS, -1)])
    def test_where_it_rolls_it_is_sent_for_the_day_it_belongs_to(
        self, use: CalendarUse, days: int
    ) -> None:
        rolling = job(calendar=use, spread_seconds=90)
        start = decide_start(rolling, message(), NOON, CLOSED)
        assert isinstance(start, Redirect)
        moved = NOON + timedelta(days=days)
        assert start.message.key == replace(KEY, fire_at=moved)
        assert start.message.due_at == moved + timedelta(seconds=90)

    def test_what_has_been_moved_says_from_where(self) -> None:
        yesterday = ClosedDays.of(set(), [(date(2026, 11, 29), date(2026, 11, 30))])
        note = "moved from 2026-11-29, 2026-11-30 by calendar holidays"
        assert decide_start(job(calendar=NEXT), message(), NOON, yesterday) == Proceed(note)
        assert decide_start(job(calendar=PREVIOUS), message(), NOON, yesterday) == Proceed()

    def test_where_no_open_day_is_near_it_is_skipped(self) -> None:
        for_ever = ClosedDays.of(set(range(7)), [])
        start = decide_start(job(calendar=NEXT), message(), NOON, for_ever)
        assert isinstance(start, Skip)
        assert start.reason is SkipReason.CALENDAR
        assert start.note is not None
        assert "31 days" in start.note

    def test_another_filings_moved_occurrence_is_one_of_the_job(self) -> None:
        daily = job(calendar=NEXT, schedule=parse_schedule("0 12 * * MON"))  # 2026-11-30
        yesterday = ClosedDays.of(set(), [(date(2026, 11, 30), date(2026, 11, 30))])
        assert isinstance(decide_start(daily, message(NEWER_STALE), NOON, yesterday), Proceed)
        assert isinstance(decide_start(daily, message(NEWER_STALE), NOON, OPEN), Drop)

    @pytest.mark.parametrize(
        ("schedule", "is_sent"), [("0 12 * * MON", False), ("0 12 * * *", True)]
    )
    def test_what_was_moved_out_of_an_outage_is_left_to_a_tick_that_sends_it(
        self, schedule: str, is_sent: bool
    ) -> None:
        """Not what was nominally due before the generation that counts, if nothing else is then."""
        day_before = date(2026, 11, 30)
        moved = message(OLD, moved_from=NOON - timedelta(days=1), in_time=False)
        changed = job(
            calendar=NEXT,
            schedule=parse_schedule(schedule),
            generation=Generation(CURRENT, NOON - timedelta(hours=12)),
            previous=PastGeneration(OLD, NOON - timedelta(days=9), NOON - timedelta(hours=12)),
        )
        start = decide_start(changed, moved, NOON, ClosedDays.of(set(), [(day_before, day_before)]))
        assert isinstance(start, Drop if is_sent else Proceed)

    def test_what_a_resumption_sends_waits_for_its_commit(self) -> None:
        """And what the ended generation sends after the end of the pause leaves no row."""
        began, until = NOON - timedelta(minutes=5), NOON - timedelta(seconds=1)
        paused = job(state=JobState.PAUSED, paused_at=began, resume_at=until)
        assert isinstance(decide_start(paused, message(NEWER_YOUNG), NOON), Defer)
        assert isinstance(decide_start(paused, message(CURRENT), NOON), Drop)
        longer = job(state=JobState.PAUSED, paused_at=began, resume_at=NOON + timedelta(hours=1))
        assert decide_start(longer, message(CURRENT), NOON) == Skip(SkipReason.PAUSED)

    def test_a_retry_that_is_due_after_the_end_of_a_pause_waits_for_the_resumption(self) -> None:
        began = NOON - timedelta(minutes=5)
        retry = replace(message(CURRENT), attempt=2, due_at=NOON)
        over = job(state=JobState.PAUSED, paused_at=began, resume_at=NOON - timedelta(seconds=9))
        assert isinstance(decide_start(over, retry, NOON), Defer)
        lasting = job(state=JobState.PAUSED, paused_at=began, resume_at=NOON + timedelta(hours=1))
        assert decide_start(lasting, retry, NOON) == Skip(SkipReason.PAUSED)

    def test_so_does_what_was_due_before_it_and_has_waited_until_then(self) -> None:
        """For a start under a rate, say: a skip would be of no pause any more."""
        began, until = NOON + timedelta(minutes=5), NOON + timedelta(minutes=20)
        paused = job(state=JobState.PAUSED, paused_at=began, resume_at=until)
        waited = replace(message(CURRENT), waits=1, wait_until=until + timedelta(seconds=1))
        assert isinstance(decide_start(paused, waited, waited.starts_at), Defer)
        earlier = replace(waited, wait_until=until - timedelta(seconds=1))
        assert decide_start(paused, earlier, until) == Skip(SkipReason.PAUSED)

    def test_the_jobs_state_comes_first(self) -> None:
        paused = job(calendar=SKIP, state=JobState.PAUSED, paused_at=NOON)
        assert decide_start(paused, message(), NOON, CLOSED) == Skip(SkipReason.PAUSED)
        assert isinstance(decide_start(None, message(), NOON), Defer | Drop)
