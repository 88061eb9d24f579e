import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from carillon.local.api_client import Api, CallFailed, Patient
from carillon.local.deployment import Tokens, make_password


class Server:
    """Answers with what is given, and remembers the requests."""

    def __init__(self, *answers: httpx.Response) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._answers.pop(0)


class SignIns:
    """Numbered tokens of a given lifetime."""

    def __init__(self, lifetime: timedelta) -> None:
        self._lifetime = lifetime
        self.count = 0

    def __call__(self) -> Tokens:
        self.count += 1
        expires_at = datetime.now(UTC) + self._lifetime
        return Tokens(f"token-{self.count}", "id", expires_at)


def api(server: Server, lifetime: timedelta = timedelta(hours=1)) -> Api:
    transport = httpx.MockTransport(server)
    return Api("http://api/$default", SignIns(lifetime), transport=transport)


def test_a_post_carries_token_key_and_body() -> None:
    server = Server(httpx.Response(201, json={"job_id": "j"}))
    with api(server) as caller:
        assert caller.post("/jobs", {"name": "x"}, idempotency_key="k") == {"job_id": "j"}
    (request,) = server.requests
    assert request.url.path == "/$default/jobs"
    assert request.headers["authorization"] == "Bearer token-1"
    assert request.headers["idempotency-key"] == "k"
    assert json.loads(request.content) == {"name": "x"}


def test_what_comes_too_soon_is_sent_again() -> None:
    waited: list[float] = []
    soon = httpx.Response(429, headers={"Retry-After": "3"})
    server = Server(soon, httpx.Response(429), httpx.Response(200, json={"items": []}))
    transport = Patient(httpx.MockTransport(server), waited.append)
    with httpx.Client(transport=transport) as http:
        assert http.post("http://api/jobs", json={"name": "x"}).status_code == 200
    assert waited == [3, 1]
    assert {request.content for request in server.requests} == {b'{"name":"x"}'}


def test_who_is_always_too_soon_is_told_so_in_the_end() -> None:
    server = Server(*(httpx.Response(429) for _ in range(6)))
    transport = Patient(httpx.MockTransport(server), lambda seconds: None)
    with httpx.Client(transport=transport) as http:
        assert http.get("http://api/jobs").status_code == 429


def test_every_page_is_read() -> None:
    jobs = [{"name": name} for name in "abc"]
    pages = [{"items": jobs[:2], "next_cursor": "c"}, {"items": jobs[2:], "next_cursor": None}]
    server = Server(*(httpx.Response(200, json=page) for page in pages))
    with api(server) as caller:
        assert caller.list_all("/jobs") == jobs
    assert [request.url.query for request in server.requests] == [b"", b"cursor=c"]


def test_a_refusal_has_its_status_and_its_words() -> None:
    with api(Server(httpx.Response(409, json={"title": "changed"}))) as caller:
        with pytest.raises(CallFailed, match=r"POST /jobs: 409 .*changed") as caught:
            caller.post("/jobs", {})
        assert caught.value.status == 409


def test_a_token_is_kept_while_good_and_exchanged_before_it_ends() -> None:
    for lifetime, tokens in ((timedelta(hours=1), 1), (timedelta(minutes=5), 2)):
        server = Server(*(httpx.Response(200, json={}) for _ in range(2)))
        with api(server, lifetime) as caller:
            caller.get("/status")
            caller.get("/status")
        last = server.requests[-1].headers["authorization"]
        assert last == f"Bearer token-{tokens}"


def test_a_password_has_every_kind_of_character() -> None:
    password = make_password()
    assert len(password) >= 12
    assert any(c.islower() for c in password)
    assert any(c.isupper() for c in password)
    assert any(c.isdigit() for c in password)
    assert any(not c.isalnum() for c in password)
    assert make_password() != password
