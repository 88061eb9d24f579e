"""Schedules as values: what instants a rule yields, and the slots it is indexed under.

Pure: no clock, no I/O but the time zone database. Instants are aware UTC datetimes in whole
seconds, between 1970 and the end of 9998.
"""

from carillon.schedules.base import DEFAULT_DST, DstRule, Fold, Gap, Recurrence
from carillon.schedules.calendars.closed_days import CalendarRule, ClosedDays
from carillon.schedules.calendars.open_days import OnOpenDays
from carillon.schedules.durations import format_duration, parse_duration
from carillon.schedules.kinds.at import NEVER, At
from carillon.schedules.kinds.cron import Cron
from carillon.schedules.kinds.interval import Delay, Every
from carillon.schedules.kinds.union import Union
from carillon.schedules.parsing import Schedule, parse_schedule, refuse_idle
from carillon.schedules.placement.slots import SlotKind, Slots, slots
from carillon.schedules.placement.window import Window, parse_window, spread_seconds

__all__ = [
    "DEFAULT_DST",
    "NEVER",
    "At",
    "CalendarRule",
    "ClosedDays",
    "Cron",
    "Delay",
    "DstRule",
    "Every",
    "Fold",
    "Gap",
    "OnOpenDays",
    "Recurrence",
    "Schedule",
    "SlotKind",
    "Slots",
    "Union",
    "Window",
    "format_duration",
    "parse_duration",
    "parse_schedule",
    "parse_window",
    "refuse_idle",
    "slots",
    "spread_seconds",
]
