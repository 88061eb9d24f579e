"""Durations as text: `90s`, `1h30m`, `2d`, ISO 8601 `PT25M`, and in intervals also `2 hours`."""

import re
from collections.abc import Sequence

from carillon.errors import InvalidFieldError, quoted

_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
# Each group can match in one way only: no text makes these go back more than once.
_COMPACT = re.compile("".join(rf"(?:(\d{{1,10}}){unit})?" for unit, _ in _UNITS), re.ASCII)
_ISO = re.compile(
    r"P(?:(\d{1,10})W)?(?:(\d{1,10})D)?"
    r"(?:T(?=\d)(?:(\d{1,10})H)?(?:(\d{1,10})M)?(?:(\d{1,10})S)?)?",
    re.ASCII | re.IGNORECASE,
)
_EXPECTED = (
    'use whole numbers with w, d, h, m, s from the largest to the smallest, as in "90s", "25m" '
    'or "1h30m", or ISO 8601 as in "PT25M"'
)
_LONGEST_SECONDS = 36_525 * 86_400
_NAMES = {"week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_UNIT_SECONDS = _NAMES | {f"{name}s": seconds for name, seconds in _NAMES.items()}
_UNEVEN = frozenset(("month", "months", "year", "years"))


def parse_duration(text: str, field: str = "duration") -> int:
    """Seconds of a duration's text; zero is one.

    Months and years are none: their length varies. Raises InvalidFieldError on `field`, also for
    more than 100 years: instants end in 9999.
    """
    stripped = text.strip()
    match = _COMPACT.fullmatch(stripped) or _ISO.fullmatch(stripped)
    if match is None or not any(match.groups()):
        raise InvalidFieldError(field, f"{quoted(text)} is not a duration: {_EXPECTED}")
    counts = zip(match.groups(), _UNITS, strict=True)
    found = sum(int(count or 0) * seconds for count, (_, seconds) in counts)
    if found > _LONGEST_SECONDS:
        raise InvalidFieldError(field, f"{quoted(text)} is longer than 100 years")
    return found


def parse_interval(words: Sequence[str], field: str) -> int:
    """Seconds of what follows "every": a duration, or words as `2 hours`, `minute`.

    Raises InvalidFieldError on `field`.
    """
    last = words[-1].lower() if words else ""
    if last in _UNEVEN:
        remedy = 'use "monthly on 1 at 09:00" or a cron expression as "0 9 1 1 *"'
        raise InvalidFieldError(
            field, f"{quoted(' '.join(words))} has no fixed number of seconds: {remedy}"
        )
    if last not in _UNIT_SECONDS:
        return parse_duration(" ".join(words), field)
    if len(words) == 1:
        return _UNIT_SECONDS[last]
    seconds = 0
    for count, unit in zip(words[::2], words[1::2], strict=False):
        if not _is_count(count) or unit.lower() not in _UNIT_SECONDS:
            break
        seconds += int(count) * _UNIT_SECONDS[unit.lower()]
    else:
        if len(words) % 2 == 0:
            return seconds
    raise InvalidFieldError(
        field,
        f"{quoted(' '.join(words))} is not an interval: use a whole number before each unit, as "
        'in "2 hours" or "1 hour 30 minutes"',
    )


def format_duration(seconds: int) -> str:
    """The canonical text of whole seconds >= 0, in days, hours, minutes and seconds: `1d12h`."""
    parts = []
    for unit, length in _UNITS[1:]:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def words_of_duration(seconds: int) -> str:
    """Whole seconds >= 0 in English: `25 minutes`, `1 day 12 hours`."""
    parts = []
    for name, length in list(_NAMES.items())[1:]:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count:,} {name}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 seconds"


def _is_count(text: str) -> bool:
    return len(text) <= 10 and text.isascii() and text.isdigit()
