"""Cron expressions without a zone: what they mean on walls, and what is said of bad ones."""

import calendar
import tracemalloc
from datetime import date, datetime, timedelta

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.schedules.cron import days
from carillon.schedules.cron.expression import (
    canonical_text,
    clear_caches,
    compile_expression,
    refuse_bad_terms,
)
from carillon.schedules.zones.offsets import LOCAL_EPOCH
from tests.unit.schedules.strategies import exact, expressions

SECOND = timedelta(seconds=1)
NEW_YEAR = datetime(2024, 1, 1)

# Terms that are well formed, nearly so, or not at all.
_numbers = st.integers(-1, 61).map(str)
_words = st.sampled_from(
    [
        *("*", "L", "LW", "5L", "FRI#2", "0#5", "7#1", "5#02", "SUN", "MON", "SAT", "JAN", "DEC"),
        *("007", "15W", "?", "H", "~", "W", "#", "-", "/", "5#6", "5#0", "FRIL", "L5", "*-5"),
    ]
)
_atoms = st.one_of(_numbers, _numbers, _words)
_ranges = st.one_of(
    _atoms,
    st.tuples(_numbers, _numbers).map("-".join),
    st.sampled_from(["MON-FRI", "SUN-SAT", "FRI-SUN", "JAN-MAR", "5-7", "0-6", "5-5", "1-31"]),
)
_terms = st.one_of(
    _ranges,
    _ranges,
    st.tuples(_ranges, _numbers).map("/".join),
    st.sampled_from(["*/2", "*/7", "0/15", "1/10", "*/2/3", "*/0", "*/00", "*/99999999999999"]),
)
_fields = st.one_of(
    st.just("*"),
    st.sampled_from(["0", "1", "5", "12"]),
    _terms,
    st.lists(_terms, min_size=2, max_size=3).map(",".join),
)


@st.composite
def _texts(draw: st.DrawFn) -> str:
    """Half of them with but one field that may be bad."""
    fields = ["*"] * draw(st.integers(5, 6))
    places = range(len(fields)) if draw(st.booleans()) else [draw(st.sampled_from(range(5)))]
    for place in places:
        fields[place] = draw(_fields)
    return " ".join(fields)


def _wall(moment: datetime) -> int:
    return (moment - LOCAL_EPOCH) // SECOND


def _moment(local_time: int | None) -> datetime | None:
    return None if local_time is None else LOCAL_EPOCH + timedelta(seconds=local_time)


def _cronsim(text: str) -> CronSim | None:
    """As it reads an expression, if it does and ever finds a date."""
    try:
        next(CronSim(text, NEW_YEAR))
        return CronSim(text, NEW_YEAR)
    except (CronSimError, StopIteration):
        return None


@settings(exact, max_examples=1500)
@given(_texts())
def test_reads_what_cronsim_reads_and_nothing_else(text: str) -> None:
    sim = _cronsim(text)
    if sim is None:
        with pytest.raises(InvalidFieldError) as caught:
            compile_expression(text)
        assert caught.value.field == "schedule.cron"
        return
    rule = compile_expression(text)
    assert set(rule.seconds) == sim.seconds
    assert set(rule.minutes) == sim.minutes
    assert set(rule.hours) == sim.hours
    days = [date(2023, 12, 31) + timedelta(days=day) for day in range(800)]
    ours = {day for day in days if rule.matches_day(day)}
    assert ours == {day for day in days if day.month in sim.months and sim.match_day(day)}


@exact
@given(st.one_of(expressions(), expressions(with_seconds=True)), st.integers(0, 10**9))
def test_walls_are_those_of_cronsim_in_both_directions(text: str, second: int) -> None:
    rule = compile_expression(text.upper())
    start = datetime(2000, 1, 1) + second * SECOND
    forward, backward = CronSim(text, start), CronSim(text, start, reverse=True)
    after = before = _wall(start)
    for _ in range(10):
        following, previous = rule.after(after), rule.before(before)
        assert _moment(following) == next(forward)
        assert _moment(previous) == next(backward)
        assert following is not None
        assert previous is not None
        after, before = following, previous
        assert rule.matches_minute(after)


