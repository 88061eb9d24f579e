from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.schedules import (
    CalendarRule,
    DstRule,
    Fold,
    Gap,
    OnOpenDays,
    Schedule,
    SlotKind,
    Slots,
    parse_schedule,
    slots,
)
from carillon.schedules.placement.slots import digest_of_zone, is_zone_dependent, zone_digest
from carillon.schedules.zones import offsets as zones
from tests.unit.schedules.strategies import (
    closed_days,
    exact,
    exact_and_slow,
    instants,
    schedules,
)

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
        ("0 30 3 * * *", "Europe/Riga", DAILY, {30, 60, 90}),
        # EventBridge leaves out what a gap skips.
        ("cron(30 3 * * ? *)", "Europe/Riga", DAILY, {30, 90}),
        ("cron(0/10 * * * ? *)", "Europe/Riga", HOURLY, set(range(0, 60, 10))),
        ("cron(0 9 * * ? 2026-2027)", "UTC", DAILY, {540}),
        # On one day in four years, and in years to come.
        ("cron(0 9 1 1 ? 2026)", "UTC", DATED, set()),
        ("cron(0 9 * * ? 2050)", "UTC", DATED, set()),
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
        ("every 10m after finish", "UTC", DATED, set()),
        # Unions: the slots of all members, whatever is taken out.
        ("0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *", "Europe/Riga", DAILY, {360, 420, 540, 600}),
        ("17 * * * * | 0 9 * * *", "UTC", DAILY, {540, *range(17, 1440, 60)}),
        ("*/20 * * * * | 0 9 * * *", "UTC", HOURLY, {0, 20, 40}),
        ("0 9 * * * | at 2026-12-01T10:30:00", "Europe/Riga", DAILY, {360, 420, 450, 510}),
        ("0 0 1 1,7 * | 0 0 2 4,10 *", "UTC", DAILY, {0}),
        ("0 0 1 1 * | 0 12 2 7 * | at 2026-12-01T09:00:00", "UTC", DATED, set()),
        ("at 2026-12-01T09:00:00 | at 2026-12-02T09:00:00", "UTC", DATED, set()),
    ],
)
def test_filing_of(text: str, zone: str, kind: SlotKind, numbers: set[int]) -> None:
    assert slots(parse_schedule(text, zone)) == Slots(kind, frozenset(numbers))


@pytest.mark.parametrize(
    ("text", "dst", "numbers"),
    [
        # 2026-03-29 03:00 EET -> 04:00 EEST, at 01:00 UTC.
        ("30 3 * * *", DstRule(Gap.SKIP), {30, 90}),
        ("*/40 3 * * *", DstRule(Gap.RUN_AFTER), {0, 40, 60, 100}),
        ("cron(30 3 * * ? *)", DstRule(Gap.RUN_AFTER), {30, 60, 90}),
        ("30 3 * * *", DstRule(fold=Fold.BOTH), {30, 60, 90}),
    ],
)
def test_filing_by_a_dst_rule(text: str, dst: DstRule, numbers: set[int]) -> None:
    assert slots(parse_schedule(text, "Europe/Riga", dst=dst)) == Slots(DAILY, frozenset(numbers))


@pytest.mark.parametrize(
    ("text", "zone", "spread_seconds", "kind", "numbers"),
    [
        ("17 * * * *", "UTC", 59, HOURLY, {17}),
        ("17 * * * *", "UTC", 60, HOURLY, {18}),
        ("59 23 * * *", "UTC", 60, DAILY, {0}),
        ("0 9 * * *", "Europe/Riga", 3599, DAILY, {419, 479}),
        ("0 9 * * *", "UTC", 3 * 86_400, DAILY, {540}),
        # With seconds, some of them reach the minute after.
        ("*/20 0 9 * * *", "UTC", 30, DAILY, {540, 541}),
        ("20 0 9 * * *", "UTC", 30, DAILY, {540}),
        ("40 0 9 * * *", "UTC", 30, DAILY, {541}),
        # The transition, at 01:00 UTC, is shifted too.
        ("30 3 * * *", "Europe/Riga", 600, DAILY, {40, 70, 100}),
        ("every 36h offset 30s", "UTC", 40, DAILY, {1, 721}),
        ("0 9 * * * | every 1d", "UTC", 61, DAILY, {1, 541}),
        ("at 2026-12-01T09:00:00", "UTC", 61, DATED, set()),
    ],
)
def test_filing_with_a_window(
    text: str, zone: str, spread_seconds: int, kind: SlotKind, numbers: set[int]
) -> None:
    assert slots(parse_schedule(text, zone), spread_seconds) == Slots(kind, frozenset(numbers))


