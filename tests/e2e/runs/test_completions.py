"""Runs that end later than their call, on the deployed stack: over HTTP, by the address and token
that the receiver was given."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from carillon.client import Completion, Conflict, NotFound
from carillon.local.deployment import Deployment
from tests.e2e.conftest import NEVER, Json, Person, instant, run_by_hand, run_of, until
from tests.integration.executor.endpoints import Endpoint, endpoint

pytestmark = pytest.mark.e2e


def accepted(person: Person, hook: Endpoint, within: str, **fields: Any) -> Json:
    """A run whose receiver has answered 202."""
    hook.status = 202
    terms = {"within": within, "heartbeat": "10s"}
    target = {"type": "webhook", "url": hook.url, "completion": terms}
    run = run_by_hand(person, person.create(NEVER, target=target, **fields))
    until(lambda: hook.received)
    return until(lambda: _open(person, run))


def _open(person: Person, run: Json) -> Json:
    """The run, once it is open; until then nothing."""
    seen = run_of(person, run)
    return seen if (seen["note"] or "").startswith("open: ") else {}


def test_a_run_beats_and_is_completed(deployment: Deployment, alice: Person) -> None:
    with endpoint() as hook:
        run = accepted(alice, hook, "1m")
        headers = hook.received[0].headers
        url = headers["carillon-completion-url"]
        assert url == f"{deployment.api_url}/completions/{run['run_id']}"
        with Completion.of_webhook(headers) as completion:
            told = completion.heartbeat()
            assert told["status"] == "running"
            assert told["lease_until"] is not None
            assert instant(told["lease_until"]) > datetime.now(UTC)
            assert completion.complete({"rows": 3})["status"] == "succeeded"
            assert completion.complete({"rows": 3})["status"] == "succeeded"
            with pytest.raises(Conflict):
                completion.fail("too late")
        with Completion(url, "forged.token") as forged, pytest.raises(NotFound):
            forged.complete()
        # The gateway asks for no JWT there, and for one everywhere else.
        assert httpx2.post(f"{url}/complete", timeout=30).status_code == 404
        assert httpx2.get(f"{url}/complete", timeout=30).status_code == 401
    ended = run_of(alice, run)
    assert (ended["status"], ended["result"]) == ("succeeded", '{"rows":3}')
    assert len(hook.received) == 1


def test_silence_is_retried_and_then_timed_out(alice: Person) -> None:
    retry = {"max_attempts": 2, "backoff": {"type": "fixed", "base_seconds": 1}}
    with endpoint() as hook:
        run = accepted(alice, hook, "10s", retry=retry)
        until(lambda: len(hook.received) == 2)
        with Completion.of_webhook(hook.received[0].headers) as first, pytest.raises(Conflict):
            first.complete("of the first attempt")
        until(lambda: run_of(alice, run)["status"] == "timed_out")
    ended = run_of(alice, run)
    assert [attempt["error"]["kind"] for attempt in ended["attempts"]] == ["timeout", "timeout"]
    assert ended["reason"] == "exhausted"
