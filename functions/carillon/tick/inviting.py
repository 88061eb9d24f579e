"""Shares are invited by asynchronous invocations of the tick itself."""

import json
from threading import Lock
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from carillon.tick.sharing import Share

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

CONNECT_TIMEOUT_SECONDS = 1
READ_TIMEOUT_SECONDS = 2
TOTAL_ATTEMPTS = 2
"""Few and short: the root's own segments wait meanwhile."""


class Invoker:
    """Invokes functions from several threads; its client is made when the first share is invited,
    since most minutes invite none."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._client: LambdaClient | None = None
        self._lock = Lock()

    def invite(self, function_arn: str, share: Share) -> None:
        """Have the function invoked for this share; raises botocore's errors."""
        payload = json.dumps({"share": share.number, "of": share.of}).encode()
        self._connected().invoke(FunctionName=function_arn, InvocationType="Event", Payload=payload)

    def _connected(self) -> "LambdaClient":
        with self._lock:  # clients are safe to use from several threads, their making is not
            if self._client is None:
                config = Config(
                    connect_timeout=CONNECT_TIMEOUT_SECONDS,
                    read_timeout=READ_TIMEOUT_SECONDS,
                    retries={"mode": "standard", "total_max_attempts": TOTAL_ATTEMPTS},
                    max_pool_connections=self._connections,
                )
                self._client = boto3.client("lambda", config=config)
            return self._client
