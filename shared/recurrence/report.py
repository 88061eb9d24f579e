"""What to know about a schedule before it is created: DST transitions that touch it, warnings."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.recurrence.value import Recurrence


@dataclass(frozen=True, slots=True)
class TouchedTransition:
    """A change of the clocks that the schedule's occurrences meet.

    `kind` is "gap" or "fold"; the wall times from `local_from` up to (not including) `local_until`
    are skipped or shown twice; `count` of them are occurrences by their wall time (None: more than
    1,000), the first at `first_local`. `effect` says in English what happens to them.
    """

    transition_at: datetime
    kind: str
    local_from: datetime
    local_until: datetime
    count: int | None
    first_local: datetime
    effect: str


class WarningCode(StrEnum):
    """The closed list of warnings."""

    DST = "dst"
    MANY_FIRES = "many_fires"
    """More than MANY_FIRES_A_DAY."""
    DAY_OR_WEEKDAY = "day_or_weekday"
    """Both day fields are restricted, and either of them is enough."""
    DAY_AND_WEEKDAY = "day_and_weekday"
    """One day field begins with a star, so that both must match although both restrict."""
    NOT_EVERY_MONTH = "not_every_month"
    """As day 31: the months without it have no occurrence."""
    FAR_AWAY = "far_away"
    """No occurrence within a year."""


MANY_FIRES_A_DAY = 1_440


@dataclass(frozen=True, slots=True)
class Warning_:
    code: WarningCode
    message: str


def touched_transitions(
    schedule: Recurrence, after: datetime, until: datetime
) -> list[TouchedTransition]:
    """The transitions in (after, until] that touch occurrences, ascending."""
    raise NotImplementedError


def warnings_of(schedule: Recurrence, after: datetime) -> list[Warning_]:
    """What a user should know about a schedule that is to hold from `after` on."""
    raise NotImplementedError
