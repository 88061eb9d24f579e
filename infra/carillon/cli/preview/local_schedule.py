"""The next occurrences of a schedule, computed here, from texts as a user gives them."""

import json
import reprlib
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

from carillon.cli.instants import parse_instant
from carillon.errors import InvalidFieldError
from carillon.schedules import DEFAULT_DST, Delay, DstRule, Fold, Gap, Schedule, parse_schedule
from carillon.schedules.zones.offsets import load_zone

LARGEST_COUNT = 10_000
"""Occurrences that one answer lists; `max_runs` has the same limit, the API's."""

FAR = datetime.max.replace(tzinfo=UTC)
_Choice = TypeVar("_Choice", bound=StrEnum)


class PreviewRequest(NamedTuple):
    """What to preview; `schedule` and `exceptions` are texts, or JSON forms.

    `after`, `start_at` and `end_at` are ISO 8601 texts, local time of `timezone` without an offset.
    `gap` and `fold` are the DST rule's texts. `max_runs` counts from `after` on. A tuple, since a
    batch makes one for each of its lines.
    """

    schedule: object
    timezone: str
    after: str
    limit: int
    start_at: str | None = None
    end_at: str | None = None
    max_runs: int | None = None
    exceptions: tuple[object, ...] = ()
    gap: str | None = None
    fold: str | None = None


def occurrences(request: PreviewRequest) -> Iterator[datetime]:
    """The first `limit` occurrences after `after`, in UTC; raises InvalidFieldError."""
    schedule = schedule_of(request)
    after = instant_of(request.after, request.timezone)
    limit = _whole_number(request.limit, "count")
    if request.max_runs is not None:
        limit = min(limit, _whole_number(request.max_runs, "max_runs"))
    return islice(schedule.between(after, FAR), limit)


@lru_cache(maxsize=4096)
def instant_of(after: str, timezone: str) -> datetime:
    """The UTC instant of `after`; raises InvalidFieldError on it, or on `timezone`."""
    return parse_instant(after, load_zone(timezone), "after")


def schedule_of(request: PreviewRequest) -> Schedule:
    """The schedule without regard to `max_runs`; raises InvalidFieldError."""
    given, exceptions = request.schedule, request.exceptions
    is_text = isinstance(given, str) and not exceptions
    key = given if is_text else json.dumps([given, exceptions], sort_keys=True)
    found = _compiled(
        key, is_text, request.timezone, request.start_at, request.end_at, request.gap, request.fold
    )  # fmt: skip
    if isinstance(found, InvalidFieldError):
        # A fresh one: raising the kept one again and again would grow its traceback.
        raise InvalidFieldError(found.field, found.message)
    if request.max_runs is not None and isinstance(found, Delay):
        raise InvalidFieldError("max_runs", "cannot be counted ahead for a delay after each finish")
    return found


def ending_after(request: PreviewRequest, schedule: Schedule) -> Schedule:
    """The schedule as a job has it: it ends with its `max_runs`-th occurrence."""
    if request.max_runs is None:
        return schedule
    most = _whole_number(request.max_runs, "max_runs")
    after = instant_of(request.after, request.timezone)
    runs = list(islice(schedule.between(after, FAR), most))
    if len(runs) < most:
        return schedule
    return schedule_of(request._replace(end_at=runs[-1].isoformat()))


def _whole_number(value: object, field: str) -> int:
    if type(value) is not int or not 1 <= value <= LARGEST_COUNT:
        raise InvalidFieldError(field, f"must be a whole number from 1 to {LARGEST_COUNT}")
    return value


@lru_cache(maxsize=4096)
def _compiled(
    key: str,
    is_text: bool,
    timezone: str,
    start_at: str | None,
    end_at: str | None,
    gap: str | None,
    fold: str | None,
) -> Schedule | InvalidFieldError:
    """The schedule, or why there is none: a batch repeats its mistakes as it does its schedules."""
    try:
        schedule, exceptions = (key, ()) if is_text else json.loads(key)
        zone = load_zone(timezone)
        start = None if start_at is None else parse_instant(start_at, zone, "start_at")
        end = None if end_at is None else parse_instant(end_at, zone, "end_at")
        return parse_schedule(schedule, timezone, start, end, _dst_rule(gap, fold), exceptions)
    except InvalidFieldError as error:
        return error


def _dst_rule(gap: str | None, fold: str | None) -> DstRule:
    if gap is None and fold is None:
        return DEFAULT_DST
    return DstRule(_choice(Gap, gap, "dst.gap"), _choice(Fold, fold, "dst.fold"))


def _choice(kind: type[_Choice], text: str | None, field: str) -> _Choice | None:
    try:
        return None if text is None else kind(text)
    except ValueError as error:
        wanted = ", ".join(kind)
        message = f"{reprlib.repr(text)} is none of {wanted}"
        raise InvalidFieldError(field, message) from error
