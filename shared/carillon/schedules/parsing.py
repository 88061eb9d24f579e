"""From text or JSON to a schedule."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from carillon.errors import InvalidFieldError, quoted
from carillon.schedules.base import DEFAULT_DST, EPOCH, DstRule, Recurrence
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Simple, Union, is_drifting
from carillon.schedules.single import FORMS, Setting, Single, single_of_mapping, single_of_text
from carillon.schedules.zones.offsets import load_zone, when_cleared

LONGEST_UNION_TEXT = 1_024
"""Characters of a whole combination: entries on the wheel carry it too."""

MOST_MEMBERS = 20
"""Schedules of one combination, and as many exceptions."""

MOST_COMBINATIONS_KEPT = 1_024
"""A large one takes 40 to 95 KB of a process's memory, and 2 ms to be parsed again."""

MOST_DRIFTING = 3
"""Intervals that are no whole part of a day, in one combination with exceptions: what is left of
these is searched day by day, for years if need be."""

_EXCEPT = re.compile(r"(?<!\S)except(?!\S)", re.IGNORECASE)
_ONE_SECOND = timedelta(seconds=1)
_SEARCHED_AGAIN_FROM = tuple(datetime(year, 1, 1, tzinfo=UTC) for year in (2010, 2050, 2090))
"""A search through removed occurrences ends after 50 years. If a part is limited to some years, the
rest may lie beyond."""


def is_combination(text: str) -> bool:
    """True if a text has more than one schedule."""
    return "|" in text or ("except" in text.lower() and _EXCEPT.search(text) is not None)


def parts_of(text: str) -> tuple[list[str], list[str]]:
    """The members' and the exceptions' texts of `… | … except … | …`.

    Raises InvalidFieldError on `schedule` for too long a text, too many or empty parts.
    """
    if len(text) > LONGEST_UNION_TEXT:
        raise InvalidFieldError(
            "schedule", f"is longer than {LONGEST_UNION_TEXT:,} characters in one combination"
        )
    members, *exceptions = _EXCEPT.split(text)
    if len(exceptions) > 1:
        raise InvalidFieldError(
            "schedule", 'has "except" more than once: divide the exceptions by " | "'
        )
    parts = [_parts(side) for side in (members, *exceptions)]
    return parts[0], parts[1] if exceptions else []


def combine(members: Sequence[Single], exceptions: Sequence[Single]) -> Single | Union:
    """Their combination, equal ones merged; the schedule itself where only one is left.

    Raises InvalidFieldError on `schedule` and `except` for a fixed delay and too long a text.
    """
    if len(members) == 1 and not exceptions:
        return members[0]
    simple = tuple(dict.fromkeys(_combinable(members, "schedule")))
    apart = tuple(dict.fromkeys(_combinable(exceptions, "except")))
    if len(simple) == 1 and not apart:
        return simple[0]
    combined = Union(simple, apart)
    if len(combined.text) > LONGEST_UNION_TEXT:
        raise InvalidFieldError(
            "schedule",
            f"is {len(combined.text):,} characters long, with its exceptions: a combination takes "
            f"at most {LONGEST_UNION_TEXT:,}",
        )
    return combined


def refuse_too_many(count: int, field: str) -> None:
    """Raises InvalidFieldError on `field` beyond MOST_MEMBERS."""
    if count > MOST_MEMBERS:
        raise InvalidFieldError(field, f"has {count:,} members: at most {MOST_MEMBERS} are taken")


def refuse_idle(schedule: Recurrence) -> None:
    """Refuse a schedule that never fires, or whose search for an occurrence may take ages.

    It is apart from parsing, since the search is too long to be repeated for each schedule that
    was checked before it was stored.

    Raises InvalidFieldError on `except` or `end_at`.
    """
    if isinstance(schedule, Union) and schedule.exceptions:
        _refuse_drifting(schedule)
        if not _ever_fires(schedule):
            raise InvalidFieldError("except", "takes every occurrence of the schedule out")
        return
    if isinstance(schedule, Delay) or schedule.end_at is None or _ever_fires(schedule):
        return
    begin = "the beginning" if schedule.start_at is None else f"{schedule.start_at:%FT%TZ}"
    raise InvalidFieldError(
        "end_at",
        f'no occurrence of "{schedule.text[:60]}" lies between {begin} and '
        f"{schedule.end_at:%FT%TZ}: use a later end",
    )


def _refuse_drifting(combined: Union) -> None:
    drifting = sum(1 for part in (*combined.schedules, *combined.exceptions) if is_drifting(part))
    if drifting > MOST_DRIFTING:
        raise InvalidFieldError(
            "except",
            f"cannot go with {drifting} intervals that are no whole part of a day: "
            f"{MOST_DRIFTING} are the most",
        )


def _combinable(schedules: Sequence[Single], field: str) -> list[Simple]:
    refuse_too_many(len(schedules), field)
    simple: list[Simple] = []
    for schedule in schedules:
        if isinstance(schedule, Delay):
            raise InvalidFieldError(
                field,
                f'"{schedule.text}" cannot be combined: it follows from the runs, and has no '
                "times of its own. Make it a job of its own",
            )
        simple.append(schedule)
    return simple


def _ever_fires(schedule: Recurrence) -> bool:
    begin = EPOCH if schedule.start_at is None else schedule.start_at
    if schedule.next(begin - _ONE_SECOND) is not None:
        return True
    if not isinstance(schedule, Union):
        return False
    parts = (*schedule.schedules, *schedule.exceptions)
    if any(isinstance(part, At) and schedule.has(part.second) for part in parts):
        return True
    if not any(isinstance(part, Cron) and part.rule.days.years is not None for part in parts):
        return False
    later = [instant for instant in _SEARCHED_AGAIN_FROM if instant > begin]
    return any(schedule.next(instant) is not None for instant in later)


