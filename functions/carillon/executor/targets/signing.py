"""The keys that webhooks are signed with: the deployment's, or a job's own."""

import base64
import binascii
from collections.abc import Callable

from carillon.clock import Clock
from carillon.executor.deadline import Deadline
from carillon.executor.targets.secrets import AwsSecrets, KeptText, SecretError

_PREFIX = "whsec_"


class SigningKeyError(Exception):
    """The deployment's key cannot be had now; the message says why."""


def signing_key(secret_text: str) -> str:
    """The Standard Webhooks key that the secret's text stands for; raises ValueError.

    A text with the prefix `whsec_` is a key already; of any other, as AWS generates them, the
    bytes count.
    """
    if not secret_text.startswith(_PREFIX):
        secret_text = _PREFIX + base64.b64encode(secret_text.encode()).decode("ascii")
    try:
        key = base64.b64decode(secret_text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        # Without the cause: it may quote what is secret.
        raise ValueError(f"is no signing key: after {_PREFIX} must follow base64") from None
    if not key:
        raise ValueError("is no signing key: it is empty")
    return secret_text


class DeploymentKey:
    """The key that all webhooks of the deployment share but those with a secret of their own."""

    def __init__(self, read: Callable[[], str], clock: Clock) -> None:
        self._kept = KeptText(read, clock)

    def get(self, deadline: Deadline) -> str:
        """Raises SigningKeyError, and TimeoutError when it takes longer than the deadline."""
        try:
            return signing_key(self._kept.get(deadline))
        except (SecretError, ValueError) as error:
            raise SigningKeyError(f"the webhook secret {error}") from error


def deployment_secret(secrets: AwsSecrets, secret_arn: str) -> str:
    """The text of the deployment's secret; raises SecretError."""
    if not secret_arn:
        raise SecretError("secret_missing", "is not set (WEBHOOK_SECRET_ARN)")
    return secrets.secret(secret_arn)
