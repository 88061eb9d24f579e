"""Dated tables of what crons fire around a change of the clocks, under every rule. The expected
times are literals, worked out from the transition written above each table. The oracle gives them,
too; `test_differential` compares it with the engine in many more zones. `at`: `test_dst_at`.
"""

import pytest

from carillon.schedules import parse_schedule
from tests.unit.schedules.dst_oracle import RULES, Case, Table, assert_fires

# Europe/Riga 2027-03-28: clocks go from 03:00 EET to 04:00 EEST at 01:00Z.
RIGA_SPRING = Table(
    "Europe/Riga",
    at="2027-03-28T01:00",
    clocks=("2027-03-28T03:00", "2027-03-28T04:00"),
    rows="""
* * * * *  28T00:57 .. 28T01:02
    default run_after skip:  28T00:58 00:59 01:00 01:01 01:02
*/30 * * * *  27T23:59 .. 28T02:00
    default run_after skip:  28T00:00 00:30 01:00 01:30 02:00
15 * * * *  27T23:59 .. 28T02:15
    default skip:  28T00:15 01:15 02:15
    run_after:  28T00:15 01:00 01:15 02:15
*/20 3 * * *  27T01:20 .. 29T00:40
    default skip:  27T01:40 29T00:00 00:20 00:40
    run_after:  27T01:40 28T01:00 29T00:00 00:20 00:40
30 */3 * * *  27T21:00 .. 28T06:00
    default skip:  27T22:30 28T03:30
    run_after:  27T22:30 28T01:00 03:30
0 3 * * *  27T12:00 .. 29T12:00
    default run_after:  28T01:00 29T00:00
    skip:  29T00:00
30 3 * * *  27T00:00 .. 30T00:00
    default run_after:  27T01:30 28T01:00 29T00:30
    skip:  27T01:30 29T00:30
59 3 * * *  27T12:00 .. 29T12:00
    default run_after:  28T01:00 29T00:59
    skip:  29T00:59
0 4 * * *  27T12:00 .. 29T12:00
    default run_after skip:  28T01:00 29T01:00
10,50 3 * * *  27T12:00 .. 29T12:00
    default run_after:  28T01:00 29T00:10 00:50
    skip:  29T00:10 00:50
30 3,4 * * *  27T12:00 .. 29T12:00
    default run_after:  28T01:00 01:30 29T00:30 01:30
    skip:  28T01:30 29T00:30 01:30
30 0-5 * * *  27T22:00 .. 28T03:00
    default run_after:  27T22:30 23:30 28T00:30 01:00 01:30 02:30
    skip:  27T22:30 23:30 28T00:30 01:30 02:30
*/20 59 3 * * *  27T12:00 .. 29T01:00
    default run_after:  28T01:00 29T00:59 00:59:20 00:59:40
    skip:  29T00:59 00:59:20 00:59:40
*/30 * 3,4 * * *  28T00:59 .. 28T01:01
    default run_after skip:  28T01:00 01:00:30 01:01
30 3 28 * *  2027-02-27T00:00 .. 2027-04-29T00:00
    default run_after:  2027-02-28T01:30 28T01:00 2027-04-28T00:30
    skip:  2027-02-28T01:30 2027-04-28T00:30
30 3 L 2,3 SUN  14T12:00 .. 2027-04-01T00:00
    default run_after:  21T01:30 28T01:00 31T00:30
    skip:  21T01:30 31T00:30
cron(30 3 * * ? *)  27T00:00 .. 29T12:00
    default skip:  27T01:30 29T00:30
    run_after:  27T01:30 28T01:00 29T00:30
cron(0/15 * * * ? *)  28T00:29 .. 28T01:30
    default run_after skip:  28T00:30 00:45 01:00 01:15 01:30
cron(30 3 ? * 1L *)  2027-02-27T00:00 .. 2027-04-29T00:00
    default skip:  2027-02-28T01:30 2027-04-25T00:30
    run_after:  2027-02-28T01:30 28T01:00 2027-04-25T00:30
""",
)

