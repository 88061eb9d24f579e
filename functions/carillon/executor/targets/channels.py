"""Channels of notifications that no job has as its target: Slack and e-mail."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from carillon.clock import Clock
from carillon.domain.notifying.notification import EmailChannel, SlackChannel
from carillon.domain.run import RunError
from carillon.domain.targets import WebhookTarget
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Call, Caller, Failure, Outcome, Success, facts
from carillon.executor.targets.secrets import AwsSecrets, OwnerSecrets, SecretError, name_of
from carillon.executor.targets.webhook import (
    LONG_PART,
    DeploymentKey,
    Prepared,
    WebhookCaller,
    deployment_secret,
)
from carillon.settings import Settings

_PARTS = re.compile("[/?&=]")


class SlackCaller(WebhookCaller):
    """A webhook whose URL is a secret of the owner's."""

    def _prepare(self, target: Any, call: Call, deadline: Deadline, within: timedelta) -> Prepared:
        channel: SlackChannel = target
        url = self._secrets.text(call.owner, channel.url, deadline, within)
        try:
            request = super()._prepare(WebhookTarget(url=url), call, deadline, within)
        except ValidationError:
            # Without the cause, which quotes the secret.
            message = f"{name_of(channel.url)} is no absolute https URL"
            raise SecretError("secret_invalid", message) from None
        return replace(request, hidden=[*request.hidden, *_secrets_of(url)])


def _secrets_of(url: str) -> list[str]:
    """The texts of a secret URL that an endpoint may repeat: all of it, what follows the host, as
    servers name what they do not have, and the long parts of that."""
    address = url.partition("://")[2]
    place = address.removeprefix(urlsplit(url).netloc)
    return [url, address, place, *(each for each in _PARTS.split(place) if len(each) >= LONG_PART)]


def create_slack(settings: Settings, clock: Clock) -> SlackCaller:
    secrets = AwsSecrets()
    key = DeploymentKey(lambda: deployment_secret(secrets, settings.webhook_secret_arn), clock)
    owners = OwnerSecrets(secrets, settings.secrets_prefix, clock)
    return SlackCaller(clock, key.get, settings.webhook_allowed_networks, owners)


class EmailCaller(Caller):
    """Sends by Amazon SES, from the deployment's one sender. One more kind of failure:
    `no_email_sender`, for good."""

    def __init__(self, sender: str) -> None:
        self._sender = sender
        self._aws = AwsCaller("sesv2", self._send)

    def deliver(self, target: EmailChannel, call: Call) -> Outcome:
        if not self._sender:
            message = "this deployment sends no e-mail (`email_sender` in the CDK context)"
            return Failure(RunError("no_email_sender", message, permanent=True))
        return self._aws.deliver(target, call)

    def _send(self, client: Any, target: EmailChannel, call: Call) -> Outcome:
        body = json.loads(call.payload)
        headers = [{"Name": f"X-{name}", "Value": value} for name, value in facts(call).items()]
        simple = {
            "Subject": {"Data": body["subject"]},
            "Body": {"Text": {"Data": body["text"], "Charset": "UTF-8"}},  # or it is taken as ASCII
            "Headers": headers,
        }
        answer = client.send_email(
            FromEmailAddress=self._sender,
            Destination={"ToAddresses": [target.address]},
            Content={"Simple": simple},
        )
        return Success(f"message {answer['MessageId']}")


def create_email(settings: Settings, clock: Clock) -> EmailCaller:
    return EmailCaller(settings.email_sender)