def test_minutes_and_seconds_of_the_day() -> None:
    rule = compile_expression("5,50 1-2 3,4 * * *")
    assert rule.minutes_of_day == {181, 182, 241, 242}
    assert rule.seconds_of_day == tuple(
        minute * 60 + second for minute in (181, 182, 241, 242) for second in (5, 50)
    )
    assert rule.has_seconds
    assert not compile_expression("1-2 3,4 * * *").has_seconds
    assert not compile_expression("cron(1-2 3,4 * * ? *)").has_seconds


@pytest.mark.parametrize(
    ("text", "is_time_of_day"),
    [
        ("0 9 * * *", True),
        ("*/5 9 * * *", False),
        ("5 */2 * * *", False),
        ("*,5 9 * * *", False),
        ("0-59 9 * * *", True),
        ("0 0 9 * * *", True),
        ("* 0 9 * * *", True),
        ("*/2 0 9 * * *", True),
        ("0 * 9 * * *", False),
    ],
)
def test_the_second_has_no_say_in_what_is_a_time_of_day(text: str, is_time_of_day: bool) -> None:
    assert compile_expression(text).is_time_of_day is is_time_of_day


def test_rare_days_are_found_in_time() -> None:
    # 29 February on a Monday: 2044 follows 2016; around 2100 it takes 40 years.
    rule = compile_expression("cron(0 0 29 2 ? *)")
    assert _moment(rule.after(_wall(datetime(2096, 2, 29)))) == datetime(2104, 2, 29)
    assert _moment(rule.before(_wall(datetime(2104, 2, 29)))) == datetime(2096, 2, 29)
    rule = compile_expression("0 0 */28 2 MON#5")
    assert _moment(rule.after(_wall(datetime(2016, 3, 1)))) == datetime(2044, 2, 29)
    assert _moment(rule.before(_wall(datetime(2044, 2, 29)))) == datetime(2016, 2, 29)


def _of_month(text: str, year: int, month: int) -> list[int]:
    rule = compile_expression(text)
    days = range(1, calendar.monthrange(year, month)[1] + 1)
    return [day for day in days if rule.matches_day(date(year, month, day))]


@pytest.mark.parametrize(
    ("fields", "year", "month", "days"),
    [
        # August 2026 begins on a Saturday and ends on a Monday.
        ("1W * ?", 2026, 8, [3]),
        ("2W * ?", 2026, 8, [3]),
        ("15W * ?", 2026, 8, [14]),
        ("16W * ?", 2026, 8, [17]),
        ("3W * ?", 2026, 8, [3]),
        ("31W * ?", 2026, 8, [31]),
        ("LW * ?", 2026, 8, [31]),
        ("L * ?", 2026, 8, [31]),
        # May 2026 ends on a Sunday.
        ("31W * ?", 2026, 5, [29]),
        ("LW * ?", 2026, 5, [29]),
        ("30W,L * ?", 2026, 5, [29, 31]),
        # A month without a 31st has no weekday nearest to it.
        ("31W * ?", 2026, 6, []),
        ("L * ?", 2024, 2, [29]),
        ("L * ?", 2026, 2, [28]),
        ("1/10 * ?", 2026, 8, [1, 11, 21, 31]),
        ("28-3 * ?", 2026, 8, [1, 2, 3, 28, 29, 30, 31]),
        ("10-10/5 * ?", 2026, 8, [10]),
        ("? * 3#2", 2026, 8, [11]),
        ("? * TUE#2", 2026, 8, [11]),
        ("? * 7#5", 2026, 8, [29]),
        ("? * 6#5", 2026, 8, []),
        ("? * 6L", 2026, 8, [28]),
        ("? * FRIL", 2026, 8, [28]),
        ("? * 2L,7L", 2026, 8, [29, 31]),
        ("? * L", 2026, 8, [1, 8, 15, 22, 29]),
        ("? * 1", 2026, 8, [2, 9, 16, 23, 30]),
        ("? * 7", 2026, 8, [1, 8, 15, 22, 29]),
        ("? * SAT-SUN", 2026, 8, [1, 2, 8, 9, 15, 16, 22, 23, 29, 30]),
        ("? * 6-2/2", 2026, 8, [2, 7, 9, 14, 16, 21, 23, 28, 30]),
        ("? NOV-FEB SUN", 2026, 8, []),
        ("? NOV-FEB SUN", 2026, 12, [6, 13, 20, 27]),
    ],
)
def test_days_of_eventbridge(fields: str, year: int, month: int, days: list[int]) -> None:
    assert _of_month(f"cron(0 9 {fields} *)", year, month) == days


