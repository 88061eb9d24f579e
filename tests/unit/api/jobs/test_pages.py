"""Pages of jobs: what an answer has room for, and pages that are short."""

import pytest

from carillon.domain.job import Job, JobState
from carillon.stores.memory import MemoryJobStore
from carillon.stores.ports import JobFilter, Page
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json

LARGEST_ANSWER_BYTES = 6 * 1024 * 1024
"""Of a Lambda function, in which the body is escaped once more."""

BIG: Json = {
    "type": "webhook",
    "url": "https://example.com/hook",
    "headers": {f"X-{n}": "v" * 1024 for n in range(20)},
}
QUOTES: Json = {**BIG, "headers": {f"X-{n}": '"' * 1024 for n in range(20)}}


@pytest.mark.parametrize(
    "members",
    [
        {"target": BIG, "on_success": BIG, "on_failure": BIG},
        {"target": QUOTES, "on_success": QUOTES, "on_failure": QUOTES},
        {"tags": {f"k{n}": "é" * 256 for n in range(20)}},
        {"payload": "\x00" * 10_000},
    ],
    ids=["targets", "quotes", "tags", "payload"],
)
def test_whole_jobs_are_weighed_for_a_page(client: Client, members: Json) -> None:
    _weigh_pages(client, members)


def test_summaries_are_weighed_by_their_tags(client: Client) -> None:
    _weigh_pages(client, {"tags": {f"k{n}": "🔔" * 256 for n in range(20)}}, view="summary")


def _weigh_pages(client: Client, members: Json, **query: str) -> None:
    for _ in range(100):
        assert client.post("/jobs", BODY | members).status == 201
    found: list[str] = []
    query |= {"limit": "100"}
    while True:
        answer = client.get("/jobs", **query)
        escaped = answer.text.replace("\\", "\\\\").replace('"', '\\"')
        assert len(escaped.encode()) < LARGEST_ANSWER_BYTES
        found += [job["job_id"] for job in answer.json["items"]]
        if answer.json["next_cursor"] is None:
            break
        query["cursor"] = answer.json["next_cursor"]
    assert len(set(found)) == len(found) == 100


class Sparse(MemoryJobStore):
    """Every other page is empty, as where a filter leaves little of what was read."""

    is_empty = False

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        self.is_empty = not self.is_empty
        if self.is_empty and cursor is not None:
            return Page((), cursor)
        return super().list(owner, min(limit, 2), cursor, only)


def test_a_change_to_many_goes_on_over_empty_pages(world: World) -> None:
    world.jobs = Sparse()
    client = Client(world.api())
    ids = [client.post("/jobs", BODY | {"parent": "p"}).json["job_id"] for _ in range(5)]

    answer = client.send("POST", "/jobs/pause", query={"parent": "p"})

    assert answer.json == {"changed": 5, "managed": 0, "next_cursor": None}
    for job_id in ids:
        job = world.jobs.get(OWNER, job_id)
        assert job is not None
        assert job.state is JobState.PAUSED


def test_an_empty_page_has_its_cursor(world: World) -> None:
    world.jobs = Sparse()
    client = Client(world.api())
    for _ in range(3):
        client.post("/jobs", BODY)
    world.jobs.is_empty = False
    first = client.get("/jobs", limit="2").json
    second = client.get("/jobs", limit="2", cursor=first["next_cursor"]).json
    world.jobs.is_empty = False
    empty = client.get("/jobs", limit="2", cursor=first["next_cursor"]).json

    assert (len(first["items"]), len(second["items"]), second["next_cursor"]) == (2, 1, None)
    assert empty == {"items": [], "unreadable": [], "next_cursor": first["next_cursor"]}
