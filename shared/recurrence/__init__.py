"""Schedules as values: what instants a rule yields, and the slots it is filed under.

Pure: no clock, no I/O but the time zone database. Instants are aware UTC datetimes in whole
seconds, between 1970 and the end of 9998.
"""

from shared.recurrence.at import At
from shared.recurrence.closed_days import CalendarRule, ClosedDays
from shared.recurrence.combined import Combined
from shared.recurrence.cron import Cron
from shared.recurrence.delay import Delay
from shared.recurrence.dst import DEFAULT_DST, DstRule, Fold, Gap
from shared.recurrence.durations import format_duration, parse_duration
from shared.recurrence.every import Every
from shared.recurrence.open_days import OnOpenDays
from shared.recurrence.parse import Schedule, parse_schedule
from shared.recurrence.slots import SlotKind, Slots, slots
from shared.recurrence.spread import Window, parse_window, spread_seconds
from shared.recurrence.value import Recurrence

__all__ = [
    "DEFAULT_DST",
    "At",
    "CalendarRule",
    "ClosedDays",
    "Combined",
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
    "Window",
    "format_duration",
    "parse_duration",
    "parse_schedule",
    "parse_window",
    "slots",
    "spread_seconds",
]