def test_times_of_eventbridge() -> None:
    rule = compile_expression("cron(1/10 20-2 * * ? *)")
    assert rule.minutes == (1, 11, 21, 31, 41, 51)
    assert rule.hours == (0, 1, 2, 20, 21, 22, 23)
    assert rule.seconds == (0,)
    assert rule.is_eventbridge
    assert compile_expression("cron(50-10/5 0-23/12 * * ? *)").minutes == (0, 5, 10, 50, 55)
    assert compile_expression("CRON(0 0-23/12 * * ? *)").hours == (0, 12)


def test_years_end_an_expression() -> None:
    rule = compile_expression("cron(0 12 1 1,7 ? 2030,2032-2033)")
    found = []
    local_time = rule.after(_wall(datetime(2026, 1, 1)))
    while local_time is not None:
        found.append(_moment(local_time))
        local_time = rule.after(local_time)
    years = [2030, 2032, 2033]
    assert found == [datetime(year, month, 1, 12) for year in years for month in (1, 7)]
    assert rule.before(_wall(found[0] or NEW_YEAR)) is None
    assert _moment(rule.before(_wall(datetime(9000, 1, 1)))) == found[-1]
    far = compile_expression("cron(0 12 1 1 ? 2199)")
    assert _moment(far.after(_wall(datetime(1971, 1, 1)))) == datetime(2199, 1, 1, 12)
    past = compile_expression("cron(0 12 1 1 ? 1999)")
    assert past.after(_wall(datetime(2026, 1, 1))) is None
    assert _moment(past.before(_wall(datetime(2026, 1, 1)))) == datetime(1999, 1, 1, 12)


