"""Changes in a dict."""

from collections import defaultdict
from itertools import islice
from threading import Lock

from carillon.domain.changes.change import Change, Subject
from carillon.stores.changes import ChangeFilter
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.pages import Page


class MemoryChangeStore:
    """ChangeStore in memory; nothing expires."""

    def __init__(self) -> None:
        self._owners: defaultdict[str, dict[str, Change]] = defaultdict(dict)
        self._lock = Lock()

    def put(self, change: Change) -> None:
        with self._lock:
            self._owners[change.owner].setdefault(change.change_id, change)

    def of_subject(
        self,
        owner: str,
        subject: Subject,
        key: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        return self._page(owner, limit, cursor, only or ChangeFilter(), (subject, key))

    def of_owner(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: ChangeFilter | None = None,
    ) -> Page[Change]:
        return self._page(owner, limit, cursor, only or ChangeFilter(), None)

    def _page(
        self,
        owner: str,
        limit: int,
        cursor: str | None,
        only: ChangeFilter,
        of: tuple[Subject, str] | None,
    ) -> Page[Change]:
        scope = ("changes", owner, *(of or ()))
        behind = "" if cursor is None else decode_cursor(scope, cursor)
        with self._lock:
            found = sorted(self._owners.get(owner, {}).items())
        chosen = (
            change
            for change_id, change in found
            if change_id > behind
            and of in (None, (change.subject, change.key))
            and only.chooses(change)
        )
        items = tuple(islice(chosen, limit + 1))
        if len(items) <= limit:
            return Page(items)
        return Page(items[:limit], encode_cursor(scope, items[limit - 1].change_id))
