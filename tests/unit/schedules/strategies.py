"""Random schedules and instants, with a liking for the hours around a transition."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st

from carillon.errors import InvalidFieldError
from carillon.schedules import (
    At,
    CalendarRule,
    ClosedDays,
    Cron,
    DstRule,
    Every,
    Fold,
    Gap,
    Recurrence,
    Schedule,
    Union,
    parse_schedule,
)
from carillon.schedules.cron.expression import canonical_text, compile_expression
from carillon.schedules.kinds.union import Simple
from carillon.schedules.zones import offsets as zones

ZONES = (
    "UTC",
    "Europe/Riga",
    "America/New_York",
    "America/Santiago",  # gap at midnight
    "America/Havana",  # gap at midnight, fold at 01:00
    "Asia/Beirut",  # gap at midnight
    "Asia/Kolkata",  # half an hour off, no DST
    "Asia/Kathmandu",  # three quarters
    "Asia/Almaty",  # put back for good in 2024
    "Africa/Cairo",  # gap at midnight, on Fridays
    "Africa/Casablanca",  # changes around Ramadan
    "Antarctica/Troll",  # two hours
    "Australia/Lord_Howe",  # half an hour of DST
    "Pacific/Apia",
    "Pacific/Chatham",  # 12:45, gap at 02:45
)
_EARLIEST_START = datetime(2024, 1, 1, tzinfo=UTC)

exact = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)
"""The same examples in every run, however slow the machine."""

exact_and_slow = settings(exact, max_examples=60)

zone_names = st.sampled_from(ZONES)


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    interval = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    return st.one_of(
        number.map(str),
        st.just("*"),
        st.integers(2, high).map(lambda step: f"*/{step}"),
        interval,
        st.tuples(interval, st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.lists(number.map(str), min_size=2, max_size=4).map(",".join),
    )


_early_hours = _field(0, 4)
_any_day = st.just("*")


def expressions(*, with_seconds: bool = False) -> st.SearchStrategy[str]:
    fields = [
        _field(0, 59),
        st.one_of(_early_hours, _field(0, 23)),
        st.one_of(_any_day, _field(1, 28), st.sampled_from(["L", "LW", "29", "31"])),
        st.one_of(_any_day, _field(1, 12)),
        st.one_of(_any_day, _field(0, 7), st.sampled_from(["5L", "FRI#2", "mon-fri"])),
    ]
    if with_seconds:
        fields.insert(0, _field(0, 59))
    return st.tuples(*fields).map(" ".join).filter(_is_reachable)


def eventbridge_expressions() -> st.SearchStrategy[str]:
    times = st.tuples(_field(0, 59), st.one_of(_early_hours, _field(0, 23)))
    by_date = st.one_of(_any_day, _field(1, 28), st.sampled_from(["L", "LW", "15W", "1W", "31W"]))
    by_weekday = st.one_of(_any_day, _field(1, 7), st.sampled_from(["6L", "3#2", "MON-FRI", "L"]))
    days = st.one_of(
        st.tuples(by_date, _field(1, 12) | _any_day, st.just("?")),
        st.tuples(st.just("?"), _field(1, 12) | _any_day, by_weekday),
    )
    years = st.sampled_from(["*", "*", "*", "2025-2040", "2026/3", "2027"])
    return (
        st.tuples(times, days, years)
        .map(lambda parts: f"cron({' '.join((*parts[0], *parts[1], parts[2]))})")
        .filter(_is_reachable)
    )


def _is_reachable(expression: str) -> bool:
    try:
        compile_expression(canonical_text(expression))
    except InvalidFieldError:
        return False
    return True


starts = st.none() | st.integers(0, 86_400 * 400).map(
    lambda s: _EARLIEST_START + timedelta(seconds=s)
)

crons = st.builds(
    parse_schedule,
    st.one_of(expressions(), expressions(with_seconds=True)),
    zone_names,
    starts,
)


@st.composite
def everies(draw: st.DrawFn) -> Schedule:
    interval = draw(
        st.one_of(
            st.sampled_from([1, 5, 60, 90, 420, 1500, 3600, 6000, 86_400, 129_600]),
            st.integers(1, 4000),
            st.integers(1, 3_653 * 86_400),
        )
    )
    offset = draw(st.integers(0, interval - 1))
    return parse_schedule(f"every {interval}s offset {offset}s", draw(zone_names), draw(starts))


ats = st.builds(
    lambda moment, zone: parse_schedule(f"at {moment:%Y-%m-%dT%H:%M:%S}", zone),
    st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1)),
    zone_names,
)

dst_rules = st.builds(
    DstRule, st.sampled_from([None, None, *Gap]), st.sampled_from([None, None, *Fold])
)


@st.composite
def settings_of_schedules(draw: st.DrawFn) -> dict[str, Any]:
    """Zone, start, end and DST rule."""
    start = draw(starts)
    days = draw(st.none() | st.integers(500, 9000))
    end = None if days is None else _EARLIEST_START + timedelta(days=days)
    return {"timezone": draw(zone_names), "start_at": start, "end_at": end, "dst": draw(dst_rules)}


any_expressions = st.one_of(
    expressions(), expressions(with_seconds=True), eventbridge_expressions()
).map(canonical_text)


@st.composite
def simple_schedules(draw: st.DrawFn, setting: dict[str, Any]) -> Simple:
    kind = draw(st.sampled_from(["cron", "cron", "every", "at"]))
    if kind == "cron":
        return Cron(draw(any_expressions), **setting)
    if kind == "every":
        interval = draw(
            st.sampled_from([1, 60, 90, 420, 1500, 3600, 86_400]) | st.integers(1, 200_000)
        )
        return Every(interval, draw(st.integers(0, interval - 1)), **setting)
    moment = draw(st.datetimes(datetime(2024, 1, 1), datetime(2040, 1, 1))).replace(microsecond=0)
    try:
        return At(draw(st.sampled_from([moment, moment.replace(tzinfo=UTC)])), **setting)
    except InvalidFieldError:
        reject()


def fires(schedule: Recurrence) -> bool:
    return schedule.next((schedule.start_at or _EARLIEST_START) - timedelta(seconds=1)) is not None


@st.composite
def any_simple(draw: st.DrawFn) -> Simple:
    return draw(simple_schedules(draw(settings_of_schedules())).filter(fires))


@st.composite
def combinations(draw: st.DrawFn) -> Union:
    """Of members that differ, as `parse_schedule` makes them."""
    setting = draw(settings_of_schedules())
    several = st.lists(simple_schedules(setting), min_size=1, max_size=4, unique=True)
    members = tuple(draw(several))
    exceptions = draw(st.lists(simple_schedules(setting), max_size=3, unique=True))
    if len(members) == 1 and not exceptions:
        exceptions = [Cron("0 12 25 12 *", **setting)]
    return Union(members, tuple(exceptions))


schedules: st.SearchStrategy[Schedule] = st.one_of(
    crons, everies(), ats, any_simple(), any_simple(), combinations().filter(fires)
)


@st.composite
def closed_days(draw: st.DrawFn, near: datetime) -> ClosedDays:
    """Weekends, and ranges of some days within two months of an instant."""
    weekdays = draw(st.sampled_from([set[int](), {5, 6}, {4}, {0, 1, 2, 3, 4, 5}]))
    begins = st.integers(-60, 60).map(lambda days: near.date() + timedelta(days=days))
    pairs = st.tuples(begins, st.sampled_from([0, 0, 1, 4, 12, 40]))
    ranges = draw(st.lists(pairs, max_size=4))
    return ClosedDays.of(weekdays, [(day, day + timedelta(days=more)) for day, more in ranges])


calendar_rules = st.sampled_from(CalendarRule)


@st.composite
def instants(draw: st.DrawFn, zone: str) -> datetime:
    """Half of them within hours of one of the zone's transitions."""
    year = draw(st.integers(2024, 2045))
    changes = zones.transitions(zone, year)
    near = draw(st.booleans())
    if changes and near:
        second = draw(st.sampled_from(changes)).second + draw(st.integers(-18_000, 18_000))
    else:
        second = zones.year_start(year) + draw(st.integers(0, 365 * 86_400))
    microseconds = draw(st.sampled_from([0, 0, 1, 500_000, 999_999]))
    return datetime.fromtimestamp(second, UTC) + timedelta(microseconds=microseconds)