# Europe/Riga 2027-10-31: clocks go from 04:00 EEST to 03:00 EET at 01:00Z.
RIGA_AUTUMN = Table(
    "Europe/Riga",
    at="2027-10-31T01:00",
    clocks=("2027-10-31T04:00", "2027-10-31T03:00"),
    rows="""
* * * * *  30T23:58 .. 31T00:01
    default first both:  30T23:59 31T00:00 00:01
    second:  30T23:59
* * * * *  31T00:58 .. 31T01:01
    default both:  31T00:59 01:00 01:01
    first:  31T00:59
    second:  31T01:00 01:01
* * * * *  31T01:58 .. 31T02:01
    default second both:  31T01:59 02:00 02:01
    first:  31T02:00 02:01
*/30 * * * *  30T23:59 .. 31T02:30
    default both:  31T00:00 00:30 01:00 01:30 02:00 02:30
    first:  31T00:00 00:30 02:00 02:30
    second:  31T01:00 01:30 02:00 02:30
15 * * * *  30T23:00 .. 31T03:00
    default both:  30T23:15 31T00:15 01:15 02:15
    first:  30T23:15 31T00:15 02:15
    second:  30T23:15 31T01:15 02:15
*/20 3 * * *  30T12:00 .. 31T12:00
    default both:  31T00:00 00:20 00:40 01:00 01:20 01:40
    first:  31T00:00 00:20 00:40
    second:  31T01:00 01:20 01:40
30 */3 * * *  30T21:00 .. 31T06:00
    default both:  30T21:30 31T00:30 01:30 04:30
    first:  30T21:30 31T00:30 04:30
    second:  30T21:30 31T01:30 04:30
0 3 * * *  30T12:00 .. 2027-11-01T12:00
    default first:  31T00:00 2027-11-01T01:00
    second:  31T01:00 2027-11-01T01:00
    both:  31T00:00 01:00 2027-11-01T01:00
30 3 * * *  30T00:00 .. 2027-11-01T12:00
    default first:  30T00:30 31T00:30 2027-11-01T01:30
    second:  30T00:30 31T01:30 2027-11-01T01:30
    both:  30T00:30 31T00:30 01:30 2027-11-01T01:30
59 3 * * *  30T12:00 .. 31T12:00
    default first:  31T00:59
    second:  31T01:59
    both:  31T00:59 01:59
0 4 * * *  30T12:00 .. 31T12:00
    default first second both:  31T02:00
10,50 3 * * *  30T12:00 .. 31T12:00
    default first:  31T00:10 00:50
    second:  31T01:10 01:50
    both:  31T00:10 00:50 01:10 01:50
30 2-4 * * *  30T12:00 .. 31T12:00
    default first:  30T23:30 31T00:30 02:30
    second:  30T23:30 31T01:30 02:30
    both:  30T23:30 31T00:30 01:30 02:30
*/30 59 3 * * *  30T12:00 .. 31T12:00
    default first:  31T00:59 00:59:30
    second:  31T01:59 01:59:30
    both:  31T00:59 00:59:30 01:59 01:59:30
30 * 2,3 * * *  31T00:57 .. 31T01:02
    default both:  31T00:57:30 00:58:30 00:59:30 01:00:30 01:01:30
    first:  31T00:57:30 00:58:30 00:59:30
    second:  31T01:00:30 01:01:30
30 3 31 * *  2027-08-30T00:00 .. 2027-12-31T12:00
    default first:  2027-08-31T00:30 31T00:30 2027-12-31T01:30
    second:  2027-08-31T00:30 31T01:30 2027-12-31T01:30
    both:  2027-08-31T00:30 31T00:30 01:30 2027-12-31T01:30
cron(30 3 * * ? *)  30T00:00 .. 31T12:00
    default first:  30T00:30 31T00:30
    second:  30T00:30 31T01:30
    both:  30T00:30 31T00:30 01:30
cron(0/30 * * * ? *)  30T23:59 .. 31T02:30
    default first:  31T00:00 00:30 02:00 02:30
    second:  31T01:00 01:30 02:00 02:30
    both:  31T00:00 00:30 01:00 01:30 02:00 02:30
cron(30 3 L * ? *)  01T00:00 .. 2027-12-01T00:00
    default first:  31T00:30 2027-11-30T01:30
    second:  31T01:30 2027-11-30T01:30
    both:  31T00:30 01:30 2027-11-30T01:30
""",
)

