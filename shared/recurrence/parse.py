"""From text or JSON to a schedule."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from shared.errors import InvalidFieldError
from shared.recurrence.at import At
from shared.recurrence.combined import Combined
from shared.recurrence.cron import Cron
from shared.recurrence.delay import Delay
from shared.recurrence.dst import DEFAULT_DST, DstRule
from shared.recurrence.durations import parse_duration
from shared.recurrence.every import Every
from shared.recurrence.expression import refuse_bad_terms
from shared.recurrence.messages import quoted
from shared.recurrence.zones import load_zone

Schedule = At | Every | Delay | Cron | Combined

LONGEST_TEXT = 256
"""Characters: every entry on the wheel carries the text."""

_EVERY = re.compile(r"(?P<every>.+?)(?:\s+offset\s+(?P<offset>.+))?", re.IGNORECASE | re.DOTALL)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.0+)?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_FORMS = '"at 2026-12-01T09:00:00", "every 25m offset 2m" or a cron expression as "17 * * * *"'
_KEYS = ("at", "every", "cron")


def parse_schedule(
    value: str | Mapping[str, object] | Sequence[object],
    timezone: str = "UTC",
    start_at: datetime | None = None,
    end_at: datetime | None = None,
    dst: DstRule = DEFAULT_DST,
    except_: Sequence[object] = (),
) -> Schedule:
    """The schedule of a text (`every 25m offset 2m`) or of its JSON form ({"every": "25m"}).

    A naive `start_at` is wall time in `timezone`. Raises InvalidFieldError whose field is the
    path in a request that carries the three: `schedule`, `schedule.every`, `timezone`, ...
    """
    load_zone(timezone)
    start_at = None if start_at is None else _start(start_at, timezone)
    if isinstance(value, str):
        return _of_text(value, timezone, start_at)
    if isinstance(value, Mapping):
        return _of_mapping(value, timezone, start_at)
    raise InvalidFieldError("schedule", f"must be text or an object: {_FORMS}")


def _start(start_at: datetime, timezone: str) -> datetime:
    if start_at.microsecond:
        raise InvalidFieldError("start_at", "has a fraction of a second: use whole seconds")
    if not 1970 < start_at.year < 9998:
        raise InvalidFieldError("start_at", "must lie in the years 1971 to 9997")
    if start_at.tzinfo is None:
        start_at = start_at.replace(tzinfo=load_zone(timezone), fold=0)
    return start_at.astimezone(UTC)


# Entries carry their schedule as text: the tick reads the same few texts again and again.
@lru_cache(maxsize=16_384)
def _of_text(text: str, timezone: str, start_at: datetime | None) -> Schedule:
    if len(text) > LONGEST_TEXT:
        raise InvalidFieldError("schedule", f"is longer than {LONGEST_TEXT} characters")
    word, rest = (*text.split(maxsplit=1), "", "")[:2]
    try:
        match word.lower():
            case "at":
                return At(_moment(rest), timezone, start_at)
            case "every":
                return _every(rest, timezone, start_at)
            case _:
                return _cron(text, timezone, start_at)
    except InvalidFieldError as error:
        # The caller sent one text: there are no members to name.
        field = error.field.partition(".")[0]
        raise InvalidFieldError(field, error.message) from None


def _of_mapping(form: Mapping[str, object], timezone: str, start_at: datetime | None) -> Schedule:
    kinds = [key for key in _KEYS if key in form]
    if len(kinds) != 1:
        found = f"has {' and '.join(kinds)}" if kinds else "has none of them"
        raise InvalidFieldError("schedule", f"needs exactly one of at, every, cron; it {found}")
    (kind,) = kinds
    _refuse_unknown_keys(form, kind)
    text = _text_member(form, kind)
    if kind == "at":
        return At(_moment(text), timezone, start_at)
    if kind == "cron":
        return _cron(text, timezone, start_at)
    interval = parse_duration(text, "schedule.every")
    offset = 0
    if "offset" in form:
        offset = parse_duration(_text_member(form, "offset"), "schedule.offset")
    return Every(interval, offset, timezone, start_at)


def _refuse_unknown_keys(form: Mapping[str, object], kind: str) -> None:
    known = ("every", "offset") if kind == "every" else (kind,)
    for key in form:
        if key in known:
            continue
        hint = f'beside "{kind}" nothing else' if len(known) == 1 else "use every and offset"
        if key in ("timezone", "start_at"):
            hint = "it stands beside the schedule, not in it"
        raise InvalidFieldError(f"schedule.{str(key)[:40]}", f"is unknown: {hint}")


def _text_member(form: Mapping[str, object], key: str) -> str:
    text = form[key]
    if not isinstance(text, str):
        raise InvalidFieldError(f"schedule.{key}", "must be text")
    if len(text) > LONGEST_TEXT:
        raise InvalidFieldError(f"schedule.{key}", f"is longer than {LONGEST_TEXT} characters")
    return text


def _moment(text: str) -> datetime:
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        raise InvalidFieldError(
            "schedule.at",
            f'{quoted(text)} is no time: use whole seconds as in "2026-12-01T09:00:00", with "Z" '
            'or an offset as "+02:00" unless it is local time in the time zone',
        )
    day, time, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{(offset or '').upper()}")
        # In UTC, so that equal instants are equal values with one text.
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidFieldError("schedule.at", f"{quoted(text)} is no time: {error}") from None


def _every(text: str, timezone: str, start_at: datetime | None) -> Every:
    match = _EVERY.fullmatch(text.strip())
    if match is None:
        raise InvalidFieldError("schedule.every", 'needs an interval, as in "every 25m"')
    interval = parse_duration(match["every"], "schedule.every")
    offset = parse_duration(match["offset"] or "0s", "schedule.offset")
    return Every(interval, offset, timezone, start_at)


def _cron(text: str, timezone: str, start_at: datetime | None) -> Cron:
    fields = text.split()
    if len(fields) < 5:
        raise InvalidFieldError("schedule.cron", f"{quoted(text)} is no schedule: use {_FORMS}")
    # Before white space is normalised: positions are those of the caller's text.
    refuse_bad_terms(text)
    return Cron(" ".join(fields).upper(), timezone, start_at)
