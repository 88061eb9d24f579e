"""More dated tables (see `test_dst_tables`): midnight gaps, Ramadan, a missing day, two hours, and
what `at` and `every` do around a change of the clocks.
"""

from datetime import timedelta

import pytest

from carillon.errors import InvalidFieldError
from carillon.schedules import parse_schedule
from tests.unit.recurrence.dst_oracle import RULES, Table, assert_fires, utc

# Asia/Beirut 2027-03-28: clocks go from 00:00 EET to 01:00 EEST at 22:00Z of the 27th; no midnight.
BEIRUT_SPRING = Table(
    "Asia/Beirut",
    at="2027-03-27T22:00",
    clocks=("2027-03-28T00:00", "2027-03-28T01:00"),
    rows="""
* * * * *  27T21:58 .. 27T22:02
    default run_after skip:  27T21:59 22:00 22:01 22:02
*/30 * * * *  27T20:59 .. 27T23:00
    default run_after skip:  27T21:00 21:30 22:00 22:30 23:00
30 * * * *  27T20:00 .. 28T00:00
    default skip:  27T20:30 21:30 22:30 23:30
    run_after:  27T20:30 21:30 22:00 22:30 23:30
*/30 0 * * *  26T12:00 .. 29T00:00
    default skip:  26T22:00 22:30 28T21:00 21:30
    run_after:  26T22:00 22:30 27T22:00 28T21:00 21:30
59 23 * * *  27T00:00 .. 29T00:00
    default run_after skip:  27T21:59 28T20:59
0 0 * * *  26T00:00 .. 29T00:00
    default run_after:  26T22:00 27T22:00 28T21:00
    skip:  26T22:00 28T21:00
30 0 * * *  26T00:00 .. 29T00:00
    default run_after:  26T22:30 27T22:00 28T21:30
    skip:  26T22:30 28T21:30
0 1 * * *  27T12:00 .. 29T00:00
    default run_after skip:  27T22:00 28T22:00
15 0,1 * * *  27T12:00 .. 29T00:00
    default run_after:  27T22:00 22:15 28T21:15 22:15
    skip:  27T22:15 28T21:15 22:15
15 30 0 * * *  27T12:00 .. 29T00:00
    default run_after:  27T22:00 28T21:30:15
    skip:  28T21:30:15
30 0 * * SUN  21T12:00 .. 2027-04-05T00:00
    default run_after:  27T22:00 2027-04-03T21:30
    skip:  2027-04-03T21:30
30 0 28 * *  2027-02-27T00:00 .. 2027-04-30T00:00
    default run_after:  2027-02-27T22:30 27T22:00 2027-04-27T21:30
    skip:  2027-02-27T22:30 2027-04-27T21:30
30 0 28 3 *  2026-01-01T00:00 .. 2028-12-31T00:00
    default run_after:  2026-03-27T22:30 27T22:00 2028-03-27T21:30
    skip:  2026-03-27T22:30 2028-03-27T21:30
cron(30 0 * * ? *)  26T00:00 .. 29T00:00
    default skip:  26T22:30 28T21:30
    run_after:  26T22:30 27T22:00 28T21:30
""",
)

