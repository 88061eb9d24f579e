"""What every list says besides its items."""

from typing import Any

from pydantic import BaseModel, Field

from carillon.stores.ports import Page


class UnreadableForm(BaseModel):
    """A row that is left out since it cannot be read: of a bug, or of a later version. `id` is that
    of the item; of a run its key in the store."""

    id: str
    reason: str


class ListForm(BaseModel):
    """`next_cursor` is null on the last page."""

    next_cursor: str | None
    unreadable: list[UnreadableForm] = Field(
        default_factory=list, description="Rows of the page that cannot be read, left out."
    )


def rest_of(page: Page[Any]) -> dict[str, Any]:
    """The members of a list's form besides its items."""
    unreadable = [UnreadableForm(id=each, reason=why) for each, why in page.unreadable.items()]
    return {"next_cursor": page.next_cursor, "unreadable": unreadable}
