from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.recurrence import Schedule, SlotKind, Slots, parse_schedule, slots
from tests.unit.recurrence.strategies import exact, exact_and_slow, instants, schedules

HOURLY, DAILY, DATED = SlotKind.HOURLY, SlotKind.DAILY, SlotKind.DATED


@pytest.mark.parametrize(
    ("text", "zone", "kind", "numbers"),
    [
        ("17 * * * *", "UTC", HOURLY, {17}),
        ("17 * * * *", "Asia/Kolkata", HOURLY, {47}),
        ("17 * * * *", "Australia/Lord_Howe", HOURLY, {17, 47}),
        ("*/4 * * * *", "UTC", HOURLY, set(range(0, 60, 4))),
        ("*/5 9-17 * * *", "UTC", HOURLY, set(range(0, 60, 5))),
        ("*/30 9-17 * * *", "UTC", DAILY, {h * 60 + m for h in range(9, 18) for m in (0, 30)}),
        ("* * * * * *", "UTC", HOURLY, set(range(60))),
        ("0 9 * * *", "UTC", DAILY, {540}),
        ("0 9 * * *", "Europe/Riga", DAILY, {360, 420}),
        ("0 9 1 * *", "Europe/Riga", DAILY, {360, 420}),
        ("*/5 0 9 * * *", "Europe/Riga", DAILY, {360, 420}),
        # 2026-03-29 03:00 EET -> 04:00 EEST, at 01:00 UTC: what the gap skips runs then.
        ("30 3 * * *", "Europe/Riga", DAILY, {30, 60, 90}),
        # Expressions that follow elapsed time do not run in the gap.
        ("* 3 * * *", "Europe/Riga", HOURLY, set(range(60))),
        ("0 30 3 * * *", "Europe/Riga", DAILY, {30, 90}),
        # 02:00 +10:30 -> 02:30 +11, at 15:30 UTC.
        ("15 2 * * *", "Australia/Lord_Howe", DAILY, {915, 930, 945}),
        # 00:00 EET -> 01:00 EEST, at 22:00 UTC.
        ("30 0 * * *", "Asia/Beirut", DAILY, {1290, 1320, 1350}),
        # 01:00 +00 -> 03:00 +02, at 01:00 UTC.
        ("30 2 * * *", "Antarctica/Troll", DAILY, {30, 60, 150}),
        ("0 9 * * *", "Pacific/Apia", DAILY, {1200}),
        # +01, and +00 in Ramadan.
        ("0 9 * * *", "Africa/Casablanca", DAILY, {480, 540}),
        # +06 until March 2024, then +05.
        ("0 9 * * *", "Asia/Almaty", DAILY, {180, 240}),
        ("every 7m", "UTC", HOURLY, set(range(60))),
        ("every 5s", "UTC", HOURLY, set(range(60))),
        ("every 90s", "UTC", HOURLY, {s // 60 for s in range(0, 3600, 90)}),
        ("every 36h", "UTC", DAILY, {0, 720}),
        ("every 36h offset 1h", "Europe/Riga", DAILY, {60, 780}),
        ("every 100m", "UTC", HOURLY, {0, 20, 40}),
        ("every 30d", "UTC", DAILY, {0}),
        ("every 365d", "UTC", DATED, set()),
        ("every 1001m", "UTC", DATED, set()),
        ("0 0 1 1 *", "UTC", DATED, set()),
        ("0 9 1 */6 *", "UTC", DATED, set()),
        ("0 0 29 2 *", "UTC", DATED, set()),
        ("at 2026-12-01T09:00:00", "UTC", DATED, set()),
    ],
)
def test_filing_of(text: str, zone: str, kind: SlotKind, numbers: set[int]) -> None:
    assert slots(parse_schedule(text, zone)) == Slots(kind, frozenset(numbers))


def test_every_is_filed_by_its_start() -> None:
    start_at = datetime(2026, 1, 1, 10, 7, 30, tzinfo=UTC)
    schedule = parse_schedule("every 1d", start_at=start_at)
    assert slots(schedule) == Slots(DAILY, frozenset({607}))


def _is_filed(filed: Slots, instant: datetime) -> bool:
    if filed.kind is HOURLY:
        return instant.minute in filed.numbers
    if filed.kind is DAILY:
        return instant.hour * 60 + instant.minute in filed.numbers
    return True


@exact
@given(st.data(), schedules)
def test_every_occurrence_lies_in_a_slot_it_is_filed_under(
    data: st.DataObject, schedule: Schedule
) -> None:
    filed = slots(schedule)
    after = data.draw(instants(schedule.timezone))
    found = schedule.between(after, after + timedelta(days=400))
    strays = [instant for instant in islice(found, 60) if not _is_filed(filed, instant)]
    assert strays == []


@exact_and_slow
@given(st.data(), st.integers(0, 59), st.integers(0, 23))
def test_daily_jobs_lie_in_their_slots_on_every_day_of_the_filed_years(
    data: st.DataObject, minute: int, hour: int
) -> None:
    zone = data.draw(st.sampled_from(["Africa/Casablanca", "Australia/Lord_Howe", "Africa/Cairo"]))
    schedule = parse_schedule(f"{minute} {hour} * * *", zone)
    filed = slots(schedule)
    year = data.draw(st.integers(2024, 2070))
    found = list(
        schedule.between(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
    )
    assert len(found) >= 365
    assert all(_is_filed(filed, instant) for instant in found)


@exact
@given(schedules)
def test_nobody_takes_more_than_sixty_entries(schedule: Schedule) -> None:
    filed = slots(schedule)
    limit = {HOURLY: 60, DAILY: 1440, DATED: 0}[filed.kind]
    assert len(filed.numbers) <= 60
    assert all(0 <= number < limit for number in filed.numbers)
    assert bool(filed.numbers) is (filed.kind is not DATED)