def _parts(side: str) -> list[str]:
    parts = [part.strip() for part in side.split("|")]
    refuse_too_many(len(parts), "schedule")
    if not all(parts):
        raise InvalidFieldError(
            "schedule",
            'has an empty part: put a schedule on both sides of "|" and of "except", as in '
            '"0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *"',
        )
    return parts


Schedule = At | Every | Delay | Cron | Union


def parse_schedule(
    value: str | Mapping[str, object] | Sequence[object],
    timezone: str = "UTC",
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    dst: DstRule = DEFAULT_DST,
    except_: Sequence[object] = (),
) -> Schedule:
    """The schedule of a text (`every 25m offset 2m`), of a JSON form, or of a list of these.

    A JSON form is {"at": …}, {"every": …, "offset": …}, {"every": …, "after": "finish"} or
    {"cron": …}; a list is a union, and `except_` what is taken out of it. One text can say all of
    that too (`0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *`). Naive `start_at` and `end_at` are
    local times in `timezone`, both inclusive; one shown twice is the first.

    Raises InvalidFieldError whose field is the path in a request that carries these: `schedule`,
    `schedule.every`, `schedule[2].cron`, `except[0]`, `timezone`, `end_at`, ... Whether it ever
    fires is not looked at: see `refuse_idle`.
    """
    load_zone(timezone)
    if start_at is not None:
        start_at = _bound(start_at, timezone, "start_at")
    if end_at is not None:
        end_at = _bound(end_at, timezone, "end_at")
        if start_at is not None and end_at < start_at:
            raise InvalidFieldError("end_at", f"must not lie before start_at, {start_at:%FT%TZ}")
    setting = Setting(timezone, start_at, end_at, dst)
    if isinstance(value, str) and not except_:
        parsed = _combination_of_text if is_combination(value) else _single_of_text
        return parsed(value, setting)
    return _combination(value, except_, setting)


def _bound(bound: datetime, timezone: str, field: str) -> datetime:
    if bound.microsecond:
        raise InvalidFieldError(field, "has a fraction of a second: use whole seconds")
    if 1970 < bound.year < 9998:
        if bound.tzinfo is None:
            bound = bound.replace(tzinfo=load_zone(timezone), fold=0)
        bound = bound.astimezone(UTC)
        # It is kept, and read again, in UTC, which may be another year.
        if 1970 < bound.year < 9998:
            return bound
    raise InvalidFieldError(field, "must lie in the years 1971 to 9997, in UTC too")


# Entries carry their schedule as text: the tick reads the same few texts again and again.
@lru_cache(maxsize=16_384)
def _single_of_text(text: str, setting: Setting) -> Single:
    return _placed(text, "schedule", setting)


@lru_cache(maxsize=MOST_COMBINATIONS_KEPT)
def _combination_of_text(text: str, setting: Setting) -> Schedule:
    return combine(*_members_of_text(text, setting))


# Only the zone can decide whether an instant exists.
when_cleared(_single_of_text.cache_clear)
when_cleared(_combination_of_text.cache_clear)


def _combination(value: object, except_: Sequence[object], setting: Setting) -> Schedule:
    members, exceptions = _sides(value, setting)
    exceptions += _each(except_, "except", setting)
    return combine(members, exceptions)


def _sides(value: object, setting: Setting) -> tuple[list[Single], list[Single]]:
    """The members and the exceptions that a value of `schedule` speaks of."""
    if isinstance(value, str):
        if is_combination(value):
            return _members_of_text(value, setting)
        return [_placed(value, "schedule", setting)], []
    if isinstance(value, Mapping):
        return [_placed(value, "schedule", setting)], []
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        if not value:
            raise InvalidFieldError("schedule", f"is empty: list at least one of {FORMS}")
        return _each(value, "schedule", setting), []
    raise InvalidFieldError("schedule", f"must be text, an object or a list: {FORMS}")


def _each(values: object, path: str, setting: Setting) -> list[Single]:
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidFieldError(path, f"must be a list of schedules, as [{FORMS.split(',')[0]}]")
    refuse_too_many(len(values), path)
    return [_placed(value, f"{path}[{number}]", setting) for number, value in enumerate(values)]


def _placed(value: object, path: str, setting: Setting) -> Single:
    """One schedule, not a combination, whose errors name their place in the request."""
    try:
        if isinstance(value, str):
            if is_combination(value):
                raise InvalidFieldError(
                    "schedule", "is a combination itself: make each of its parts a member"
                )
            return single_of_text(value, setting)
        if isinstance(value, Mapping):
            return single_of_mapping(value, setting)
    except InvalidFieldError as error:
        root, dot, rest = error.field.partition(".")
        if root != "schedule":
            raise
        # In text there are no members to name.
        field = path if isinstance(value, str) else f"{path}{dot}{rest}"
        raise InvalidFieldError(field, error.message) from None
    raise InvalidFieldError(path, f"must be text or an object: {FORMS}")


def _members_of_text(text: str, setting: Setting) -> tuple[list[Single], list[Single]]:
    members, exceptions = parts_of(text)
    return (
        [_part(part, setting) for part in members],
        [_part(part, setting) for part in exceptions],
    )


def _part(text: str, setting: Setting) -> Single:
    try:
        return _placed(text, "schedule", setting)
    except InvalidFieldError as error:
        raise InvalidFieldError(error.field, f"in {quoted(text)}: {error.message}") from None