# Asia/Beirut 2027-10-31: clocks go from 00:00 EEST to 23:00 EET of the 30th at 21:00Z.
BEIRUT_AUTUMN = Table(
    "Asia/Beirut",
    at="2027-10-30T21:00",
    clocks=("2027-10-31T00:00", "2027-10-30T23:00"),
    rows="""
* * * * *  30T20:58 .. 30T21:01
    default both:  30T20:59 21:00 21:01
    first:  30T20:59
    second:  30T21:00 21:01
*/30 * * * *  30T19:59 .. 30T22:30
    default both:  30T20:00 20:30 21:00 21:30 22:00 22:30
    first:  30T20:00 20:30 22:00 22:30
    second:  30T21:00 21:30 22:00 22:30
30 * * * *  30T19:00 .. 30T23:00
    default both:  30T19:30 20:30 21:30 22:30
    first:  30T19:30 20:30 22:30
    second:  30T19:30 21:30 22:30
*/30 23 * * *  30T00:00 .. 31T20:00
    default both:  30T20:00 20:30 21:00 21:30
    first:  30T20:00 20:30
    second:  30T21:00 21:30
0 23 * * *  30T00:00 .. 31T23:00
    default first:  30T20:00 31T21:00
    second:  30T21:00 31T21:00
    both:  30T20:00 21:00 31T21:00
30 23 * * *  29T00:00 .. 31T23:00
    default first:  29T20:30 30T20:30 31T21:30
    second:  29T20:30 30T21:30 31T21:30
    both:  29T20:30 30T20:30 21:30 31T21:30
0 0 * * *  29T12:00 .. 31T23:00
    default first second both:  29T21:00 30T22:00 31T22:00
0 0 31 * *  2027-08-01T00:00 .. 2027-12-31T00:00
    default first second both:  2027-08-30T21:00 30T22:00 2027-12-30T22:00
0 0 23 * * *  30T00:00 .. 31T23:00
    default first:  30T20:00 31T21:00
    second:  30T21:00 31T21:00
    both:  30T20:00 21:00 31T21:00
30 23 30 * *  2027-09-01T00:00 .. 2027-12-01T00:00
    default first:  2027-09-30T20:30 30T20:30 2027-11-30T21:30
    second:  2027-09-30T20:30 30T21:30 2027-11-30T21:30
    both:  2027-09-30T20:30 30T20:30 21:30 2027-11-30T21:30
30 23 30 10 *  2026-01-01T00:00 .. 2028-12-31T00:00
    default first:  2026-10-30T21:30 30T20:30 2028-10-30T21:30
    second:  2026-10-30T21:30 30T21:30 2028-10-30T21:30
    both:  2026-10-30T21:30 30T20:30 21:30 2028-10-30T21:30
cron(30 23 * * ? *)  29T00:00 .. 31T23:00
    default first:  29T20:30 30T20:30 31T21:30
    second:  29T20:30 30T21:30 31T21:30
    both:  29T20:30 30T20:30 21:30 31T21:30
""",
)

# Asia/Amman 2022-02-25: clocks go from 00:00 EET to 01:00 EEST at 22:00Z of the 24th, for good.
AMMAN_LAST_SPRING = Table(
    "Asia/Amman",
    at="2022-02-24T22:00",
    clocks=("2022-02-25T00:00", "2022-02-25T01:00"),
    rows="""
* * * * *  24T21:58 .. 24T22:02
    default run_after skip:  24T21:59 22:00 22:01 22:02
*/30 * * * *  24T20:59 .. 24T23:00
    default run_after skip:  24T21:00 21:30 22:00 22:30 23:00
30 * * * *  24T20:00 .. 25T00:00
    default skip:  24T20:30 21:30 22:30 23:30
    run_after:  24T20:30 21:30 22:00 22:30 23:30
*/30 0 * * *  24T12:00 .. 26T00:00
    default skip:  25T21:00 21:30
    run_after:  24T22:00 25T21:00 21:30
59 23 * * *  24T00:00 .. 26T00:00
    default run_after skip:  24T21:59 25T20:59
0 0 * * *  23T12:00 .. 26T00:00
    default run_after:  23T22:00 24T22:00 25T21:00
    skip:  23T22:00 25T21:00
30 0 * * *  23T12:00 .. 26T00:00
    default run_after:  23T22:30 24T22:00 25T21:30
    skip:  23T22:30 25T21:30
0 1 * * *  24T12:00 .. 26T00:00
    default run_after skip:  24T22:00 25T22:00
0 30 0 * * *  23T12:00 .. 26T00:00
    default run_after:  23T22:30 24T22:00 25T21:30
    skip:  23T22:30 25T21:30
30 0 * * FRI  17T12:00 .. 2022-03-05T00:00
    default run_after:  17T22:30 24T22:00 2022-03-03T21:30
    skip:  17T22:30 2022-03-03T21:30
30 0 25 * *  2022-01-01T00:00 .. 2022-03-31T00:00
    default run_after:  2022-01-24T22:30 24T22:00 2022-03-24T21:30
    skip:  2022-01-24T22:30 2022-03-24T21:30
cron(30 0 * * ? *)  23T12:00 .. 26T00:00
    default skip:  23T22:30 25T21:30
    run_after:  23T22:30 24T22:00 25T21:30
""",
)

