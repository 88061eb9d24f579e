"""One schedule, not a combination, from its text or its JSON form."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from carillon.errors import InvalidFieldError, quoted
from carillon.schedules.base import DEFAULT_DST, DstRule
from carillon.schedules.cron.expression import canonical_text, is_eventbridge, refuse_bad_terms
from carillon.schedules.durations import parse_interval
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.shorthand import cron_of_macro, cron_of_words, rate_seconds, unknown_error

Single = At | Every | Delay | Cron

LONGEST_TEXT = 256
"""Characters: every entry on the wheel carries the text."""

FORMS = '"at 2026-12-01T09:00:00", "every 25m offset 2m" or a cron expression as "17 * * * *"'
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:\.0+)?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_KEYS = ("at", "every", "cron")
_CRON_STARTS = frozenset("0123456789*")


class Setting(NamedTuple):
    """The members beside a schedule in a request, in the order of every schedule's fields."""

    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    dst: DstRule = DEFAULT_DST


def single_of_text(text: str, setting: Setting) -> Single:
    """Raises InvalidFieldError on `schedule`, `schedule.every`, `schedule.cron` and so on."""
    if len(text) > LONGEST_TEXT:
        raise InvalidFieldError("schedule", f"is longer than {LONGEST_TEXT} characters")
    words = text.split()
    first = words[0].lower() if words else ""
    if first[:1] in _CRON_STARTS and len(words) >= 5:
        return _cron(text, setting)
    if first == "at":
        return At(_moment(text.lstrip()[2:]), *setting)
    if first == "every":
        return _every(text, setting)
    if first.startswith("@"):
        if first == "@every":
            return _interval(words[1:], setting)
        return Cron(cron_of_macro(text), *setting)
    name, bracket, _ = first.partition("(")
    if bracket and name in ("at", "cron", "rate"):
        return _eventbridge(text, name, setting)
    if first[:1] == "p" and (first[1:2] == "t" or first[1:2].isdigit()):
        return _every(f"every {text}", setting)
    return _of_words(text, words, setting)


def single_of_mapping(form: Mapping[str, object], setting: Setting) -> Single:
    """Raises InvalidFieldError on `schedule`, `schedule.every`, `schedule.cron` and so on."""
    kinds = [key for key in _KEYS if key in form]
    if len(kinds) != 1:
        found = f"has {' and '.join(kinds)}" if kinds else "has none of them"
        raise InvalidFieldError("schedule", f"needs exactly one of at, every, cron; it {found}")
    (kind,) = kinds
    _refuse_unknown_keys(form, kind)
    text = _text_member(form, kind)
    if kind == "at":
        return At(_moment(text), *setting)
    if kind == "cron":
        return _cron_member(text, setting)
    interval = parse_interval(text.split(), "schedule.every")
    if "after" in form:
        _refuse_other_delays(form)
        return Delay(interval, *setting)
    offset = 0
    if "offset" in form:
        offset = parse_interval(_text_member(form, "offset").split(), "schedule.offset")
    return Every(interval, offset, *setting)


def _of_words(text: str, words: list[str], setting: Setting) -> Single:
    expression = cron_of_words(text) if words else None
    if expression is not None:
        return Cron(expression, *setting)
    if len(words) >= 5 and "=" not in words[0]:
        return _cron(text, setting)
    raise unknown_error(text, FORMS)


def _cron_member(text: str, setting: Setting) -> Cron:
    start = text.lstrip()
    if start.startswith("@"):
        return Cron(cron_of_macro(text), *setting)
    if len(text.split()) < 5 and not start[:5].lower() == "cron(":
        raise InvalidFieldError(
            "schedule.cron",
            f'{quoted(text)} is no cron expression: use five fields as "17 * * * *", or six',
        )
    return _cron(text, setting)


def _cron(text: str, setting: Setting) -> Cron:
    if is_eventbridge(text) and not text.rstrip().endswith(")"):
        refuse_bad_terms(text)
    try:
        return Cron(canonical_text(text), *setting)
    except InvalidFieldError:
        # Once more with the caller's white space: positions are those of the caller's text.
        refuse_bad_terms(text)
        raise


def _eventbridge(text: str, name: str, setting: Setting) -> Single:
    if name == "cron":
        return _cron(text, setting)
    stripped = text.strip()
    if not stripped.endswith(")"):
        raise InvalidFieldError("schedule", f'{quoted(text)} does not end with ")"')
    inside = stripped[len(name) + 1 : -1]
    if name == "at":
        return At(_moment(inside), *setting)
    return Every(rate_seconds(inside), 0, *setting)


def _every(text: str, setting: Setting) -> Single:
    words = text.split()
    lowered = [word.lower() for word in words]
    if lowered[-2:] == ["after", "finish"]:
        return _delay(words[1:-2], setting)
    if "after" in lowered:
        wrong = quoted(" ".join(words[lowered.index("after") :]))
        raise InvalidFieldError("schedule.after", f'{wrong} is unknown: use "after finish"')
    expression = cron_of_words(text)
    if expression is not None:
        return Cron(expression, *setting)
    if "at" in lowered:
        raise InvalidFieldError(
            "schedule",
            f"{quoted(text)} is no schedule: an interval has no time of day. Use a cron expression "
            'as "0 9 */2 * *", or an offset as "every 2d offset 9h", which counts in UTC',
        )
    return _interval(words[1:], setting)


def _delay(words: list[str], setting: Setting) -> Delay:
    if "offset" in (word.lower() for word in words):
        raise InvalidFieldError(
            "schedule.offset", "means nothing after finish: no clock is counted from"
        )
    return Delay(_interval_seconds(words), *setting)


def _interval(words: list[str], setting: Setting) -> Every:
    offset = next((i for i, word in enumerate(words) if word.lower() == "offset"), None)
    if offset is None:
        return Every(_interval_seconds(words), 0, *setting)
    interval = _interval_seconds(words[:offset])
    return Every(interval, parse_interval(words[offset + 1 :], "schedule.offset"), *setting)


def _interval_seconds(words: list[str]) -> int:
    if not words:
        raise InvalidFieldError("schedule.every", 'needs an interval, as in "every 25m"')
    return parse_interval(words, "schedule.every")


def _refuse_other_delays(form: Mapping[str, object]) -> None:
    if form["after"] != "finish":
        raise InvalidFieldError(
            "schedule.after", f'{quoted(str(form["after"]))} is unknown: it can only be "finish"'
        )
    if "offset" in form:
        raise InvalidFieldError(
            "schedule.offset", "means nothing after finish: no clock is counted from"
        )


def _refuse_unknown_keys(form: Mapping[str, object], kind: str) -> None:
    known = ("every", "offset", "after") if kind == "every" else (kind,)
    for key in form:
        if key in known:
            continue
        hint = f'beside "{kind}" nothing else' if len(known) == 1 else "use every and offset"
        if key in ("timezone", "start_at", "end_at", "dst", "except"):
            hint = "it goes beside the schedule, not into it"
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
            f'{quoted(text.strip())} is no time: use whole seconds as in "2026-12-01T09:00:00", '
            'with "Z" or an offset as "+02:00" unless it is local time in the time zone',
        )
    day, time, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{time}{(offset or '').upper()}")
        # In UTC, so that equal instants are equal values with one text.
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidFieldError(
            "schedule.at", f"{quoted(text.strip())} is no time: {error}"
        ) from None
