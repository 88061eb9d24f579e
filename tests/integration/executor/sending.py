"""Webhook callers on loopback, and connections that tell where they went."""

import socket
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from threading import Event
from typing import Any

from carillon.clock import SystemClock
from carillon.domain.addresses import Address
from carillon.domain.targets import WebhookTarget
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.call import Call, Failure, Outcome
from carillon.executor.targets.secrets import AwsSecrets, OwnerSecrets, SecretError
from carillon.executor.targets.ssrf_guard import connect
from carillon.executor.targets.webhook import WebhookCaller, signing_key
from tests.integration.executor.endpoints import HOST

KEY = signing_key("kJ3hZ8mQ2xVb7LtR5nWc9YpD4sFg6AeUkJ3hZ8mQ2xVb7LtR")
LOOPBACK = (ip_network("127.0.0.0/8"),)
PAYLOAD = '{"greeting":"Grüße","n":1}'
RUN_ID = "abc_20260301T120017Z_scheduled_0"


class Connections:
    """Connects for real, and remembers to where."""

    def __init__(self, instead: str | None = None) -> None:
        self._instead = instead
        self.addresses: list[str] = []

    def __call__(self, address: Address, port: int, limit_seconds: float) -> socket.socket:
        self.addresses.append(str(address))
        if self._instead is not None:
            return socket.create_connection((self._instead, port), limit_seconds)
        return connect(address, port, limit_seconds)


class StubSecrets(AwsSecrets):
    """Texts by their full names instead of Secrets Manager and SSM."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        super().__init__()
        self.texts = dict(texts)

    def secret(self, secret_id: str) -> str:
        if secret_id not in self.texts:
            raise SecretError("secret_missing", "does not exist (ResourceNotFoundException)")
        return self.texts[secret_id]

    def parameter(self, name: str) -> str:
        return self.secret(name)


def owner_secrets(texts: Mapping[str, str]) -> OwnerSecrets:
    return OwnerSecrets(StubSecrets(texts), "carillon", SystemClock())


def key(deadline: Deadline, within: timedelta) -> str:
    return KEY


def caller(
    allowed: Sequence[Any] = LOOPBACK, texts: Mapping[str, str] | None = None, **network: Any
) -> WebhookCaller:
    """`texts` are the owners' secrets, by their full names."""
    return WebhookCaller(SystemClock(), key, allowed, owner_secrets(texts or {}), **network)


def call(payload: str = PAYLOAD, timeout_seconds: float = 10, stopped: Event | None = None) -> Call:
    return Call(
        run_id=RUN_ID,
        job_id="abc",
        job_name="name",
        owner="user/owner",
        attempt=2,
        fire_at=datetime(2026, 3, 1, 12, 0, 17, tzinfo=UTC),
        payload=payload,
        timeout_seconds=timeout_seconds,
        stopped=stopped or Event(),
    )


def target(
    port: int, host: str = HOST, scheme: str = "http", path: str = "/hook", **members: Any
) -> WebhookTarget:
    return WebhookTarget(url=f"{scheme}://{host}:{port}{path}", **members)


def refusal(outcome: Outcome) -> tuple[str, bool]:
    """Why a call failed, and whether for good."""
    assert isinstance(outcome, Failure)
    return outcome.error.kind, outcome.error.permanent