@pytest.mark.parametrize(
    ("text", "zone", "kind", "numbers"),
    [
        # However rare: a calendar may move it to any day.
        ("0 0 1 1 *", "UTC", DAILY, {0}),
        ("0 9 1 1 *", "Europe/Riga", DAILY, {360, 420}),
        ("at 2026-12-01T09:00:00", "Europe/Riga", DAILY, {360, 420}),
        ("at 2026-12-01T09:00:00Z", "Europe/Riga", DAILY, {480, 540, 600}),
        ("every 365d", "UTC", DAILY, {0}),
        ("every 36h", "Europe/Riga", DAILY, {0, 60, 660, 720, 780, 1380}),
        # Moved into the gap, EventBridge's too runs at the transition.
        ("cron(30 3 ? * SAT *)", "Europe/Riga", DAILY, {30, 60, 90}),
        ("at 2026-12-01T03:30:00", "Europe/Riga", DAILY, {30, 60, 90}),
        ("every 7m", "Europe/Riga", HOURLY, set(range(60))),
        ("0 0 1 1 * | at 2026-12-01T09:00:00", "UTC", DAILY, {0, 540}),
    ],
)
def test_filing_under_a_calendar_that_moves_days(
    text: str, zone: str, kind: SlotKind, numbers: set[int]
) -> None:
    assert slots(parse_schedule(text, zone), 0, True) == Slots(kind, frozenset(numbers))


def test_every_is_filed_by_its_start() -> None:
    start_at = datetime(2026, 1, 1, 10, 7, 30, tzinfo=UTC)
    schedule = parse_schedule("every 1d", start_at=start_at)
    assert slots(schedule) == Slots(DAILY, frozenset({607}))


def _is_indexed(indexed: Slots, instant: datetime) -> bool:
    if indexed.kind is HOURLY:
        return instant.minute in indexed.numbers
    if indexed.kind is DAILY:
        return instant.hour * 60 + instant.minute in indexed.numbers
    return True


@exact
@given(st.data(), schedules)
def test_every_occurrence_lies_in_a_slot_it_is_filed_under(
    data: st.DataObject, schedule: Schedule
) -> None:
    spread = data.draw(st.sampled_from([0, 0, 17, 3600, 100_000]) | st.integers(0, 86_399))
    indexed = slots(schedule, spread)
    after = data.draw(instants(schedule.timezone))
    found = islice(schedule.between(after, after + timedelta(days=400)), 60)
    effective = [instant + timedelta(seconds=spread) for instant in found]
    assert [instant for instant in effective if not _is_indexed(indexed, instant)] == []


@exact
@given(st.data(), schedules, st.sampled_from(CalendarRule))
def test_every_moved_occurrence_lies_in_a_slot_too(
    data: st.DataObject, schedule: Schedule, rule: CalendarRule
) -> None:
    spread = data.draw(st.sampled_from([0, 0, 17]) | st.integers(0, 86_399))
    indexed = slots(schedule, spread, True)
    assert indexed.kind is not DATED
    after = data.draw(instants(schedule.timezone))
    near = schedule.next(after) or schedule.previous(after) or after
    moved = OnOpenDays(schedule, data.draw(closed_days(near)), rule)
    begin = near - timedelta(days=data.draw(st.integers(0, 33)))
    found = islice(moved.between(begin, near + timedelta(days=400)), 60)
    effective = [instant + timedelta(seconds=spread) for instant in found]
    assert [instant for instant in effective if not _is_indexed(indexed, instant)] == []


