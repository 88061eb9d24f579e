"""Slack over real sockets on loopback, and e-mail at the client of SES."""

import json
from dataclasses import replace
from typing import Any

import pytest

from carillon.clock import SystemClock
from carillon.domain.notifying.notification import EmailChannel, SlackChannel
from carillon.domain.targets import SecretReference
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Failure, Outcome, Success
from carillon.executor.targets.channels import EmailCaller, SlackCaller
from tests.integration.executor.endpoints import HOST, endpoint
from tests.integration.executor.sending import LOOPBACK, call, key, owner_secrets, refusal

CHANNEL = SlackChannel(url=SecretReference(secret="slack-ops"))
NAME = "carillon/user/owner/slack-ops"


def slack(texts: dict[str, str], allowed: Any = LOOPBACK) -> SlackCaller:
    return SlackCaller(SystemClock(), key, allowed, owner_secrets(texts))


def test_a_message_goes_to_the_url_in_the_owner_s_secret() -> None:
    with endpoint() as hook:
        url = f"http://{HOST}:{hook.port}/services/T0/B0/abcdefgh"
        body = json.dumps({"text": "x", "blocks": []})
        outcome = slack({NAME: url + "\n"}).deliver(CHANNEL, call(body))  # type: ignore[arg-type]
        (received,) = hook.received
    assert isinstance(outcome, Success)
    assert received.body == body.encode()
    assert received.headers["content-type"] == "application/json"


@pytest.mark.parametrize("told", ["/services/T0/B0/abcdefgh?key=12345678", "abcdefgh", "12345678"])
def test_what_a_server_repeats_of_the_url_is_not_told(told: str) -> None:
    with endpoint() as hook:
        url = f"http://{HOST}:{hook.port}/services/T0/B0/abcdefgh?key=12345678"
        hook.status, hook.answer = 404, f"Cannot POST {told}".encode()
        outcome = slack({NAME: url}).deliver(CHANNEL, call())  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)
    assert outcome.error.message == "the endpoint answered 404: Cannot POST [hidden]"


def test_another_owner_s_secret_is_none() -> None:
    theirs = replace(call(), owner="user/stranger")
    outcome = slack({NAME: "https://hooks.slack.com/x"}).deliver(CHANNEL, theirs)  # type: ignore[arg-type]
    assert refusal(outcome) == ("secret_missing", False)


def test_a_secret_that_is_no_url_is_not_told() -> None:
    outcome = slack({NAME: "xoxb-1234-secret"}).deliver(CHANNEL, call())  # type: ignore[arg-type]
    assert refusal(outcome) == ("secret_invalid", False)
    assert isinstance(outcome, Failure)
    assert "xoxb" not in outcome.error.message


@pytest.mark.parametrize("host", ["hooks..slack.com", "x" * 64 + ".com"])
def test_nor_is_one_whose_host_cannot_be_one(host: str) -> None:
    outcome = slack({NAME: f"https://{host}/services/T0/B0/abcdefgh"}).deliver(CHANNEL, call())  # type: ignore[arg-type]
    assert refusal(outcome) == ("protocol_error", False)
    assert isinstance(outcome, Failure)
    assert "services/T0" not in outcome.error.message


def test_a_private_address_is_refused_there_too() -> None:
    outcome = slack({NAME: "https://127.0.0.1/services/T0"}, ()).deliver(CHANNEL, call())  # type: ignore[arg-type]
    assert refusal(outcome) == ("address_refused", True)
    assert isinstance(outcome, Failure)
    assert "services/T0" not in outcome.error.message


class FakeSes:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send_email(self, **arguments: Any) -> dict[str, str]:
        self.sent.append(arguments)
        return {"MessageId": "m-1"}


def mail(sender: str, client: FakeSes) -> Outcome:
    caller = EmailCaller(sender)

    class Clients:
        def get(self, region: str | None, limit_seconds: float) -> FakeSes:
            assert region is None, "SES is the deployment's own"
            return client

    assert isinstance(caller._aws, AwsCaller)
    caller._aws._clients = Clients()  # type: ignore[assignment]
    payload = json.dumps({"subject": "Carillon: ?bung failed", "text": "Übung failed\n"})
    return caller.deliver(EmailChannel(address="on-call@example.com"), call(payload))


def test_an_e_mail_comes_from_the_deployment_s_sender() -> None:
    client = FakeSes()
    assert mail("carillon@example.com", client) == Success("message m-1")
    (sent,) = client.sent
    assert sent["FromEmailAddress"] == "carillon@example.com"
    assert sent["Destination"] == {"ToAddresses": ["on-call@example.com"]}
    simple = sent["Content"]["Simple"]
    assert simple["Subject"] == {"Data": "Carillon: ?bung failed"}
    assert simple["Body"] == {"Text": {"Data": "Übung failed\n", "Charset": "UTF-8"}}


def test_without_a_sender_there_is_no_e_mail() -> None:
    client = FakeSes()
    assert refusal(mail("", client)) == ("no_email_sender", True)
    assert client.sent == []