# America/New_York 2027-03-14: clocks go from 02:00 EST to 03:00 EDT at 07:00Z.
NEW_YORK_SPRING = Table(
    "America/New_York",
    at="2027-03-14T07:00",
    clocks=("2027-03-14T02:00", "2027-03-14T03:00"),
    rows="""
*/30 * * * *  14T05:59 .. 14T08:00
    default run_after skip:  14T06:00 06:30 07:00 07:30 08:00
45 * * * *  14T05:59 .. 14T08:45
    default skip:  14T06:45 07:45 08:45
    run_after:  14T06:45 07:00 07:45 08:45
*/30 2 * * *  13T00:00 .. 15T12:00
    default skip:  13T07:00 07:30 15T06:00 06:30
    run_after:  13T07:00 07:30 14T07:00 15T06:00 06:30
0 2 * * *  14T00:00 .. 15T12:00
    default run_after:  14T07:00 15T06:00
    skip:  15T06:00
30 2 * * *  13T00:00 .. 15T12:00
    default run_after:  13T07:30 14T07:00 15T06:30
    skip:  13T07:30 15T06:30
30 59 2 * * *  13T00:00 .. 15T12:00
    default run_after:  13T07:59:30 14T07:00 15T06:59:30
    skip:  13T07:59:30 15T06:59:30
30 2 * * SUN#2  2027-02-01T00:00 .. 2027-05-01T00:00
    default run_after:  2027-02-14T07:30 14T07:00 2027-04-11T06:30
    skip:  2027-02-14T07:30 2027-04-11T06:30
cron(30 2 * * ? *)  13T00:00 .. 15T12:00
    default skip:  13T07:30 15T06:30
    run_after:  13T07:30 14T07:00 15T06:30
""",
)

# America/New_York 2027-11-07: clocks go from 02:00 EDT to 01:00 EST at 06:00Z.
NEW_YORK_AUTUMN = Table(
    "America/New_York",
    at="2027-11-07T06:00",
    clocks=("2027-11-07T02:00", "2027-11-07T01:00"),
    rows="""
*/30 * * * *  07T04:59 .. 07T07:30
    default both:  07T05:00 05:30 06:00 06:30 07:00 07:30
    first:  07T05:00 05:30 07:00 07:30
    second:  07T06:00 06:30 07:00 07:30
45 * * * *  07T04:00 .. 07T08:00
    default both:  07T04:45 05:45 06:45 07:45
    first:  07T04:45 05:45 07:45
    second:  07T04:45 06:45 07:45
*/30 1 * * *  07T00:00 .. 08T12:00
    default both:  07T05:00 05:30 06:00 06:30 08T06:00 06:30
    first:  07T05:00 05:30 08T06:00 06:30
    second:  07T06:00 06:30 08T06:00 06:30
0 1 * * *  06T00:00 .. 08T12:00
    default first:  06T05:00 07T05:00 08T06:00
    second:  06T05:00 07T06:00 08T06:00
    both:  06T05:00 07T05:00 06:00 08T06:00
30 0-2 * * *  07T00:00 .. 08T00:00
    default first:  07T04:30 05:30 07:30
    second:  07T04:30 06:30 07:30
    both:  07T04:30 05:30 06:30 07:30
30 59 1 * * *  07T00:00 .. 08T12:00
    default first:  07T05:59:30 08T06:59:30
    second:  07T06:59:30 08T06:59:30
    both:  07T05:59:30 06:59:30 08T06:59:30
0 0 1 * * SUN  01T00:00 .. 15T00:00
    default first:  07T05:00 14T06:00
    second:  07T06:00 14T06:00
    both:  07T05:00 06:00 14T06:00
cron(0/30 * ? * SUN *)  07T04:59 .. 07T07:30
    default first:  07T05:00 05:30 07:00 07:30
    second:  07T06:00 06:30 07:00 07:30
    both:  07T05:00 05:30 06:00 06:30 07:00 07:30
""",
)

