"""The deployment's signing key, from Secrets Manager."""

import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING

from functions.executor.deadline import Deadline
from functions.executor.within import call_within
from shared.clock import Clock

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient

REFRESH_AFTER = timedelta(minutes=5)
RETRY_AFTER = timedelta(seconds=30)
_PREFIX = "whsec_"


class SigningKeyError(Exception):
    """The key cannot be had now; the message says why."""


def signing_key(secret_text: str) -> str:
    """The Standard Webhooks key that the secret's text stands for.

    A text with the prefix `whsec_` is a key already; of any other, as AWS generates them, the
    bytes count.
    """
    if secret_text.startswith(_PREFIX):
        return secret_text
    return _PREFIX + base64.b64encode(secret_text.encode()).decode("ascii")


class SecretReader:
    """Reads one secret's text from Secrets Manager."""

    def __init__(self, secret_arn: str) -> None:
        self._secret_arn = secret_arn
        self._client: SecretsManagerClient | None = None

    def __call__(self) -> str:
        """Raises SigningKeyError."""
        if not self._secret_arn:
            raise SigningKeyError("WEBHOOK_SECRET_ARN is not set")
        # Half a second of imports that a deployment without webhooks never pays for.
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if self._client is None:
                limits = Config(
                    connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 3}
                )
                self._client = boto3.Session().client("secretsmanager", config=limits)
            return self._client.get_secret_value(SecretId=self._secret_arn)["SecretString"]
        except (BotoCoreError, ClientError, KeyError) as error:
            raise SigningKeyError(f"the webhook secret cannot be read: {error}") from error


class SigningKey:
    """The key, kept for REFRESH_AFTER; when it cannot be refreshed, the old one serves on."""

    def __init__(self, read: Callable[[], str], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._key: str | None = None
        self._refresh_at: datetime | None = None
        self._lock = Lock()

    def get(self, deadline: Deadline) -> str:
        """Raises SigningKeyError, and TimeoutError when it takes longer than the deadline."""
        if not self._lock.acquire(timeout=deadline.remaining()):
            raise TimeoutError
        try:
            if self._key is None or self._is_stale():
                self._refresh(deadline)
            if self._key is None:
                raise SigningKeyError("the webhook secret cannot be read")
            return self._key
        finally:
            self._lock.release()

    def _is_stale(self) -> bool:
        return self._refresh_at is None or self._clock.now() >= self._refresh_at

    def _refresh(self, deadline: Deadline) -> None:
        try:
            call_within(deadline, self._fetch)
        except (SigningKeyError, TimeoutError):
            if self._key is None:
                raise
            self._refresh_at = self._clock.now() + RETRY_AFTER

    def _fetch(self) -> None:
        self._key = signing_key(self._read())
        self._refresh_at = self._clock.now() + REFRESH_AFTER
