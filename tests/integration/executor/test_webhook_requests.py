"""What of a webhook is its owner's: method, headers, secrets, and when to call it again."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from carillon.clock import ManualClock, SystemClock
from carillon.executor.targets.call import Failure, Success
from carillon.executor.targets.secrets import DOUBTFUL_FOR, OwnerSecrets
from carillon.executor.targets.webhook import DeploymentKey, WebhookCaller, signing_key
from tests.integration.executor.endpoints import endpoint
from tests.integration.executor.sending import (
    KEY,
    LOOPBACK,
    PAYLOAD,
    RUN_ID,
    StubSecrets,
    call,
    caller,
    refusal,
    target,
)

OWN_KEY = "whsec_" + "c2VjcmV0IG9mIHRoZSBvd25lcg=="
TEXTS = {
    "carillon/user/owner/token": "Bearer hunter2hunter2\n",
    "/carillon/user/owner/tenant": "blue",
    "carillon/user/owner/signing": OWN_KEY,
    "/carillon/user/owner/signing": OWN_KEY,
    "carillon/user/owner/empty": "whsec_\n",
    "carillon/user/owner/broken": "two\nlines",
    "carillon/user/owner/no-key": "whsec_!",
    "carillon/other/token": "of another owner",
    "deployment": KEY,
}
HEADERS = {"Authorization": {"secret": "token"}}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_methods_with_a_body_carry_the_payload(method: str) -> None:
    with endpoint() as hook:
        assert caller().deliver(target(hook.port, method=method), call()) == Success("200 thanks")
        (received,) = hook.received
    assert (received.method, received.body) == (method, PAYLOAD.encode())
    assert Webhook(KEY).verify(received.body, received.headers) == json.loads(PAYLOAD)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_methods_without_a_body_are_signed_over_nothing(method: str) -> None:
    with endpoint() as hook:
        assert caller().deliver(target(hook.port, method=method), call()) == Success("200 thanks")
        (received,) = hook.received
    assert (received.method, received.body) == (method, b"")
    assert "content-type" not in received.headers
    assert "content-length" not in received.headers
    assert "transfer-encoding" not in received.headers
    # Not `verify`: it also parses the body.
    sent_at = datetime.fromtimestamp(int(received.headers["webhook-timestamp"]), UTC)
    assert received.headers["webhook-signature"] == Webhook(KEY).sign(RUN_ID, sent_at, "")


def test_headers_of_its_own_hold_text_secrets_and_parameters() -> None:
    headers = {
        "X-Plain": "as it is",
        "Authorization": {"secret": "token"},
        "X-Tenant": {"parameter": "tenant"},
    }
    with endpoint() as hook:
        caller(texts=TEXTS).deliver(target(hook.port, headers=headers), call())
        (received,) = hook.received
    assert received.headers["x-plain"] == "as it is"
    assert received.headers["authorization"] == "Bearer hunter2hunter2"
    assert received.headers["x-tenant"] == "blue"
    assert received.headers["content-type"] == "application/json"


@pytest.mark.parametrize("reference", [{"secret": "signing"}, {"parameter": "signing"}])
def test_a_webhook_may_be_signed_with_a_secret_of_its_own(reference: dict[str, str]) -> None:
    with endpoint() as hook:
        caller(texts=TEXTS).deliver(target(hook.port, signing_secret=reference), call())
        (received,) = hook.received
    assert signing_key(OWN_KEY) != KEY
    assert Webhook(OWN_KEY).verify(received.body, received.headers) == json.loads(PAYLOAD)


@pytest.mark.parametrize(
    ("members", "kind", "told"),
    [
        ({"headers": {"A": {"secret": "gone"}}}, "secret_missing", "the secret 'gone'"),
        ({"headers": {"A": {"parameter": "token"}}}, "secret_missing", "the parameter 'token'"),
        ({"headers": {"A": {"secret": "broken"}}}, "secret_invalid", "as the header A"),
        ({"signing_secret": {"secret": "gone"}}, "secret_missing", "the secret 'gone'"),
        ({"signing_secret": {"secret": "no-key"}}, "secret_invalid", "is no signing key"),
        ({"signing_secret": {"secret": "empty"}}, "secret_invalid", "it is empty"),
    ],
)
def test_without_its_secret_nothing_is_sent(members: Any, kind: str, told: str) -> None:
    with endpoint() as hook:
        outcome = caller(texts=TEXTS).deliver(target(hook.port, **members), call())
        assert hook.received == []
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == (kind, False)
    assert told in outcome.error.message
    assert "two" not in outcome.error.message


@pytest.mark.parametrize("status", [200, 400, 500, 302])
def test_a_secret_that_the_endpoint_repeats_is_not_told(status: int) -> None:
    with endpoint() as hook:
        hook.status = status
        hook.answer = b'{"authorization": "Bearer hunter2hunter2", "token": "hunter2hunter2"}'
        hook.answer_headers = {"Location": "https://example.com/?token=hunter2hunter2"}
        outcome = caller(texts=TEXTS).deliver(target(hook.port, headers=HEADERS), call())
    assert "hunter2" not in repr(outcome)
    assert "[hidden]" in repr(outcome)


@pytest.fixture
def kept() -> tuple[WebhookCaller, StubSecrets]:
    """A caller that has read the secrets DOUBTFUL_FOR ago, and where it reads them."""
    source, clock = StubSecrets(TEXTS), ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    deployment = DeploymentKey(lambda: source.secret("deployment"), clock)
    owners = OwnerSecrets(source, "carillon", clock)
    sender = WebhookCaller(SystemClock(), deployment.get, LOOPBACK, owners)
    with endpoint() as hook:
        assert isinstance(sender.deliver(target(hook.port, headers=HEADERS), call()), Success)
    clock.advance(DOUBTFUL_FOR.total_seconds())
    return sender, source


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("name", "new"),
    [("carillon/user/owner/token", "Bearer renewed-token"), ("deployment", OWN_KEY)],
)
def test_a_refused_request_is_sent_once_more_with_what_was_changed(
    kept: tuple[WebhookCaller, StubSecrets], status: int, name: str, new: str
) -> None:
    sender, source = kept
    source.texts[name] = new
    with endpoint() as hook:
        hook.answers = [(status, {})]
        hook.answer = b"hunter2hunter2 renewed-token"
        outcome = sender.deliver(target(hook.port, headers=HEADERS), call())
        old, renewed = hook.received
    assert outcome == Success(
        "200 [hidden] [hidden]" if name != "deployment" else "200 [hidden] renewed-token"
    )
    assert old.headers["authorization"] == "Bearer hunter2hunter2"
    assert renewed.headers["authorization"] == source.texts["carillon/user/owner/token"].strip()
    key = signing_key(source.texts["deployment"])
    assert Webhook(key).verify(renewed.body, renewed.headers) == json.loads(PAYLOAD)


def test_a_refused_request_is_not_repeated_with_the_same_secrets(
    kept: tuple[WebhookCaller, StubSecrets],
) -> None:
    sender, _ = kept
    with endpoint() as hook:
        hook.status = 401
        outcome = sender.deliver(target(hook.port, headers=HEADERS), call())
        assert len(hook.received) == 1
    assert refusal(outcome) == ("http_401", True)


def test_a_refused_secret_that_was_removed_is_what_is_told(
    kept: tuple[WebhookCaller, StubSecrets],
) -> None:
    sender, source = kept
    del source.texts["carillon/user/owner/token"]
    with endpoint() as hook:
        hook.status = 401
        outcome = sender.deliver(target(hook.port, headers=HEADERS), call())
    assert refusal(outcome) == ("secret_missing", False)


@pytest.mark.parametrize(("status", "seconds"), [(429, 17), (503, 17), (404, None)])
def test_a_retry_after_goes_along(status: int, seconds: float | None) -> None:
    with endpoint() as hook:
        hook.status = status
        hook.answer_headers = {"Retry-After": "17"}
        outcome = caller().deliver(target(hook.port), call())
    assert isinstance(outcome, Failure)
    assert outcome.retry_after_seconds == seconds