# Asia/Amman 2021-10-29: clocks go from 01:00 EEST to 00:00 EET at 22:00Z of the 28th.
AMMAN_LAST_AUTUMN = Table(
    "Asia/Amman",
    at="2021-10-28T22:00",
    clocks=("2021-10-29T01:00", "2021-10-29T00:00"),
    rows="""
* * * * *  28T21:58 .. 28T22:01
    default both:  28T21:59 22:00 22:01
    first:  28T21:59
    second:  28T22:00 22:01
*/30 * * * *  28T20:59 .. 28T23:30
    default both:  28T21:00 21:30 22:00 22:30 23:00 23:30
    first:  28T21:00 21:30 23:00 23:30
    second:  28T22:00 22:30 23:00 23:30
30 * * * *  28T20:00 .. 29T00:00
    default both:  28T20:30 21:30 22:30 23:30
    first:  28T20:30 21:30 23:30
    second:  28T20:30 22:30 23:30
*/30 0 * * *  28T12:00 .. 29T12:00
    default both:  28T21:00 21:30 22:00 22:30
    first:  28T21:00 21:30
    second:  28T22:00 22:30
59 23 * * *  28T12:00 .. 29T12:00
    default first second both:  28T20:59
0 0 * * *  28T00:00 .. 30T00:00
    default first:  28T21:00 29T22:00
    second:  28T22:00 29T22:00
    both:  28T21:00 22:00 29T22:00
30 0 * * *  27T12:00 .. 30T00:00
    default first:  27T21:30 28T21:30 29T22:30
    second:  27T21:30 28T22:30 29T22:30
    both:  27T21:30 28T21:30 22:30 29T22:30
0 1 * * *  28T12:00 .. 29T12:00
    default first second both:  28T23:00
0 0 0 * * *  28T00:00 .. 30T00:00
    default first:  28T21:00 29T22:00
    second:  28T22:00 29T22:00
    both:  28T21:00 22:00 29T22:00
0 0 * * FRI  22T00:00 .. 2021-11-06T00:00
    default first:  28T21:00 2021-11-04T22:00
    second:  28T22:00 2021-11-04T22:00
    both:  28T21:00 22:00 2021-11-04T22:00
cron(0 0 * * ? *)  28T00:00 .. 30T00:00
    default first:  28T21:00 29T22:00
    second:  28T22:00 29T22:00
    both:  28T21:00 22:00 29T22:00
""",
)

# Africa/Casablanca 2026-03-22: clocks go from 02:00 +00 to 03:00 +01 at 02:00Z, after Ramadan.
CASABLANCA_AFTER_RAMADAN = Table(
    "Africa/Casablanca",
    at="2026-03-22T02:00",
    clocks=("2026-03-22T02:00", "2026-03-22T03:00"),
    rows="""
* * * * *  22T01:58 .. 22T02:02
    default run_after skip:  22T01:59 02:00 02:01 02:02
*/30 * * * *  22T00:59 .. 22T03:00
    default run_after skip:  22T01:00 01:30 02:00 02:30 03:00
30 * * * *  22T00:00 .. 22T04:00
    default skip:  22T00:30 01:30 02:30 03:30
    run_after:  22T00:30 01:30 02:00 02:30 03:30
*/30 2 * * *  21T00:00 .. 23T12:00
    default skip:  21T02:00 02:30 23T01:00 01:30
    run_after:  21T02:00 02:30 22T02:00 23T01:00 01:30
59 1 * * *  21T12:00 .. 23T12:00
    default run_after skip:  22T01:59 23T00:59
0 2 * * *  21T12:00 .. 23T12:00
    default run_after:  22T02:00 23T01:00
    skip:  23T01:00
30 2 * * *  21T00:00 .. 23T12:00
    default run_after:  21T02:30 22T02:00 23T01:30
    skip:  21T02:30 23T01:30
0 3 * * *  21T12:00 .. 23T12:00
    default run_after skip:  22T02:00 23T02:00
0 30 2 * * *  21T00:00 .. 23T12:00
    default run_after:  21T02:30 22T02:00 23T01:30
    skip:  21T02:30 23T01:30
30 2 22 * *  2026-01-01T00:00 .. 2026-04-30T00:00
    default run_after:  2026-01-22T01:30 2026-02-22T02:30 22T02:00 2026-04-22T01:30
    skip:  2026-01-22T01:30 2026-02-22T02:30 2026-04-22T01:30
cron(30 2 * * ? *)  21T00:00 .. 23T12:00
    default skip:  21T02:30 23T01:30
    run_after:  21T02:30 22T02:00 23T01:30
""",
)

