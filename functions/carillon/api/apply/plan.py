"""The plan of an apply: what is to become of each job and calendar."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from carillon.api.calendars.routes import CalendarForm
from carillon.api.calendars.service import CalendarPut
from carillon.api.http.problems import (
    DriftError,
    ManagedError,
    ProblemError,
    problem_of,
)
from carillon.api.jobs.changes import Put, PutAction
from carillon.api.jobs.drafts import fingerprint_of
from carillon.domain.calendar import Calendar
from carillon.domain.changes.change import differences
from carillon.domain.job import Job
from carillon.domain.spec.owners import Author

Difference = tuple[str, Any, Any]
"""A path, the value before, and the value after."""


class ItemKind(StrEnum):
    CALENDAR = "calendar"
    JOB = "job"


class ItemAction(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    REVIVE = "revive"
    RENAME = "rename"
    NONE = "none"
    DELETE = "delete"
    DRIFT = "drift"
    """Others have changed the job since it was applied."""
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"
    """Not reached in time, or by a store that failed: another apply may."""


BLOCKING = frozenset({ItemAction.DRIFT, ItemAction.REFUSED, ItemAction.UNAVAILABLE})
"""With any of these nothing is written."""


@dataclass(frozen=True, slots=True)
class Item:
    """`put` is what carries it out; None where nothing can, and for a deletion."""

    kind: ItemKind
    name: str
    action: ItemAction
    changes: tuple[Difference, ...] = ()
    reindexes: bool = False
    put: Put | CalendarPut | None = None
    job: Job | None = None
    problem: ProblemError | None = None

    @property
    def is_to_write(self) -> bool:
        """True if a row changes: it may change though no one sees it, where the manager has yet to
        note that it wants what others have made of the job."""
        if self.put is None:
            return self.action is ItemAction.DELETE
        return self.put.action is not PutAction.NONE

    @property
    def fires_otherwise(self) -> bool:
        """True of a job that fires by another schedule, once it is resumed where it is paused."""
        return isinstance(self.put, Put) and self.put.fires_otherwise


@dataclass(frozen=True, slots=True)
class Applied:
    """`is_written` is False for a dry run, and where an item hindered it. `is_complete`: each item
    was reached."""

    items: Sequence[Item]
    digest: str
    is_written: bool

    @property
    def is_complete(self) -> bool:
        return not any(item.action is ItemAction.UNAVAILABLE for item in self.items)

    @property
    def counts(self) -> Counter[str]:
        return Counter(item.action.value for item in self.items)


def calendar_item(put: CalendarPut) -> Item:
    changes: tuple[Difference, ...] = ()
    if put.action is PutAction.CHANGE and put.before is not None:
        changes = tuple(differences(_document(put.before), _document(put.calendar)))
    action = ItemAction(put.action.value)
    return Item(ItemKind.CALENDAR, put.calendar.name, action, changes, put=put)


def job_item(
    put: Put, manager: str, author: Author, now: datetime, *, force: bool, adopt: bool
) -> Item:
    """The item of a job that is put for `manager`, or the reason why it may not be."""
    before = _replaced(put)
    name = put.job.spec.name
    if before is not None and before.managed_by != manager and not adopt:
        managed = ManagedError(name, before.managed_by, manager)
        return failed(ItemKind.JOB, name, ItemAction.REFUSED, managed)
    changes: list[Difference] = []
    if before is not None:
        changes = list(differences(before.spec.document, put.job.spec.document))
        is_drifted = before.managed_by == manager and before.applied != fingerprint_of(before.spec)
        if is_drifted and changes and not force:
            drift = DriftError(name, before.revision, author_text(before.author))
            item = failed(ItemKind.JOB, name, ItemAction.DRIFT, drift)
            return replace(item, changes=tuple(changes), job=put.job)
        if before.managed_by != manager:
            changes.append(("managed_by", before.managed_by or None, manager))
    action = ItemAction(put.action.value)
    managed_put = _managed(put, manager, author, now)
    if action is ItemAction.NONE and changes:
        action = ItemAction.CHANGE  # it is adopted as it is
    return Item(
        ItemKind.JOB, name, action, tuple(changes), put.reindexes, managed_put, managed_put.job
    )


def failed(kind: ItemKind, name: str, action: ItemAction, error: Exception) -> Item:
    return Item(kind, name, action, problem=problem_of(error))


def digest_of(items: Iterable[Item]) -> str:
    """The digest of a plan: what it does to which jobs, and how calendars are to be, whether they
    are so already or not: parts of a large manifest may each name the same calendar."""
    steps = [
        (item.kind, item.name, _document(item.put.calendar))
        if isinstance(item.put, CalendarPut)
        else (item.kind, item.name, item.action, item.changes, item.job and item.job.applied)
        for item in items
        if item.kind is ItemKind.CALENDAR or item.action is not ItemAction.NONE
    ]
    return hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest()


def author_text(author: Author) -> str:
    """The author of a change, for people."""
    return f"{author.name or author.id} ({author.via})"


def _replaced(put: Put) -> Job | None:
    """The job that the put changes, under whichever name it has been; None for a new one. One whose
    renaming is half done has ended under the former name: what is left is still the same change."""
    if put.renamed is not None:
        return put.renamed.before
    return None if put.before is None or put.before.is_tombstone else put.before


def _managed(put: Put, manager: str, author: Author, now: datetime) -> Put:
    """The put by which `manager` manages the job, and remembers what it has applied."""
    job, before = put.job, put.before
    if job.is_tombstone:
        return put  # a completed one-shot, carried out already
    managed = replace(job, managed_by=manager, applied=fingerprint_of(job.spec))
    if managed != job and before is not None and job.revision == before.revision:
        managed = replace(managed, revision=job.revision + 1, updated_at=now, author=author)
    return Put(managed, before, put.renamed)


def _document(calendar: Calendar) -> dict[str, Any]:
    hidden = {"revision", "created_at", "updated_at"}
    return CalendarForm.of(calendar).model_dump(mode="json", exclude=hidden)
