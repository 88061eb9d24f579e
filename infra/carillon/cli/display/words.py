"""Words for people: any value, times seen from now, targets, and the colour of a status."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

STYLES = {
    "active": "green",
    "applied": "green",
    "cancelled": "dim",
    "dead": "bold red",
    "missed": "red",
    "paused": "yellow",
    "pending": "dim",
    "retrying": "yellow",
    "running": "cyan",
    "skipped": "yellow",
    "succeeded": "green",
    "timed_out": "bold red",
    "unknown": "magenta",
}
"""By status of a run, and state of a job or an operation."""

STATES = ("status", "state")
"""The columns, and members, that have one of these."""

_UNITS = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "min"))
_RELATIVE = timedelta(days=30)


def printable(value: Any) -> str:
    """Any value on one line; control characters are shown, so that no name drives a terminal."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def is_time(column: str) -> bool:
    """True for a column, or a member, of instants."""
    return column.endswith(("_at", "_until")) or column in ("reached", "from", "to")


def when(text: object, now: datetime) -> str | None:
    """The instant of the API as people say it: `in 3 min`, `2 h ago`; its day where that is more
    than 30 days away. None for what is no instant."""
    at = _instant(text)
    if at is None:
        return None
    away = abs(at - now)
    if away >= _RELATIVE:
        return f"{at:%Y-%m-%d}"
    if away < timedelta(seconds=1):
        return "now"
    words = lasted(away.total_seconds())
    return f"in {words}" if at > now else f"{words} ago"


def clock_time(text: object) -> str | None:
    """The time of day in UTC, `06:00:05`; None for what is no instant."""
    at = _instant(text)
    return None if at is None else f"{at:%H:%M:%S}"


def lasted(seconds: float) -> str:
    """A duration in its largest unit that is full: `40 s`, `3 min`, `2 h`, `5 d`."""
    length = timedelta(seconds=seconds)
    for unit, name in _UNITS:
        if length >= unit:
            return f"{length // unit} {name}"
    return f"{int(seconds)} s"


def address_of(target: Mapping[str, Any]) -> Any:
    """The text that identifies a target: its name, URL or ARN."""
    named = (target.get("name"), target.get("url"))
    arns = (value for member, value in target.items() if member.endswith("_arn"))
    return next((value for value in (*named, *arns) if value), target)


def members_of(value: Any) -> str | None:
    """An object on one line: `limit=60 per=1m`, members within members as `backoff.type=fixed`,
    lists by commas; members that are null or empty are left out. None where nothing is left."""
    return " ".join(f"{name}={text}" for name, text in _members("", value)) or None


def _members(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    for name, member in value.items():
        path = f"{prefix}{name}"
        if isinstance(member, dict):
            yield from _members(f"{path}.", member)
        elif isinstance(member, list):
            if member:
                yield path, ",".join(map(printable, member))
        elif member not in (None, ""):
            yield path, printable(member)


def _instant(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else None
