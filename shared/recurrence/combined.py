"""Several schedules as one: their union, without the exceptions."""

from dataclasses import dataclass

from shared.recurrence.at import At
from shared.recurrence.cron import Cron
from shared.recurrence.every import Every
from shared.recurrence.value import Recurrence

Simple = At | Every | Cron
"""What can be combined."""


@dataclass(frozen=True, slots=True)
class Combined(Recurrence):
    """The union of `schedules`, where an instant counts once, without those of `exceptions`.

    An exception in whole minutes (a cron expression without seconds) takes its whole minute out.
    All members have one time zone, start, end and DST rule: the combination's own.
    """

    schedules: tuple[Simple, ...]
    exceptions: tuple[Simple, ...] = ()
