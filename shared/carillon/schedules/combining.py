"""Several schedules as one: the one-line text taken apart, and what a combination must keep."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from carillon.errors import InvalidFieldError
from carillon.schedules.base import EPOCH, Recurrence
from carillon.schedules.kinds.at import At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.delay import Delay
from carillon.schedules.kinds.union import Combined, Simple
from carillon.schedules.single import Single

LONGEST_COMBINED_TEXT = 1_024
"""Characters of a whole combination: entries on the wheel carry it too."""

MOST_MEMBERS = 20
"""Schedules of one combination, and as many exceptions."""

_EXCEPT = re.compile(r"(?<!\S)except(?!\S)", re.IGNORECASE)
_ONE_SECOND = timedelta(seconds=1)
_SEARCHED_AGAIN_FROM = tuple(datetime(year, 1, 1, tzinfo=UTC) for year in (2010, 2050, 2090))
"""A search through what exceptions take out ends after 50 years. Where a part is limited to some
years, what is left may lie beyond."""


def is_combination(text: str) -> bool:
    """Whether a text speaks of more than one schedule."""
    return "|" in text or ("except" in text.lower() and _EXCEPT.search(text) is not None)


def parts_of(text: str) -> tuple[list[str], list[str]]:
    """The members' and the exceptions' texts of `… | … except … | …`.

    Raises InvalidFieldError on `schedule` for too long a text, too many or empty parts.
    """
    if len(text) > LONGEST_COMBINED_TEXT:
        raise InvalidFieldError(
            "schedule", f"is longer than {LONGEST_COMBINED_TEXT:,} characters in one combination"
        )
    members, *exceptions = _EXCEPT.split(text)
    if len(exceptions) > 1:
        raise InvalidFieldError(
            "schedule", 'says "except" more than once: divide the exceptions by " | "'
        )
    parts = [_parts(side) for side in (members, *exceptions)]
    return parts[0], parts[1] if exceptions else []


def combine(members: Sequence[Single], exceptions: Sequence[Single]) -> Single | Combined:
    """Their combination, equal ones merged; the schedule itself where only one is left.

    Raises InvalidFieldError on `schedule` and `except` for a fixed delay, too long a text, and a
    combination that never fires.
    """
    if len(members) == 1 and not exceptions:
        return members[0]
    simple = tuple(dict.fromkeys(_combinable(members, "schedule")))
    apart = tuple(dict.fromkeys(_combinable(exceptions, "except")))
    if len(simple) == 1 and not apart:
        return simple[0]
    combined = Combined(simple, apart)
    if len(combined.text) > LONGEST_COMBINED_TEXT:
        raise InvalidFieldError(
            "schedule",
            f"is {len(combined.text):,} characters long, with its exceptions: a combination takes "
            f"at most {LONGEST_COMBINED_TEXT:,}",
        )
    if apart and not _ever_fires(combined):
        raise InvalidFieldError("except", "takes every occurrence of the schedule out")
    return combined


def refuse_too_many(count: int, field: str) -> None:
    """Raises InvalidFieldError on `field` beyond MOST_MEMBERS."""
    if count > MOST_MEMBERS:
        raise InvalidFieldError(field, f"has {count:,} members: at most {MOST_MEMBERS} are taken")


def refuse_empty_life(schedule: Recurrence) -> None:
    """Raises InvalidFieldError on `end_at` for a schedule that its bounds leave no occurrence."""
    if isinstance(schedule, Delay) or schedule.end_at is None or _ever_fires(schedule):
        return
    begin = "the beginning" if schedule.start_at is None else f"{schedule.start_at:%FT%TZ}"
    raise InvalidFieldError(
        "end_at",
        f'no occurrence of "{schedule.text[:60]}" lies between {begin} and '
        f"{schedule.end_at:%FT%TZ}: use a later end",
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
    if not isinstance(schedule, Combined):
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
