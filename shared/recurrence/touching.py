"""Changes of the clocks that the occurrences of a schedule meet, and what happens to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from shared.recurrence import zones
from shared.recurrence.at import At
from shared.recurrence.combined import Combined
from shared.recurrence.cron import Cron
from shared.recurrence.day_words import listed
from shared.recurrence.dst import Gap
from shared.recurrence.open_days import OnOpenDays
from shared.recurrence.value import EPOCH, Recurrence, seconds_down

MOST_COUNTED = 1_000
_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class TouchedTransition:
    """A change of the clocks that the schedule's occurrences meet.

    `kind` is "gap" or "fold"; the wall times (naive) from `local_from` up to (not including)
    `local_until` are skipped or shown twice; `count` of them are occurrences by their wall time
    (None: more than 1,000), the first at `first_local`. `effect` says in English what happens to
    them.
    """

    transition_at: datetime
    kind: str
    local_from: datetime
    local_until: datetime
    count: int | None
    first_local: datetime
    effect: str


class Touch(NamedTuple):
    """`is_expected`: what the clocks do to every schedule that follows them hour by hour, and a
    repeated time that runs once."""

    transition: TouchedTransition
    is_expected: bool


class _Fate(StrEnum):
    """What happens to a wall time that is skipped or shown twice."""

    MOVED = "moved"
    SHIFTED = "shifted"
    LEFT_OUT = "left out"
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class _Change(NamedTuple):
    """The walls that one transition skips or repeats: `first` <= wall < `end`."""

    transition: zones.Transition
    is_gap: bool
    first: int
    end: int


def touches_of(schedule: Recurrence, after: datetime, until: datetime) -> list[Touch]:
    """The transitions in (after, until] that touch occurrences, ascending.

    One that means different things to different occurrences is there once for each.
    """
    if isinstance(schedule, OnOpenDays):
        schedule = schedule.base
    members = schedule.schedules if isinstance(schedule, Combined) else (schedule,)
    touches: list[Touch] = []
    for change in _changes(schedule.timezone, seconds_down(after), seconds_down(until)):
        groups: dict[_Fate, set[int]] = {}
        surprising: set[_Fate] = set()
        for member in members:
            for wall in _walls(member, change):
                fate = _fate(schedule, member, change, wall)
                if fate is None:
                    continue
                groups.setdefault(fate, set()).add(wall)
                if not _is_expected(member, fate):
                    surprising.add(fate)
        # What another member makes up for is not left out.
        groups.get(_Fate.LEFT_OUT, set()).difference_update(groups.get(_Fate.MOVED, ()))
        touches += [
            Touch(_told(change, fate, sorted(walls)), fate not in surprising)
            for fate, walls in groups.items()
            if walls
        ]
    return touches


def _changes(timezone: str, after: int, until: int) -> Iterator[_Change]:
    if timezone == "UTC":
        return
    years = ((EPOCH + timedelta(seconds=second)).year for second in (after, until))
    for year in range(next(years), next(years) + 1):
        for transition in zones.transitions(timezone, year):
            if after < transition.second <= until:
                walls = transition.second + transition.before, transition.second + transition.after
                yield _Change(transition, walls[0] < walls[1], min(walls), max(walls))


def _walls(member: Recurrence, change: _Change) -> Iterator[int]:
    """The member's wall times that are skipped or repeated, ascending, and not too many."""
    if isinstance(member, At):
        if member.moment.tzinfo is None:
            wall = (member.moment - zones.WALL_EPOCH) // timedelta(seconds=1)
            if change.first <= wall < change.end:
                yield wall
    elif isinstance(member, Cron):
        found = member.rule.after(change.first - 1)
        for _ in range(MOST_COUNTED + 1):
            if found is None or found >= change.end:
                return
            yield found
            found = member.rule.after(found)


def _fate(schedule: Recurrence, member: Recurrence, change: _Change, wall: int) -> _Fate | None:
    """None where bounds or exceptions leave nothing to tell of.

    The schedule itself is asked what it does, so that this cannot say another thing.
    """
    second, before, after = change.transition
    if not change.is_gap:
        runs_first, runs_second = schedule.has(wall - before), schedule.has(wall - after)
        if runs_first and runs_second:
            return _Fate.BOTH
        if runs_first:
            return _Fate.FIRST
        return _Fate.SECOND if runs_second else None
    if isinstance(member, At):
        return _Fate.SHIFTED if schedule.has(member.second) else None
    if not schedule.first_second <= second <= schedule.last_second or _is_excepted(schedule, wall):
        return None
    assert isinstance(member, Cron)
    moved = member.gap is Gap.RUN_AFTER and schedule.has(second)
    return _Fate.MOVED if moved else _Fate.LEFT_OUT


