"""Reports about open runs, by their address and token."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from carillon.api.runs.completions import FailBody
from carillon.client import AsyncCompletion, Completion, Conflict, NotFound
from carillon.errors import InvalidFieldError
from tests.unit.client.conftest import FakeClock, Script

RUN = "https://api.example/completions/run"
ANSWER = {"run_id": "run", "status": "succeeded", "attempt": 1}
Ask = Callable[[Any], Any]


def by_completion(script: Script, ask: Ask) -> Any:
    transport = httpx2.MockTransport(script)
    with Completion(RUN, "o.secret", transport=transport, clock=FakeClock()) as completion:
        return ask(completion)


def by_async_completion(script: Script, ask: Ask) -> Any:
    async def go() -> Any:
        transport = httpx2.MockTransport(script)
        async with AsyncCompletion(
            RUN, "o.secret", transport=transport, clock=FakeClock()
        ) as completion:
            return await ask(completion)

    return asyncio.run(go())


@pytest.fixture(params=[by_completion, by_async_completion])
def asked(request: pytest.FixtureRequest) -> Callable[[Script, Ask], Any]:
    driven: Callable[[Script, Ask], Any] = request.param
    return driven


@pytest.mark.parametrize(
    ("ask", "action", "body"),
    [
        (lambda c: c.complete(), "complete", {"result": None}),
        (lambda c: c.complete({"rows": 3}), "complete", {"result": {"rows": 3}}),
        (lambda c: c.fail("gone"), "fail", {"message": "gone", "permanent": False}),
        (
            lambda c: c.fail("gone", kind="lost", permanent=True),
            "fail",
            {"message": "gone", "permanent": True, "kind": "lost"},
        ),
        (lambda c: c.heartbeat(), "heartbeat", None),
    ],
)
def test_each_report_has_its_route_and_the_token(
    asked: Callable[[Script, Ask], Any], ask: Ask, action: str, body: Any
) -> None:
    script = Script().then(200, ANSWER)
    assert asked(script, ask) == ANSWER
    (sent,) = script.requests
    assert (sent.method, str(sent.url)) == ("POST", f"{RUN}/{action}")
    assert sent.headers["authorization"] == "Bearer o.secret"
    assert (json.loads(sent.content) if sent.content else None) == body


def test_a_report_is_repeated_while_no_answer_comes(asked: Callable[[Script, Ask], Any]) -> None:
    script = Script().fail(httpx2.ReadTimeout("lost")).then(503).then(200, ANSWER)
    assert asked(script, lambda c: c.complete(1)) == ANSWER
    assert len(script.requests) == 3


@pytest.mark.parametrize(
    "message", ["", "x" * 5_000, "\U0001f525" * 5_000, "no file \udcff", str(KeyError())]
)
def test_whatever_an_error_says_is_a_report_that_is_taken(
    asked: Callable[[Script, Ask], Any], message: str
) -> None:
    script = Script().then(200, ANSWER)
    asked(script, lambda c: c.fail(message, kind="KeyError"))
    body = FailBody.model_validate_json(script.requests[0].content)
    assert body.message[:8] == (message.replace("\udcff", "?") or "KeyError")[:8]


def test_refusals_are_told_apart(asked: Callable[[Script, Ask], Any]) -> None:
    refused = {"type": "urn:carillon:problem:report-refused", "title": "no", "detail": "late"}
    with pytest.raises(Conflict, match="late"):
        asked(Script().then(409, refused), lambda c: c.complete())
    with pytest.raises(NotFound):
        asked(Script().then(404, {"title": "Not found"}), lambda c: c.heartbeat())


@pytest.mark.parametrize("kind", [Completion, AsyncCompletion])
def test_a_webhooks_headers_have_both(kind: type[Completion | AsyncCompletion]) -> None:
    headers = {"Carillon-Completion-Url": RUN, "carillon-completion-token": "o.secret"}
    assert kind.of_webhook(headers)._session.api_url == RUN
    for name in headers:
        with pytest.raises(InvalidFieldError, match="has no `completion`"):
            kind.of_webhook({name: headers[name]})
