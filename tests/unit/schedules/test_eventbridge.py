"""Every example expression of EventBridge's documentation, and what it says of each wildcard.

Sources: EventBridge User Guide, "Using cron and rate expressions to schedule rules"; EventBridge
Scheduler User Guide, "Schedule types". The expected times are literals, read off a calendar:
2027-01-01 is a Friday.
"""

import pytest

from carillon.errors import InvalidFieldError
from carillon.schedules import DstRule, Fold, parse_schedule
from tests.unit.schedules.dst_oracle import assert_fires, fires, utc


def examples(text: str) -> list[tuple[str, str, list[str]]]:
    """Expression, after, and the occurrences that follow; in UTC, as AWS evaluates them. A time of
    day is of the date before it, a date alone is its midnight, and indented lines go on."""
    found = []
    for line in text.replace("\n    ", " ").strip().splitlines():
        if not line.startswith("#"):
            expression, *words = line.split(" | ")
            times: list[str] = []
            for word in " ".join(words).split():
                if "-" not in word:
                    word = f"{times[-1][:10]}T{word}"
                times.append(word if "T" in word else f"{word}T00:00")
            found.append((expression, times[0], times[1:]))
    return found


TABLE = examples("""
# Run at 10:00 am every day.
cron(0 10 * * ? *) | 2027-01-01 | 10:00 2027-01-02T10:00 2027-01-03T10:00
# Run at 12:15 pm every day.
cron(15 12 * * ? *) | 2027-01-01T12:15 | 2027-01-02T12:15 2027-01-03T12:15 2027-01-04T12:15
# Run at 6:00 pm every Monday through Friday.
cron(0 18 ? * MON-FRI *) | 2027-01-01 | 18:00 2027-01-04T18:00 2027-01-05T18:00
# Run at 8:00 am every 1st day of the month.
cron(0 8 1 * ? *) | 2027-01-01 | 08:00 2027-02-01T08:00 2027-03-01T08:00
# Run every 15 minutes.
cron(0/15 * * * ? *) | 2027-01-01T23:20 | 23:30 23:45 2027-01-02 00:15
# Run every 10 minutes Monday through Friday.
cron(0/10 * ? * MON-FRI *) | 2027-01-01T23:30 | 23:40 23:50 2027-01-04 00:10
# Run every 5 minutes Monday through Friday between 8:00 am and 5:55 pm.
cron(0/5 8-17 ? * MON-FRI *) | 2027-01-01T17:45 | 17:50 17:55 2027-01-04T08:00 08:05
# Run every 30 minutes Monday through Friday in the evening and until 2 am: the hours go over
# midnight. Each field is asked by itself, so the small hours belong to their own weekday.
cron(0/30 20-2 ? * MON-FRI *) | 2027-01-01T22:30 | 23:00 23:30 2027-01-04 00:30 01:00 01:30 02:00
    02:30 20:00
# Runs every day at 12:00 pm.
cron(0 12 * * ? *) | 2027-01-01 | 12:00 2027-01-02T12:00
# Runs every day at 2:05 pm and 2:35 pm.
cron(5,35 14 * * ? *) | 2027-01-01 | 14:05 14:35 2027-01-02T14:05
# Runs at 10:15 am on the last Friday of each month during the years 2019 to 2022.
cron(15 10 ? * 6L 2019-2022) | 2018-06-01 | 2019-01-25T10:15 2019-02-22T10:15 2019-03-29T10:15
# The same, of the Scheduler's guide, during the years 2022 to 2023.
cron(15 10 ? * 6L 2022-2023) | 2022-01-01 | 2022-01-28T10:15 2022-02-25T10:15 2022-03-25T10:15
""")

WILDCARDS = examples("""
# "JAN,FEB,MAR includes January, February, and March."
cron(0 0 1 JAN,FEB,MAR ? *) | 2027-01-01 | 2027-02-01 2027-03-01 2028-01-01
# "1-15 includes days 1 through 15 of the specified month."
cron(0 0 1-15 * ? *) | 2027-01-14 | 2027-01-15 2027-02-01
# "In the Hours field, * includes every hour."
cron(0 * 1 * ? *) | 2027-01-01T22:00 | 23:00 2027-02-01
# A range of one value stays one, with increments too: cronsim's reading of it is not AWS's.
cron(0 16-16/2 * * ? *) | 2027-01-01 | 16:00 2027-01-02T16:00
# "1/10 ... starting from the first minute of the hour (the 11th, 21st, and 31st minute)."
cron(1/10 * * * ? *) | 2027-01-01 | 00:01 00:11 00:21 00:31 00:41 00:51 01:01
# "In the Day-of-month field you could enter 7 ... and ? in the Day-of-week field."
cron(0 0 7 * ? *) | 2027-01-01 | 2027-01-07 2027-02-07
cron(* * ? * * *) | 2027-01-01T23:58 | 23:59 2027-01-02
# "L ... the last day of the month or week": the week ends on SAT, which is 7.
cron(0 0 L * ? *) | 2027-01-01 | 2027-01-31 2027-02-28 2027-03-31
cron(0 0 L 2 ? *) | 2027-03-01 | 2028-02-29 2029-02-28
cron(0 0 ? * L *) | 2027-01-01 | 2027-01-02 2027-01-09
cron(0 0 ? * 7L *) | 2027-01-01 | 2027-01-30 2027-02-27
# "3W specifies the weekday closest to the third day of the month", and of that month.
cron(0 0 3W * ? *) | 2027-01-01 | 2027-01-04 2027-02-03 2027-03-03 2027-04-02
cron(0 0 1W 5 ? *) | 2027-01-01 | 2027-05-03 2028-05-01
cron(0 0 31W 1 ? *) | 2027-01-01 | 2027-01-29 2028-01-31
cron(0 0 LW 1,2 ? *) | 2027-01-01 | 2027-01-29 2027-02-26
# "3#2 would be the second Tuesday of the month."
cron(0 0 ? * 3#2 *) | 2027-01-01 | 2027-01-12 2027-02-09 2027-03-09
cron(0 0 ? * FRI#5 *) | 2027-01-01 | 2027-01-29 2027-04-30
# Day-of-week 1-7 or SUN-SAT.
cron(0 0 ? * 1 *) | 2027-01-01 | 2027-01-03 2027-01-10
cron(0 0 ? * 7 *) | 2027-01-01 | 2027-01-02 2027-01-09
cron(0 0 ? * 2-3 *) | 2027-01-01 | 2027-01-04 2027-01-05
cron(0 0 ? * SUN,SAT *) | 2027-01-01 | 2027-01-02 2027-01-03
# Year 1970-2199 with , - * /
cron(0 0 1 1 ? 2030,2033) | 2027-01-01 | 2030-01-01 2033-01-01
cron(0 0 1 1 ? 2027/5) | 2027-06-01 | 2032-01-01 2037-01-01
cron(0 0 29 2 ? *) | 2027-01-01 | 2028-02-29 2032-02-29
cron(0 0 29 2 ? 2088-2108) | 2092-03-01 | 2096-02-29 2104-02-29
""")