@pytest.mark.parametrize("year", [2026, 2100])
def test_one_search_answers_for_all_days_up_to_what_it_finds(
    monkeypatch: pytest.MonkeyPatch, year: int
) -> None:
    # A calendar that is closed for decades asks on each of its days.
    rule = compile_expression(f"cron(0 9 3 5 ? {year})")
    months: list[tuple[int, int]] = []
    real = days._length

    def counted(year: int, month: int) -> int:
        months.append((year, month))
        return real(year, month)

    monkeypatch.setattr(days, "_length", counted)
    starts = [datetime(2027, 1, 1) + timedelta(days=number) for number in range(1_000)]
    occurrence = datetime(year, 5, 3, 9)
    for start in starts:
        found = _moment(rule.after(_wall(start)))
        assert found == (occurrence if year > 2027 else None)
    for start in reversed(starts):
        found = _moment(rule.before(_wall(start)))
        assert found == (occurrence if year < 2027 else None)
    # Two searches, of a century each at most.
    assert len(months) < 2 * 12 * 100


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("* * * *", "has 4 fields: a cron expression has five"),
        ("0 0 9 * * MON 2026", r"has 7 fields: .*for a year use cron\(…\), with six: minute hour"),
        ("0 25 * * *", '"25" at position 3 is no hour: use 0-23, and of these'),
        ("0  9,24 * * *", '"24" at position 6 is no hour'),
        ("0 9 * * fri-mon", '"fri-mon" at position 9 is no day-of-week: the range runs backwards'),
        ("0 9 ? * MON", r'"\?" at position 5 is no day-of-month: "\?" belongs to cron'),
        ("0 9 15W * *", '"15W" at position 5 is no day-of-month: nearest weekdays belong to cron'),
        ("H 9 * * *", '"H" at position 1 is no minute: to spread jobs over time, use window'),
        ("H/15 9 * * *", '"H/15" at position 1 is no minute: to spread jobs over time, use window'),
        ("0~30 9 * * *", '"0~30" at position 1 is no minute: to spread jobs over time, use window'),
        ("*/0 * * * *", r'"\*/0" at position 1 is no minute: a step is at least 1'),
        ("0 9 * * 5#6", '"5#6" at position 9 is no day-of-week: after # comes its number in the'),
        ("0 0 30 2 *", 'matches no date: see the day-of-month field "30" at position 5'),
        ("0 0 0 31 4,6 *", 'matches no date: see the day-of-month field "31" at position 7'),
        (f"{'9' * 5000} * * * *", "at position 1 is no minute"),
        ("cron(0 9 * * *)", r"has 5 fields: cron\(…\) has six: minute hour"),
        ("cron(0 9 ? * MON *", r'does not end with "\)"'),
        ("cron(0 24 ? * MON *)", '"24" at position 8 is no hour: use 0-23'),
        (" cron( 0 9 ? * MON,8 *)", '"8" at position 20 is no day-of-week: use 1-7 or SUN-SAT'),
        ("cron(0 9 ? * 0 *)", '"0" at position 14 is no day-of-week: use 1-7 or SUN-SAT'),
        ("cron(0 9 * * * *)", r'"\*" at position 14 cannot stand beside day-of-month "\*"'),
        ("cron(0 9 1 * MON *)", '"MON" at position 14 cannot stand beside day-of-month "1"'),
        ("cron(0 9 ? * ? *)", r'"\?" at position 14 cannot stand beside day-of-month "\?"'),
        ("cron(0 9 ? * 3#1,6#3 *)", '"3#1,6#3" at position 14 is no day-of-week: # takes the'),
        ("cron(0 9 ? * 3#6 *)", '"3#6" at position 14 is no day-of-week: after # comes'),
        ("cron(/5 9 ? * MON *)", '"/5" at position 6 is no minute: a step needs its start'),
        ("cron(0 9 1-5W * ? *)", '"1-5W" at position 10 is no day-of-month'),
        ("cron(0 9 L-3 * ? *)", '"L-3" at position 10 is no day-of-month'),
        ("cron(0 9 1 * ? 1969)", '"1969" at position 16 is no year: use 1970-2199'),
        ("cron(0 9 1 * ? 2030-2026)", '"2030-2026" at position 16 is no year: the range runs'),
        ("cron(0 9 29 2 ? 2025-2027)", 'matches no date: see the day-of-month field "29" at pos'),
        ("cron(0 9 31 4 ? *)", 'matches no date: see the day-of-month field "31" at position 10'),
    ],
)
def test_refusals_name_field_text_position_and_remedy(text: str, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message) as caught:
        compile_expression(text)
    assert caught.value.field == "schedule.cron"
    if "matches no date" not in message:
        with pytest.raises(InvalidFieldError, match=message):
            refuse_bad_terms(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  0  9 * * mon-fri ", "0 9 * * MON-FRI"),
        ("0\t0 9 * jan *", "0 0 9 * JAN *"),
        (" CRON( 0 9  ? * mon-fri * ) ", "cron(0 9 ? * MON-FRI *)"),
        ("cron(0 9 l * ? *)", "cron(0 9 L * ? *)"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert canonical_text(text) == canonical == canonical_text(canonical)
    assert compile_expression(text).days is compile_expression(canonical).days


def test_expressions_are_compiled_once() -> None:
    one = compile_expression("1 2 3 4 *")
    assert compile_expression("1 2 3 4 *") is one
    clear_caches()
    assert compile_expression("1 2 3 4 *") is not one


@pytest.mark.parametrize("text", ["{0}-59 {0}-58 3 1 1 *", "cron(0 {0} 1 1 ? 19{1}-2199)"])
def test_an_expression_that_names_many_instants_takes_little_memory(text: str) -> None:
    """Of combinations of forty that are kept by the thousand, in processes of 512 MB."""
    texts = [text.format(first % 24, 70 + first) for first in range(30)]
    clear_caches()
    tracemalloc.start()
    try:
        kept = [compile_expression(each) for each in texts]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(kept) < 6_000
