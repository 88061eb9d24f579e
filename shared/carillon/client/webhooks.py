"""The receiving end of webhooks: signatures of the Standard Webhooks scheme."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from carillon.client.clock import Clock
from carillon.client.errors import InvalidSignature

TOLERANCE = timedelta(minutes=5)
"""So far may the clocks of the two ends differ; an older request may be a replayed one."""
_PREFIX = "whsec_"
_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class Event:
    """A request of a run to its webhook. A run may be called again: act once for each `run_id`."""

    run_id: str
    sent_at: datetime
    body: bytes = field(repr=False)

    @property
    def job_id(self) -> str:
        """The job of the run; what is signed is the run's id, which begins with it."""
        return self.run_id.partition("_")[0]

    @property
    def payload(self) -> Any:
        """The body as JSON; None without one."""
        return json.loads(self.body) if self.body else None


def verify(
    headers: Mapping[str, str],
    body: bytes | str | None,
    secret: str | Sequence[str],
    *,
    now: datetime | None = None,
    tolerance: timedelta = TOLERANCE,
) -> Event:
    """The event that a webhook brings; raises InvalidSignature unless one of the secrets signed it.

    `headers` are the request's, whatever their case, and `body` is its body as it came; None, or
    empty, where there is none. While a secret is changed, give the old and the new one. A text that
    begins with `whsec_` is a key in base64; of any other its bytes are the key, as the deployment
    signs. Raises ValueError for a secret that can be no key.
    """
    given = {name.lower(): value for name, value in headers.items()}
    run_id, sent, signatures = (
        _header(given, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
    )
    secrets = [secret] if isinstance(secret, str) else list(secret)
    if not secrets:
        raise ValueError("give at least one secret")
    keys = [_key(number, text) for number, text in enumerate(secrets)]
    # Some servers keep bytes that are no text as halves of surrogate pairs.
    content = body.encode(errors="surrogatepass") if isinstance(body, str) else bytes(body or b"")
    signed = f"{run_id}.{sent}.".encode(errors="surrogatepass") + content
    expected = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    found = _signatures(signatures)
    # Every pair is compared, so that the time taken tells nothing.
    if not sum(hmac.compare_digest(own, one) for own in expected for one in found):
        raise InvalidSignature("webhook-signature was not made with this secret")
    sent_at = _instant(sent)
    if abs((now or Clock().now()) - sent_at) > tolerance:
        raise InvalidSignature(f"webhook-timestamp is {sent_at}, too far from now")
    return Event(run_id, sent_at, content)


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name)
    if not value:
        raise InvalidSignature(f"{name} is missing")
    return value


def _key(number: int, secret: str) -> bytes:
    if not secret.startswith(_PREFIX):
        key = secret.encode()
    else:
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except ValueError:
            # Without the cause: it may quote the secret.
            message = f"secret {number} is no key: after {_PREFIX} must follow base64"
            raise ValueError(message) from None
    if not key:
        raise ValueError(f"secret {number} is no key: it is empty")
    return key


def _signatures(text: str) -> list[bytes]:
    """The signatures of the one version that there is; what cannot be one is left out."""
    found = []
    for word in text.split(" "):
        version, _, signature = word.partition(",")
        if version == _VERSION:
            try:
                found.append(base64.b64decode(signature, validate=True))
            except ValueError:
                continue
    return found


def _instant(text: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidSignature("webhook-timestamp is no number of seconds") from error
