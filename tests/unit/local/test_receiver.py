import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from carillon.executor.targets.webhook import signing_key
from carillon.local.receiver import Delivery, Receiver, verifies

SECRET = "some-generated-secret-text"
BODY = json.dumps({"message": "ding"}).encode()


def signed_headers(secret: str, body: bytes, *, age: timedelta = timedelta()) -> dict[str, str]:
    sent_at = datetime.now(UTC) - age
    signature = Webhook(signing_key(secret)).sign(
        msg_id="run-1", timestamp=sent_at, data=body.decode()
    )
    return {
        "webhook-id": "run-1",
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": signature,
    }


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(lambda: SECRET) as running:
        yield running


def test_a_good_signature_is_accepted_and_remembered(receiver: Receiver) -> None:
    answer = httpx2.post(
        receiver.url, content=BODY, headers=signed_headers(SECRET, BODY), trust_env=False
    )
    assert answer.status_code == 204
    (delivery,) = receiver.deliveries
    assert delivery.verified
    assert (delivery.webhook_id, delivery.body) == ("run-1", BODY)


def test_a_changed_body_is_refused_but_remembered(receiver: Receiver) -> None:
    headers = signed_headers(SECRET, BODY)
    answer = httpx2.post(receiver.url, content=BODY + b" ", headers=headers, trust_env=False)
    assert answer.status_code == 401
    assert [delivery.verified for delivery in receiver.deliveries] == [False]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        signed_headers("another secret", BODY),
        {**signed_headers(SECRET, BODY), "webhook-id": "run-2"},
        {**signed_headers(SECRET, BODY), "webhook-timestamp": "soon"},
        {**signed_headers(SECRET, BODY), "webhook-signature": "nonsense"},
        {**signed_headers(SECRET, BODY), "webhook-signature": "v1,***"},
        signed_headers(SECRET, BODY, age=timedelta(minutes=10)),
    ],
    ids=["unsigned", "other key", "other id", "no time", "no version", "no base64", "stale"],
)
def test_what_does_not_verify(headers: dict[str, str]) -> None:
    assert verifies(SECRET, BODY, signed_headers(SECRET, BODY))
    assert not verifies(SECRET, BODY, headers)


def test_a_body_that_is_no_text_does_not_verify() -> None:
    assert not verifies(SECRET, b"\xff", signed_headers(SECRET, BODY))


def test_the_listener_hears_of_each_delivery() -> None:
    heard: list[Delivery] = []
    with Receiver(lambda: SECRET, on_delivery=heard.append) as running:
        httpx2.post(running.url, content=b"", trust_env=False)
    assert [delivery.verified for delivery in heard] == [False]
