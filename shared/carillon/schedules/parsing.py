"""From text or JSON to a schedule."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from carillon.errors import InvalidFieldError
from carillon.messages import quoted
from carillon.schedules.combining import (
    combine,
    is_combination,
    parts_of,
    refuse_empty_life,
    refuse_too_many,
)
from carillon.schedules.dst import DEFAULT_DST, DstRule
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.delay import Delay
from carillon.schedules.kinds.interval import Every
from carillon.schedules.kinds.union import Combined
from carillon.schedules.single import FORMS, Setting, Single, single_of_mapping, single_of_text
from carillon.schedules.zones.offsets import load_zone, when_cleared

Schedule = At | Every | Delay | Cron | Combined


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
    wall times in `timezone`, both inclusive; one shown twice is the first.

    Raises InvalidFieldError whose field is the path in a request that carries these: `schedule`,
    `schedule.every`, `schedule[2].cron`, `except[0]`, `timezone`, `end_at`, ...
    """
    load_zone(timezone)
    if start_at is not None:
        start_at = _bound(start_at, timezone, "start_at")
    if end_at is not None:
        end_at = _bound(end_at, timezone, "end_at")
        if start_at is not None and end_at < start_at:
            raise InvalidFieldError("end_at", f"must not lie before start_at, {start_at:%FT%TZ}")
    if isinstance(value, str) and not except_:
        return _of_text(value, timezone, start_at, end_at, dst)
    return _combination(value, except_, Setting(timezone, start_at, end_at, dst))


def _bound(bound: datetime, timezone: str, field: str) -> datetime:
    if bound.microsecond:
        raise InvalidFieldError(field, "has a fraction of a second: use whole seconds")
    if not 1970 < bound.year < 9998:
        raise InvalidFieldError(field, "must lie in the years 1971 to 9997")
    if bound.tzinfo is None:
        bound = bound.replace(tzinfo=load_zone(timezone), fold=0)
    return bound.astimezone(UTC)


# Entries carry their schedule as text: the tick reads the same few texts again and again.
@lru_cache(maxsize=16_384)
def _of_text(
    text: str,
    timezone: str,
    start_at: datetime | None,
    end_at: datetime | None,
    dst: DstRule,
) -> Schedule:
    setting = Setting(timezone, start_at, end_at, dst)
    if is_combination(text):
        members, exceptions = _members_of_text(text, setting)
        schedule = combine(members, exceptions)
    else:
        schedule = _placed(text, "schedule", setting)
    refuse_empty_life(schedule)
    return schedule


# What bounds leave of a schedule, and whether an instant exists, are the zone's to say.
when_cleared(_of_text.cache_clear)


def _combination(value: object, except_: Sequence[object], setting: Setting) -> Schedule:
    members, exceptions = _sides(value, setting)
    exceptions += _each(except_, "except", setting)
    schedule = combine(members, exceptions)
    refuse_empty_life(schedule)
    return schedule


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
