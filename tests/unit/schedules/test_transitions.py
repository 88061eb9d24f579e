"""Dated tables around transitions. The authority for cron is Debian's cron(8)."""

from datetime import UTC, datetime, timedelta

import pytest

from carillon.schedules import DstRule, Fold, Gap, parse_schedule

Case = tuple[str, str, str, list[str]]
"""Zone, expression, after, and the occurrences that follow; all in UTC."""

# Europe/Riga, 2026-03-29: 03:00 EET -> 04:00 EEST, at 01:00 UTC.
RIGA_SPRING: list[Case] = [
    ("Europe/Riga", expression, "2026-03-28T12:00", expected)
    for expression, expected in [
        ("59 2 * * *", ["2026-03-29T00:59", "2026-03-29T23:59"]),
        ("0 3 * * *", ["2026-03-29T01:00", "2026-03-30T00:00"]),
        ("30 3 * * *", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        ("10,50 3 * * *", ["2026-03-29T01:00", "2026-03-30T00:10", "2026-03-30T00:50"]),
        ("30 3,4 * * *", ["2026-03-29T01:00", "2026-03-29T01:30", "2026-03-30T00:30"]),
        ("0 4 * * *", ["2026-03-29T01:00", "2026-03-30T01:00"]),
        ("0 3,4 * * *", ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T01:00"]),
        ("30 3 29 3 *", ["2026-03-29T01:00", "2027-03-29T00:30"]),
        ("*/30 3 * * *", ["2026-03-30T00:00", "2026-03-30T00:30"]),
        ("0 0 3 * * *", ["2026-03-29T01:00", "2026-03-30T00:00"]),
        ("15,45 30 3 * * *", ["2026-03-29T01:00", "2026-03-30T00:30:15", "2026-03-30T00:30:45"]),
        ("0 */30 3 * * *", ["2026-03-30T00:00", "2026-03-30T00:30"]),
        ("30 */2 * * *", ["2026-03-28T12:30", "2026-03-28T14:30", "2026-03-28T16:30"]),
    ]
]
# Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
RIGA_AUTUMN: list[Case] = [
    ("Europe/Riga", expression, "2026-10-24T12:00", expected)
    for expression, expected in [
        ("0 3 * * *", ["2026-10-25T00:00", "2026-10-26T01:00"]),
        ("30 3 * * *", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("59 3 * * *", ["2026-10-25T00:59", "2026-10-26T01:59"]),
        ("0 4 * * *", ["2026-10-25T02:00", "2026-10-26T02:00"]),
        ("59 2,3 * * *", ["2026-10-24T23:59", "2026-10-25T00:59", "2026-10-26T00:59"]),
        ("*/30 3 25 * *", [f"2026-10-25T0{time}" for time in ("0:00", "0:30", "1:00", "1:30")]),
        ("0 30 3 * * *", ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ]
]
# America/New_York, 2026-03-08: 02:00 EST -> 03:00 EDT, at 07:00 UTC.
NEW_YORK_SPRING: list[Case] = [
    ("America/New_York", expression, "2026-03-08T06:00", expected)
    for expression, expected in [
        ("30 1 * * *", ["2026-03-08T06:30", "2026-03-09T05:30"]),
        ("30 2 * * *", ["2026-03-08T07:00", "2026-03-09T06:30"]),
        ("0 3 * * *", ["2026-03-08T07:00", "2026-03-09T07:00"]),
        ("15 * * * *", ["2026-03-08T06:15", "2026-03-08T07:15", "2026-03-08T08:15"]),
        ("*/20 2 * * *", ["2026-03-09T06:00", "2026-03-09T06:20", "2026-03-09T06:40"]),
        ("0 30 2 * * *", ["2026-03-08T07:00", "2026-03-09T06:30"]),
    ]
]
# America/New_York, 2026-11-01: 02:00 EDT -> 01:00 EST, at 06:00 UTC.
NEW_YORK_AUTUMN: list[Case] = [
    ("America/New_York", expression, "2026-11-01T04:30", expected)
    for expression, expected in [
        ("0 1 * * *", ["2026-11-01T05:00", "2026-11-02T06:00"]),
        ("30 1 * * *", ["2026-11-01T05:30", "2026-11-02T06:30"]),
        ("0 2 * * *", ["2026-11-01T07:00", "2026-11-02T07:00"]),
        ("30 * * * *", ["2026-11-01T05:30", "2026-11-01T06:30", "2026-11-01T07:30"]),
        ("0 0 1 * * *", ["2026-11-01T05:00", "2026-11-02T06:00"]),
    ]
]
RARE: list[Case] = [
    # Australia/Lord_Howe, 2026-10-04: 02:00 +10:30 -> 02:30 +11, at 15:30 UTC the day before.
    (
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2026-10-03T00:00",
        ["2026-10-03T15:30", "2026-10-04T15:15"],
    ),
    # Australia/Lord_Howe, 2026-04-05: 02:00 +11 -> 01:30 +10:30, at 15:00 UTC the day before.
    (
        "Australia/Lord_Howe",
        "45 1 * * *",
        "2026-04-04T00:00",
        ["2026-04-04T14:45", "2026-04-05T15:15"],
    ),
    (
        "Australia/Lord_Howe",
        "*/15 1 5 4 *",
        "2026-04-04T00:00",
        [f"2026-04-04T{time}" for time in ("14:00", "14:15", "14:30", "14:45", "15:00", "15:15")],
    ),
    # Asia/Beirut, 2026-03-29: 00:00 EET -> 01:00 EEST, at 22:00 UTC the day before.
    ("Asia/Beirut", "30 0 * * *", "2026-03-28T12:00", ["2026-03-28T22:00", "2026-03-29T21:30"]),
    ("Asia/Beirut", "*/30 0 * * *", "2026-03-28T12:00", ["2026-03-29T21:00", "2026-03-29T21:30"]),
    # Asia/Beirut, 2026-10-25: 00:00 EEST -> 23:00 EET of the day before, at 21:00 UTC.
    ("Asia/Beirut", "30 23 * * *", "2026-10-24T12:00", ["2026-10-24T20:30", "2026-10-25T21:30"]),
    ("Asia/Beirut", "0 0 25 * *", "2026-10-24T12:00", ["2026-10-24T22:00", "2026-11-24T22:00"]),
    # Pacific/Apia, 2011-12-30 did not happen: -10 -> +14, at 10:00 UTC.
    (
        "Pacific/Apia",
        "0 9 * * *",
        "2011-12-29T00:00",
        ["2011-12-29T19:00", "2011-12-30T10:00", "2011-12-30T19:00"],
    ),
    ("Pacific/Apia", "0 */9 * * *", "2011-12-30T02:00", ["2011-12-30T04:00", "2011-12-30T10:00"]),
    # Antarctica/Troll, 2026-03-29: 01:00 +00 -> 03:00 +02, at 01:00 UTC.
    (
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2026-03-28T12:00",
        ["2026-03-29T01:00", "2026-03-29T23:30"],
    ),
    # Antarctica/Troll, 2026-10-25: 03:00 +02 -> 01:00 +00, at 01:00 UTC.
    (
        "Antarctica/Troll",
        "30 1,2 * * *",
        "2026-10-24T12:00",
        ["2026-10-24T23:30", "2026-10-25T00:30", "2026-10-26T01:30"],
    ),
    # Africa/Casablanca, 2026-02-15: 03:00 +01 -> 02:00 +00, and 2026-03-22:
    # 02:00 +00 -> 03:00 +01, both at 02:00 UTC (Ramadan).
    (
        "Africa/Casablanca",
        "30 2 * * *",
        "2026-02-14T12:00",
        ["2026-02-15T01:30", "2026-02-16T02:30"],
    ),
    (
        "Africa/Casablanca",
        "30 2 * * *",
        "2026-03-21T12:00",
        ["2026-03-22T02:00", "2026-03-23T01:30"],
    ),
]


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "expression", "after", "expected"),
    [*RIGA_SPRING, *RIGA_AUTUMN, *NEW_YORK_SPRING, *NEW_YORK_AUTUMN, *RARE],
)
def test_cron_around_a_transition(
    zone: str, expression: str, after: str, expected: list[str]
) -> None:
    schedule = parse_schedule(expression, zone)
    instants = [_utc(text) for text in expected]

    forward = []
    instant = _utc(after)
    for _ in instants:
        found = schedule.next(instant)
        assert found is not None
        forward.append(found)
        instant = found
    backward = []
    instant = instants[-1] + timedelta(seconds=1)
    for _ in instants:
        found = schedule.previous(instant)
        assert found is not None
        backward.append(found)
        instant = found

    assert forward == instants
    assert backward[::-1] == instants


@pytest.mark.parametrize("minute", range(0, 60, 7))
def test_a_filing_made_during_the_repeated_hour_does_not_fire_again(minute: int) -> None:
    # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
    schedule = parse_schedule("30 3 * * *", "Europe/Riga")
    second_pass = _utc("2026-10-25T01:00") + timedelta(minutes=minute)
    assert schedule.next(second_pass) == _utc("2026-10-26T01:30")
    assert schedule.previous(second_pass) == _utc("2026-10-25T00:30")


@pytest.mark.parametrize(
    ("zone", "local_time", "expected"),
    [
        # Europe/Riga, 2026-03-29: 03:00 EET -> 04:00 EEST, at 01:00 UTC. Shifted by the gap.
        ("Europe/Riga", "2026-03-29T02:59:59", "2026-03-29T00:59:59"),
        ("Europe/Riga", "2026-03-29T03:00:00", "2026-03-29T01:00:00"),
        ("Europe/Riga", "2026-03-29T03:30:00", "2026-03-29T01:30:00"),
        ("Europe/Riga", "2026-03-29T04:00:00", "2026-03-29T01:00:00"),
        # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC. The first pass.
        ("Europe/Riga", "2026-10-25T03:30:00", "2026-10-25T00:30:00"),
        ("Europe/Riga", "2026-10-25T03:30:00+02:00", "2026-10-25T01:30:00"),
        # America/New_York, 2026-03-08: 02:00 EST -> 03:00 EDT, at 07:00 UTC.
        ("America/New_York", "2026-03-08T02:30:00", "2026-03-08T07:30:00"),
    ],
)
def test_at_around_a_transition(zone: str, local_time: str, expected: str) -> None:
    schedule = parse_schedule(f"at {local_time}", zone)
    instant = _utc(expected)
    assert schedule.next(instant - timedelta(seconds=1)) == instant
    assert schedule.next(instant) is None
    assert schedule.previous(instant + timedelta(seconds=1)) == instant
    assert schedule.previous(instant) is None


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (None, "2026-10-25T00:30"),
        (Fold.FIRST, "2026-10-25T00:30"),
        (Fold.SECOND, "2026-10-25T01:30"),
        (Fold.BOTH, "2026-10-25T00:30"),
    ],
)
def test_at_takes_one_pass_of_a_repeated_time(fold: Fold | None, expected: str) -> None:
    # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
    schedule = parse_schedule(
        "at 2026-10-25T03:30:00", "Europe/Riga", dst=DstRule(Gap.RUN_AFTER, fold)
    )
    assert schedule.next(_utc("2026-10-24T00:00")) == _utc(expected)
    assert schedule.next(_utc(expected)) is None


