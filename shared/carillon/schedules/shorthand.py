"""Plain words for the common cases, macros, and EventBridge's `rate(…)`: all are other spellings.

Each is turned into a cron expression or a number of seconds; the canonical text of a schedule
knows nothing of them.
"""

import re
from collections.abc import Sequence

from carillon.errors import InvalidFieldError, quoted

# Debian's crontab(5).
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PERIODS = {
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 0",
    "monthly": "0 0 1 * *",
}
_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_DAY_CODES = {
    spelling: day[:3].upper()
    for day in _DAYS
    for spelling in (day[:3], day, f"{day}s", *({"tues", "thurs"} & {day[:4], day[:5]}))
}
_WEEK_PARTS = {"weekday": "1-5", "weekdays": "1-5", "weekend": "0,6", "weekends": "0,6"}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
_SINGULAR = {"hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly"}
"""The adverb for `every … at` and `every … on`."""

_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?", re.ASCII)
_MINUTE = re.compile(r":(\d\d)(?::(\d\d))?", re.ASCII)
_MONTH_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)

RATE_UNITS = {"minute": 60, "hour": 3_600, "day": 86_400}


def cron_of_macro(text: str) -> str:
    """The expression of `@daily` and its like; raises InvalidFieldError on `schedule.cron`."""
    macro = text.strip().lower()
    if macro in _MACROS:
        return _MACROS[macro]
    if macro == "@reboot":
        raise InvalidFieldError(
            "schedule.cron",
            '"@reboot" has no time: there is no machine that starts. Use "at …" for one run, or '
            "run the job manually",
        )
    known = ", ".join(_MACROS)
    raise InvalidFieldError(
        "schedule.cron", f"{quoted(text)} is no macro:{did_you_mean(macro, _MACROS)} use {known}"
    )


def cron_of_words(text: str) -> str | None:
    """The expression of a text as `daily at 09:00`; None when its words begin no such form.

    Raises InvalidFieldError on `schedule` for words that go wrong later.
    """
    words = text.lower().split()
    if words[0] == "every" and len(words) > 1:
        if {"at", "on"} & set(words[2:]):
            words = [_SINGULAR.get(words[1], words[1]), *words[2:]]
        elif words[1] in _WEEK_PARTS or words[1] in _DAY_CODES:
            words = words[1:]
    first = words[0].partition(",")[0]
    if first == "hourly":
        return _hourly(words, text)
    if first in _PERIODS or first in _WEEK_PARTS or first in _DAY_CODES:
        if len(words) == 1 and first in _PERIODS:
            return _PERIODS[first]
        return _at_time_of_day(words, text)
    return None


def rate_seconds(inside: str) -> int:
    """The seconds of EventBridge's `rate(value unit)`, given the text between the brackets.

    The source is the EventBridge user guide, "Rate expressions reference": a positive number, and
    a unit that is singular for 1 and plural for more. Raises InvalidFieldError on `schedule.rate`.
    """
    words = inside.split()
    unit = words[1].lower() if len(words) == 2 else ""
    singular = unit.removesuffix("s")
    if singular not in RATE_UNITS or not _is_number(words[0]) or int(words[0]) == 0:
        raise InvalidFieldError(
            "schedule.rate",
            f"{quoted(f'rate({inside})')} is no rate: use a whole number from 1 and a unit, minute "
            'hour or day, as in "rate(5 minutes)" or "rate(1 hour)"; for others "every 90s"',
        )
    count = int(words[0])
    if (count == 1) != (unit == singular):
        right = singular if count == 1 else f"{singular}s"
        raise InvalidFieldError(
            "schedule.rate",
            f"{quoted(f'rate({inside})')}: EventBridge wants the unit in the singular for 1 and "
            f'in the plural for more: use "rate({count} {right})"',
        )
    return count * RATE_UNITS[singular]


def unknown_error(text: str, forms: str) -> InvalidFieldError:
    """The error, to be raised, for text that is no schedule of any kind."""
    words = text.split()
    first = words[0].lower() if words else ""
    hint = ""
    if first.startswith(("cron_tz=", "tz=")):
        zone = words[0].partition("=")[2]
        hint = f' use the timezone field, "timezone": {quoted(zone)}, instead of a prefix;'
    elif len(words) == 1 and _TIME.fullmatch(first):
        hint = f' did you mean "daily at {first}"?'
    elif re.match(r"\d{4}-\d\d-\d\d", first):
        hint = f' did you mean "at {text.strip()[:40]}"?'
    elif re.fullmatch(r"\d{1,9}[wdhms]", first):
        hint = f' did you mean "every {" ".join(words)[:40]}"?'
    elif first[:1].isdigit() or "*" in first:
        hint = (
            f" a cron expression has five fields, minute hour day-of-month month day-of-week; "
            f"this has {len(words)};"
        )
    elif first:
        known = ("every", "at", *_PERIODS, *_WEEK_PARTS, *_DAY_CODES)
        hint = did_you_mean(first, known)
    return InvalidFieldError("schedule", f"{quoted(text)} is no schedule:{hint} use {forms}")


