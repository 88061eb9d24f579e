"""Webhook targets: an HTTPS request, signed by the Standard Webhooks scheme."""

import base64
import binascii
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import quote, urlsplit

import httpcore2
from standardwebhooks.webhooks import Webhook

from carillon.clock import Clock, utc_text
from carillon.domain.addresses import Network, ascii_host
from carillon.domain.run import RunError, one_line
from carillon.domain.spec.headers import check_header_value
from carillon.domain.targets import WebhookTarget
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.call import Call, Caller, Failure, Outcome
from carillon.executor.targets.secrets import (
    DOUBTFUL_FOR,
    REFRESH_AFTER,
    AwsSecrets,
    KeptText,
    OwnerSecrets,
    SecretError,
    name_of,
)
from carillon.executor.targets.ssrf_guard import (
    Connector,
    GuardedBackend,
    LookupFailedError,
    Lookups,
    RefusedError,
    Resolver,
    TlsError,
    connect,
    look_up,
)
from carillon.executor.targets.webhook_answers import Answer, judge, without
from carillon.executor.task_process.wire import exception_line
from carillon.settings import Settings

_PREFIX = "whsec_"


class SigningKeyError(Exception):
    """The deployment's key is not available now; the message has the reason."""


def signing_key(secret_text: str) -> str:
    """The Standard Webhooks key for the secret's text; raises ValueError.

    A text with the prefix `whsec_` is a key already; of any other, as AWS generates them, the
    bytes count.
    """
    if not secret_text.startswith(_PREFIX):
        secret_text = _PREFIX + base64.b64encode(secret_text.encode()).decode("ascii")
    try:
        key = base64.b64decode(secret_text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        # Without the cause: it may quote the secret.
        raise ValueError(f"is no signing key: after {_PREFIX} must follow base64") from None
    if not key:
        raise ValueError("is no signing key: it is empty")
    return secret_text


class DeploymentKey:
    """The key that all webhooks of the deployment share but those with a secret of their own."""

    def __init__(self, read: Callable[[], str], clock: Clock) -> None:
        self._kept = KeptText(read, clock)

    def get(self, deadline: Deadline, within: timedelta = REFRESH_AFTER) -> str:
        """Raises SigningKeyError, also when it takes longer than the deadline."""
        try:
            return signing_key(self._kept.get(deadline, within))
        except (SecretError, ValueError) as error:
            raise SigningKeyError(f"the webhook secret {error}") from error


def deployment_secret(secrets: AwsSecrets, secret_arn: str) -> str:
    """The text of the deployment's secret; raises SecretError."""
    if not secret_arn:
        raise SecretError("secret_missing", "is not set (WEBHOOK_SECRET_ARN)")
    return secrets.secret(secret_arn)


BODY_LIMIT_BYTES = 64 * 1024
"""An answer is read up to here; the history keeps only its beginning."""
REFUSED = frozenset({401, 403})
"""The statuses by which an endpoint refuses credentials; gateways use either."""
LONG_PART = 8
"""A part of a secret with at least this many characters (the token of `Bearer …`) is hidden,
too."""
_URL_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F))

KIND_OF_ERROR: dict[type[Exception], str] = {
    TlsError: "tls_error",
    httpcore2.ConnectError: "connect_error",
    httpcore2.NetworkError: "network_error",
    httpcore2.ProtocolError: "protocol_error",
    httpcore2.UnsupportedProtocol: "protocol_error",
    httpcore2.ProxyError: "network_error",
}
"""The first that an error is an instance of counts; httpcore2's timeouts are apart."""


