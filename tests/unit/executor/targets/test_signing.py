"""The signing key: its form, its cache, its failures."""

import base64
from datetime import UTC, datetime

import pytest
from standardwebhooks.webhooks import Webhook

from carillon.clock import ManualClock
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.secrets import REFRESH_AFTER, AwsSecrets, SecretError
from carillon.executor.targets.webhook import (
    DeploymentKey,
    SigningKeyError,
    deployment_secret,
    signing_key,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
GENERATED = "kJ3hZ8mQ2xVb7LtR5nWc9YpD4sFg6AeU"


class Secret:
    """A secret whose text can be changed, or made unreadable with None."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.reads = 0

    def __call__(self) -> str:
        self.reads += 1
        if self.text is None:
            raise SecretError("secret_unavailable", "denied")
        return self.text


def test_a_generated_text_counts_with_its_bytes() -> None:
    key = signing_key(GENERATED)
    assert base64.b64decode(key.removeprefix("whsec_")) == GENERATED.encode()
    assert Webhook(key).sign("a", START, "{}").startswith("v1,")


def test_a_text_with_the_prefix_is_a_key_already() -> None:
    assert signing_key("whsec_c2VjcmV0") == "whsec_c2VjcmV0"


@pytest.mark.parametrize("text", ["whsec_not base64", "whsec_abc"])
def test_a_text_that_only_looks_like_a_key_is_refused_untold(text: str) -> None:
    with pytest.raises(ValueError, match="is no signing key") as caught:
        signing_key(text)
    assert text not in str(caught.value)


@pytest.mark.parametrize("text", ["", "whsec_"])
def test_an_empty_text_is_no_key(text: str) -> None:
    with pytest.raises(ValueError, match="it is empty"):
        signing_key(text)
    with pytest.raises(SigningKeyError, match="it is empty"):
        DeploymentKey(Secret(text), ManualClock(START)).get(Deadline.after(5))


def test_the_key_is_read_once_and_again_when_it_is_old() -> None:
    clock, secret = ManualClock(START), Secret("first")
    key = DeploymentKey(secret, clock)
    assert [key.get(Deadline.after(5)) for _ in range(3)] == [signing_key("first")] * 3
    assert secret.reads == 1
    secret.text = "second"
    clock.advance(REFRESH_AFTER.total_seconds())
    assert key.get(Deadline.after(5)) == signing_key("second")
    assert secret.reads == 2


def test_without_any_key_the_failure_is_told_and_tried_again() -> None:
    secret = Secret(None)
    key = DeploymentKey(secret, ManualClock(START))
    with pytest.raises(SigningKeyError, match="denied"):
        key.get(Deadline.after(5))
    secret.text = "first"
    assert key.get(Deadline.after(5)) == signing_key("first")


def test_a_deployment_without_a_secret_is_told_the_variable() -> None:
    key = DeploymentKey(lambda: deployment_secret(AwsSecrets(), ""), ManualClock(START))
    with pytest.raises(SigningKeyError, match="WEBHOOK_SECRET_ARN"):
        key.get(Deadline.after(5))