@pytest.mark.parametrize(
    ("gap", "fold", "after", "expected"),
    [
        # Europe/Riga, 2026-03-29: 03:00 EET -> 04:00 EEST, at 01:00 UTC.
        (Gap.SKIP, None, "2026-03-28T12:00", ["2026-03-30T00:30"]),
        (Gap.RUN_AFTER, None, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
        (None, Fold.SECOND, "2026-10-24T12:00", ["2026-10-25T01:30", "2026-10-26T01:30"]),
        (None, Fold.BOTH, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-25T01:30"]),
    ],
)
def test_a_job_may_have_its_own_rule(
    gap: Gap | None, fold: Fold | None, after: str, expected: list[str]
) -> None:
    for text in ("30 3 * * *", "0 30 3 * * *", "cron(30 3 * * ? *)"):
        schedule = parse_schedule(text, "Europe/Riga", dst=DstRule(gap, fold))
        found = []
        instant = _utc(after)
        for _ in expected:
            following = schedule.next(instant)
            assert following is not None
            found.append(following)
            instant = following
        assert found == [_utc(text) for text in expected]


def test_the_last_year_ends_with_its_second_pass() -> None:
    # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
    both = parse_schedule("cron(30 3 25 10 ? 2026)", "Europe/Riga", dst=DstRule(None, Fold.BOTH))
    first, second = _utc("2026-10-25T00:30"), _utc("2026-10-25T01:30")
    assert both.next(_utc("2026-01-01T00:00")) == first
    assert both.next(first) == second
    assert both.next(second) is None
    assert both.previous(_utc("2030-01-01T00:00")) == second
    assert both.previous(second) == first
    assert both.previous(first) is None
