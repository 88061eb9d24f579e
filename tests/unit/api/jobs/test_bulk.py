"""POST /jobs/bulk: what becomes of each item, keys, and the time that there is."""

from threading import Lock
from typing import Any

import pytest

from carillon.api.jobs.bulk_service import TIME_BUDGET
from carillon.domain.job import Job
from carillon.domain.spec.names import job_id_of
from carillon.errors import StoreUnavailableError
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, STRANGER, Answer, Client, Json


def bodies(count: int) -> list[Json]:
    return [BODY | {"name": f"job {n}"} for n in range(count)]


def bulk(client: Client, items: list[Any], key: str | None = None) -> Answer:
    return client.post("/jobs/bulk", {"items": items}, key=key)


def statuses(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.text
    return [item["status"] for item in answer.json["items"]]


def counts(answer: Answer) -> tuple[int, int, int, int]:
    body = answer.json
    return body["created"], body["existing"], body["refused"], body["unavailable"]


def test_a_thousand_jobs_are_created_in_one_call(client: Client, world: World) -> None:
    answer = bulk(client, bodies(1000), "all")

    assert statuses(answer) == [201] * 1000
    assert counts(answer) == (1000, 0, 0, 0)
    for index, item in enumerate(answer.json["items"]):
        assert (item["index"], item["problem"]) == (index, None)
        assert item["job_id"] == job_id_of(OWNER, f"job {index}")
        job = world.jobs.get(OWNER, item["job_id"])
        assert job is not None
        assert job.spec.name == f"job {index}"


def test_a_repetition_under_keys_creates_nothing(client: Client) -> None:
    items = bodies(3)
    items[1]["idempotency_key"] = "mine"
    first, again = bulk(client, items, "k"), bulk(client, items, "k")

    assert (statuses(first), statuses(again)) == ([201] * 3, [200] * 3)
    assert counts(again) == (0, 3, 0, 0)
    ids = [item["job_id"] for item in first.json["items"]]
    assert [item["job_id"] for item in again.json["items"]] == ids
    assert len(client.get("/jobs").json["items"]) == 3
    # An item's own key is that of a single creation.
    single = client.post("/jobs", bodies(2)[1], key="mine")
    assert (single.status, single.json["job_id"]) == (200, ids[1])


def test_a_refused_item_hinders_no_other_and_has_the_problem_it_has_alone(client: Client) -> None:
    bad = BODY | {"schedule": "never", "name": "bad"}
    answer = bulk(client, [BODY, bad, BODY | {"colour": 1, "priority": 1}, {}])

    assert statuses(answer) == [201, 422, 422, 422]
    assert counts(answer) == (1, 0, 3, 0)
    alone = client.post("/jobs", bad).json
    told = answer.json["items"][1]
    assert told["problem"] == alone | {"instance": "/jobs/bulk"}
    assert told["job_id"] is None
    fields = [[error["field"] for error in item["problem"]["errors"]] for item in told_of(answer)]
    assert fields == [["schedule"], ["priority", "colour"], ["schedule", "name", "target"]]
    assert len(client.get("/jobs").json["items"]) == 1


def told_of(answer: Answer) -> list[Any]:
    return [item for item in answer.json["items"] if item["problem"] is not None]


def test_keys_of_items_are_checked(client: Client) -> None:
    good, reused = BODY | {"idempotency_key": "k"}, BODY | {"idempotency_key": "k", "payload": 1}
    assert statuses(bulk(client, [good])) == [201]
    answer = bulk(client, [good, reused, *(BODY | {"idempotency_key": key} for key in ("", 5))])

    assert statuses(answer) == [200, 422, 422, 422]
    problems = [item["problem"] for item in told_of(answer)]
    assert problems[0]["type"] == "urn:carillon:problem:idempotency-key-reused"
    assert [problem["errors"][0]["field"] for problem in problems[1:]] == ["idempotency_key"] * 2
    client.delete(f"/jobs/{job_id_of(OWNER, BODY['name'])}")
    assert statuses(bulk(client, [good])) == [410]


def test_the_same_key_twice_in_one_call_is_one_job(client: Client) -> None:
    answer = bulk(client, [BODY | {"idempotency_key": "k"}] * 20)

    assert sorted(statuses(answer)) == [200] * 19 + [201]
    assert len(client.get("/jobs").json["items"]) == 1


def test_a_refused_item_of_many_errors_is_told_of_ten(client: Client) -> None:
    answer = bulk(client, [BODY | {f"field_{n}": n for n in range(100)}])

    (item,) = answer.json["items"]
    assert len(item["problem"]["errors"]) == 10
    assert "more" in item["problem"]["detail"]


def test_a_body_over_one_mebibyte_is_refused(client: Client) -> None:
    answer = bulk(client, [BODY | {"payload": "x" * 60_000}] * 20)

    assert (answer.status, answer.fields) == (413, ["body"])


def test_a_key_leaves_room_for_the_places(client: Client) -> None:
    assert bulk(client, bodies(1), "k" * 251).status == 200
    refused = bulk(client, bodies(1), "k" * 252)
    assert (refused.status, refused.fields) == (400, ["Idempotency-Key"])
    assert "251" in refused.json["detail"]


class Slow(MemoryJobStore):
    """Takes a second for each creation, and fails for those named `torn`, once."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._torn: set[str] = set()
        self._guard = Lock()

    def create(self, job: Job) -> bool:
        with self._guard:
            self._world.clock.advance(1)
            if job.spec.name == "torn" and job.job_id not in self._torn:
                self._torn.add(job.job_id)
                raise StoreUnavailableError("no answer")
        return super().create(job)


def test_what_is_not_reached_in_time_comes_with_the_next_call(world: World) -> None:
    world.jobs = Slow(world)
    client = Client(world.api())
    created = 0
    rounds = 0
    while created < 100:
        answer = bulk(client, bodies(100), "k")
        assert set(statuses(answer)) <= {200, 201, 503}
        assert counts(answer)[1] == created
        # Sixteen at a time: some were begun when the time was over.
        seconds = int(TIME_BUDGET.total_seconds())
        assert answer.json["created"] in range(min(seconds, 100 - created), seconds + 17)
        created += answer.json["created"]
        rounds += 1
        for item in told_of(answer):
            assert item["problem"]["type"] == "urn:carillon:problem:unavailable"
    assert rounds in (3, 4, 5)
    assert answer.json["unavailable"] == 0
    assert {job["name"] for job in listed(client)} == {f"job {n}" for n in range(100)}


def listed(client: Client) -> list[Any]:
    items: list[Any] = client.get("/jobs", limit="100").json["items"]
    return items


def test_a_store_that_fails_for_one_item_fails_for_that_item(world: World) -> None:
    world.jobs = Slow(world)
    client = Client(world.api())
    items = bodies(3)
    items[1]["name"] = "torn"

    first = bulk(client, items, "k")

    assert (statuses(first), counts(first)) == ([201, 503, 201], (2, 0, 0, 1))
    assert statuses(bulk(client, items, "k")) == [200, 201, 200]


def test_keys_are_the_owner_s_own(client: Client, stranger: Client, world: World) -> None:
    assert statuses(bulk(client, bodies(2), "k")) == [201, 201]
    assert statuses(bulk(stranger, bodies(2), "k")) == [201, 201]

    assert world.jobs.get(STRANGER, job_id_of(STRANGER, "job 1")) is not None
    assert len(listed(client)) == 2


def test_each_new_job_is_told_of(client: Client, world: World) -> None:
    bulk(client, [*bodies(2), {}], "k")
    bulk(client, bodies(2), "k")

    assert world.log.getvalue().count('"action":"job.created"') == 2


@pytest.mark.parametrize("item", [5, None, "x", [], [BODY]])
def test_an_item_that_is_no_object_is_told_in_its_place(client: Client, item: Any) -> None:
    answer = client.post("/jobs/bulk", {"items": [BODY, item, BODY | {"name": "other"}]})

    assert answer.status == 200, answer.text
    assert [each["status"] for each in answer.json["items"]] == [201, 422, 201]
    problem = answer.json["items"][1]["problem"]
    assert problem["errors"] == [{"field": "body", "message": "must be an object"}]


def change(client: Client, *items: Any) -> Answer:
    return client.send("PATCH", "/jobs/bulk", {"items": list(items)})


def test_jobs_are_changed_in_one_call(client: Client, world: World) -> None:
    created = bulk(client, bodies(30)).json["items"]
    items = [{"job_id": each["job_id"], "patch": {"window": "15m"}} for each in created]
    for _ in range(2):  # a repetition changes nothing more
        answer = change(client, *items)
        assert statuses(answer) == [200] * 30
        assert [each["job_id"] for each in answer.json["items"]] == [i["job_id"] for i in items]
        assert (answer.json["changed"], answer.json["refused"]) == (30, 0)
        jobs = [world.jobs.get(OWNER, each["job_id"]) for each in created]
        assert {(job.spec.window, job.revision) for job in jobs if job} == {("15m", 2)}


def test_a_change_that_is_refused_hinders_no_other(client: Client, stranger: Client) -> None:
    (mine,) = bulk(client, bodies(1)).json["items"]
    (theirs,) = bulk(stranger, bodies(1)).json["items"]
    answer = change(
        client,
        {"job_id": theirs["job_id"], "patch": {"window": "5m"}},
        {"job_id": mine["job_id"], "patch": {"window": "5 parsecs"}},
        {"job_id": mine["job_id"], "patch": {"name": "other"}, "at": 1},
        "no item",
        {"job_id": mine["job_id"], "patch": {"window": "5m"}},
    )
    assert statuses(answer) == [404, 422, 422, 422, 200]
    assert (answer.json["changed"], answer.json["refused"]) == (1, 4)
    assert client.get(f"/jobs/{mine['job_id']}").json["window"] == "5m"
    assert stranger.get(f"/jobs/{theirs['job_id']}").json["window"] is None
