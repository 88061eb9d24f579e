"""What every refusal looks like, and the requests that no route ever sees."""

import base64
from typing import Any

import pytest

from carillon.api.http.requests import BODY_LIMIT_BYTES, MOST_LEVELS
from carillon.domain.job import Job
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.stores.memory import MemoryJobStore
from tests.unit.api.conftest import BODY, World, new_world
from tests.unit.api.gateway import Client, Json, answer_of, event

MEMBERS = ["type", "title", "status", "detail", "instance", "errors"]


def test_a_problem_has_the_members_of_rfc_9457(client: Client) -> None:
    answer = client.get("/nowhere")

    assert answer.headers["content-type"] == "application/problem+json"
    assert list(answer.json) == MEMBERS
    assert answer.json == {
        "type": "urn:carillon:problem:not-found",
        "title": "Not found",
        "status": 404,
        "detail": "there is no such resource",
        "instance": "/nowhere",
        "errors": [],
    }


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", "DELETE, GET, POST"),
        ("HEAD", "/jobs", "DELETE, GET, POST"),
        ("OPTIONS", "/jobs", "DELETE, GET, POST"),
        ("POST", "/jobs/x", "DELETE, GET, PATCH"),
        ("BREW", "/jobs/x", "DELETE, GET, PATCH"),
        ("GET", "/jobs/x/pause", "POST"),
        ("GET", "/jobs/pause", "POST"),
        ("DELETE", "/jobs/bulk", "PATCH, POST"),
        ("PUT", "/jobs/resume", "POST"),
        ("DELETE", "/jobs/x/runs/y.z", "GET"),
        ("GET", "/schedules/preview", "POST"),
        ("POST", "/forecast", "GET"),
        ("POST", "/calendars", "GET"),
        ("POST", "/calendars/x", "DELETE, GET, PUT"),
        ("DELETE", "/status", "GET"),
        ("POST", "/openapi.json", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = client.send(method, path)

    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert answer.json["type"] == "urn:carillon:problem:method-not-allowed"


@pytest.mark.parametrize("path", ["/", "/job", "/jobs/", "/jobs/x/", "/jobs//runs", "/jobs/x/y"])
def test_an_unknown_path_is_not_found_by_any_method(client: Client, path: str) -> None:
    assert client.get(path).status == 404
    assert client.post(path).status == 404


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "nonsense",
        "[]",
        '[{"name": "x"}]',
        "null",
        '"text"',
        "5",
        '{"payload": NaN}',
        '{"payload": -Infinity}',
        '{"payload": 1e400}',
        '{"payload": ' + "9" * 5000 + "}",
        '{"payload": "\\ud800"}',
        '{"\\udfff": 1}',
        '{"payload": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"payload": ' + "[" * MOST_LEVELS + "]" * MOST_LEVELS + "}",
        "\ud800",
        b"\xff{}",
        b'{"payload": "\xc3"}',
    ],
)
def test_a_body_that_cannot_be_stored_is_no_json(client: Client, text: str | bytes) -> None:
    answer = client.post("/jobs", text)

    assert answer.status == 400, answer.text
    assert answer.fields == ["body"]
    assert client.get("/jobs").json["items"] == []


def test_a_broken_base64_body_is_refused(world: World) -> None:
    made = event("POST", "/jobs", body="%%%", claims={"sub": "o"}) | {"isBase64Encoded": True}

    assert answer_of(world.api(), made).status == 400


def test_bodies_may_be_base64_and_as_deep_as_the_limit(client: Client) -> None:
    deep: Any = None
    for _ in range(MOST_LEVELS - 1):
        deep = [deep]
    answer = client.post("/jobs", BODY | {"payload": deep})
    assert (answer.status, answer.json["payload"]) == (201, deep)

    answer = client.post(
        "/jobs",
        b'{"name": "\xc5\xbe", "schedule": "every 5m", "target": {"type": "task", "name": "t"}}',
    )
    assert (answer.status, answer.json["name"]) == (201, "ž")