# Africa/Casablanca 2026-02-15: clocks go from 03:00 +01 to 02:00 +00 at 02:00Z, before Ramadan.
CASABLANCA_BEFORE_RAMADAN = Table(
    "Africa/Casablanca",
    at="2026-02-15T02:00",
    clocks=("2026-02-15T03:00", "2026-02-15T02:00"),
    rows="""
* * * * *  15T01:58 .. 15T02:01
    default both:  15T01:59 02:00 02:01
    first:  15T01:59
    second:  15T02:00 02:01
*/30 * * * *  15T00:59 .. 15T03:30
    default both:  15T01:00 01:30 02:00 02:30 03:00 03:30
    first:  15T01:00 01:30 03:00 03:30
    second:  15T02:00 02:30 03:00 03:30
30 * * * *  15T00:00 .. 15T04:00
    default both:  15T00:30 01:30 02:30 03:30
    first:  15T00:30 01:30 03:30
    second:  15T00:30 02:30 03:30
*/30 2 * * *  14T12:00 .. 16T00:00
    default both:  15T01:00 01:30 02:00 02:30
    first:  15T01:00 01:30
    second:  15T02:00 02:30
59 1 * * *  14T12:00 .. 16T00:00
    default first second both:  15T00:59
0 2 * * *  14T12:00 .. 16T12:00
    default first:  15T01:00 16T02:00
    second:  15T02:00 16T02:00
    both:  15T01:00 02:00 16T02:00
30 2 * * *  14T00:00 .. 16T12:00
    default first:  14T01:30 15T01:30 16T02:30
    second:  14T01:30 15T02:30 16T02:30
    both:  14T01:30 15T01:30 02:30 16T02:30
0 3 * * *  14T12:00 .. 16T12:00
    default first second both:  15T03:00 16T03:00
0 30 2 * * *  14T12:00 .. 16T12:00
    default first:  15T01:30 16T02:30
    second:  15T02:30 16T02:30
    both:  15T01:30 02:30 16T02:30
30 2 15 * *  01T00:00 .. 2026-04-30T00:00
    default first:  15T01:30 2026-03-15T02:30 2026-04-15T01:30
    second:  15T02:30 2026-03-15T02:30 2026-04-15T01:30
    both:  15T01:30 02:30 2026-03-15T02:30 2026-04-15T01:30
cron(30 2 * * ? *)  14T00:00 .. 16T12:00
    default first:  14T01:30 15T01:30 16T02:30
    second:  14T01:30 15T02:30 16T02:30
    both:  14T01:30 15T01:30 02:30 16T02:30
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

# Pacific/Apia 2020-09-27: clocks go from 03:00 +13 to 04:00 +14 at 14:00Z of the 26th.
APIA_LAST_SPRING = Table(
    "Pacific/Apia",
    at="2020-09-26T14:00",
    clocks=("2020-09-27T03:00", "2020-09-27T04:00"),
    rows="""
* * * * *  26T13:58 .. 26T14:02
    default run_after skip:  26T13:59 14:00 14:01 14:02
30 * * * *  26T12:00 .. 26T16:00
    default skip:  26T12:30 13:30 14:30 15:30
    run_after:  26T12:30 13:30 14:00 14:30 15:30
*/30 3 * * *  25T12:00 .. 27T12:00
    default skip:  25T14:00 14:30
    run_after:  25T14:00 14:30 26T14:00
30 3 * * *  25T12:00 .. 27T16:00
    default run_after:  25T14:30 26T14:00 27T13:30
    skip:  25T14:30 27T13:30
0 4 * * *  26T00:00 .. 27T16:00
    default run_after skip:  26T14:00 27T14:00
0 30 3 * * *  25T12:00 .. 27T16:00
    default run_after:  25T14:30 26T14:00 27T13:30
    skip:  25T14:30 27T13:30
cron(30 3 * * ? *)  25T12:00 .. 27T16:00
    default skip:  25T14:30 27T13:30
    run_after:  25T14:30 26T14:00 27T13:30
""",
)

# Pacific/Apia 2021-04-04: clocks go from 04:00 +14 to 03:00 +13 at 14:00Z of the 3rd, for good.
APIA_LAST_AUTUMN = Table(
    "Pacific/Apia",
    at="2021-04-03T14:00",
    clocks=("2021-04-04T04:00", "2021-04-04T03:00"),
    rows="""
* * * * *  03T13:58 .. 03T14:01
    default both:  03T13:59 14:00 14:01
    first:  03T13:59
    second:  03T14:00 14:01
30 * * * *  03T12:00 .. 03T16:00
    default both:  03T12:30 13:30 14:30 15:30
    first:  03T12:30 13:30 15:30
    second:  03T12:30 14:30 15:30
*/30 3 * * *  03T00:00 .. 04T12:00
    default both:  03T13:00 13:30 14:00 14:30
    first:  03T13:00 13:30
    second:  03T14:00 14:30
30 3 * * *  02T12:00 .. 04T16:00
    default first:  02T13:30 03T13:30 04T14:30
    second:  02T13:30 03T14:30 04T14:30
    both:  02T13:30 03T13:30 14:30 04T14:30
0 4 * * *  03T00:00 .. 04T12:00
    default first second both:  03T15:00
0 30 3 * * *  02T12:00 .. 04T16:00
    default first:  02T13:30 03T13:30 04T14:30
    second:  02T13:30 03T14:30 04T14:30
    both:  02T13:30 03T13:30 14:30 04T14:30
cron(30 3 * * ? *)  02T12:00 .. 04T16:00
    default first:  02T13:30 03T13:30 04T14:30
    second:  02T13:30 03T14:30 04T14:30
    both:  02T13:30 03T13:30 14:30 04T14:30
""",
)

# Antarctica/Troll 2027-03-28: clocks go from 01:00 +00 to 03:00 +02 at 01:00Z.
TROLL_SPRING = Table(
    "Antarctica/Troll",
    at="2027-03-28T01:00",
    clocks=("2027-03-28T01:00", "2027-03-28T03:00"),
    rows="""
* * * * *  28T00:58 .. 28T01:02
    default run_after skip:  28T00:59 01:00 01:01 01:02
*/30 * * * *  27T23:59 .. 28T02:00
    default run_after skip:  28T00:00 00:30 01:00 01:30 02:00
45 * * * *  27T23:00 .. 28T03:00
    default skip:  27T23:45 28T00:45 01:45 02:45
    run_after:  27T23:45 28T00:45 01:00 01:45 02:45
0 */2 * * *  27T21:00 .. 28T06:00
    default skip:  27T22:00 28T00:00 02:00 04:00 06:00
    run_after:  27T22:00 28T00:00 01:00 02:00 04:00 06:00
*/30 1,2 * * *  27T12:00 .. 29T00:30
    default skip:  28T23:00 23:30 29T00:00 00:30
    run_after:  28T01:00 23:00 23:30 29T00:00 00:30
59 0 * * *  27T12:00 .. 29T00:00
    default run_after skip:  28T00:59 22:59
0 1 * * *  27T12:00 .. 29T12:00
    default run_after:  28T01:00 23:00
    skip:  28T23:00
30 1 * * *  27T00:00 .. 29T12:00
    default run_after:  27T01:30 28T01:00 23:30
    skip:  27T01:30 28T23:30
30 2 * * *  27T00:00 .. 29T12:00
    default run_after:  27T02:30 28T01:00 29T00:30
    skip:  27T02:30 29T00:30
30 1,2 * * *  27T00:00 .. 29T12:00
    default run_after:  27T01:30 02:30 28T01:00 23:30 29T00:30
    skip:  27T01:30 02:30 28T23:30 29T00:30
30 0-3 * * *  27T12:00 .. 28T12:00
    default run_after:  28T00:30 01:00 01:30
    skip:  28T00:30 01:30
0 3 * * *  27T12:00 .. 29T12:00
    default run_after skip:  28T01:00 29T01:00
0 0 2 * * *  27T00:00 .. 29T12:00
    default run_after:  27T02:00 28T01:00 29T00:00
    skip:  27T02:00 29T00:00
30 2 * * SUN  20T00:00 .. 2027-04-05T00:00
    default run_after:  21T02:30 28T01:00 2027-04-04T00:30
    skip:  21T02:30 2027-04-04T00:30
30 2 28 3 *  2026-01-01T00:00 .. 2028-12-31T00:00
    default run_after:  2026-03-28T02:30 28T01:00 2028-03-28T00:30
    skip:  2026-03-28T02:30 2028-03-28T00:30
cron(30 1,2 * * ? *)  27T00:00 .. 29T12:00
    default skip:  27T01:30 02:30 28T23:30 29T00:30
    run_after:  27T01:30 02:30 28T01:00 23:30 29T00:30
""",
)

# Antarctica/Troll 2027-10-31: clocks go from 03:00 +02 to 01:00 +00 at 01:00Z.
TROLL_AUTUMN = Table(
    "Antarctica/Troll",
    at="2027-10-31T01:00",
    clocks=("2027-10-31T03:00", "2027-10-31T01:00"),
    rows="""
* * * * *  30T22:58 .. 30T23:01
    default first both:  30T22:59 23:00 23:01
    second:  30T22:59
* * * * *  31T00:58 .. 31T01:01
    default both:  31T00:59 01:00 01:01
    first:  31T00:59
    second:  31T01:00 01:01
* * * * *  31T02:58 .. 31T03:01
    default second both:  31T02:59 03:00 03:01
    first:  31T03:00 03:01
30 * * * *  30T22:00 .. 31T04:00
    default both:  30T22:30 23:30 31T00:30 01:30 02:30 03:30
    first:  30T22:30 23:30 31T00:30 03:30
    second:  30T22:30 31T01:30 02:30 03:30
0 */2 * * *  30T19:00 .. 31T06:00
    default both:  30T20:00 22:00 31T00:00 02:00 04:00 06:00
    first:  30T20:00 22:00 31T00:00 04:00 06:00
    second:  30T20:00 22:00 31T02:00 04:00 06:00
*/30 2 * * *  30T12:00 .. 31T12:00
    default both:  31T00:00 00:30 02:00 02:30
    first:  31T00:00 00:30
    second:  31T02:00 02:30
59 0 * * *  30T12:00 .. 31T12:00
    default first second both:  30T22:59
0 1 * * *  30T12:00 .. 31T12:00
    default first:  30T23:00
    second:  31T01:00
    both:  30T23:00 31T01:00
30 1,2 * * *  30T12:00 .. 31T12:00
    default first:  30T23:30 31T00:30
    second:  31T01:30 02:30
    both:  30T23:30 31T00:30 01:30 02:30
59 2 * * *  29T12:00 .. 31T12:00
    default first:  30T00:59 31T00:59
    second:  30T00:59 31T02:59
    both:  30T00:59 31T00:59 02:59
0 3 * * *  30T12:00 .. 31T12:00
    default first second both:  31T03:00
10 30 2 * * *  30T12:00 .. 31T12:00
    default first:  31T00:30:10
    second:  31T02:30:10
    both:  31T00:30:10 02:30:10
30 2 31 * *  2027-08-30T00:00 .. 2027-12-31T12:00
    default first:  2027-08-31T00:30 31T00:30 2027-12-31T02:30
    second:  2027-08-31T00:30 31T02:30 2027-12-31T02:30
    both:  2027-08-31T00:30 31T00:30 02:30 2027-12-31T02:30
cron(30 1,2 * * ? *)  30T12:00 .. 31T12:00
    default first:  30T23:30 31T00:30
    second:  31T01:30 02:30
    both:  30T23:30 31T00:30 01:30 02:30
""",
)

MORE_TABLES = (
    BEIRUT_SPRING,
    BEIRUT_AUTUMN,
    AMMAN_LAST_SPRING,
    AMMAN_LAST_AUTUMN,
    CASABLANCA_AFTER_RAMADAN,
    CASABLANCA_BEFORE_RAMADAN,
    APIA_MISSING_DAY,
    APIA_LAST_SPRING,
    APIA_LAST_AUTUMN,
    TROLL_SPRING,
    TROLL_AUTUMN,
)
"""Run by the tests of test_dst_tables.py."""


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("30 0 * * *", ["2022-10-26T21:30", "2022-10-27T21:30", "2022-10-28T21:30"]),
        ("0 30 0 * * FRI", ["2022-10-27T21:30"]),
        ("0 1 28 * *", ["2022-10-27T22:00"]),
        ("cron(30 0 28 10 ? *)", ["2022-10-27T21:30"]),
    ],
)
def test_clocks_that_stay_where_they_are_change_nothing(
    expression: str, expected: list[str], rule: str
) -> None:
    # Asia/Amman 2022-10-28: summer time for good; no clock moves at 22:00Z of the 27th.
    schedule = parse_schedule(expression, "Asia/Amman", dst=RULES[rule])
    instants = [utc(time) for time in expected]
    assert_fires(schedule, utc("2022-10-26T12:00"), utc("2022-10-29T12:00"), instants)


SKIPPED_ATS = [
    # Europe/Riga 2027-03-28: clocks go from 03:00 EET to 04:00 EEST at 01:00Z.
    ("Europe/Riga", "2027-03-28T03:00:00", "2027-03-28T01:00"),
    ("Europe/Riga", "2027-03-28T03:30:00", "2027-03-28T01:30"),
    ("Europe/Riga", "2027-03-28T03:59:59", "2027-03-28T01:59:59"),
    # America/New_York 2027-03-14: clocks go from 02:00 EST to 03:00 EDT at 07:00Z.
    ("America/New_York", "2027-03-14T02:30:00", "2027-03-14T07:30"),
    # Australia/Lord_Howe 2027-10-03: clocks go from 02:00 +10:30 to 02:30 +11 at 15:30Z of the 2nd.
    ("Australia/Lord_Howe", "2027-10-03T02:15:00", "2027-10-02T15:45"),
    # America/Santiago 2027-09-05: clocks go from 00:00 -04 to 01:00 -03 at 04:00Z.
    ("America/Santiago", "2027-09-05T00:00:00", "2027-09-05T04:00"),
    ("America/Santiago", "2027-09-05T00:30:00", "2027-09-05T04:30"),
    # Asia/Beirut 2027-03-28: clocks go from 00:00 EET to 01:00 EEST at 22:00Z of the 27th.
    ("Asia/Beirut", "2027-03-28T00:15:00", "2027-03-27T22:15"),
    # Asia/Amman 2022-02-25: clocks go from 00:00 EET to 01:00 EEST at 22:00Z of the 24th.
    ("Asia/Amman", "2022-02-25T00:30:00", "2022-02-24T22:30"),
    # Africa/Casablanca 2026-03-22: clocks go from 02:00 +00 to 03:00 +01 at 02:00Z.
    ("Africa/Casablanca", "2026-03-22T02:30:00", "2026-03-22T02:30"),
    # Pacific/Apia 2011-12-30: the day does not happen; 24 hours later is 09:00 +14 of the 31st.
    ("Pacific/Apia", "2011-12-30T09:00:00", "2011-12-30T19:00"),
    # Antarctica/Troll 2027-03-28: clocks go from 01:00 +00 to 03:00 +02 at 01:00Z.
    ("Antarctica/Troll", "2027-03-28T01:00:00", "2027-03-28T01:00"),
    ("Antarctica/Troll", "2027-03-28T02:30:00", "2027-03-28T02:30"),
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
    # America/Santiago 2027-04-04: clocks go from 00:00 -03 to 23:00 -04 of the 3rd at 03:00Z.
    ("America/Santiago", "2027-04-03T23:30:00", "2027-04-04T02:30", "2027-04-04T03:30"),
    # Asia/Beirut 2027-10-31: clocks go from 00:00 EEST to 23:00 EET of the 30th at 21:00Z.
    ("Asia/Beirut", "2027-10-30T23:30:00", "2027-10-30T20:30", "2027-10-30T21:30"),
    # Asia/Amman 2021-10-29: clocks go from 01:00 EEST to 00:00 EET at 22:00Z of the 28th.
    ("Asia/Amman", "2021-10-29T00:30:00", "2021-10-28T21:30", "2021-10-28T22:30"),
    # Africa/Casablanca 2026-02-15: clocks go from 03:00 +01 to 02:00 +00 at 02:00Z.
    ("Africa/Casablanca", "2026-02-15T02:30:00", "2026-02-15T01:30", "2026-02-15T02:30"),
    # Pacific/Apia 2021-04-04: clocks go from 04:00 +14 to 03:00 +13 at 14:00Z of the 3rd.
    ("Pacific/Apia", "2021-04-04T03:30:00", "2021-04-03T13:30", "2021-04-03T14:30"),
    # Antarctica/Troll 2027-10-31: clocks go from 03:00 +02 to 01:00 +00 at 01:00Z.
    ("Antarctica/Troll", "2027-10-31T02:30:00", "2027-10-31T00:30", "2027-10-31T02:30"),
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


def _assert_at(zone: str, wall: str, rule: str, expected: str) -> None:
    schedule = parse_schedule(f"at {wall}", zone, dst=RULES[rule])
    instant = utc(expected)
    days = timedelta(days=2)
    assert_fires(schedule, instant - days, instant + days, [instant])


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "skip"])
@pytest.mark.parametrize(("zone", "wall", "expected"), SKIPPED_ATS)
def test_a_skipped_at_runs_later_by_the_gap(zone: str, wall: str, expected: str, rule: str) -> None:
    _assert_at(zone, wall, rule, expected)


@pytest.mark.parametrize(("zone", "wall", "expected"), SKIPPED_ATS)
def test_a_skipped_at_that_is_to_be_skipped_is_refused(zone: str, wall: str, expected: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        parse_schedule(f"at {wall}", zone, dst=RULES["skip"])
    assert caught.value.field.startswith("schedule")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("zone", "wall", "first", "second"), REPEATED_ATS)
def test_a_repeated_at_runs_at_one_pass(
    zone: str, wall: str, first: str, second: str, rule: str
) -> None:
    _assert_at(zone, wall, rule, second if rule == "second" else first)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("zone", "wall", "expected"), PLAIN_ATS)
def test_an_at_beside_the_change_or_with_an_offset_heeds_no_rule(
    zone: str, wall: str, expected: str, rule: str
) -> None:
    _assert_at(zone, wall, rule, expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("table", MORE_TABLES, ids=lambda table: f"{table.zone} {table.at}")
def test_every_counts_elapsed_time_whatever_the_clocks_show(table: Table, rule: str) -> None:
    schedule = parse_schedule("every 30m offset 7m", table.zone, dst=RULES[rule])
    at = utc(table.at)
    expected = [at + timedelta(minutes=minutes) for minutes in (-53, -23, 7, 37)]
    assert_fires(schedule, at - timedelta(hours=1), at + timedelta(hours=1), expected)
