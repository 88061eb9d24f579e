"""How often a schedule fires."""

from datetime import datetime

from shared.recurrence.value import Recurrence

MONTH_DAYS = 30


def fires_per_month(schedule: Recurrence, after: datetime) -> int:
    """Occurrences in the 30 days after an instant: exact up to 10,000, estimated beyond."""
    raise NotImplementedError
