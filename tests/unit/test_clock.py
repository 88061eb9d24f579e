"""Instants as others are told them."""

from datetime import UTC, datetime, timedelta, timezone

from carillon.clock import ceil_second, utc_text


def test_an_instant_is_told_in_utc_to_ceil_second() -> None:
    instant = datetime(2026, 11, 21, 12, 0, 17, 999_999, tzinfo=UTC)
    assert utc_text(instant) == "2026-11-21T12:00:17Z"
    assert utc_text(instant.astimezone(timezone(timedelta(hours=-5)))) == "2026-11-21T12:00:17Z"


def test_the_first_whole_second_that_is_not_before_an_instant() -> None:
    instant = datetime(2026, 11, 21, 12, 0, 17, tzinfo=UTC)
    assert ceil_second(instant) == instant
    assert ceil_second(instant + timedelta.resolution) == instant + timedelta(seconds=1)
