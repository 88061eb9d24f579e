"""The next occurrences of a schedule, computed here: one asked for, or a stream of lines."""

import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from infra.cli.instants import parse_instant, utc_text
from shared.errors import InvalidFieldError
from shared.recurrence import Schedule, parse_schedule
from shared.recurrence.zones import load_zone

LARGEST_COUNT = 10_000
_FAR = datetime.max.replace(tzinfo=UTC)
_MEMBERS = frozenset({"schedule", "timezone", "after", "count", "start_at"})


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """What to preview; `schedule` is text, or the JSON form as a mapping.

    `after` and `start_at` are ISO 8601 texts, local time of `timezone` without an offset.
    """

    schedule: object
    timezone: str
    after: str
    count: int
    start_at: str | None = None


def occurrences(request: PreviewRequest) -> Iterator[datetime]:
    """The first `count` occurrences after `after`, in UTC; raises InvalidFieldError."""
    schedule = _schedule_of(request)
    after = parse_instant(request.after, load_zone(request.timezone), "after")
    if not 1 <= request.count <= LARGEST_COUNT:
        raise InvalidFieldError("count", f"must be a whole number from 1 to {LARGEST_COUNT}")
    return islice(schedule.between(after, _FAR), request.count)


def batch_answers(lines: Iterable[bytes], defaults: PreviewRequest) -> Iterator[str]:
    """For each line of JSON one line of JSON without its line feed, in order.

    `{"fire_at": [...]}`, or `{"error": "..."}` for a line that cannot be answered. Members that
    a line leaves out are taken from `defaults`.
    """
    for line in lines:
        try:
            request = _request_of(line.strip(), defaults)
            fires = [utc_text(instant) for instant in occurrences(request)]
        # Whatever is wrong with a line must not take the answers of the others with it.
        except Exception as error:
            text = str(error) or type(error).__name__
            yield json.dumps({"error": text})
        else:
            yield '{"fire_at": ["' + '", "'.join(fires) + '"]}' if fires else '{"fire_at": []}'


def _request_of(line: bytes, defaults: PreviewRequest) -> PreviewRequest:
    try:
        form = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError("line", f"is not JSON: {error}") from error
    if not isinstance(form, dict):
        raise InvalidFieldError("line", "is not a JSON object")
    if not form.keys() <= _MEMBERS:
        unknown = min(form.keys() - _MEMBERS)
        raise InvalidFieldError(unknown, f"is unknown: use {', '.join(sorted(_MEMBERS))}")
    if "schedule" not in form:
        raise InvalidFieldError("schedule", "is missing")
    count = form.get("count", defaults.count)
    if type(count) is not int:
        raise InvalidFieldError("count", f"must be a whole number from 1 to {LARGEST_COUNT}")
    return PreviewRequest(
        form["schedule"],
        _text(form, "timezone", defaults.timezone),
        _text(form, "after", defaults.after),
        count,
        defaults.start_at if form.get("start_at") is None else _text(form, "start_at", ""),
    )


def _text(form: Mapping[str, Any], member: str, default: str) -> str:
    value = form.get(member, default)
    if not isinstance(value, str):
        raise InvalidFieldError(member, f"must be text, not {reprlib.repr(value)}")
    return value


def _schedule_of(request: PreviewRequest) -> Schedule:
    given = request.schedule
    is_text = isinstance(given, str)
    key = given if isinstance(given, str) else json.dumps(given, sort_keys=True)
    found = _compiled(key, is_text, request.timezone, request.start_at)
    if isinstance(found, InvalidFieldError):
        # A fresh one: raising the kept one again and again would grow its traceback.
        raise InvalidFieldError(found.field, found.message)
    return found


@lru_cache(maxsize=4096)
def _compiled(
    key: str, is_text: bool, timezone: str, start_at: str | None
) -> Schedule | InvalidFieldError:
    """The schedule, or why there is none: a batch repeats its mistakes as it does its schedules."""
    try:
        zone = load_zone(timezone)
        start = None if start_at is None else parse_instant(start_at, zone, "start_at")
        return parse_schedule(key if is_text else json.loads(key), timezone, start)
    except InvalidFieldError as error:
        return error
