from datetime import UTC, datetime, timedelta

import httpx2

from carillon.local.api_client import Api
from carillon.local.deployment import Tokens, make_password


class Server:
    """Answers with what is given, and remembers the requests."""

    def __init__(self, *answers: httpx2.Response) -> None:
        self._answers = list(answers)
        self.requests: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
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
    return Api("http://127.0.0.1/$default", SignIns(lifetime), httpx2.MockTransport(server))


def test_a_token_is_kept_while_good_and_exchanged_before_it_ends() -> None:
    for lifetime, tokens in ((timedelta(hours=1), 1), (timedelta(minutes=5), 2)):
        server = Server(*(httpx2.Response(200, json={}) for _ in range(2)))
        caller = api(server, lifetime)
        caller.get("/status")
        caller.post("/jobs", {"name": "x"}, {"Idempotency-Key": "k"})
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
