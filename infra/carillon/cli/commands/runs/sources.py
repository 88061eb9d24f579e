"""Where lists of runs come from: one job's history, or what has run of all jobs."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from carillon.cli.client import ApiClient, Json, Query
from carillon.cli.commands.runs.shown import COLUMNS, COLUMNS_ACROSS
from carillon.client.resources.following import FINAL, Follower

_PAGE = 100
"""The most that the API takes for one."""


class OfJob:
    """The history of one job: runs whole, by their fire times."""

    columns = COLUMNS

    def __init__(
        self, api: ApiClient, path: str, query: Query, chosen: dict[str, set[str]]
    ) -> None:
        self._api = api
        self._path = path
        self._query = query
        self._chosen = chosen
        self._follower: Follower | None = None

    def newest(self, limit: int) -> list[Json]:
        """At most so many, the newest first."""
        read = None if self._chosen else limit
        return list(islice(self._kept(self._api.items(self._path, read, self._query)), limit))

    def changes(self, limit: int) -> list[Any]:
        """The runs that are new since the last look, oldest first; at first the newest `limit`."""
        if self._follower is None:
            self._follower = Follower(self._api.session, self._path, limit)
        return list(self._kept(self._api.run(self._follower.changes())))

    def _kept(self, runs: Iterable[Any]) -> Iterable[Any]:
        chosen = self._chosen.items()
        return (run for run in runs if all(run.get(name) in values for name, values in chosen))


class Across:
    """The activity of all jobs: ends of attempts, by the time at which they were recorded."""

    columns = COLUMNS_ACROSS

    def __init__(self, api: ApiClient, query: Query) -> None:
        self._api = api
        self._query = query
        self._after: str | None = None
        self._seen: set[tuple[str, int, str]] = set()

    def newest(self, limit: int) -> list[Json]:
        """As `OfJob.newest`."""
        attempts: dict[tuple[str, int], Json] = {}
        for run in self._api.items("/runs", limit, self._query):
            attempt = (str(run["run_id"]), int(run["attempt"]))
            # What a batch wrote twice; of two that differ the end counts.
            if attempt not in attempts or run["status"] in FINAL:
                attempts[attempt] = run
        return list(attempts.values())

    def changes(self, limit: int) -> list[Any]:
        """As `OfJob.changes`. An answer reads a little of the last one again, which is dropped."""
        query: dict[str, str | int] = {**self._query, "limit": min(limit, _PAGE)}
        if self._after is not None:
            query |= {"limit": _PAGE, "after": self._after}
        answer = self._api.get("/runs", query)
        after, found = str(answer["as_of"]), list(answer["items"])
        while answer.get("next_cursor") and (self._after is not None or len(found) < limit):
            answer = self._api.get("/runs", {**query, "cursor": answer["next_cursor"]})
            found += answer["items"]
        self._after = after
        fresh = {_key(run): run for run in reversed(found) if _key(run) not in self._seen}
        # Only the last answer is read again.
        self._seen = {_key(run) for run in found} | set(fresh)
        return list(fresh.values())


def _key(run: Json) -> tuple[str, int, str]:
    return str(run["run_id"]), int(run["attempt"]), str(run["status"])
