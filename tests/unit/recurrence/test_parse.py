import pickle
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from shared.errors import InvalidFieldError
from shared.recurrence import At, Cron, Every, Schedule, parse_schedule
from tests.unit.recurrence.strategies import exact, schedules

START = datetime(2026, 1, 1, tzinfo=UTC)
Form = str | Mapping[str, object]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("at 2026-12-01T09:00:00", "at 2026-12-01T09:00:00"),
        ("\tAT\t2026-12-01 09:00", "at 2026-12-01T09:00:00"),
        ("at 2026-12-01T09:00:00.000+02:00", "at 2026-12-01T07:00:00Z"),
        ("at 2026-12-01T09:00:00z", "at 2026-12-01T09:00:00Z"),
        ({"at": "2026-12-01T09:00:00"}, "at 2026-12-01T09:00:00"),
        ("every 25m offset 2m", "every 25m offset 2m"),
        ("  Every  PT1H30M   OFFSET 120s ", "every 1h30m offset 2m"),
        ("every 60s offset 0s", "every 1m"),
        ({"every": "25m", "offset": "2m"}, "every 25m offset 2m"),
        ({"every": "5s"}, "every 5s"),
        ("17 * * * *", "17 * * * *"),
        (" 0  9\t* jan mon-Fri\n", "0 9 * JAN MON-FRI"),
        ({"cron": "*/5 * * * * *"}, "*/5 * * * * *"),
    ],
)
def test_forms_have_one_canonical_text(value: Form, text: str) -> None:
    assert parse_schedule(value).text == text


@exact
@given(schedules)
def test_text_and_json_and_pickle_give_the_value_back(schedule: Schedule) -> None:
    zone, start_at = schedule.timezone, schedule.start_at
    from_text = parse_schedule(schedule.text, zone, start_at)
    from_json = parse_schedule(schedule.as_json(), zone, start_at)
    assert from_text == from_json == pickle.loads(pickle.dumps(schedule)) == schedule
    assert hash(from_text) == hash(from_json) == hash(schedule)


def test_kinds() -> None:
    assert isinstance(parse_schedule("at 2026-12-01T09:00:00"), At)
    assert isinstance(parse_schedule("every 1m"), Every)
    assert isinstance(parse_schedule("* * * * *"), Cron)
    assert not parse_schedule("at 2026-12-01T09:00:00").is_recurring
    assert parse_schedule("every 1m").is_recurring
    assert parse_schedule("* * * * *").is_recurring


def test_start_at_is_kept_in_utc_and_a_naive_one_is_wall_time() -> None:
    expected = datetime(2026, 6, 1, 6, tzinfo=UTC)
    for start_at in (
        datetime(2026, 6, 1, 9),
        datetime(2026, 6, 1, 9, tzinfo=ZoneInfo("Europe/Riga")),
        datetime(2026, 6, 1, 7, tzinfo=timezone(timedelta(hours=1))),
    ):
        kept = parse_schedule("every 1m", "Europe/Riga", start_at).start_at
        assert kept == expected
        assert kept is not None
        assert kept.tzinfo is UTC


