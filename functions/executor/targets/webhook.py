"""Webhook targets: the payload by POST, signed by the Standard Webhooks scheme."""

import ssl
from collections.abc import Callable, Sequence
from urllib.parse import quote, urlsplit

import httpcore
from standardwebhooks.webhooks import Webhook

from functions.executor.deadline import Deadline
from functions.executor.one_line import exception_line, one_line
from functions.executor.targets.call import Call, Failure, Outcome, Success
from functions.executor.targets.network import (
    Connector,
    GuardedBackend,
    LookupFailedError,
    RefusedError,
    Resolver,
    TlsError,
    connect,
    look_up,
)
from functions.executor.targets.signing import SecretReader, SigningKey, SigningKeyError
from shared.clock import Clock
from shared.domain.run import RunError
from shared.domain.targets import WebhookTarget
from shared.settings import Network, Settings

BODY_LIMIT_BYTES = 64 * 1024
"""An answer is read up to here; the history keeps only its beginning."""
RETRIED_CLIENT_ERRORS = frozenset({408, 425, 429})
_URL_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F))

KIND_OF_ERROR: dict[type[Exception], str] = {
    TlsError: "tls_error",
    httpcore.ConnectError: "connect_error",
    httpcore.NetworkError: "network_error",
    httpcore.ProtocolError: "protocol_error",
    httpcore.UnsupportedProtocol: "protocol_error",
    httpcore.ProxyError: "network_error",
}
"""The first that an error is an instance of counts; httpcore's timeouts are apart."""


def create_caller(settings: Settings, clock: Clock) -> "WebhookCaller":
    key = SigningKey(SecretReader(settings.webhook_secret_arn), clock)
    return WebhookCaller(clock, key.get, settings.webhook_allowed_networks)


class WebhookCaller:
    """Kinds of failure: `timeout`, `http_<status>`, `dns_error`, `address_refused` and
    `plain_http_refused` (for good), `connect_error`, `tls_error`, `network_error`,
    `protocol_error`, `signing_key_error`. Every call has a connection of its own."""

    def __init__(
        self,
        clock: Clock,
        key: Callable[[Deadline], str],
        allowed_networks: Sequence[Network],
        *,
        resolver: Resolver = look_up,
        connector: Connector = connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._key = key
        self._allowed_networks = tuple(allowed_networks)
        self._resolver = resolver
        self._connector = connector
        self._tls = httpcore.default_ssl_context() if tls is None else tls

    def deliver(self, target: WebhookTarget, call: Call) -> Outcome:
        deadline = Deadline.after(call.timeout_seconds)
        try:
            status, headers, body = self._post(target.url, call, deadline)
        except (TimeoutError, httpcore.TimeoutException):
            return _timeout(call)
        except RefusedError as error:
            return _failure(error.kind, error, permanent=True)
        except LookupFailedError as error:
            return _failure("dns_error", error)
        except SigningKeyError as error:
            return _failure("signing_key_error", error)
        except tuple(KIND_OF_ERROR) as error:
            return _failure(kind_of_error(error), error)
        return judge(status, headers, body)

    def prepare(self, count: int) -> None:
        """Nothing to do: connections are not kept."""

    def close(self) -> None:
        """Nothing to do: connections are not kept."""

    def _post(
        self, url: str, call: Call, deadline: Deadline
    ) -> tuple[int, Sequence[tuple[bytes, bytes]], bytes]:
        """Status, headers and the beginning of the body of the answer."""
        address = _url(url)
        headers = [("Host", _host(address)), *self._headers(call, self._key(deadline))]
        backend = GuardedBackend(
            deadline,
            self._allowed_networks,
            plain=address.scheme == b"http",
            resolver=self._resolver,
            connector=self._connector,
        )
        content = call.payload.encode()
        with (
            httpcore.HTTPConnection(
                address.origin, ssl_context=self._tls, network_backend=backend
            ) as connection,
            connection.stream("POST", address, headers=headers, content=content) as answer,
        ):
            body = b""
            for part in answer.iter_stream():
                body += part
                if len(body) >= BODY_LIMIT_BYTES:
                    break
            return answer.status, answer.headers, body[:BODY_LIMIT_BYTES]

    def _headers(self, call: Call, key: str) -> list[tuple[str, str]]:
        now = self._clock.now()
        return [
            ("Content-Type", "application/json"),
            ("User-Agent", "Carillon"),
            ("Connection", "close"),
            ("webhook-id", call.run_id),
            ("webhook-timestamp", str(int(now.timestamp()))),
            ("webhook-signature", Webhook(key).sign(call.run_id, now, call.payload)),
            ("Idempotency-Key", call.run_id),
            ("Carillon-Job-Id", call.job_id),
            ("Carillon-Attempt", str(call.attempt)),
            ("Carillon-Fire-At", f"{call.fire_at:%Y-%m-%dT%H:%M:%SZ}"),
        ]


def judge(status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> Outcome:
    """2xx is success. For good are redirects, and 4xx but for those that ask to come again."""
    text = body.decode("utf-8", "replace")
    if 200 <= status < 300:
        return Success(one_line(f"{status} {text}"))
    message = f"the endpoint answered {status}"
    if 300 <= status < 400:
        places = [value for name, value in headers if name.lower() == b"location"]
        to = f" to {places[0].decode('latin-1')}" if places else ""
        message = f"{message}{to}; redirects are not followed"
    elif text:
        message = f"{message}: {text}"
    permanent = 300 <= status < 500 and status not in RETRIED_CLIENT_ERRORS
    return Failure(RunError(f"http_{status}", one_line(message), permanent))


def kind_of_error(error: Exception) -> str:
    """The kind of an error of httpcore other than a timeout."""
    return next(kind for base, kind in KIND_OF_ERROR.items() if isinstance(error, base))


def _url(text: str) -> httpcore.URL:
    """The URL in ASCII; raises httpcore.LocalProtocolError."""
    parts = urlsplit(text)
    try:
        host = (parts.hostname or "").encode("idna")
    except UnicodeError as error:
        raise httpcore.LocalProtocolError(f"the host of {text!r} cannot be one") from error
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return httpcore.URL(
        scheme=parts.scheme,
        host=host,
        port=parts.port,
        target=quote(path, safe=_URL_CHARACTERS),
    )


def _host(url: httpcore.URL) -> str:
    """The Host header; httpcore's own lacks the brackets of IPv6."""
    host = url.host.decode("ascii")
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"


def _timeout(call: Call) -> Failure:
    message = f"no complete answer within {call.timeout_seconds:g} s"
    return Failure(RunError("timeout", message), timed_out=True)


def _failure(kind: str, error: Exception, *, permanent: bool = False) -> Failure:
    message = exception_line(error) or type(error).__name__
    return Failure(RunError(kind, message, permanent))
