"""Which jobs' histories to look at: all of them, but those at rest seldom."""

from __future__ import annotations

from carillon.local.api_client import Api, Json
from carillon.local.live_view import SeenRun

#: A job that has nothing left to do is looked at in one round of so many.
REST_ROUNDS = 8

#: Runs read of a job's history: at first, when there may be an outage to catch up, and later.
FIRST_LOOK_BACK = 100
LOOK_BACK = 30

_FINAL = frozenset({"succeeded", "dead", "timed_out", "skipped", "cancelled", "missed"})


class Follower:
    """Reads the runs of every job of the caller, also of those created meanwhile."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._round = 0
        #: By job id: whether all of its runs were final at the last look.
        self._at_rest: dict[str, bool] = {}

    def look(self) -> list[SeenRun]:
        """The newest runs of the jobs that may have changed. Raises CallFailed."""
        self._round += 1
        runs: list[SeenRun] = []
        for job in self._api.list_all("/jobs"):
            if self._may_have_changed(job):
                runs += self._runs_of(job)
        return runs

    def _may_have_changed(self, job: Json) -> bool:
        if job["next_fire_at"] is not None or self._round % REST_ROUNDS == 0:
            return True
        return not self._at_rest.get(job["job_id"], False)

    def _runs_of(self, job: Json) -> list[SeenRun]:
        job_id = str(job["job_id"])
        limit = LOOK_BACK if job_id in self._at_rest else FIRST_LOOK_BACK
        items = self._api.get(f"/jobs/{job_id}/runs", limit=limit)["items"]
        over = job["next_fire_at"] is None and bool(items)
        self._at_rest[job_id] = over and all(item["status"] in _FINAL for item in items)
        return [SeenRun.from_answer(str(job["name"]), item) for item in items]
