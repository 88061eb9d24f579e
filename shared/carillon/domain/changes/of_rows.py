"""The change between two rows of a calendar or a notification."""

import json
from datetime import datetime
from typing import Any

from carillon.domain.calendar import Calendar
from carillon.domain.changes.change import Action, Change, Subject, changed_members
from carillon.domain.notifying.notification import Notification
from carillon.domain.spec.owners import Author

OwnedRow = Calendar | Notification


def row_change(before: OwnedRow | None, after: OwnedRow, author: Author) -> Change:
    """The change that made `after` of `before`, the row that it replaces, if there is one."""
    changed = () if before is None else changed_members(_document(before), _document(after))
    action = Action.CREATE if before is None else Action.CHANGE
    return Change(
        after.owner,
        subject_of(after),
        after.name,
        after.name,
        action,
        after.revision,
        after.updated_at,
        author,
        changed,
    )


def row_deletion(row: OwnedRow, author: Author, at: datetime) -> Change:
    """The change that takes a row away."""
    revision, subject = row.revision + 1, subject_of(row)
    return Change(row.owner, subject, row.name, row.name, Action.DELETE, revision, at, author)


def subject_of(row: OwnedRow) -> Subject:
    return Subject.CALENDAR if isinstance(row, Calendar) else Subject.NOTIFICATION


def _document(row: OwnedRow) -> dict[str, Any]:
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
