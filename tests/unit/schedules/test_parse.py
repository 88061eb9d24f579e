import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from carillon.errors import InvalidFieldError
from carillon.schedules import (
    At,
    Cron,
    Delay,
    DstRule,
    Every,
    Fold,
    Gap,
    Schedule,
    parse_schedule,
    refuse_idle,
)
from tests.unit.schedules.strategies import exact, schedules

START = datetime(2026, 1, 1, tzinfo=UTC)
Form = str | Mapping[str, object] | Sequence[object]


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
        ({"cron": "@daily"}, "0 0 * * *"),
        ({"cron": "cron(0 18 ? * mon-fri *)"}, "cron(0 18 ? * MON-FRI *)"),
        (" Cron( 0  18 ?\t* MON-FRI * ) ", "cron(0 18 ? * MON-FRI *)"),
        ({"every": "2 hours", "offset": "90 seconds"}, "every 2h offset 1m30s"),
        ({"every": "10m", "after": "finish"}, "every 10m after finish"),
        (" EVERY 10 minutes  after FINISH", "every 10m after finish"),
    ],
)
def test_forms_have_one_canonical_text(value: Form, text: str) -> None:
    assert parse_schedule(value).text == text


@exact
@given(schedules)
def test_text_and_pickle_give_the_value_back(schedule: Schedule) -> None:
    beside = (schedule.timezone, schedule.start_at, schedule.end_at, schedule.dst)
    from_text = parse_schedule(schedule.text, *beside)
    assert from_text == pickle.loads(pickle.dumps(schedule)) == schedule
    assert hash(from_text) == hash(schedule)


def test_kinds() -> None:
    assert isinstance(parse_schedule("at 2026-12-01T09:00:00"), At)
    assert isinstance(parse_schedule("every 1m"), Every)
    assert isinstance(parse_schedule("* * * * *"), Cron)
    assert isinstance(parse_schedule("every 1m after finish"), Delay)
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
        ({"every": "5m", "end_at": "x"}, "schedule.end_at", "beside the schedule"),
        ({"every": "5m", "after": "start"}, "schedule.after", 'can only be "finish"'),
        ({"every": "5m", "after": "finish", "offset": "1m"}, "schedule.offset", "means nothing"),
        ({"every": "0s", "after": "finish"}, "schedule.every", "use 1s to 3653d"),
        ({"cron": "every 5m"}, "schedule.cron", "is no cron expression"),
        ({"cron": "cron(0 25 * * ? *)"}, "schedule.cron", '"25" at position 8 is no hour'),
        ("cron(0 9 * * ? *", "schedule", 'does not end with "[)]"'),
        ("cron(0 9 * * * *)", "schedule", "exactly one of the two is ?"),
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


@pytest.mark.parametrize(
    ("field", "bound"),
    [
        ("start_at", datetime(1971, 1, 1)),
        ("start_at", datetime.fromisoformat("1971-01-01T00:00:00+14:00")),
        ("end_at", datetime.fromisoformat("9997-12-31T23:59:59-05:00")),
    ],
)
def test_a_bound_that_could_not_be_read_again_is_refused(field: str, bound: datetime) -> None:
    # Jobs are stored with their bounds in UTC.
    start_at, end_at = (bound, None) if field == "start_at" else (None, bound)
    with pytest.raises(InvalidFieldError, match="1971 to 9997, in UTC too") as caught:
        parse_schedule("0 9 * * *", "Asia/Tokyo", start_at, end_at)
    assert caught.value.field == field


def test_at_before_its_start_is_refused() -> None:
    assert (
        parse_schedule("at 2026-01-01T00:00:00", start_at=START).next(START - timedelta(seconds=1))
        == START
    )
    with pytest.raises(InvalidFieldError, match="later than the only occurrence") as caught:
        parse_schedule("at 2025-12-31T23:59:59", start_at=START)
    assert caught.value.field == "start_at"


@pytest.mark.parametrize("value", [None, 5, b"* * * * *", {"* * * * *"}])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(InvalidFieldError, match="must be text, an object or a list") as caught:
        parse_schedule(value)  # type: ignore[arg-type]
    assert caught.value.field == "schedule"