def test_a_body_over_the_whole_limit_is_not_even_read(client: Client) -> None:
    answer = client.post("/jobs", "[" * (BODY_LIMIT_BYTES + 1))

    assert (answer.status, answer.fields) == (413, ["body"])
    assert str(BODY_LIMIT_BYTES) in answer.json["detail"]


@pytest.mark.parametrize(
    "media_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/jsonp",
    ],
)
def test_only_json_is_taken(client: Client, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    answer = client.send("POST", "/jobs", BODY, headers=headers)

    assert answer.status == 415
    # Without a body there is nothing to misread.
    assert client.send("POST", "/jobs", headers=headers).fields == ["body"]
    assert client.send("POST", f"/jobs/{'0' * 26}/pause", headers=headers).status == 404


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_has_more_than_one_spelling(client: Client, media_type: str) -> None:
    answer = client.send("POST", "/jobs", BODY, headers={"Content-Type": media_type})

    assert answer.status == 201


@pytest.mark.parametrize(
    ("error", "word"),
    [(StoreUnavailableError("throttled"), "throttled"), (QueueUnavailableError(3, "down"), "down")],
)
def test_what_is_down_for_a_moment_is_503(error: Exception, word: str) -> None:
    class Failing(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Job | None:
            raise error

    world = new_world()
    answer = Client(world.api(jobs=Failing())).get(f"/jobs/{'0' * 26}")

    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert answer.json["type"] == "urn:carillon:problem:unavailable"
    assert word not in answer.text
    assert "request.unavailable" in world.log.getvalue()
    assert word in world.log.getvalue()


def test_a_fault_of_ours_is_500_without_its_words() -> None:
    class Broken(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Job | None:
            raise RuntimeError("secret detail")

    world = new_world()
    answer = Client(world.api(jobs=Broken())).get(f"/jobs/{'0' * 26}")

    assert answer.status == 500
    assert list(answer.json) == MEMBERS
    assert "secret" not in answer.text
    assert "request.failed" in world.log.getvalue()
    assert "secret detail" in world.log.getvalue()


def test_a_wrong_answer_of_ours_is_500_and_not_the_caller_s_fault() -> None:
    """The resolver would answer 422 when its own answer does not fit the model."""

    class Odd(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Job | None:
            job = super().get(owner, job_id)
            if job is not None:
                object.__setattr__(job, "name", 5)
            return job

    world = new_world()
    client = Client(world.api(jobs=Odd()))
    job_id = client.post("/jobs", BODY).json["job_id"]

    assert client.get(f"/jobs/{job_id}").status == 500


@pytest.mark.parametrize(
    "claims",
    [None, {}, {"sub": ""}, {"sub": None}, {"sub": ["a"]}, {"sub": "a" * 256}, {"sub": "ā"}],
)
def test_a_request_without_an_owner_is_refused(world: World, claims: Json | None) -> None:
    api = world.api()
    bodies = {"/schedules/preview": '{"schedule": "every 1m"}', "/calendars/{name}": "{}"}
    for path, methods in api.describe()["paths"].items():
        for method, operation in methods.items():
            body = bodies.get(path) if "requestBody" in operation else None
            if "requestBody" in operation and body is None:
                continue
            asked = path.replace("{", "").replace("}", "")
            required = {"minute": "2026-11-20T12:00:00Z"} if path == "/forecast/jobs" else None
            query = {"parent": "p"} if path.startswith("/jobs") and "{" not in path else required
            made = event(method.upper(), asked, body=body, query=query, claims=claims)
            answer = answer_of(api, made)
            is_open = operation.get("security") == []
            expected = 404 if path.startswith("/completions") else 200
            assert answer.status == (expected if is_open else 401), (method, path)


def test_nothing_of_one_request_is_left_for_the_next(client: Client) -> None:
    """The resolver keeps the current event in a class attribute."""
    body = base64.b64encode(b'{"x": 1}').decode()
    assert client.post("/jobs", body).status == 400
    assert client.post("/jobs", BODY).status == 201
    assert client.post("/jobs").fields == ["body"]
