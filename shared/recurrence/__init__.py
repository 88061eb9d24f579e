"""Schedules as values: what instants a rule yields, and the slots it is filed under.

Pure: no clock, no I/O but the time zone database. Instants are aware UTC datetimes in whole
seconds, between 1970 and the end of 9998.
"""

from shared.recurrence.at import At
from shared.recurrence.cron import Cron
from shared.recurrence.durations import format_duration, parse_duration
from shared.recurrence.every import Every
from shared.recurrence.parse import Schedule, parse_schedule
from shared.recurrence.slots import SlotKind, Slots, slots

__all__ = [
    "At",
    "Cron",
    "Every",
    "Schedule",
    "SlotKind",
    "Slots",
    "format_duration",
    "parse_duration",
    "parse_schedule",
    "slots",
]
