"""A schedule in one English sentence."""

from shared.recurrence.closed_days import CalendarRule
from shared.recurrence.spread import Window
from shared.recurrence.value import Recurrence


def sentence(
    schedule: Recurrence,
    *,
    calendar: tuple[str, CalendarRule] | None = None,
    window: Window | None = None,
) -> str:
    """As in "every weekday at 09:00 in Europe/Riga"; lower case, without a full stop."""
    raise NotImplementedError
