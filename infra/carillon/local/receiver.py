"""A webhook receiver on loopback that checks Standard Webhooks signatures."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from carillon.client import InvalidSignature, verify
from carillon.local.deployment import Deployment
from carillon.local.emulator import HOST

MAX_BODY_BYTES = 1_048_576
KEPT_DELIVERIES = 1_000


@dataclass(frozen=True)
class Delivery:
    """One request: the id that its signature covers (a run's), its body, and our judgement."""

    received_at: datetime
    webhook_id: str
    body: bytes
    verified: bool


def read_signing_secret(deployment: Deployment) -> str:
    """The deployment's signing secret, read from Secrets Manager."""
    answer = deployment.client("secretsmanager").get_secret_value(
        SecretId=deployment.outputs["WebhookSecretArn"]
    )
    return str(answer["SecretString"])


def verifies(secret: str, body: bytes, headers: Mapping[str, str]) -> bool:
    """True if the signature is ours, covers this id, time and body, and is fresh."""
    try:
        verify(headers, body, secret)
    except InvalidSignature:
        return False
    return True


class Receiver:
    """A server in the background, as a context manager.

    It answers 204 to what verifies and 401 to what does not, remembers the last deliveries and
    calls `on_delivery` with each, from the thread of its request. `read_secret` is called at the
    first request, so that the receiver can be there before the deployment.
    """

    def __init__(
        self,
        read_secret: Callable[[], str],
        *,
        port: int = 0,
        on_delivery: Callable[[Delivery], None] | None = None,
    ) -> None:
        self._read_secret = read_secret
        self._secret = ""
        self._on_delivery = on_delivery
        self._deliveries: deque[Delivery] = deque(maxlen=KEPT_DELIVERIES)
        self._server = _Server((HOST, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address for webhooks."""
        return f"http://{HOST}:{self._server.server_port}/hook"

    @property
    def deliveries(self) -> list[Delivery]:
        """The last deliveries, oldest first, verified or not."""
        return list(self._deliveries)

    def __enter__(self) -> Receiver:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, body: bytes, headers: Mapping[str, str]) -> bool:
        """Judge and remember one request; whether it was verified."""
        self._secret = self._secret or self._read_secret()
        delivery = Delivery(
            received_at=datetime.now(UTC),
            webhook_id=headers.get("webhook-id", ""),
            body=body,
            verified=verifies(self._secret, body, headers),
        )
        self._deliveries.append(delivery)
        if self._on_delivery is not None:
            self._on_delivery(delivery)
        return delivery.verified


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], receiver: Receiver) -> None:
        super().__init__(address, _Handler)
        self.receiver = receiver


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0

    def do_POST(self) -> None:
        """Take one webhook."""
        length = int(self.headers.get("content-length", "0"))
        if length > MAX_BODY_BYTES:
            self._answer(413)
            return
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._answer(204 if self.server.receiver.take(body, headers) else 401)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the owner of the receiver prints."""
