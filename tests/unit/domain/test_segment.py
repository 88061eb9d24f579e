"""A segment's control item: its rules of time zones, its places in minutes begun, its pace."""

from dataclasses import replace
from datetime import timedelta

from carillon.domain.wheel.entry import minute_of
from carillon.domain.wheel.segment import (
    Backlog,
    Control,
    Cursor,
    acquired,
    first_control,
    freed,
    placed,
    with_backlog_minute_done,
    with_minute_done,
)
from tests.unit.domain.samples import NOON

MINUTE = minute_of(NOON)
STANDING = replace(first_control(0, NOON), tzdata="2025b", tzdata_from=MINUTE - 1000)


def taken(seen: Control, tzdata: str, minutes_later: int = 0) -> Control:
    now = NOON + timedelta(minutes=minutes_later)
    control = acquired(seen, "owner", now, 2, tzdata)
    assert control is not None
    return control


def test_the_same_version_keeps_the_minute_it_came_with() -> None:
    assert taken(STANDING, "2025b", 5).tzdata_from == MINUTE - 1000


def test_another_version_holds_from_the_first_minute_that_is_not_dispatched() -> None:
    control = taken(STANDING, "2025c")
    assert (control.tzdata, control.tzdata_from) == ("2025c", MINUTE)
    late = taken(STANDING, "2025c", minutes_later=30)
    assert (late.watermark, late.tzdata_from) == (MINUTE + 29, MINUTE)


def test_what_is_left_of_a_backlog_is_dispatched_by_the_new_version_too() -> None:
    behind = Backlog(MINUTE - 60, done=MINUTE - 50, until=MINUTE - 20, taken_up_at=NOON)
    control = taken(replace(STANDING, backlog=(behind,)), "2025c")
    assert control.tzdata_from == MINUTE - 49


class TestCursors:
    """A live minute and a backlog each have their own: the one must not cost the other's place."""

    LIVE = Cursor(MINUTE, "h0", "job-b")
    BEHIND = Cursor(MINUTE - 49, "d1", "job-a")
    BACKLOG = Backlog(MINUTE - 60, done=MINUTE - 50, until=MINUTE - 20, taken_up_at=NOON)

    def test_a_live_minute_leaves_the_place_in_the_backlog(self) -> None:
        control = replace(
            STANDING, backlog=(self.BACKLOG,), cursor=self.LIVE, backlog_cursor=self.BEHIND
        )
        done = with_minute_done(control, MINUTE)
        assert (done.cursor, done.backlog_cursor) == (None, self.BEHIND)
        behind = with_backlog_minute_done(control, MINUTE - 49)
        assert (behind.cursor, behind.backlog_cursor) == (self.LIVE, None)
        assert behind.backlog[0].done == MINUTE - 49

    def test_a_minute_that_was_begun_is_gone_on_with_when_it_is_the_first_of_a_backlog(
        self,
    ) -> None:
        begun = replace(STANDING, cursor=self.LIVE)
        late = taken(begun, "2025b", minutes_later=30)
        assert late.backlog_cursor == self.LIVE
        behind = replace(begun, backlog=(self.BACKLOG,), backlog_cursor=self.BEHIND)
        assert taken(behind, "2025b", minutes_later=30).backlog_cursor == self.BEHIND
        in_time = taken(begun, "2025b")
        assert (in_time.cursor, in_time.backlog_cursor) == (self.LIVE, None)


class TestTicksThatFail:
    """They announce each minute, and dispatch none: the queue refuses all messages, say."""

    def test_minute_by_minute_they_leave_one_backlog(self) -> None:
        control = freed(STANDING)
        for minutes in range(3 * 24 * 60):
            control = freed(taken(control, "2025b", minutes))
        (behind,) = control.backlog
        assert (behind.done, behind.until) == (MINUTE - 1, control.watermark)
        assert behind.announced == behind.until, "all of it is sent whole"
        assert behind.taken_up_at == NOON + timedelta(minutes=3 * 24 * 60 - 1)

    def test_what_none_announced_stays_a_backlog_of_its_own(self) -> None:
        control = freed(taken(STANDING, "2025b"))
        for minutes in (30, 31, 32, 62):
            control = freed(taken(control, "2025b", minutes))
        spans = [(b.done - MINUTE, b.announced - MINUTE, b.until - MINUTE) for b in control.backlog]
        assert spans == [(-1, 2, 29), (29, 31, 31), (31, 34, 61)]


def test_the_freeing_write_says_whether_anything_was_due() -> None:
    assert freed(STANDING, idle=True).idle
    assert not freed(replace(STANDING, idle=True)).idle
    assert taken(replace(STANDING, idle=True), "2025b").idle, "until the visit has found something"


class TestPlaces:
    def test_they_lie_as_far_apart_as_the_share_of_a_minute(self) -> None:
        control, places = STANDING, []
        for _ in range(3):
            control, place = placed(control, "owner", NOON, 8)
            places.append(place - NOON)
        assert places == [timedelta(), timedelta(seconds=7.5), timedelta(seconds=15)]
        assert control.throttled_until == NOON + timedelta(seconds=22.5)

    def test_none_is_before_now_and_none_twice(self) -> None:
        control, _ = placed(STANDING, "owner", NOON, 1)
        later = NOON + timedelta(hours=1)
        assert placed(control, "owner", later, 1)[1] == later
        earlier = NOON - timedelta(hours=1)
        assert placed(control, "owner", earlier, 1)[1] == NOON + timedelta(minutes=1)