@pytest.mark.parametrize(("expression", "after", "expected"), [*TABLE, *WILDCARDS])
def test_expression_fires_as_documented(expression: str, after: str, expected: list[str]) -> None:
    instants = [utc(time) for time in expected]
    assert_fires(parse_schedule(expression), utc(after), instants[-1], instants)


@pytest.mark.parametrize(("expression", "after", "expected"), TABLE[:10])
def test_the_oracle_reads_the_examples_alike(
    expression: str, after: str, expected: list[str]
) -> None:
    instants = [utc(time) for time in expected]
    last = min(instants[-1], utc("2027-01-05T00:00"))
    wanted = [instant for instant in instants if instant <= last]
    assert fires(expression, "UTC", utc(after), last) == wanted


@pytest.mark.parametrize(
    ("expression", "last"),
    [
        ("cron(15 10 ? * 6L 2019-2022)", "2022-12-30T10:15"),
        ("cron(15 10 ? * 6L 2022-2023)", "2023-12-29T10:15"),
        ("cron(0 0 1 1 ? 2030)", "2030-01-01T00:00"),
        ("cron(59 23 31 12 ? 2199)", "2199-12-31T23:59"),
    ],
)
def test_nothing_fires_after_the_years_of_an_expression(expression: str, last: str) -> None:
    schedule = parse_schedule(expression)
    assert schedule.next(utc(last)) is None
    assert schedule.previous(utc("2500-01-01T00:00")) == utc(last)
    assert list(schedule.between(utc("2200-01-01T00:00"), utc("2300-01-01T00:00"))) == []


def test_the_last_year_ends_with_its_second_pass() -> None:
    # Europe/Riga, 2026-10-25: 04:00 EEST -> 03:00 EET, at 01:00 UTC.
    both = parse_schedule("cron(30 3 25 10 ? 2026)", "Europe/Riga", dst=DstRule(None, Fold.BOTH))
    first, second = utc("2026-10-25T00:30"), utc("2026-10-25T01:30")
    assert both.next(utc("2026-01-01T00:00")) == first
    assert both.next(first) == second
    assert both.next(second) is None
    assert both.previous(utc("2030-01-01T00:00")) == second
    assert both.previous(second) == first
    assert both.previous(first) is None


@pytest.mark.parametrize(
    "expression",
    [
        # "If you specify a value or a * in one of the fields, you must use a ? in the other."
        "cron(0 10 * * MON *)",
        "cron(0 10 1 * * *)",
        "cron(0 10 ? * 3#0 *)",
        # "Cron expressions have six required fields", within their values.
        "cron(0 10 * * ?)",
        "cron(0 10 * * ? * *)",
        "cron()",
        "cron(60 10 * * ? *)",
        "cron(0 10 0 * ? *)",
        "cron(0 10 32 * ? *)",
        "cron(0 10 * 13 ? *)",
        "cron(0 10 ? * 8 *)",
        "cron(0 10 * * ? 2200)",
        "cron(0 10 30 2 ? *)",
        # Each wildcard belongs to some fields only.
        "cron(? 10 * * ? *)",
        "cron(0 ? * * ? *)",
        "cron(0 10 * ? ? *)",
        "cron(0 10 * * ? ?)",
        "cron(L 10 * * ? *)",
        "cron(0 10 ? * 3W *)",
        "cron(0 10 3#2 * ? *)",
        # "If the value is equal to 1, then the unit must be singular", and else plural.
        "rate(1 minutes)",
        "rate(1 days)",
        "rate(5 hour)",
        "rate(2 day)",
        # "A positive number", and one of its units.
        "rate(-5 minutes)",
        "rate(5)",
        "rate(minutes)",
        "at(2022-11-20)",
        "at(tomorrow)",
    ],
)
def test_what_the_documentation_excludes_is_refused(expression: str) -> None:
    """More of it, with messages: `test_expression` and `test_sugar`."""
    with pytest.raises(InvalidFieldError) as caught:
        parse_schedule(expression)
    assert caught.value.field.startswith("schedule")
