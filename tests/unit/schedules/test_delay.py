from datetime import UTC, datetime, timedelta
from itertools import islice

from carillon.schedules import Delay

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
