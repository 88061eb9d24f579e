"""The five jobs of the project's seed, at its printed times (its 5:40 is a typo for 05:00)."""

from datetime import UTC, datetime

import pytest

from carillon.schedules import parse_schedule

MIDNIGHT = datetime(2026, 5, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("17 * * * *", ["00:17", "01:17", "02:17"]),
        ("every 4m", ["00:04", "00:08", "00:12", "00:16"]),
        ("every 6m offset 1m", ["00:07", "00:13", "00:19"]),
        ("every 25m offset 2m", ["00:27", "00:52", "01:17", "01:42"]),
        ("every 100m", ["01:40", "03:20", "05:00"]),
    ],
)
def test_job_fires_at_the_printed_times(text: str, times: list[str]) -> None:
    schedule = parse_schedule(text, start_at=MIDNIGHT)

    found: list[datetime] = []
    instant = schedule.next(MIDNIGHT)
    while instant is not None and len(found) < len(times):
        found.append(instant)
        instant = schedule.next(instant)

    assert [f"{fire_at:%H:%M}" for fire_at in found] == times
    assert {fire_at.date() for fire_at in found} == {MIDNIGHT.date()}