@exact_and_slow
@given(st.data(), st.integers(0, 59), st.integers(0, 23))
def test_daily_jobs_lie_in_their_slots_on_every_day_of_the_filed_years(
    data: st.DataObject, minute: int, hour: int
) -> None:
    zone = data.draw(st.sampled_from(["Africa/Casablanca", "Australia/Lord_Howe", "Africa/Cairo"]))
    schedule = parse_schedule(f"{minute} {hour} * * *", zone)
    indexed = slots(schedule)
    year = data.draw(st.integers(2024, 2070))
    found = list(
        schedule.between(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
    )
    assert len(found) >= 365
    assert all(_is_indexed(indexed, instant) for instant in found)


@exact
@given(schedules, st.integers(0, 86_399), st.booleans())
def test_nobody_takes_more_than_sixty_entries(
    schedule: Schedule, spread: int, shifts: bool
) -> None:
    indexed = slots(schedule, spread, shifts)
    limit = {HOURLY: 60, DAILY: 1440, DATED: 0}[indexed.kind]
    assert len(indexed.numbers) <= 60
    assert all(0 <= number < limit for number in indexed.numbers)
    assert bool(indexed.numbers) is (indexed.kind is not DATED)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("0 9 * * *", "Europe/Riga", True),
        ("0 9 * * *", "UTC", False),
        ("at 2026-12-01T09:00:00", "Europe/Riga", True),
        ("at 2026-12-01T09:00:00Z", "Europe/Riga", False),
        ("every 5m", "Europe/Riga", False),
        ("every 5m after finish", "Europe/Riga", False),
        ("every 5m | every 7m", "Europe/Riga", False),
        ("every 5m | 0 9 * * *", "Europe/Riga", True),
    ],
)
def test_what_depends_on_the_rules_of_its_zone(text: str, zone: str, expected: bool) -> None:
    schedule = parse_schedule(text, zone)
    assert is_zone_dependent(schedule) is expected
    standing = slots(schedule).kind is not DATED
    assert (zone_digest(schedule) != "") is (expected and standing)


def test_dated_filing_has_no_digest_and_a_moving_calendar_makes_everything_local() -> None:
    assert zone_digest(parse_schedule("0 0 1 1 *", "Europe/Riga")) == ""
    riga = digest_of_zone("Europe/Riga")
    assert len(riga) == 8
    assert zone_digest(parse_schedule("0 0 1 1 *", "Europe/Riga"), 17, True) == riga
    assert zone_digest(parse_schedule("every 1d", "Europe/Riga"), 0, True) == riga
    assert zone_digest(parse_schedule("every 1d", "UTC"), 0, True) == ""
    # Vilnius has had Riga's rules for longer than any entry can stand.
    assert digest_of_zone("Europe/Vilnius") == riga
    assert digest_of_zone("Africa/Cairo") != riga


@pytest.fixture
def riga_without_dst(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Europe/Riga as if an upgrade of the database had abolished its summer time."""
    known = zones.load_zone

    def load_zone(name: str) -> ZoneInfo:
        return known("Etc/GMT-2" if name == "Europe/Riga" else name)

    monkeypatch.setattr(zones, "load_zone", load_zone)
    yield
    monkeypatch.undo()
    zones.clear_caches()


@pytest.mark.usefixtures("riga_without_dst")
def test_other_rules_of_the_zone_give_another_digest_and_other_slots() -> None:
    schedule = parse_schedule("0 9 * * *", "Europe/Riga")
    old_digest, old_slots = zone_digest(schedule), slots(schedule)
    zones.clear_caches()
    assert zone_digest(schedule) not in ("", old_digest)
    assert slots(schedule) == Slots(DAILY, frozenset({420})) != old_slots
    assert schedule.next(datetime(2026, 7, 1, tzinfo=UTC)) == datetime(2026, 7, 1, 7, tzinfo=UTC)
