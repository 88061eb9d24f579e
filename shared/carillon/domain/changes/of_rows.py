"""The change between two rows of a calendar, a notification, or an owner's quotas."""

import json
from datetime import datetime
from typing import Any

from carillon.domain.calendar import Calendar
from carillon.domain.changes.change import (
    Action,
    Change,
    Difference,
    Subject,
    changed_members,
)
from carillon.domain.notifying.notification import Notification
from carillon.domain.quotas import OwnLimits
from carillon.domain.spec.owners import Author

OwnedRow = Calendar | Notification | OwnLimits


def row_change(before: OwnedRow | None, after: OwnedRow, author: Author) -> Change:
    """The change that made `after` of `before`, the row that it replaces, if there is one."""
    changed: tuple[Difference, ...] = ()
    if before is not None or isinstance(after, OwnLimits):  # of which the deployment's are others
        changed = changed_members({} if before is None else _document(before), _document(after))
    action = Action.CREATE if before is None else Action.CHANGE
    owner, name = _owner_and_name(after)
    subject, revision = subject_of(after), after.revision
    return Change(owner, subject, name, name, action, revision, after.updated_at, author, changed)


def row_deletion(row: OwnedRow, author: Author, at: datetime) -> Change:
    """The change that takes a row away."""
    revision, subject = row.revision + 1, subject_of(row)
    owner, name = _owner_and_name(row)
    return Change(owner, subject, name, name, Action.DELETE, revision, at, author)


def subject_of(row: OwnedRow) -> Subject:
    match row:
        case Calendar():
            return Subject.CALENDAR
        case Notification():
            return Subject.NOTIFICATION
        case OwnLimits():
            return Subject.QUOTA


def _owner_and_name(row: OwnedRow) -> tuple[str, str]:
    """Of an owner's quotas, which are in a partition of the deployment's, too."""
    return (row.of, "quota") if isinstance(row, OwnLimits) else (row.owner, row.name)


def _document(row: OwnedRow) -> dict[str, Any]:
    if isinstance(row, OwnLimits):
        return {quota.value: limit for quota, limit in row.limits.items()}
    if isinstance(row, Calendar):
        return {
            "weekdays": sorted(row.weekdays),
            "ranges": [f"{first}..{last}" for first, last in row.ranges],
            "description": row.description,
        }
    return {
        "on": [each.value for each in row.on],
        "to": json.loads(row.to),
        "jobs": row.jobs,
        "tags": dict(row.tags),
        "at_most_every": row.at_most_every,
    }
