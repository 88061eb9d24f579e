"""Collectors of spans: X-Ray's endpoint for OTLP, whose requests are signed, or any other."""

from collections.abc import Callable, Mapping

import boto3
import httpcore2
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from carillon.executor.tracing.tracer import Collector
from carillon.settings import TRACES_TO_XRAY

_HEADERS = {"Content-Type": "application/json", "User-Agent": "Carillon"}
_KEEP_SECONDS = 30.0
"""A connection is used for the next batch, too, if that comes within this time."""

Sign = Callable[[str, bytes], Mapping[str, str]]
"""Address and body to the headers of the request."""


class CollectorError(Exception):
    """The collector has refused spans; the message has its answer."""


def collector_of(place: str) -> Collector:
    """The collector that the setting `tracing` names."""
    if place != TRACES_TO_XRAY:
        return OtlpCollector(place, lambda url, body: _HEADERS)
    session = boto3.Session()
    url = f"https://xray.{session.region_name}.amazonaws.com/v1/traces"
    return OtlpCollector(url, signature_of(session))


def signature_of(session: boto3.Session) -> Sign:
    """Signs requests to X-Ray by the credentials of the session, as they are then."""

    def sign(url: str, body: bytes) -> Mapping[str, str]:
        credentials = session.get_credentials()
        if credentials is None:
            raise CollectorError("there are no credentials to sign spans for X-Ray with")
        request = AWSRequest("POST", url, headers=_HEADERS, data=body)
        SigV4Auth(credentials, "xray", session.region_name).add_auth(request)
        return dict(request.headers.items())

    return sign


class OtlpCollector:
    """Takes OTLP over HTTP. The operator has named it, so that it may be anywhere: the guard of
    webhooks, whose addresses are owners', is not asked."""

    def __init__(self, url: str, sign: Sign) -> None:
        self._url = url
        self._sign = sign
        self._connections = httpcore2.ConnectionPool(
            ssl_context=httpcore2.default_ssl_context() if url.startswith("https") else None,
            max_connections=2,
            keepalive_expiry=_KEEP_SECONDS,
        )

    def post(self, body: bytes, limit_seconds: float) -> None:
        """Raises CollectorError and httpcore2's errors."""
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), limit_seconds)
        answer = self._connections.request(
            "POST",
            self._url,
            headers=list(self._sign(self._url, body).items()),
            content=body,
            extensions={"timeout": timeout},
        )
        # 200 is the answer to a part that was taken, too.
        if answer.status != 200 or b'"rejectedSpans"' in answer.content:
            raise CollectorError(f"{answer.status} {answer.content[:300].decode(errors='replace')}")