def test_start_at_in_both_passes_of_a_repeated_hour_is_told_apart() -> None:
    # 2026-10-25 04:00 EEST -> 03:00 EET, at 01:00 UTC. Datetimes of one zone compare by wall.
    first = datetime(2026, 10, 25, 3, 30, tzinfo=ZoneInfo("Europe/Riga"))
    second = first.replace(fold=1)
    starts = [parse_schedule("every 1m", "UTC", start).start_at for start in (first, second)]
    assert starts == [
        datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    ]


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ("", "schedule", "every 25m offset 2m"),
        ("* * *", "schedule", "cron expression"),
        ("* * * * * * *", "schedule", "has 7 fields"),
        ("0 25 * * *", "schedule", '"25" at position 3 is no hour: use 0-23'),
        ("  0  1,x,3 * * *", "schedule", '"x" at position 8 is no hour'),
        ("60 * * * * *", "schedule", '"60" at position 1 is no second'),
        ("0 0 * * MOO", "schedule", '"MOO" at position 9 is no day-of-week'),
        ("0 0 1-0 * *", "schedule", '"1-0" at position 5 is no day-of-month'),
        ("*/0 * * * *", "schedule", r'"\*/0" at position 1'),
        (f"{'9' * 200} * * * *", "schedule", "at position 1"),
        (f"{'1,' * 200}1 * * * *", "schedule", "longer than 256"),
        ("0 0 30 2 *", "schedule", '"30" at position 5'),
        ("0 0 */31 * MON#2", "schedule", "matches no date"),
        ({"cron": "0 0 31 4,6 *"}, "schedule.cron", "matches no date"),
        ({"cron": "0 25 * * *"}, "schedule.cron", "position 3"),
        ("every", "schedule", "needs an interval"),
        ("every 0s", "schedule", "use 1s to 3653d"),
        ("every 3654d", "schedule", "use 1s to 3653d"),
        ("every 5m offset 5m", "schedule", "shorter than the interval"),
        ("every 5m offset", "schedule", "is not a duration"),
        ({"every": "5x"}, "schedule.every", '"5x" is not a duration'),
        ({"every": "0s"}, "schedule.every", "use 1s to 3653d"),
        ({"every": "5m", "offset": "6m"}, "schedule.offset", "shorter than the interval"),
        ({"every": "5m", "offset": 2}, "schedule.offset", "must be text"),
        ({"every": 300}, "schedule.every", "must be text"),
        ({"every": "9" * 300}, "schedule.every", "longer than 256"),
        ("at noon", "schedule", '"noon" is no time'),
        ("at 2026-02-30T09:00:00", "schedule", "day"),
        ("at 2026-02-20T09:00:00.5", "schedule", "whole seconds"),
        ("at 2026-02-20", "schedule", "is no time"),
        ("at 1970-01-01T00:00:00", "schedule", "1971 to 9997"),
        ("at 9999-12-31T23:59:59-01:00", "schedule", "is no time"),
        ({"at": "tomorrow"}, "schedule.at", "2026-12-01T09:00:00"),
        ({}, "schedule", "exactly one of at, every, cron"),
        ({"at": "2026-01-01T00:00:00", "cron": "* * * * *"}, "schedule", "has at and cron"),
        ({"cron": "* * * * *", "offset": "2m"}, "schedule.offset", "is unknown"),
        ({"every": "5m", "evry": "2m"}, "schedule.evry", "use every and offset"),
        ({"every": "5m", "timezone": "UTC"}, "schedule.timezone", "beside the schedule"),
    ],
)
def test_refusals_name_field_text_and_remedy(value: Form, field: str, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        parse_schedule(value)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("Europe/Rgia", r'"Europe/Rgia" is no time zone: did you mean .*Europe/Riga'),
        ("europe/riga", "did you mean Europe/Riga"),
        ("Riga", "did you mean Europe/Riga"),
        ("New York", "did you mean America/New_York"),
        ("Europe", "is no time zone"),
        ("", "IANA"),
        ("../etc/passwd", "IANA"),
        ("a\0b", "IANA"),
        ("right/UTC", "is no time zone"),
        ("localtime", "is no time zone"),
    ],
)
def test_unknown_zone_is_refused_with_likely_names(zone: str, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        parse_schedule("* * * * *", zone)
    assert caught.value.field == "timezone"


@pytest.mark.parametrize(
    ("start_at", "message"),
    [
        (START.replace(microsecond=1), "whole seconds"),
        (START.replace(year=9999), "1971 to 9997"),
        (START.replace(year=1), "1971 to 9997"),
    ],
)
def test_unusable_start_at_is_refused(start_at: datetime, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        parse_schedule("every 1m", start_at=start_at)
    assert caught.value.field == "start_at"


def test_at_before_its_start_is_refused() -> None:
    assert (
        parse_schedule("at 2026-01-01T00:00:00", start_at=START).next(START - timedelta(seconds=1))
        == START
    )
    with pytest.raises(InvalidFieldError, match="later than the only occurrence") as caught:
        parse_schedule("at 2025-12-31T23:59:59", start_at=START)
    assert caught.value.field == "start_at"


@pytest.mark.parametrize("value", [None, 5, ["* * * * *"]])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InvalidFieldError, match="must be text or an object"):
        parse_schedule(value)  # type: ignore[arg-type]