# Australia/Lord_Howe 2027-10-03: clocks go from 02:00 +10:30 to 02:30 +11 at 15:30Z of the 2nd.
LORD_HOWE_SPRING = Table(
    "Australia/Lord_Howe",
    at="2027-10-02T15:30",
    clocks=("2027-10-03T02:00", "2027-10-03T02:30"),
    rows="""
*/15 * * * *  02T14:59 .. 02T16:00
    default run_after skip:  02T15:00 15:15 15:30 15:45 16:00
20 * * * *  02T14:00 .. 02T17:00
    default skip:  02T14:50 16:20
    run_after:  02T14:50 15:30 16:20
0 */2 * * *  02T12:00 .. 02T20:00
    default skip:  02T13:30 17:00 19:00
    run_after:  02T13:30 15:30 17:00 19:00
0 2 * * *  02T00:00 .. 03T16:00
    default run_after:  02T15:30 03T15:00
    skip:  03T15:00
29 2 * * *  02T00:00 .. 03T16:00
    default run_after:  02T15:30 03T15:29
    skip:  03T15:29
30 2 * * *  02T00:00 .. 03T16:00
    default run_after skip:  02T15:30 03T15:30
15,45 2 * * *  02T00:00 .. 03T16:00
    default run_after:  02T15:30 15:45 03T15:15 15:45
    skip:  02T15:45 03T15:15 15:45
10 15 2 * * *  02T00:00 .. 03T16:00
    default run_after:  02T15:30 03T15:15:10
    skip:  03T15:15:10
15 2 * 10 SUN  01T00:00 .. 11T00:00
    default run_after:  02T15:30 09T15:15
    skip:  09T15:15
cron(15 2 * * ? *)  01T00:00 .. 03T16:00
    default skip:  01T15:45 03T15:15
    run_after:  01T15:45 02T15:30 03T15:15
""",
)

# Australia/Lord_Howe 2027-04-04: clocks go from 02:00 +11 to 01:30 +10:30 at 15:00Z of the 3rd.
LORD_HOWE_AUTUMN = Table(
    "Australia/Lord_Howe",
    at="2027-04-03T15:00",
    clocks=("2027-04-04T02:00", "2027-04-04T01:30"),
    rows="""
*/15 * * * *  03T14:14 .. 03T15:45
    default both:  03T14:15 14:30 14:45 15:00 15:15 15:30 15:45
    first:  03T14:15 14:30 14:45 15:30 15:45
    second:  03T14:15 15:00 15:15 15:30 15:45
45 * * * *  03T12:00 .. 03T17:00
    default both:  03T12:45 13:45 14:45 15:15 16:15
    first:  03T12:45 13:45 14:45 16:15
    second:  03T12:45 13:45 15:15 16:15
*/20 1 * * *  03T12:00 .. 03T20:00
    default both:  03T14:00 14:20 14:40 15:10
    first:  03T14:00 14:20 14:40
    second:  03T14:00 14:20 15:10
29 1 * * *  03T00:00 .. 04T00:00
    default first second both:  03T14:29
30 1 * * *  03T00:00 .. 04T16:00
    default first:  03T14:30 04T15:00
    second:  03T15:00 04T15:00
    both:  03T14:30 15:00 04T15:00
0 2 * * *  03T00:00 .. 04T00:00
    default first second both:  03T15:30
15,45 1,2 * * *  03T00:00 .. 04T00:00
    default first:  03T14:15 14:45 15:45 16:15
    second:  03T14:15 15:15 15:45 16:15
    both:  03T14:15 14:45 15:15 15:45 16:15
0 45 1 * * *  03T00:00 .. 04T16:00
    default first:  03T14:45 04T15:15
    second:  03T15:15 04T15:15
    both:  03T14:45 15:15 04T15:15
45 1 4 * *  2027-03-01T00:00 .. 2027-05-31T00:00
    default first:  2027-03-03T14:45 03T14:45 2027-05-03T15:15
    second:  2027-03-03T14:45 03T15:15 2027-05-03T15:15
    both:  2027-03-03T14:45 03T14:45 15:15 2027-05-03T15:15
cron(0/15 1 ? * SUN *)  03T00:00 .. 04T16:00
    default first:  03T14:00 14:15 14:30 14:45
    second:  03T14:00 14:15 15:00 15:15
    both:  03T14:00 14:15 14:30 14:45 15:00 15:15
""",
)