def create_caller(settings: Settings, clock: Clock) -> "WebhookCaller":
    secrets = AwsSecrets()
    key = DeploymentKey(lambda: deployment_secret(secrets, settings.webhook_secret_arn), clock)
    owners = OwnerSecrets(secrets, settings.secrets_prefix, clock)
    return WebhookCaller(clock, key.get, settings.webhook_allowed_networks, owners)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request with its secrets filled in; `hidden` are the texts that must not be shown."""

    address: httpcore2.URL
    headers: list[tuple[str, str]] = field(repr=False)
    content: bytes | None
    hidden: list[str] = field(repr=False)
    key: str = field(repr=False)
    """What it is signed with."""

    def has_secrets_of(self, other: "Prepared") -> bool:
        return (self.key, self.hidden) == (other.key, other.hidden)


class WebhookCaller(Caller):
    """Kinds of failure: `timeout`, `http_<status>`, `dns_error`, `address_refused` and
    `plain_http_refused` (for good), `connect_error`, `tls_error`, `network_error`,
    `protocol_error`, `signing_key_error`, `secret_missing`, `secret_unavailable`,
    `secret_invalid`. Every call has a connection of its own.

    Where the endpoint refuses the secrets of a request (REFUSED), and one of them was changed since
    it was read, the request is sent once more with the new one: an attempt that comes with a secret
    of minutes ago would end its run for good."""

    def __init__(
        self,
        clock: Clock,
        key: Callable[[Deadline, timedelta], str],
        allowed_networks: Sequence[Network],
        secrets: OwnerSecrets,
        *,
        resolver: Resolver = look_up,
        connector: Connector = connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._key = key
        self._allowed_networks = tuple(allowed_networks)
        self._secrets = secrets
        self._lookups = Lookups(resolver)
        self._connector = connector
        self._tls = httpcore2.default_ssl_context() if tls is None else tls

    def deliver(self, target: WebhookTarget, call: Call) -> Outcome:
        deadline = call.deadline()
        hidden: list[str] = []
        try:
            answer = self._answer(target, call, deadline, hidden)
        except httpcore2.TimeoutException:
            return call.timed_out(f"no complete answer within {call.timeout_seconds:g} s")
        except RefusedError as error:
            return _failure(error.kind, error, permanent=True)
        except LookupFailedError as error:
            return _failure("dns_error", error)
        except SigningKeyError as error:
            return _failure("signing_key_error", error)
        except SecretError as error:
            return _failure(error.kind, error)
        except tuple(KIND_OF_ERROR) as error:
            return _failure(kind_of_error(error), error, hidden=hidden)
        return judge(answer, self._clock.now(), hidden, keeps_whole=call.keeps_whole)

    def _answer(
        self, target: WebhookTarget, call: Call, deadline: Deadline, hidden: list[str]
    ) -> Answer:
        """Adds the secrets that it sends to `hidden`."""
        request = self._prepare(target, call, deadline, REFRESH_AFTER)
        hidden += request.hidden
        answer = self._send(call.owner, target.method, request, deadline)
        if answer.status in REFUSED:
            renewed = self._prepare(target, call, deadline, DOUBTFUL_FOR)
            if not renewed.has_secrets_of(request):
                hidden += renewed.hidden
                return self._send(call.owner, target.method, renewed, deadline)
        return answer

    def _prepare(
        self, target: WebhookTarget, call: Call, deadline: Deadline, within: timedelta
    ) -> Prepared:
        """The request with its signature and its secrets, as they were `within` that time ago, or
        later; raises SecretError, SigningKeyError."""
        address = _url(target.url)
        content = None if target.is_bodiless else call.payload
        key, hidden = self._signing_key(target, call, deadline, within)
        if call.report_to is not None:
            hidden = [*hidden, call.report_to.token]
        headers = [("Host", _host(address)), *self._headers(call, key, content)]
        for name, value in target.headers.items():
            if not isinstance(value, str):
                reference = value
                value = self._secrets.text(call.owner, value, deadline, within)
                try:
                    check_header_value(value)
                except ValueError as error:
                    message = f"{name_of(reference)}, as the header {name}, {error}"
                    raise SecretError("secret_invalid", message) from error
                hidden += [value, *(part for part in value.split() if len(part) >= LONG_PART)]
            headers.append((name, value))
        body = None if content is None else content.encode()
        return Prepared(address, headers, body, hidden, key)

    def _signing_key(
        self, target: WebhookTarget, call: Call, deadline: Deadline, within: timedelta
    ) -> tuple[str, list[str]]:
        """The key, and what of it is the owner's secret."""
        reference = target.signing_secret
        if reference is None:
            return self._key(deadline, within), []
        text = self._secrets.text(call.owner, reference, deadline, within)
        try:
            return signing_key(text), [text]
        except ValueError as error:
            raise SecretError("secret_invalid", f"{name_of(reference)} {error}") from error

    def _send(self, owner: str, method: str, request: Prepared, deadline: Deadline) -> Answer:
        backend = GuardedBackend(
            owner,
            deadline,
            self._allowed_networks,
            plain=request.address.scheme == b"http",
            lookups=self._lookups,
            connector=self._connector,
        )
        with (
            httpcore2.HTTPConnection(
                request.address.origin, ssl_context=self._tls, network_backend=backend
            ) as connection,
            connection.stream(
                method, request.address, headers=request.headers, content=request.content
            ) as answer,
        ):
            body = b""
            for part in answer.iter_stream():
                body += part
                if len(body) >= BODY_LIMIT_BYTES:
                    break
            return Answer(answer.status, answer.headers, body[:BODY_LIMIT_BYTES])

    def _headers(self, call: Call, key: str, content: str | None) -> list[tuple[str, str]]:
        now = self._clock.now()
        signature = Webhook(key).sign(call.run_id, now, content or "")
        report_to = call.report_to
        completion = (
            []
            if report_to is None
            else [
                ("Carillon-Completion-Url", report_to.url),
                ("Carillon-Completion-Token", report_to.token),
            ]
        )
        body = [] if content is None else [("Content-Type", "application/json")]
        trace = [] if call.trace is None else [("traceparent", call.trace.traceparent)]
        return [
            *body,
            ("User-Agent", "Carillon"),
            ("Connection", "close"),
            ("webhook-id", call.run_id),
            ("webhook-timestamp", str(int(now.timestamp()))),
            ("webhook-signature", signature),
            ("Idempotency-Key", call.run_id),
            ("Carillon-Job-Id", call.job_id),
            ("Carillon-Attempt", str(call.attempt)),
            ("Carillon-Fire-At", utc_text(call.fire_at)),
            *completion,
            *trace,
        ]


def kind_of_error(error: Exception) -> str:
    """The kind of an error of httpcore2 other than a timeout."""
    return next(kind for base, kind in KIND_OF_ERROR.items() if isinstance(error, base))


def _url(text: str) -> httpcore2.URL:
    """The URL in ASCII; raises httpcore2.LocalProtocolError."""
    parts = urlsplit(text)
    try:
        host = ascii_host(parts.hostname or "")
    except UnicodeError as error:  # told without the rest of the URL, which may be a secret
        message = f"{parts.hostname!r} cannot be a host: {error}"
        raise httpcore2.LocalProtocolError(message) from error
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return httpcore2.URL(
        scheme=parts.scheme,
        host=host,
        port=parts.port,
        target=quote(path, safe=_URL_CHARACTERS),
    )


def _host(url: httpcore2.URL) -> str:
    """The Host header; httpcore2's own lacks the brackets of IPv6."""
    host = url.host.decode("ascii")
    name = f"[{host}]" if ":" in host else host
    return name if url.port is None else f"{name}:{url.port}"


def _failure(
    kind: str, error: Exception, *, permanent: bool = False, hidden: Sequence[str] = ()
) -> Failure:
    message = without(hidden, str(error)) if hidden else exception_line(error)
    return Failure(RunError(kind, one_line(message) or type(error).__name__, permanent))
