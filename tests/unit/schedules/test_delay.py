from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from carillon.errors import InvalidFieldError
from carillon.schedules import Delay, SlotKind, Slots, slots
from carillon.schedules.placement.slots import zone_digest

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_the_next_occurrence_lies_one_delay_after_the_end_of_a_run() -> None:
    delay = Delay(600)
    assert delay.next(NOW) == NOW + 600 * SECOND
    assert delay.next(NOW + timedelta(microseconds=1)) == NOW + 600 * SECOND
    assert list(islice(delay.between(NOW, NOW + timedelta(hours=1)), 3)) == [
        NOW + 600 * SECOND,
        NOW + 1200 * SECOND,
        NOW + 1800 * SECOND,
    ]


def test_nothing_lies_before_the_start() -> None:
    delay = Delay(600, start_at=NOW)
    assert delay.next(NOW - timedelta(days=3)) == NOW
    assert delay.next(NOW - 601 * SECOND) == NOW
    assert delay.next(NOW - 599 * SECOND) == NOW + SECOND
    assert delay.next(NOW) == NOW + 600 * SECOND


def test_nothing_lies_after_the_end() -> None:
    delay = Delay(600, end_at=NOW)
    assert delay.next(NOW - 600 * SECOND) == NOW
    assert delay.next(NOW - 599 * SECOND) is None


def test_what_follows_from_runs_cannot_be_looked_up() -> None:
    delay = Delay(60)
    assert delay.previous(NOW) is None
    minute = int(NOW.timestamp()) // 60
    assert delay.seconds_of_minute(minute) == ()
    assert not delay.has(minute * 60)


def test_text() -> None:
    assert Delay(5400).text == "every 1h30m after finish"


@pytest.mark.parametrize("seconds", [0, -1, 3_653 * 86_400 + 1])
def test_too_short_and_too_long_delays_are_refused(seconds: int) -> None:
    with pytest.raises(InvalidFieldError, match="no delay: use 1s to 3653d") as refused:
        Delay(seconds)
    assert refused.value.field == "schedule.every"


@pytest.mark.parametrize("shifts", [False, True])
def test_it_is_filed_one_by_one(shifts: bool) -> None:
    delay = Delay(60, "Europe/Riga")
    assert slots(delay, 7, shifts) == Slots(SlotKind.DATED)
    assert zone_digest(delay, 7, shifts) == ""