def did_you_mean(word: str, known: "Sequence[str] | dict[str, str]") -> str:
    """` did you mean "daily"?`, or nothing where no known word is close."""
    import difflib  # only an error needs it, and a command line waits for every import

    close = difflib.get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return f' did you mean "{close[0]}"?' if close and close[0] != word else ""


def _hourly(words: list[str], text: str) -> str:
    if len(words) == 1:
        return _PERIODS["hourly"]
    match = _MINUTE.fullmatch(words[2]) if len(words) == 3 and words[1] == "at" else None
    minute, second = _numbers(match) if match else (60, 60)
    if minute > 59 or second > 59:
        raise _refused(text, 'use "hourly at :17", or ":17:30" with seconds')
    return f"{f'{second} ' if second else ''}{minute} * * * *"


def _at_time_of_day(words: list[str], text: str) -> str:
    time = _time_at_the_end(words, text)
    named, on = words[0], words[1:-2]
    if named == "daily" or named in _WEEK_PARTS:
        if on:
            raise _refused(text, f'use "{named} at 09:00"')
        return f"{time} * * {_WEEK_PARTS.get(named, '*')}"
    if named == "monthly":
        return f"{time} {_days_of_month(on, text)}"
    if named != "weekly":
        return f"{time} * * {_days_of_week(words[:-2], text)}"
    if len(on) < 2 or on[0] != "on":
        raise _refused(text, 'use "weekly on mon at 09:00"')
    return f"{time} * * {_days_of_week(on[1:], text)}"


def _time_at_the_end(words: list[str], text: str) -> str:
    """The second, minute and hour fields of `… at 09:00`."""
    if len(words) < 3 or words[-2] != "at":
        given = " ".join(text.split()) if "at" not in words and len(words) < 3 else words[0]
        raise _refused(text, f"end with a time of day, as in {quoted(f'{given} at 09:00')}")
    match = _TIME.fullmatch(words[-1])
    hour, minute, second = _numbers(match) if match else (24, 0, 0)
    if hour > 23 or minute > 59 or second > 59:
        shown = text.split()[-1]
        position = len(text.rstrip()) - len(shown) + 1
        raise _refused(
            text,
            f"{quoted(shown)} at position {position} is no time of day: use 00:00 to 23:59, "
            "with seconds as in 09:00:30",
        )
    return f"{f'{second} ' if second else ''}{minute} {hour}"


def _days_of_week(spelled: list[str], text: str) -> str:
    """The day-of-week field of `mon`, `mondays`, `mon,wed` or `monday and friday`."""
    names = " ".join(spelled).replace(",", " ").split()
    names = [name for name in names if name != "and"]
    wrong = [name for name in names if name not in _DAY_CODES]
    if wrong or not names:
        bad = wrong[0] if wrong else " ".join(spelled)
        remedy = f"{quoted(bad)} is no day of the week:{did_you_mean(bad, list(_DAY_CODES))}"
        raise _refused(text, f'{remedy} use "mon" or "monday" to "sun" or "sunday"')
    return ",".join(dict.fromkeys(_DAY_CODES[name] for name in names))


def _days_of_month(on: list[str], text: str) -> str:
    """The last three fields of the text after `monthly`: `on 15`, `on second tuesday`."""
    if not on:
        return "1 * *"
    match on[1:] if on[0] == "on" else []:
        case ["last", "day"]:
            return "L * *"
        case ["last", "weekday"]:
            return "LW * *"
        case ["last", day] if day in _DAY_CODES:
            return f"* * {_DAYS.index(_full_name(day))}L"
        case [ordinal, day] if ordinal in _ORDINALS and day in _DAY_CODES:
            return f"* * {_DAY_CODES[day]}#{_ORDINALS[ordinal]}"
        case [day] if (number := _MONTH_DAY.fullmatch(day)) and 1 <= int(number[1]) <= 31:
            return f"{int(number[1])} * *"
    raise _refused(
        text,
        'use "monthly on 1 at 09:00", with a day of 1 to 31, "last day", "last weekday", "last '
        'friday" or "second tuesday"',
    )


def _full_name(day: str) -> str:
    return next(full for full in _DAYS if full.startswith(day[:3]))


def _numbers(match: "re.Match[str]") -> list[int]:
    return [int(group or 0) for group in match.groups()]


def _refused(text: str, remedy: str) -> InvalidFieldError:
    return InvalidFieldError("schedule", f"{quoted(text)} is no schedule: {remedy}")


def _is_number(text: str) -> bool:
    return len(text) <= 9 and text.isascii() and text.isdigit()
