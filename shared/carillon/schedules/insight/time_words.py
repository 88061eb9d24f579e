"""The times of day of a cron expression in English, made from the sets that the engine fires by."""

from collections.abc import Sequence
from dataclasses import dataclass

from carillon.schedules.insight.words import common_step, listed, spans

MOST_TIMES = 6
"""So many times of day are listed one by one."""


@dataclass(frozen=True, slots=True)
class TimeWords:
    """`is_times`: `text` lists times of day ("at 09:00"), not a pace ("every 10 minutes").

    `is_every_minute`: no minute of a day is left out. `names_hours`: it holds only on the clocks
    of a zone, and not on all of them.
    """

    text: str
    is_times: bool = False
    is_every_minute: bool = False
    names_hours: bool = True


def time_words(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> TimeWords:
    """The words of all times whose second, minute and hour are among these, ascending each."""
    if len(seconds) * len(minutes) * len(hours) <= MOST_TIMES:
        shown = "{:02}:{:02}" if tuple(seconds) == (0,) else "{:02}:{:02}:{:02}"
        times = [shown.format(h, m, s) for h in hours for m in minutes for s in seconds]
        return TimeWords(f"at {listed(times)}", is_times=True)
    all_hours, all_minutes = len(hours) == 24, len(minutes) == 60
    if tuple(seconds) == (0,):
        text = _whole_minutes(minutes, hours)
    elif all_hours and all_minutes:
        text = _pace(seconds, "second") or f"every minute at {_numbers('second', seconds)}"
    else:
        text = _with_seconds(seconds, minutes, hours)
    is_every_minute = all_hours and all_minutes and tuple(seconds) in ((0,), tuple(range(60)))
    return TimeWords(text, is_every_minute=is_every_minute, names_hours=not all_hours)


def _whole_minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    pace = _pace(minutes, "minute")
    if len(hours) == 24:
        return pace or f"every hour at {_numbers('minute', minutes)}"
    if pace and _is_row(hours):
        return f"{pace} between {hours[0]:02}:00 and {hours[-1]:02}:59"
    if pace:
        return f"{pace} of {_numbers('hour', hours)}"
    step = common_step(hours)
    if len(minutes) == 1 and step:
        each = "every hour" if step == 1 else f"every {step} hours"
        (minute,) = minutes
        return f"{each} from {hours[0]:02}:{minute:02} to {hours[-1]:02}:{minute:02}"
    return f"at {_numbers('minute', minutes)} of {_numbers('hour', hours)}"


def _with_seconds(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    pace = _pace(seconds, "second")
    if pace and len(minutes) == 60 and _is_row(hours):
        return f"{pace} between {hours[0]:02}:00:00 and {hours[-1]:02}:59:59"
    of_minutes = "every minute" if len(minutes) == 60 else _numbers("minute", minutes)
    of_hours = "every hour" if len(hours) == 24 else _numbers("hour", hours)
    return f"{pace or 'at ' + _numbers('second', seconds)} of {of_minutes} of {of_hours}"


def _pace(numbers: Sequence[int], unit: str) -> str:
    """`every 10 minutes` where these 0-59 are that, counted from 0; else nothing."""
    if len(numbers) == 60:
        return f"every {unit}"
    if tuple(numbers) == (0, 30):
        return f"every 30 {unit}s"
    step = common_step(numbers)
    if step and numbers[0] == 0 and len(numbers) * step == 60:
        return f"every {step} {unit}s"
    return ""


def _is_row(numbers: Sequence[int]) -> bool:
    return numbers[-1] - numbers[0] == len(numbers) - 1


def _numbers(unit: str, numbers: Sequence[int]) -> str:
    """`minute 17`, `minutes 5, 20 and 40 to 45`."""
    plural = "" if len(numbers) == 1 else "s"
    return f"{unit}{plural} {listed(spans([str(number) for number in numbers], numbers))}"
