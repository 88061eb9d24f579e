from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from carillon.local.api_client import Api
from carillon.local.deployment import Tokens
from carillon.local.live_view import FIRST_LOOK_BACK, LOOK_BACK, REST_ROUNDS, Follower


class History:
    """An API with jobs and their runs; it remembers which histories were read."""

    def __init__(self) -> None:
        self.jobs: dict[str, str | None] = {}
        self.statuses: dict[str, list[str]] = {}
        self.read: list[tuple[str, int]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        parts = request.url.path.split("/")
        if parts[-1] == "jobs":
            items = [
                {"job_id": job_id, "name": job_id, "next_fire_at": next_fire_at}
                for job_id, next_fire_at in self.jobs.items()
            ]
        else:
            self.read.append((parts[-2], int(request.url.params["limit"])))
            items = [self.run(parts[-2], status) for status in self.statuses.get(parts[-2], [])]
        return httpx2.Response(200, json={"items": items, "next_cursor": None})

    @staticmethod
    def run(job_id: str, status: str) -> dict[str, Any]:
        return {
            "run_id": f"{job_id}.1",
            "fire_at": "2026-11-20T12:00:00Z",
            "updated_at": "2026-11-20T12:00:01Z",
            "status": status,
            "attempt": 1,
            "lag_seconds": 0.1,
            "error": None,
            "reason": None,
            "covers_count": None,
            "kind": "scheduled",
            "redrive": 0,
        }

    def follower(self) -> Follower:
        def sign_in() -> Tokens:
            return Tokens("access", "id", datetime.now(UTC) + timedelta(hours=1))

        return Follower(Api("http://127.0.0.1", sign_in, httpx2.MockTransport(self)))

    def reads(self, job_id: str) -> int:
        return sum(read == job_id for read, _ in self.read)


def test_a_recurring_job_is_read_every_round_and_further_back_at_first() -> None:
    history = History()
    history.jobs = {"beat": "2026-11-20T12:00:05Z"}
    history.statuses = {"beat": ["succeeded"]}
    follower = history.follower()
    runs = [run for _ in range(3) for run in follower.look()]
    assert [run.job_name for run in runs] == ["beat"] * 3
    assert history.read == [("beat", FIRST_LOOK_BACK), ("beat", LOOK_BACK), ("beat", LOOK_BACK)]


def test_a_job_is_read_until_it_rests_and_then_seldom() -> None:
    history = History()
    history.jobs = {"once": None}
    follower = history.follower()
    for statuses in ([], ["running"], ["retrying"], ["dead"]):
        history.statuses = {"once": statuses}
        follower.look()
    assert history.reads("once") == 4
    for _ in range(2 * REST_ROUNDS):
        follower.look()
    assert history.reads("once") == 4 + 2


def test_a_job_created_meanwhile_is_followed_too() -> None:
    history = History()
    follower = history.follower()
    assert follower.look() == []
    history.jobs = {"new": "2026-11-20T12:00:05Z"}
    history.statuses = {"new": ["succeeded"]}
    assert [run.job_name for run in follower.look()] == ["new"]
