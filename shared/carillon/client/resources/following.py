"""The history of a job, looked at again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from carillon.client.errors import NotFound
from carillon.client.steps import Steps, collected, next_page

if TYPE_CHECKING:
    from carillon.client.session import Session
    from carillon.client.types.answers import RunForm

_MOST_LOOKUPS = 20
"""Runs that one look asks for by themselves; thousands may wait for a rate, say."""
FINAL = frozenset({"succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"})


class Follower:
    """Gives what is new in a history.

    The first look gives the newest `limit` runs; older ones are never shown.
    """

    def __init__(self, session: Session, path: str, limit: int) -> None:
        self._session = session
        self._path = path
        self._limit = limit
        self._seen: dict[str, tuple[str, int]] = {}
        self._open: dict[str, None] = {}  # those that were seen longest ago first
        self._oldest: str | None = None

    def changes(self) -> Steps[list[RunForm]]:
        """Runs that are new, or whose status or attempt is another one, oldest first."""
        newest = yield from self._newest()
        # A run can still change when newer ones have pushed it off the pages that are read.
        shown = {run["run_id"] for run in newest}
        pushed_off = [run_id for run_id in self._open if run_id not in shown]
        for run_id in pushed_off[:_MOST_LOOKUPS]:
            newest += yield from self._lookup(run_id)
        return sorted(filter(self._note, newest), key=lambda run: run["fire_at"])

    def _newest(self) -> Steps[list[RunForm]]:
        """At first `limit` runs; later the pages down to one without any news: what catches up
        comes behind newer runs that were seen already."""
        if self._oldest is None:
            first: list[RunForm]
            first = yield from collected(self._session.pages(self._path, self._limit))
            # Uniform UTC texts sort as their instants do.
            is_cut = first and len(first) == self._limit
            self._oldest = min(run["fire_at"] for run in first) if is_cut else ""
            return first
        found: list[RunForm] = []
        pages = self._session.pages(self._path)
        while (page := (yield from next_page(pages))) is not None:
            shown = [run for run in page if run["fire_at"] >= self._oldest]
            found += shown
            is_bottom = len(shown) < len(page)
            if is_bottom or (shown and all(run["run_id"] in self._seen for run in shown)):
                break
        return found

    def _lookup(self, run_id: str) -> Steps[list[RunForm]]:
        try:
            path = f"{self._path}/{quote(run_id, safe='')}"
            return [(yield from self._session.ask("GET", path))]
        except NotFound:
            self._open.pop(run_id, None)
            return []

    def _note(self, run: RunForm) -> bool:
        """True if the run is to be shown."""
        run_id, now = run["run_id"], (run["status"], run["attempt"])
        self._open.pop(run_id, None)
        if run["status"] not in FINAL:
            self._open[run_id] = None
        was = self._seen.get(run_id)
        self._seen[run_id] = now
        return was != now
