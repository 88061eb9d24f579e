"""Clock changes that affect the occurrences of a schedule, and their effect."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from carillon.schedules.base import EPOCH, FIRST_SECOND, LAST_SECOND, Gap, Recurrence, seconds_down
from carillon.schedules.calendars.closed_days import MOST_SHIFTED_DAYS, CalendarRule
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.insight.words import listed
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Union
from carillon.schedules.zones import offsets as zones
from carillon.schedules.zones.wall_schedule import nominal_local_times

MOST_COUNTED = 1_000
_MOST_LISTED = 3
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class AffectingTransition:
    """A change of the clocks that affects the schedule's occurrences.

    `kind` is "gap" or "fold"; the local times (naive) from `local_from` up to (not including)
    `local_until` are skipped or shown twice; `count` of them are occurrences by their local time
    (None: more than 1,000), the first at `first_local`. `effect` describes in English what happens
    to them.
    """

    transition_at: datetime
    kind: str
    local_from: datetime
    local_until: datetime
    count: int | None
    first_local: datetime
    effect: str


class Effect(NamedTuple):
    """`is_expected`: what the clocks do to every schedule that follows them hour by hour, and a
    repeated time that runs once."""

    transition: AffectingTransition
    is_expected: bool


class _Fate(StrEnum):
    """The effect on a local time that is skipped or shown twice."""

    MOVED = "moved"
    SHIFTED = "shifted"
    LEFT_OUT = "left out"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class _Change(NamedTuple):
    """The local times that one transition skips or repeats: `first` <= wall < `end`."""

    transition: zones.Transition
    is_gap: bool
    first: int
    end: int


def effects_of(schedule: Recurrence, after: datetime, until: datetime) -> list[Effect]:
    """The transitions in (after, until] that affect occurrences, ascending.

    One that means different things to different occurrences is there once for each. Under a
    calendar, an occurrence on a closed day has no transition there, and a moved one has those of
    its new day.
    """
    affects: list[Effect] = []
    for change in _changes(schedule.timezone, seconds_down(after), seconds_down(until)):
        affects += _Meeting(schedule, change).affects()
    return affects


def _changes(timezone: str, after: int, until: int) -> Iterator[_Change]:
    after, until = max(after, FIRST_SECOND - 1), min(until, LAST_SECOND)
    if timezone == "UTC" or until <= after:
        return
    years = ((EPOCH + timedelta(seconds=second)).year for second in (after, until))
    for year in range(next(years), next(years) + 1):
        for transition in zones.transitions(timezone, year):
            if after < transition.second <= until:
                local_times = (
                    transition.second + transition.before,
                    transition.second + transition.after,
                )
                yield _Change(
                    transition, local_times[0] < local_times[1], min(local_times), max(local_times)
                )


class _Meeting:
    """A schedule and one change of the clocks.

    The schedule itself computes the effect, so that the two cannot differ.
    """

    def __init__(self, schedule: Recurrence, change: _Change) -> None:
        self._schedule = schedule
        self._change = change
        self._opened = schedule if isinstance(schedule, OnOpenDays) else None
        self._base = schedule.base if isinstance(schedule, OnOpenDays) else schedule
        is_union = isinstance(self._base, Union)
        self._local_times_of_union = nominal_local_times(self._base) if is_union else None
        # Answers so far, by minute and by local time.
        self._minutes: dict[int, tuple[int, ...]] = {}
        self._nominal: dict[int, bool] = {}

    def affects(self) -> list[Effect]:
        """One for each different effect on local times."""
        base = self._base
        groups: dict[_Fate, set[int]] = {}
        surprising: set[_Fate] = set()
        for member in base.schedules if isinstance(base, Union) else (base,):
            for is_moved, fates in (
                (False, self._own_fates(member)),
                (True, self._fates_of_moved(member)),
            ):
                # One more of each kind than is counted, which shows that there are more.
                for fate, local_time in islice(fates, MOST_COUNTED + 1):
                    groups.setdefault(fate, set()).add(local_time)
                    if not _is_expected(member, fate, is_moved):
                        surprising.add(fate)
        # What another member makes up for is not left out.
        groups.get(_Fate.LEFT_OUT, set()).difference_update(groups.get(_Fate.MOVED, ()))
        return [
            Effect(_told(self._change, fate, sorted(local_times)), fate not in surprising)
            for fate, local_times in groups.items()
            if local_times
        ]

    def _own_fates(self, member: Recurrence) -> Iterator[tuple[_Fate, int]]:
        """The effect on the member's local times, ascending, where there is any."""
        for local_time in _local_times(member, self._change):
            fate = (
                self._skipped(member, local_time)
                if self._change.is_gap
                else self._repeated(local_time)
            )
            if fate is not None:
                yield fate, local_time

    def _fates_of_moved(self, member: Recurrence) -> Iterator[tuple[_Fate, int]]:
        """The effect on local times that a calendar moves here from closed days."""
        is_left_out = self._base.dst.gap is Gap.SKIP
        for local_time in self._moved_local_times(member):
            if not self._change.is_gap:
                fate = self._repeated(local_time)
            else:
                fate = _Fate.LEFT_OUT if is_left_out else _Fate.MOVED
            if fate is not None:
                yield fate, local_time

    def _repeated(self, local_time: int) -> _Fate | None:
        """None where bounds, exceptions or a closed day leave no effect."""
        _, before, after = self._change.transition
        runs_first, runs_second = self._fires(local_time - before), self._fires(local_time - after)
        if runs_first and runs_second:
            return _Fate.BOTH
        if runs_first:
            return _Fate.FIRST
        return _Fate.SECOND if runs_second else None

    def _skipped(self, member: Recurrence, local_time: int) -> _Fate | None:
        """None where bounds, exceptions or a closed day leave no effect."""
        second, base, opened = self._change.transition.second, self._base, self._opened
        is_closed = opened is not None and _date(local_time) in opened.closed
        if is_closed and opened is not None and opened.shifts:
            return None  # It keeps its local time, on another day.
        if isinstance(member, At):
            return _Fate.SHIFTED if self._fires(member.second) else None
        if not base.first_second <= second <= base.last_second or _is_excepted(base, local_time):
            return None
        assert isinstance(member, Cron)
        if member.gap is Gap.RUN_AFTER and self._fires(second):
            return _Fate.MOVED
        return None if is_closed else _Fate.LEFT_OUT

    def _moved_local_times(self, member: Recurrence) -> Iterator[int]:
        """The skipped or repeated local times that occurrences of closed days are moved to, each
        once."""
        if self._opened is None or not self._opened.shifts or isinstance(self._base, Delay):
            return
        local_times = nominal_local_times(member)
        found: set[int] = set()
        for shift, low, high in _shifts(self._opened, self._change):
            local_time = local_times.second_after(max(low, FIRST_SECOND) - 1)
            while local_time is not None and local_time < high:
                if local_time + shift not in found and self._is_nominal(local_time):
                    found.add(local_time + shift)
                    yield local_time + shift
                local_time = local_times.second_after(local_time)

    def _is_nominal(self, local_time: int) -> bool:
        """True if a member's wall is in the schedule's life, and no exception takes it out."""
        if local_time not in self._nominal:
            base = self._base
            reached = zones.first_reached(base.timezone, local_time)
            self._nominal[local_time] = base.first_second <= reached <= base.last_second and (
                self._local_times_of_union is None or self._local_times_of_union.has(local_time)
            )
        return self._nominal[local_time]

    def _fires(self, second: int) -> bool:
        minute, rest = divmod(second, 60)
        if minute not in self._minutes:
            self._minutes[minute] = self._schedule.seconds_of_minute(minute)
        return rest in self._minutes[minute]


