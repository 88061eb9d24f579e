"""What `at` does around a change of the clocks, under every rule; `every` counts elapsed time."""

from datetime import timedelta

import pytest

from carillon.errors import InvalidFieldError
from carillon.schedules import parse_schedule
from tests.unit.schedules.dst_oracle import RULES, Table, assert_fires, utc
from tests.unit.schedules.test_dst_tables import TABLES

SKIPPED_ATS = [
    # Europe/Riga 2027-03-28: clocks go from 03:00 EET to 04:00 EEST at 01:00Z.
    ("Europe/Riga", "2027-03-28T03:00:00", "2027-03-28T01:00"),
    ("Europe/Riga", "2027-03-28T03:30:00", "2027-03-28T01:30"),
    ("Europe/Riga", "2027-03-28T03:59:59", "2027-03-28T01:59:59"),
    # America/New_York 2027-03-14: clocks go from 02:00 EST to 03:00 EDT at 07:00Z.
    ("America/New_York", "2027-03-14T02:30:00", "2027-03-14T07:30"),
    # Australia/Lord_Howe 2027-10-03: clocks go from 02:00 +10:30 to 02:30 +11 at 15:30Z of the 2nd.
    ("Australia/Lord_Howe", "2027-10-03T02:15:00", "2027-10-02T15:45"),
    # Pacific/Apia 2011-12-30: the day does not happen; 24 hours later is 09:00 +14 of the 31st.
    ("Pacific/Apia", "2011-12-30T09:00:00", "2011-12-30T19:00"),
]
REPEATED_ATS = [
    # Europe/Riga 2027-10-31: clocks go from 04:00 EEST to 03:00 EET at 01:00Z.
    ("Europe/Riga", "2027-10-31T03:00:00", "2027-10-31T00:00", "2027-10-31T01:00"),
    ("Europe/Riga", "2027-10-31T03:30:00", "2027-10-31T00:30", "2027-10-31T01:30"),
    ("Europe/Riga", "2027-10-31T03:59:59", "2027-10-31T00:59:59", "2027-10-31T01:59:59"),
    # America/New_York 2027-11-07: clocks go from 02:00 EDT to 01:00 EST at 06:00Z.
    ("America/New_York", "2027-11-07T01:30:00", "2027-11-07T05:30", "2027-11-07T06:30"),
    # Australia/Lord_Howe 2027-04-04: clocks go from 02:00 +11 to 01:30 +10:30 at 15:00Z of the 3rd.
    ("Australia/Lord_Howe", "2027-04-04T01:45:00", "2027-04-03T14:45", "2027-04-03T15:15"),
    # Pacific/Apia 2021-04-04: clocks go from 04:00 +14 to 03:00 +13 at 14:00Z of the 3rd.
    ("Pacific/Apia", "2021-04-04T03:30:00", "2021-04-03T13:30", "2021-04-03T14:30"),
]
PLAIN_ATS = [
    # Europe/Riga 2027-03-28: clocks go from 03:00 EET to 04:00 EEST at 01:00Z.
    ("Europe/Riga", "2027-03-28T02:59:59", "2027-03-28T00:59:59"),
    ("Europe/Riga", "2027-03-28T04:00:00", "2027-03-28T01:00"),
    ("Europe/Riga", "2027-03-28T03:30:00+02:00", "2027-03-28T01:30"),
    # Europe/Riga 2027-10-31: clocks go from 04:00 EEST to 03:00 EET at 01:00Z.
    ("Europe/Riga", "2027-10-31T02:59:59", "2027-10-30T23:59:59"),
    ("Europe/Riga", "2027-10-31T04:00:00", "2027-10-31T02:00"),
    ("Europe/Riga", "2027-10-31T03:30:00+02:00", "2027-10-31T01:30"),
    ("Europe/Riga", "2027-10-31T03:30:00+03:00", "2027-10-31T00:30"),
    # Pacific/Apia 2011-12-30: the day does not happen; from 00:00 -10 of the 30th at 10:00Z.
    ("Pacific/Apia", "2011-12-29T23:59:59", "2011-12-30T09:59:59"),
    ("Pacific/Apia", "2011-12-31T00:00:00", "2011-12-30T10:00"),
]


def _assert_at(zone: str, local_time: str, rule: str, expected: str) -> None:
    schedule = parse_schedule(f"at {local_time}", zone, dst=RULES[rule])
    instant = utc(expected)
    days = timedelta(days=2)
    assert_fires(schedule, instant - days, instant + days, [instant])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "skip"])
@pytest.mark.parametrize(("zone", "local_time", "expected"), SKIPPED_ATS)
def test_a_skipped_at_runs_later_by_the_gap(
    zone: str, local_time: str, expected: str, rule: str
) -> None:
    _assert_at(zone, local_time, rule, expected)


@pytest.mark.parametrize(("zone", "local_time", "expected"), SKIPPED_ATS)
def test_a_skipped_at_that_is_to_be_skipped_is_refused(
    zone: str, local_time: str, expected: str
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        parse_schedule(f"at {local_time}", zone, dst=RULES["skip"])
    assert caught.value.field.startswith("schedule")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("zone", "local_time", "first", "second"), REPEATED_ATS)
def test_a_repeated_at_runs_at_one_pass(
    zone: str, local_time: str, first: str, second: str, rule: str
) -> None:
    _assert_at(zone, local_time, rule, second if rule == "second" else first)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("zone", "local_time", "expected"), PLAIN_ATS)
def test_an_at_beside_the_change_or_with_an_offset_heeds_no_rule(
    zone: str, local_time: str, expected: str, rule: str
) -> None:
    _assert_at(zone, local_time, rule, expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.zone} {table.at}")
def test_every_counts_elapsed_time_whatever_the_clocks_show(table: Table, rule: str) -> None:
    schedule = parse_schedule("every 30m offset 7m", table.zone, dst=RULES[rule])
    at = utc(table.at)
    expected = [at + timedelta(minutes=minutes) for minutes in (-53, -23, 7, 37)]
    assert_fires(schedule, at - timedelta(hours=1), at + timedelta(hours=1), expected)
