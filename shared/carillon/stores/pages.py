"""The pages that lists of every port come in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from carillon.errors import UnreadableRowError

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """Items in order; `next_cursor` is text that continues behind them, None at the end, and at the
    end only: where a filter leaves few, or items are large, a page may be short, even empty, with
    more to come. A caller that wants all continues until there is no cursor.

    A cursor is meaningful only for the same method and the same owner and job; anything else
    raises InvalidFieldError("cursor", …). Rows that cannot be read are left out; `unreadable` has
    the reasons by their ids: one bad row must not hide the others.
    """

    items: tuple[Item, ...]
    next_cursor: str | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def whole(self) -> tuple[Item, ...]:
        """The items, for a caller that needs all there are; raises UnreadableRowError if some are
        left out."""
        for reason in self.unreadable.values():
            raise UnreadableRowError(reason)
        return self.items
