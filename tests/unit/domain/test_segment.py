"""A segment's control item: which rules of time zones it was dispatched by."""

from dataclasses import replace
from datetime import timedelta

from shared.domain.segment import Backlog, Control, acquired, first_control
from shared.domain.wheel import minute_of
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
