"""The days of a cron expression in English.

Made from the sets that the engine fires by, never from the text: expressions that mean the same
days get the same words, and others get other words.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from carillon.schedules.cron.days import Days, MonthDays, WeekDays

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_WORKING = frozenset(range(1, 6))
_WEEKEND = frozenset((0, 6))
_COUNTS = ("", "first", "second", "third", "fourth", "fifth")
_SHORTEST_RUN = 3
_ALL_YEARS = 2200 - 1970
"""Those that EventBridge's year field can name."""


@dataclass(frozen=True, slots=True)
class DayWords:
    """`each` comes before a time ("every weekday"; "" where no such words exist), `on` after it.

    Both say the same, but `on` is empty where no day of a year is left out. `years` comes last.
    """

    each: str
    on: str
    years: str = ""


def day_words(days: Days) -> DayWords:
    """The words of a set of days."""
    month_days, week_days = restrictions_of(days)
    years = _in_years(days.years)
    months = "" if len(days.months) == 12 else _month_names(days.months)
    in_months = f" in {months}" if months else ""
    of_months = f" of {months or 'every month'}"
    if month_days is None and week_days is None:
        return DayWords(f"every day{in_months}", in_months.strip(), years)
    if week_days is None:
        assert month_days is not None
        return DayWords("", f"on {listed(_month_day_names(month_days))}{of_months}", years)
    on = _on_weekdays(week_days, in_months, of_months)
    if month_days is None:
        plain = not (week_days.nth or week_days.last)
        each = f"every {_weekday_names(week_days.days)}{in_months}" if plain else ""
        return DayWords(each, f"on {on}", years)
    names = _month_day_names(month_days)
    if days.needs_both:
        weekdays = listed(_weekday_choices(week_days), "or")
        falls = f"falls on {listed(names, 'or')} of the month{in_months}"
        return DayWords("", f"on every {weekdays} that {falls}", years)
    return DayWords("", f"on {listed(names)}{of_months} or on {on} (either is enough)", years)


def restrictions_of(days: Days) -> tuple[MonthDays | None, WeekDays | None]:
    """The two day fields, each None where it leaves out no day."""
    month_days = None if len(days.month_days.days) == 31 else days.month_days
    week_days = None if len(days.week_days.days) == 7 else days.week_days
    if not days.needs_both and (month_days is None or week_days is None):
        return None, None
    return month_days, week_days


def listed(names: Sequence[str], conjunction: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def spans(names: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """The names of ascending numbers, three or more in a row as one: `9 to 17`."""
    found: list[str] = []
    first = 0
    for place in range(1, len(numbers) + 1):
        if place < len(numbers) and numbers[place] == numbers[place - 1] + 1:
            continue
        if place - first >= _SHORTEST_RUN:
            found.append(f"{names[first]} to {names[place - 1]}")
        else:
            found.extend(names[first:place])
        first = place
    return found


def common_step(numbers: Sequence[int]) -> int:
    """The distance that three or more ascending numbers have in common, or 0."""
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 and len(numbers) >= _SHORTEST_RUN else 0


def ordinal(number: int) -> str:
    """`1st`, `22nd`, `13th`."""
    suffix = "th" if 11 <= number <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def month_name(number: int) -> str:
    """Of a month counted from 1."""
    return _MONTHS[number - 1]


def _in_years(years: tuple[int, ...] | None) -> str:
    if years is None or len(years) == _ALL_YEARS:
        return ""
    return f" in {listed(spans([str(year) for year in years], years))}"


def _month_names(months: Iterable[int]) -> str:
    ascending = sorted(months)
    return listed(spans([month_name(month) for month in ascending], ascending))


def _month_day_names(field: MonthDays) -> list[str]:
    days = sorted(field.days)
    step = common_step(days)
    if step > 1:
        first, last = ordinal(days[0]), ordinal(days[-1])
        names = [f"every {ordinal(step)} day from the {first} to the {last}"]
    else:
        names = spans([f"the {ordinal(day)}" for day in days], days)
    names += [f"the weekday nearest the {ordinal(day)}" for day in sorted(field.nearest)]
    if field.last_weekday:
        names.append("the last weekday")
    if field.last:
        names.append("the last day")
    return names


def _weekday_names(days: frozenset[int], plural: str = "") -> str:
    if days == _WORKING:
        return f"weekday{plural}"
    if days == _WEEKEND and plural:
        return "weekends"
    return listed([_WEEKDAYS[day] + plural for day in _from_monday(days)])


def _on_weekdays(field: WeekDays, in_months: str, of_months: str) -> str:
    """The text after "on" for a day-of-week field that restricts."""
    of_month = [f"the {name}" for name in _monthly_weekdays(field)]
    monthly = f"{listed(of_month)}{of_months}"
    if not field.days:
        return monthly
    weekly = f"{_weekday_names(field.days, 's')}{in_months}"
    return f"{weekly} and on {monthly}" if of_month else weekly


def _weekday_choices(field: WeekDays) -> list[str]:
    """Names that a day may have to be one of."""
    if field.days == _WORKING:
        weekly = ["weekday"]
    else:
        weekly = [_WEEKDAYS[day] for day in _from_monday(field.days)]
    return weekly + [f"{name} of the month" for name in _monthly_weekdays(field)]


def _monthly_weekdays(field: WeekDays) -> list[str]:
    nth = sorted(field.nth, key=lambda pair: (pair[1], (pair[0] - 1) % 7))
    names = [f"{_COUNTS[count]} {_WEEKDAYS[day]}" for day, count in nth]
    return names + [f"last {_WEEKDAYS[day]}" for day in _from_monday(field.last)]


def _from_monday(days: Iterable[int]) -> list[int]:
    return sorted(days, key=lambda day: (day - 1) % 7)


MOST_TIMES = 6
"""Up to this many times of day are listed one by one."""


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
