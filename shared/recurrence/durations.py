"""Durations as text: `90s`, `1h30m`, `2d`, and ISO 8601 `PT25M`."""

import re

from shared.errors import InvalidFieldError
from shared.recurrence.messages import quoted

_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
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


def parse_duration(text: str, field: str = "duration") -> int:
    """Seconds of a duration's text; zero is one.

    Months and years are none: their length varies. Raises InvalidFieldError on `field`.
    """
    stripped = text.strip()
    match = _COMPACT.fullmatch(stripped) or _ISO.fullmatch(stripped)
    if match is None or not any(match.groups()):
        raise InvalidFieldError(field, f"{quoted(text)} is not a duration: {_EXPECTED}")
    counts = zip(match.groups(), _UNITS, strict=True)
    return sum(int(count or 0) * seconds for count, (_, seconds) in counts)


def format_duration(seconds: int) -> str:
    """The canonical text of whole seconds >= 0, in days, hours, minutes and seconds: `1d12h`."""
    parts = []
    for unit, length in _UNITS[1:]:
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
