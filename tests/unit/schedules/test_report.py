"""What is told before a schedule is created. Each table has its transition written above it."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carillon.schedules import (
    CalendarRule,
    ClosedDays,
    Cron,
    DstRule,
    Fold,
    Gap,
    OnOpenDays,
    parse_schedule,
)
from carillon.schedules.cron.expression import canonical_text
from carillon.schedules.insight.warnings import (
    AffectingTransition,
    ScheduleWarning,
    WarningCode,
    transitions_affecting,
    warnings_of,
)
from carillon.schedules.zones import offsets as zones
from tests.unit.schedules.strategies import (
    ZONES,
    calendar_rules,
    closed_days,
    dst_rules,
    eventbridge_expressions,
    exact,
    exact_and_slow,
    expressions,
)

NOW = datetime(2026, 9, 1, tzinfo=UTC)
YEAR = timedelta(days=366)
NEW_YORK, RIGA = "America/New_York", "Europe/Riga"
SKIP, NEXT, PREVIOUS = CalendarRule
MOVED = "02:30 does not exist on 2027-03-14: runs at 03:00, when the clocks have jumped"


def effects(value: str, zone: str, dst: DstRule = DstRule()) -> list[str]:  # noqa: B008
    schedule = parse_schedule(value, zone, dst=dst)
    return [touched.effect for touched in transitions_affecting(schedule, NOW, NOW + YEAR)]


# 2026-11-01 06:00Z: 02:00 EDT -> 01:00 EST. 2027-03-14 07:00Z: 02:00 EST -> 03:00 EDT.
@pytest.mark.parametrize(
    ("value", "dst", "told"),
    [
        ("30 2 * * *", DstRule(),
         ["02:30 does not exist on 2027-03-14: runs at 03:00, when the clocks have jumped"]),
        ("30 2 * * *", DstRule(Gap.SKIP), ["02:30 does not exist on 2027-03-14: is left out"]),
        ("15 30 2 * * *", DstRule(),
         ["02:30:15 does not exist on 2027-03-14: runs at 03:00, when the clocks have jumped"]),
        ("0,30 2 * * *", DstRule(),
         ["02:00 and 02:30 do not exist on 2027-03-14: run once, at 03:00, when the clocks have "
          "jumped"]),
        ("30 1 * * *", DstRule(), ["01:30 comes twice on 2026-11-01: runs at the first, 05:30Z"]),
        ("30 1 * * *", DstRule(fold=Fold.SECOND),
         ["01:30 comes twice on 2026-11-01: runs at the second, 06:30Z"]),
        ("30 1 * * *", DstRule(fold=Fold.BOTH),
         ["01:30 comes twice on 2026-11-01: runs at both, 05:30Z and 06:30Z"]),
        ("*/10 * * * *", DstRule(),
         ["01:00 to 01:50 (6 times) come twice on 2026-11-01: run at both passes",
          "02:00 to 02:50 (6 times) do not exist on 2027-03-14: are left out"]),
        ("*/10 * * * *", DstRule(Gap.RUN_AFTER, Fold.FIRST),
         ["01:00 to 01:50 (6 times) come twice on 2026-11-01: run at the first pass only",
          "02:00 to 02:50 (6 times) do not exist on 2027-03-14: run once, at 03:00, when the "
          "clocks have jumped"]),
        ("* * * * * *", DstRule(),
         ["01:00 to 02:00 (more than 1,000 times) come twice on 2026-11-01: run at both passes",
          "02:00 to 03:00 (more than 1,000 times) do not exist on 2027-03-14: are left out"]),
        # EventBridge: a skipped time is left out, a repeated one runs once, wildcards or not.
        ("cron(30 1,2 * * ? *)", DstRule(),
         ["01:30 comes twice on 2026-11-01: runs at the first, 05:30Z",
          "02:30 does not exist on 2027-03-14: is left out"]),
        ("cron(0/30 * * * ? *)", DstRule(),
         ["01:00 and 01:30 come twice on 2026-11-01: run at the first pass only",
          "02:00 and 02:30 do not exist on 2027-03-14: are left out"]),
        ("at 2027-03-14T02:30:00", DstRule(),
         ["02:30 does not exist on 2027-03-14: runs at 03:30, as much later as the clocks jump"]),
        ("at 2026-11-01T01:30:00", DstRule(),
         ["01:30 comes twice on 2026-11-01: runs at the first, 05:30Z"]),
        ("at 2026-11-01T01:30:00", DstRule(fold=Fold.SECOND),
         ["01:30 comes twice on 2026-11-01: runs at the second, 06:30Z"]),
        ("at 2026-11-01T05:30:00Z", DstRule(), []),
        ("30 3 * * *", DstRule(), []),
        ("30 2 * * 1", DstRule(), []),  # both are Sundays
        ("every 1h", DstRule(), []),
        ("every 1h after finish", DstRule(), []),
        # One member is moved, the other left out; an exception takes out what it names.
        ("30 2 * * * | */30 * * * 0", DstRule(),
         ["01:00 and 01:30 come twice on 2026-11-01: run at both passes",
          "02:30 does not exist on 2027-03-14: runs at 03:00, when the clocks have jumped",
          "02:00 does not exist on 2027-03-14: is left out"]),
        ("30 2 * * * except * * 14 3 *", DstRule(), []),
        ("30 1 * * * except * * 1 11 *", DstRule(), []),
        ("*/30 * * * * except 30 * * * * | 0 2 * * *", DstRule(),
         ["01:00 comes twice on 2026-11-01: runs at both, 05:00Z and 06:00Z"]),
    ],
)  # fmt: skip
def test_new_york(value: str, dst: DstRule, told: list[str]) -> None:
    assert effects(value, NEW_YORK, dst) == told


@pytest.mark.parametrize(
    ("value", "zone", "told"),
    [
        # 2026-10-25 01:00Z: 04:00 -> 03:00. 2027-03-28 01:00Z: 03:00 -> 04:00.
        ("30 3 * * *", RIGA,
         ["03:30 comes twice on 2026-10-25: runs at the first, 00:30Z",
          "03:30 does not exist on 2027-03-28: runs at 04:00, when the clocks have jumped"]),
        # 2026-10-03 15:30Z: 02:00 -> 02:30. 2027-04-03 15:00Z: 02:00 -> 01:30.
        ("45 1,2 * * *", "Australia/Lord_Howe",
         ["01:45 comes twice on 2027-04-04: runs at the first, 2027-04-03T14:45Z"]),
        ("15 2 * * *", "Australia/Lord_Howe",
         ["02:15 does not exist on 2026-10-04: runs at 02:30, when the clocks have jumped"]),
        # 2026-09-06 04:00Z: 00:00 -> 01:00. 2027-04-04 03:00Z: 24:00 -> 23:00 of the day before.
        ("0 0 * * *", "America/Santiago",
         ["00:00 does not exist on 2026-09-06: runs at 01:00, when the clocks have jumped"]),
        ("59 23 * * *", "America/Santiago",
         ["23:59 comes twice on 2027-04-03: runs at the first, 2027-04-04T02:59Z"]),
        # 2026-10-25 01:00Z: 03:00 -> 01:00. 2027-03-28 01:00Z: 01:00 -> 03:00.
        ("0 1,2 * * *", "Antarctica/Troll",
         ["01:00 and 02:00 come twice on 2026-10-25: run at the first pass only",
          "01:00 and 02:00 do not exist on 2027-03-28: run once, at 03:00, when the clocks have "
          "jumped"]),
        ("0 0 * * *", "Asia/Kolkata", []),
    ],
)  # fmt: skip
def test_other_zones(value: str, zone: str, told: list[str]) -> None:
    assert effects(value, zone) == told


def test_a_missing_day_is_named() -> None:
    # 2011-12-30 10:00Z: 24:00 of 29 December -> 00:00 of 31 December.
    after = datetime(2011, 12, 1, tzinfo=UTC)
    noon = parse_schedule("0 12 * * *", "Pacific/Apia")
    assert transitions_affecting(noon, after, after + timedelta(days=31)) == [
        AffectingTransition(
            transition_at=datetime(2011, 12, 30, 10, tzinfo=UTC),
            kind="gap",
            local_from=datetime(2011, 12, 30),
            local_until=datetime(2011, 12, 31),
            count=1,
            first_local=datetime(2011, 12, 30, 12),
            effect="12:00 does not exist on 2011-12-30: runs at 00:00 on 2011-12-31, when the "
            "clocks have jumped",
        )
    ]


def test_only_what_lies_in_the_span_and_in_the_schedules_life_is_told() -> None:
    jump = datetime(2027, 3, 14, 7, tzinfo=UTC)
    daily = parse_schedule("30 2 * * *", NEW_YORK)
    assert transitions_affecting(daily, jump, jump + timedelta(days=200)) == []
    assert len(transitions_affecting(daily, jump - timedelta(seconds=1), jump)) == 1
    ended = parse_schedule("30 2 * * *", NEW_YORK, end_at=jump - timedelta(seconds=1))
    assert transitions_affecting(ended, NOW, NOW + YEAR) == []
    # The first pass lies in its life, the second does not.
    half = datetime(2026, 11, 1, 6, tzinfo=UTC)
    cut = parse_schedule("30 1 * * *", NEW_YORK, end_at=half, dst=DstRule(fold=Fold.BOTH))
    (touched,) = transitions_affecting(cut, NOW, NOW + YEAR)
    assert touched.effect == "01:30 comes twice on 2026-11-01: runs at the first, 05:30Z"


@exact_and_slow
@given(expressions(), st.sampled_from(ZONES), st.integers(2025, 2040))
def test_what_is_not_told_of_fires_at_its_wall_times(text: str, zone: str, year: int) -> None:
    schedule = parse_schedule(text, zone)
    assert isinstance(schedule, Cron)
    for change in zones.transitions(zone, year):
        at = datetime.fromtimestamp(change.second, UTC)
        if transitions_affecting(schedule, at - timedelta(seconds=1), at):
            continue
        # The clocks at the ends, a day before and after, where they are plain.
        first, last = at - timedelta(days=1), at + timedelta(days=1)
        shown = [_wall(instant, zone) for instant in schedule.between(first, last)]
        local_time, end = _wall(first, zone), _wall(last, zone)
        expected = []
        found = schedule.rule.after(local_time)
        while found is not None and found <= end:
            expected.append(found)
            found = schedule.rule.after(found)
        assert shown == expected


def _wall(instant: datetime, zone: str) -> int:
    local = instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return (local - zones.LOCAL_EPOCH) // timedelta(seconds=1)


@pytest.mark.parametrize(
    ("value", "zone", "code", "message"),
    [
        ("30 2 * * *", NEW_YORK, WarningCode.DST,
         "Within a year, clocks in America/New_York change: 02:30 does not exist on 2027-03-14: "
         "runs at 03:00, when the clocks have jumped."),
        ("cron(0/15 * * * ? *)", NEW_YORK, WarningCode.DST,
         "Within a year, clocks in America/New_York change: 01:00 to 01:45 (4 times) come twice "
         "on 2026-11-01: run at the first pass only."),
        ("* * * * * *", "UTC", WarningCode.MANY_FIRES, "It fires 86,400 times a day."),
        ("every 30s", "UTC", WarningCode.MANY_FIRES, "It fires up to 2,880 times a day."),
        ("*/30 * * * * 1", "UTC", WarningCode.MANY_FIRES, "It fires up to 2,880 times a day."),
        ("every 30s after finish", "UTC", WarningCode.MANY_FIRES,
         "It fires up to 2,880 times a day."),
        ("* * * * * | 30 * * * * *", "UTC", WarningCode.MANY_FIRES,
         "It fires up to 2,880 times a day."),
        ("0 0 13 * 5", "UTC", WarningCode.DAY_OR_WEEKDAY,
         "Day-of-month 13 and day-of-week 5 both restrict, and a day that matches either is "
         "enough: it fires on 62 days of the next 365."),
        ("0 0 */2 * MON", "UTC", WarningCode.DAY_AND_WEEKDAY,
         "Day-of-month */2 and day-of-week MON both restrict, and since one begins with a star, a "
         "day must match both: it fires on 26 days of the next 365."),
        ("0 9 * * * | 0 0 13 * 5", "UTC", WarningCode.DAY_OR_WEEKDAY,
         '"0 0 13 * 5": Day-of-month 13 and day-of-week 5 both restrict, and a day that matches '
         "either is enough: it fires on 62 days of the next 365."),
        ("0 0 31 * *", "UTC", WarningCode.NOT_EVERY_MONTH,
         "February, April, June, September and November 2027 have no such day, and no "
         'occurrence. "L" is the last day of every month.'),
        ("0 0 29 * *", "UTC", WarningCode.NOT_EVERY_MONTH,
         'February 2027 has no such day, and no occurrence. "L" is the last day of every month.'),
        ("0 0 * 1-3 5#5", "UTC", WarningCode.NOT_EVERY_MONTH,
         "February and March 2027 have no such day, and no occurrence."),
        ("at 2030-01-01T00:00:00", "UTC", WarningCode.FAR_AWAY,
         "The next occurrence is as far away as 2030-01-01, in 1,218 days."),
        ("0 0 29 2 *", "UTC", WarningCode.FAR_AWAY,
         "The next occurrence is as far away as 2028-02-29, in 546 days."),
        ("cron(0 9 1 1 ? 2020)", "UTC", WarningCode.FAR_AWAY,
         "There is no occurrence after 2026-09-01."),
    ],
)  # fmt: skip
def test_warnings(value: str, zone: str, code: WarningCode, message: str) -> None:
    assert warnings_of(parse_schedule(value, zone), NOW) == [ScheduleWarning(code, message)]


@pytest.mark.parametrize(
    ("value", "dst", "warned"),
    [
        ("*/10 * * * *", DstRule(), False),
        ("17 * * * *", DstRule(), False),
        ("30 1 * * *", DstRule(), False),  # shown twice, run once
        ("30 1 * * *", DstRule(fold=Fold.SECOND), False),
        ("* * * * *", DstRule(), False),
        ("every 1m", DstRule(), False),
        ("0 9 L * *", DstRule(), False),
        ("0 9 * * 5L", DstRule(), False),
        ("0 9 31 1,3 *", DstRule(), False),
        ("0 9 28 * *", DstRule(), False),
        ("0 9 * * * except 0 9 31 * *", DstRule(), False),
        ("at 2026-11-01T01:30:00", DstRule(), False),
        ("30 1 * * *", DstRule(fold=Fold.BOTH), True),
        ("30 2 * * *", DstRule(gap=Gap.SKIP), True),
        ("*/10 * * * *", DstRule(fold=Fold.FIRST), True),
        ("*/10 * * * *", DstRule(gap=Gap.RUN_AFTER), True),
        ("at 2027-03-14T02:30:00", DstRule(), True),
    ],
)
def test_what_is_not_as_expected_is_a_warning(value: str, dst: DstRule, warned: bool) -> None:
    warnings = warnings_of(parse_schedule(value, NEW_YORK, dst=dst), NOW)
    assert [warning.code for warning in warnings] == [WarningCode.DST] * warned


def test_no_more_than_two_touched_transitions_are_spelled_out() -> None:
    value = "30 1,2 * * * | */15 2 * * 0"
    schedule = parse_schedule(value, NEW_YORK, dst=DstRule(fold=Fold.BOTH))
    assert len(transitions_affecting(schedule, NOW, NOW + YEAR)) == 3
    (warning,) = warnings_of(schedule, NOW)
    assert warning.message.endswith(
        "does not exist on 2027-03-14: runs at 03:00, when the clocks have jumped. And 1 more."
    )


def test_more_than_a_thousand_are_counted_without_exceptions() -> None:
    told = effects("* * * * * * except 0-29 2 * * *", NEW_YORK)
    assert told[1] == (
        "02:30 to 03:00 (more than 1,000 times) do not exist on 2027-03-14: are left out"
    )
    (few,) = effects("* * * * * * except 0-49 2 * * * | * 0-1,3-23 * * *", NEW_YORK)
    assert few == "02:50 to 02:59:59 (600 times) do not exist on 2027-03-14: are left out"


# Both transitions of New York are on Sundays.
@pytest.mark.parametrize(
    ("value", "dst", "closed", "rule", "told"),
    [
        ("30 2 * * *", DstRule(), {5}, SKIP, [MOVED]),
        ("30 2 * * *", DstRule(), {6}, SKIP, []),
        ("30 2 * * *", DstRule(Gap.SKIP), {6}, SKIP, []),
        ("30 2 * * *", DstRule(), {6}, NEXT, []),
        ("30 2 * * *", DstRule(), {6}, PREVIOUS, []),
        ("at 2027-03-14T02:30:00", DstRule(), {6}, SKIP, []),
        ("at 2027-03-14T02:30:00", DstRule(), {6}, NEXT, []),
        # Of Saturdays, and of Mondays: moved to the Sunday.
        ("30 2 * * 6", DstRule(), {5}, SKIP, []),
        ("30 2 * * 6", DstRule(), {5}, NEXT, [MOVED]),
        ("30 2 * * 6", DstRule(), {5}, PREVIOUS, []),
        ("30 2 * * 1", DstRule(), {0}, PREVIOUS, [MOVED]),
        ("30 2 * * 5", DstRule(), {4, 5}, NEXT, [MOVED]),
        ("30 2 * * 4", DstRule(), {4, 5}, NEXT, []),
        ("30 2 * * 6", DstRule(Gap.SKIP), {5}, NEXT,
         ["02:30 does not exist on 2027-03-14: is left out"]),
        # The dialect's own rule is for its own days; what is moved runs.
        ("cron(30 2 ? * SUN *)", DstRule(), set(), NEXT,
         ["02:30 does not exist on 2027-03-14: is left out"]),
        ("cron(30 2 ? * * *)", DstRule(), {5}, NEXT, [MOVED]),
        ("at 2027-03-13T02:30:00", DstRule(), {5}, NEXT, [MOVED]),
        ("at 2027-03-13T07:30:00Z", DstRule(), {5}, NEXT, [MOVED]),
        ("30 1 * * 6", DstRule(fold=Fold.SECOND), {5}, NEXT,
         ["01:30 comes twice on 2026-11-01: runs at the second, 06:30Z"]),
        ("30 1 * * 6", DstRule(fold=Fold.BOTH), {5}, NEXT,
         ["01:30 comes twice on 2026-11-01: runs at the first, 05:30Z"]),
        ("30 2 * * 6 | 0 2 * * 6 except * * 13 * *", DstRule(), {5}, NEXT, []),
        ("30 2 * * 6 | 0 2 * * 6 except 0 * * * *", DstRule(), {5}, NEXT, [MOVED]),
        ("every 1h after finish", DstRule(), {5}, NEXT, []),
    ],
)  # fmt: skip
def test_what_a_calendar_closes_or_moves_is_told_of_where_it_runs(
    value: str, dst: DstRule, closed: set[int], rule: CalendarRule, told: list[str]
) -> None:
    schedule = parse_schedule(value, NEW_YORK, dst=dst)
    under = OnOpenDays(schedule, ClosedDays.of(closed, []), rule)
    touched = transitions_affecting(under, NOW)
    assert [each.effect for each in touched] == told
    warned = [warning for warning in warnings_of(under, NOW) if warning.code is WarningCode.DST]
    assert bool(warned) is any(each.kind == "gap" for each in touched)


@st.composite
def _met_under_a_calendar(draw: st.DrawFn) -> tuple[OnOpenDays, zones.Transition]:
    zone = draw(st.sampled_from(ZONES[1:]))
    changes = zones.transitions(zone, draw(st.integers(2024, 2040)))
    assume(changes)
    change = draw(st.sampled_from(changes))
    near = datetime.fromtimestamp(change.second, UTC)
    any_expression = st.one_of(expressions(), eventbridge_expressions()).map(canonical_text)
    base = Cron(draw(any_expression), zone, dst=draw(dst_rules))
    return OnOpenDays(base, draw(closed_days(near)), draw(calendar_rules)), change


@exact
@given(_met_under_a_calendar())
def test_what_is_told_under_a_calendar_is_what_it_does(
    met: tuple[OnOpenDays, zones.Transition],
) -> None:
    opened, change = met
    assert isinstance(opened.base, Cron)
    at = datetime.fromtimestamp(change.second, UTC)
    first, end = sorted((change.second + change.before, change.second + change.after))
    # Each wall time of the base as if no clock were changed, on the day that the rule gives it.
    local_times = set()
    for days in range(-32, 33):
        shift = days * 86_400
        found = opened.base.rule.after(first - shift - 1)
        while found is not None and found <= end - shift:
            if _open_wall(opened, found) == found + shift:
                local_times.add(found + shift)
            found = opened.base.rule.after(found)
    fires_at_end = end in local_times
    local_times.discard(end)
    touched = transitions_affecting(opened, at - timedelta(seconds=1), at)
    assert sum(each.count or 0 for each in touched) == len(local_times)
    told = {(each.first_local - zones.LOCAL_EPOCH) // timedelta(seconds=1) for each in touched}
    assert told <= local_times
    assert min(told, default=None) == min(local_times, default=None)
    for each in touched:
        local_time = (each.first_local - zones.LOCAL_EPOCH) // timedelta(seconds=1)
        if each.kind == "gap":
            assert ("left out" in each.effect) or opened.has(change.second), each
            continue
        passes = (opened.has(local_time - change.before), opened.has(local_time - change.after))
        words = {(True, True): " both", (True, False): " the first", (False, True): " the second"}
        assert words[passes] in each.effect
    if not local_times and change.before < change.after:
        assert opened.has(change.second) is fires_at_end


def _open_wall(opened: OnOpenDays, local_time: int) -> int | None:
    """Where the rule has a wall time run; None: nowhere."""
    day = (zones.LOCAL_EPOCH + timedelta(seconds=local_time)).date()
    if opened.rule is SKIP:
        return None if day in opened.closed else local_time
    target = opened.closed.open_day_from(day, opened.rule)
    return None if target is None else local_time + (target - day).days * 86_400


@pytest.mark.parametrize(("year", "count"), [(1, 0), (1970, 1), (9997, 1), (9998, 0), (9999, 0)])
def test_it_can_be_asked_of_any_year(year: int, count: int) -> None:
    after = datetime(year, 12, 31, 12, tzinfo=UTC)
    assert len(transitions_affecting(parse_schedule("30 2 * * *", NEW_YORK), after)) == count
    warnings_of(parse_schedule("0 0 13 * 5", NEW_YORK), after)
