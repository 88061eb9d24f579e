"""The port of changes: who did what, by subject and by owner."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from carillon.domain.changes.change import Action, Change, Subject
from carillon.stores.pages import Page


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """A choice of changes: those made from `from_at` to `until_at`, inclusive, by one whose id or
    name is `by`, and of this action (empty members leave none out)."""

    from_at: datetime | None = None
    until_at: datetime | None = None
    by: str = ""
    action: Action | None = None

    def chooses(self, change: Change) -> bool:
        return (
            (self.from_at is None or change.at >= self.from_at)
            and (self.until_at is None or change.at <= self.until_at)
            and self.by in ("", change.author.id, change.author.name)
            and self.action in (None, change.action)
        )


class ChangeStore(Protocol):
    """Changes, newest first. They are never changed; they leave when their time is over."""

    def put(self, change: Change) -> None:
        """Store the change, if there is none of its id: one put twice is the same change."""
        ...

    def of_subject(
        self,
        owner: str,
        subject: Subject,
        key: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        """Those of one subject, strongly consistent. Pages are as those of JobStore."""
        ...

    def of_owner(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        """Those of all that an owner has; eventually consistent."""
        ...