# Pacific/Apia 2011-12-30: the day does not happen; from 00:00 -10 of the 30th to 00:00 +14 of the
# 31st at 10:00Z.
APIA_MISSING_DAY = Table(
    "Pacific/Apia",
    at="2011-12-30T10:00",
    clocks=("2011-12-30T00:00", "2011-12-31T00:00"),
    rows="""
* * * * *  30T09:58 .. 30T10:02
    default run_after skip:  30T09:59 10:00 10:01 10:02
*/30 * * * *  30T08:59 .. 30T11:00
    default run_after skip:  30T09:00 09:30 10:00 10:30 11:00
0 */6 * * *  29T12:00 .. 31T00:00
    default run_after skip:  29T16:00 22:00 30T04:00 10:00 16:00 22:00
15 9 * * *  29T00:00 .. 31T12:00
    default run_after:  29T19:15 30T10:00 19:15
    skip:  29T19:15 30T19:15
0 0 * * *  28T12:00 .. 31T12:00
    default run_after skip:  29T10:00 30T10:00 31T10:00
59 23 * * *  28T12:00 .. 31T12:00
    default run_after:  29T09:59 30T09:59 10:00 31T09:59
    skip:  29T09:59 30T09:59 31T09:59
0,30 8-17 * * FRI  24T12:00 .. 2012-01-05T18:30
    default run_after:  30T10:00 2012-01-05T18:00 18:30
    skip:  2012-01-05T18:00 18:30
0 9 30 * *  2011-11-01T00:00 .. 2012-03-31T00:00
    default run_after:  2011-11-30T19:00 30T10:00 2012-01-29T19:00 2012-03-29T19:00
    skip:  2011-11-30T19:00 2012-01-29T19:00 2012-03-29T19:00
0 9 30 12 *  2010-01-01T00:00 .. 2012-12-31T00:00
    default run_after:  2010-12-30T19:00 30T10:00 2012-12-29T19:00
    skip:  2010-12-30T19:00 2012-12-29T19:00
0 9 * 12 FRI#5  2010-12-01T00:00 .. 2013-01-01T00:00
    default run_after:  2010-12-31T19:00 30T10:00
    skip:  2010-12-31T19:00
0 9 L * *  2011-11-01T00:00 .. 2012-02-15T00:00
    default run_after skip:  2011-11-30T19:00 30T19:00 2012-01-30T19:00
30 15 9 * * *  29T00:00 .. 31T12:00
    default run_after:  29T19:15:30 30T10:00 19:15:30
    skip:  29T19:15:30 30T19:15:30
15 * 30 12 *  29T00:00 .. 31T12:00
    default skip:  none
    run_after:  30T10:00
cron(15 9 * * ? *)  29T00:00 .. 31T12:00
    default skip:  29T19:15 30T19:15
    run_after:  29T19:15 30T10:00 19:15
cron(0 9 ? * FRI *)  20T00:00 .. 2012-01-10T00:00
    default skip:  23T19:00 2012-01-05T19:00
    run_after:  23T19:00 30T10:00 2012-01-05T19:00
""",
)

TABLES = (
    RIGA_SPRING,
    RIGA_AUTUMN,
    NEW_YORK_SPRING,
    NEW_YORK_AUTUMN,
    LORD_HOWE_SPRING,
    LORD_HOWE_AUTUMN,
    APIA_MISSING_DAY,
)
CASES = [case for table in TABLES for case in table.cases()]
SHORT_CASES = [case for case in CASES if case.is_short]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.zone} {table.at}")
def test_the_clocks_change_as_written_above_the_table(table: Table) -> None:
    table.assert_clocks()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_cron(case: Case) -> None:
    schedule = parse_schedule(case.expression, case.zone, dst=RULES[case.rule])
    assert_fires(schedule, case.after, case.until, case.expected)


@pytest.mark.parametrize("case", SHORT_CASES, ids=str)
def test_the_oracle_gives_the_literal_times(case: Case) -> None:
    assert case.fires_by_oracle() == case.expected