def _is_excepted(schedule: Recurrence, wall: int) -> bool:
    """Whether a skipped wall would have been taken out anyway."""
    if not isinstance(schedule, Combined):
        return False
    for exception in schedule.exceptions:
        if not isinstance(exception, Cron):
            continue
        rule = exception.rule
        if rule.matches_minute(wall) if not rule.has_seconds else rule.after(wall - 1) == wall:
            return True
    return False


def _is_expected(member: Recurrence, fate: _Fate) -> bool:
    follows_clocks = isinstance(member, Cron) and _follows_clocks(member)
    if fate in (_Fate.FIRST, _Fate.SECOND):
        return not follows_clocks
    return follows_clocks and fate in (_Fate.LEFT_OUT, _Fate.BOTH)


def _follows_clocks(cron: Cron) -> bool:
    """Whether it fires hour by hour, so that an hour more or less is nothing to it."""
    if len(cron.rule.hours) == 24:
        return True
    return not cron.rule.is_eventbridge and cron.expression.split()[-4].startswith("*")


def _told(change: _Change, fate: _Fate, walls: list[int]) -> TouchedTransition:
    return TouchedTransition(
        transition_at=EPOCH + timedelta(seconds=change.transition.second),
        kind="gap" if change.is_gap else "fold",
        local_from=_local(change.first),
        local_until=_local(change.end),
        count=None if len(walls) > MOST_COUNTED else len(walls),
        first_local=_local(walls[0]),
        effect=f"{_subject(change, walls)}: {_effect(change, fate, walls)}",
    )


def _subject(change: _Change, walls: list[int]) -> str:
    """`02:30 does not exist on 2027-03-28`."""
    day = _day(walls[0])
    if len(walls) <= _MOST_LISTED:
        times = listed([_clock(wall, day) for wall in walls])
    else:
        count = f"{len(walls):,}" if len(walls) <= MOST_COUNTED else f"more than {MOST_COUNTED:,}"
        last = walls[-1] if len(walls) <= MOST_COUNTED else change.end
        times = f"{_clock(walls[0], day)} to {_clock(last, day)} ({count} times)"
    if change.is_gap:
        verb = "does not exist" if len(walls) == 1 else "do not exist"
    else:
        verb = "comes twice" if len(walls) == 1 else "come twice"
    return f"{times} {verb} on {day}"


def _effect(change: _Change, fate: _Fate, walls: list[int]) -> str:
    second, before, after = change.transition
    day, alone = _day(walls[0]), len(walls) == 1
    if fate is _Fate.LEFT_OUT:
        return "is left out" if alone else "are left out"
    if fate is _Fate.MOVED:
        runs = "runs at" if alone else "run once, at"
        return f"{runs} {_clock(second + after, day)}, when the clocks have jumped"
    if fate is _Fate.SHIFTED:
        shifted = [_clock(wall + after - before, day) for wall in walls]
        runs = "runs at" if alone else "run at"
        return f"{runs} {listed(shifted)}, as much later as the clocks jump"
    if not alone:
        passes = "both passes" if fate is _Fate.BOTH else f"the {fate} pass only"
        return f"run at {passes}"
    first, last = _utc(walls[0] - before, day), _utc(walls[0] - after, day)
    if fate is _Fate.BOTH:
        return f"runs at both, {first} and {last}"
    return f"runs at the {fate}, {first if fate is _Fate.FIRST else last}"


def _local(wall: int) -> datetime:
    return zones.WALL_EPOCH + timedelta(seconds=wall)


def _day(wall: int) -> str:
    return f"{_local(wall):%Y-%m-%d}"


def _clock(wall: int, day: str) -> str:
    """The time of day, with seconds where there are any, with the date where it is another."""
    text = f"{_local(wall):%H:%M:%S}".removesuffix(":00")
    return text if _day(wall) == day else f"{text} on {_day(wall)}"


def _utc(second: int, day: str) -> str:
    text = f"{_local(second):%H:%M:%S}".removesuffix(":00")
    return f"{text}Z" if _day(second) == day else f"{_day(second)}T{text}Z"