def _local_times(member: Recurrence, change: _Change) -> Iterator[int]:
    """The member's local times that are skipped or repeated, ascending."""
    if isinstance(member, At):
        if member.moment.tzinfo is None:
            local_time = (member.moment - zones.LOCAL_EPOCH) // timedelta(seconds=1)
            if change.first <= local_time < change.end:
                yield local_time
    elif isinstance(member, Cron):
        found = member.rule.after(change.first - 1)
        while found is not None and found < change.end:
            yield found
            found = member.rule.after(found)


def _shifts(opened: OnOpenDays, change: _Change) -> Iterator[tuple[int, int, int]]:
    """The local times (from, until) of closed days that are moved to those of a change, each with
    the seconds by which they are."""
    step = -1 if opened.rule is CalendarRule.NEXT_BUSINESS_DAY else 1
    for day in range(change.first // _DAY_SECONDS, (change.end - 1) // _DAY_SECONDS + 1):
        midnight = day * _DAY_SECONDS
        low, high = max(change.first, midnight), min(change.end, midnight + _DAY_SECONDS)
        if _date(midnight) in opened.closed:
            continue
        for distance in range(1, MOST_SHIFTED_DAYS + 1):
            shift = -step * distance * _DAY_SECONDS
            if _date(midnight - shift) not in opened.closed:
                break
            yield shift, low - shift, high - shift


def _is_excepted(schedule: Recurrence, local_time: int) -> bool:
    """True if a skipped local time would have been taken out anyway."""
    if not isinstance(schedule, Union):
        return False
    for exception in schedule.exceptions:
        if not isinstance(exception, Cron):
            continue
        rule = exception.rule
        if (
            rule.matches_minute(local_time)
            if not rule.has_seconds
            else rule.after(local_time - 1) == local_time
        ):
            return True
    return False


def _is_expected(member: Recurrence, fate: _Fate, is_moved: bool) -> bool:
    if is_moved:
        # A moved one runs once; where it comes hour by hour, another is there in its place.
        is_steady = isinstance(member, Every) or (
            isinstance(member, Cron) and _follows_clocks(member)
        )
        return is_steady or fate not in (_Fate.MOVED, _Fate.LEFT_OUT)
    follows_clocks = isinstance(member, Cron) and _follows_clocks(member)
    if fate in (_Fate.FIRST, _Fate.SECOND):
        return not follows_clocks
    return follows_clocks and fate in (_Fate.LEFT_OUT, _Fate.BOTH)


def _follows_clocks(cron: Cron) -> bool:
    """True if it fires hour by hour, so that an hour more or less is nothing to it."""
    if len(cron.rule.hours) == 24:
        return True
    return not cron.rule.is_eventbridge and cron.expression.split()[-4].startswith("*")


def _told(change: _Change, fate: _Fate, local_times: list[int]) -> AffectingTransition:
    return AffectingTransition(
        transition_at=EPOCH + timedelta(seconds=change.transition.second),
        kind="gap" if change.is_gap else "fold",
        local_from=_local(change.first),
        local_until=_local(change.end),
        count=None if len(local_times) > MOST_COUNTED else len(local_times),
        first_local=_local(local_times[0]),
        effect=f"{_subject(change, local_times)}: {_effect(change, fate, local_times)}",
    )


def _subject(change: _Change, local_times: list[int]) -> str:
    """`02:30 does not exist on 2027-03-28`."""
    day = _day(local_times[0])
    if len(local_times) <= _MOST_LISTED:
        times = listed([_clock(local_time, day) for local_time in local_times])
    else:
        count = (
            f"{len(local_times):,}"
            if len(local_times) <= MOST_COUNTED
            else f"more than {MOST_COUNTED:,}"
        )
        last = local_times[-1] if len(local_times) <= MOST_COUNTED else change.end
        times = f"{_clock(local_times[0], day)} to {_clock(last, day)} ({count} times)"
    if change.is_gap:
        verb = "does not exist" if len(local_times) == 1 else "do not exist"
    else:
        verb = "comes twice" if len(local_times) == 1 else "come twice"
    return f"{times} {verb} on {day}"


def _effect(change: _Change, fate: _Fate, local_times: list[int]) -> str:
    second, before, after = change.transition
    day, alone = _day(local_times[0]), len(local_times) == 1
    if fate is _Fate.LEFT_OUT:
        return "is left out" if alone else "are left out"
    if fate is _Fate.MOVED:
        runs = "runs at" if alone else "run once, at"
        return f"{runs} {_clock(second + after, day)}, when the clocks have jumped"
    if fate is _Fate.SHIFTED:
        shifted = [_clock(local_time + after - before, day) for local_time in local_times]
        runs = "runs at" if alone else "run at"
        return f"{runs} {listed(shifted)}, as much later as the clocks jump"
    if not alone:
        passes = "both passes" if fate is _Fate.BOTH else f"the {fate} pass only"
        return f"run at {passes}"
    first, last = _utc(local_times[0] - before, day), _utc(local_times[0] - after, day)
    if fate is _Fate.BOTH:
        return f"runs at both, {first} and {last}"
    return f"runs at the {fate}, {first if fate is _Fate.FIRST else last}"


def _local(local_time: int) -> datetime:
    return zones.LOCAL_EPOCH + timedelta(seconds=local_time)


def _date(local_time: int) -> date:
    return _local(local_time).date()


def _day(local_time: int) -> str:
    return f"{_local(local_time):%Y-%m-%d}"


def _clock(local_time: int, day: str) -> str:
    """The time of day, with seconds where there are any, with the date where it is another."""
    text = f"{_local(local_time):%H:%M:%S}".removesuffix(":00")
    return text if _day(local_time) == day else f"{text} on {_day(local_time)}"


def _utc(second: int, day: str) -> str:
    text = f"{_local(second):%H:%M:%S}".removesuffix(":00")
    return f"{text}Z" if _day(second) == day else f"{_day(second)}T{text}Z"