def test_end_at_is_inclusive_and_a_naive_one_is_wall_time() -> None:
    schedule = parse_schedule("0 9 * * *", "Europe/Riga", START, datetime(2026, 1, 3, 9))
    assert schedule.end_at == datetime(2026, 1, 3, 7, tzinfo=UTC)
    assert [f"{at:%d %H}" for at in schedule.between(START, START + timedelta(days=9))] == [
        "01 07",
        "02 07",
        "03 07",
    ]


@pytest.mark.parametrize(
    ("value", "end_at", "message"),
    [
        ("every 1h", START - timedelta(seconds=1), "must not lie before start_at, 2026-01-01T"),
        ("every 1h", START.replace(microsecond=1), "whole seconds"),
        ("every 1h", START.replace(year=9999), "1971 to 9997"),
        ("every 1h", START + timedelta(minutes=59), 'no occurrence of "every 1h" lies between'),
        ("0 9 * * *", START + timedelta(hours=8), "use a later end"),
        (["0 9 * * *", "0 10 * * *"], START + timedelta(hours=8), "use a later end"),
        ("at 2026-01-02T00:00:00", START + timedelta(hours=8), "2026-01-02T00:00:00"),
    ],
)
def test_unusable_end_at_is_refused(value: Form, end_at: datetime, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        refuse_idle(parse_schedule(value, "UTC", START, end_at))
    assert caught.value.field == "end_at"


def test_a_delay_that_is_longer_than_its_life_is_taken() -> None:
    # It counts from the job's generation, which may lie long before start_at.
    end_at = START + timedelta(minutes=5)
    refuse_idle(parse_schedule("every 1h after finish", "UTC", START, end_at))


RULE = DstRule(Gap.SKIP, Fold.BOTH)


@pytest.mark.parametrize(
    "value", ["30 2 * * *", "every 5m", "every 5m after finish", ["30 2 * * *", "0 9 * * *"]]
)
def test_every_kind_keeps_what_stands_beside_it(value: Form) -> None:
    end_at = START + timedelta(days=9)
    schedule = parse_schedule(value, "Europe/Riga", START, end_at, RULE)
    kept = (schedule.timezone, schedule.start_at, schedule.end_at, schedule.dst)
    assert kept == ("Europe/Riga", START, end_at, RULE)


WEEK = "0 9 * * 1-5 | 0 12 * * 6"
CHRISTMAS = "* * 25 12 *"


@pytest.mark.parametrize(
    ("value", "except_", "text"),
    [
        (["0 9 * * 1-5", "0 12 * * 6"], [], WEEK),
        (["0 9 * * 1-5", {"cron": "0 12 * * 6"}], [CHRISTMAS], f"{WEEK} except {CHRISTMAS}"),
        (WEEK, [CHRISTMAS], f"{WEEK} except {CHRISTMAS}"),
        (f" 0  9 * * 1-5|0 12 * * 6  EXCEPT\t{CHRISTMAS} ", [], f"{WEEK} except {CHRISTMAS}"),
        (
            f"{WEEK} except {CHRISTMAS}",
            [{"cron": "* * 1 1 *"}],
            f"{WEEK} except {CHRISTMAS} | * * 1 1 *",
        ),
        ("0 9 * * *", [CHRISTMAS], f"0 9 * * * except {CHRISTMAS}"),
        (["0 9 * * *", "daily at 09:00", {"cron": "0  9 * * *"}], [], "0 9 * * *"),
        (["0 9 * * *"], [], "0 9 * * *"),
        (["every 10m after finish"], [], "every 10m after finish"),
        (
            ["hourly at :17", "rate(5 minutes)"],
            ["cron(* * 25 12 ? *)", "every 15m"],
            "17 * * * * | every 5m except cron(* * 25 12 ? *) | every 15m",
        ),
        (
            ["at 2026-05-01T09:00:00", "at 2026-05-02T09:00:00Z"],
            [],
            "at 2026-05-01T09:00:00 | at 2026-05-02T09:00:00Z",
        ),
    ],
)
def test_combinations_have_one_canonical_text(value: Form, except_: list[Form], text: str) -> None:
    schedule = parse_schedule(value, except_=except_)
    assert schedule.text == text
    assert parse_schedule(text) == schedule


def test_only_the_exceptions_of_a_combination_are_left_out() -> None:
    schedule = parse_schedule(["0 9 * * *", "0 9,21 * * *"], except_=["* * 2 1 *", "0 21 3 1 *"])
    found = schedule.between(START, START + timedelta(days=3))
    assert [f"{at:%d %H}" for at in found] == ["01 09", "01 21", "03 09"]


@pytest.mark.parametrize(
    ("value", "except_", "field", "message"),
    [
        ([], [], "schedule", "is empty"),
        (["0 9 * * *", "0 25 * * *"], [], "schedule[1]", '"25" at position 3 is no hour'),
        (["0 9 * * *", {"cron": "0 25 * * *"}], [], "schedule[1].cron", "is no hour"),
        (["0 9 * * *", {"every": "5x"}], [], "schedule[1].every", "is not a duration"),
        (["0 9 * * *", 5], [], "schedule[1]", "must be text or an object"),
        (["0 9 * * *", "1 9 * * * | 2 9 * * *"], [], "schedule[1]", "a combination itself"),
        (["0 9 * * *", ["1 9 * * *"]], [], "schedule[1]", "must be text or an object"),
        ("0 9 * * *", ["0 25 * * *"], "except[0]", "is no hour"),
        ("0 9 * * *", [{"evry": "5m"}], "except[0]", "exactly one of at, every, cron"),
        ("0 9 * * *", "0 9 * * *", "except", "must be a list"),
        ("0 9 * * *", ["0 9 * * *"], "except", "takes every occurrence"),
        ("* * * * * *", ["* * * * *"], "except", "takes every occurrence"),
        ("0 9 * * * except 0 9 * * 1-5 | 0 9 * * 6,0", [], "except", "takes every occurrence"),
        (
            ["every 7s", "every 11s", "every 1h"],
            ["every 14s", "every 22s"],
            "except",
            "cannot go with 4 intervals that are no whole part of a day: 3 are the most",
        ),
        (["0 9 * * *", "every 5m after finish"], [], "schedule", "cannot be combined"),
        ("0 9 * * *", ["every 5m after finish"], "except", "cannot be combined"),
        ("every 5m after finish", ["0 9 * * *"], "schedule", "cannot be combined"),
        ([f"{n} 9 * * *" for n in range(21)], [], "schedule", "has 21 members: at most 20"),
        ("0 9 * * *", [f"{n} 8 * * *" for n in range(21)], "except", "at most 20"),
        (" | ".join(f"{n} 9 * * *" for n in range(21)), [], "schedule", "at most 20"),
        (" | ".join(["0 9 * * *"] * 100), [], "schedule", "longer than 1,024"),
        (
            [f"{n},{','.join(map(str, range(30)))} 9 * * *" for n in range(30, 45)],
            [],
            "schedule",
            "at most 1,024",
        ),
        ("0 9 * * * | ", [], "schedule", "has an empty part"),
        ("0 9 * * * except", [], "schedule", "has an empty part"),
        ("except 0 9 * * *", [], "schedule", "has an empty part"),
        ("0 9 * * * except 0 9 1 * * except 0 9 2 * *", [], "schedule", "more than once"),
        ("0 9 * * * | 0 25 * * *", [], "schedule", 'in "0 25 [*] [*] [*]": "25" at position 3'),
        ({"any": ["0 9 * * *"]}, [], "schedule", "exactly one of at, every, cron"),
    ],
)
def test_refused_combinations_name_the_member(
    value: Form, except_: list[Form], field: str, message: str
) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        refuse_idle(parse_schedule(value, except_=except_))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("text", "fire_at"),
    [
        ("0 9 1 1 * except cron(* * * * ? 1970-2090)", datetime(2091, 1, 1, 9, tzinfo=UTC)),
        ("0 9 * * * | cron(0 8 1 1 ? 2120) except 0 9 * * *", datetime(2120, 1, 1, 8, tzinfo=UTC)),
        ("0 9 * * * | at 2100-01-01T00:00:00 except 0 9 * * *", datetime(2100, 1, 1, tzinfo=UTC)),
    ],
)
def test_what_is_left_after_many_years_is_a_schedule(text: str, fire_at: datetime) -> None:
    schedule = parse_schedule(text)
    refuse_idle(schedule)
    assert schedule.next(fire_at - timedelta(days=300)) == fire_at
