"""Headers of webhooks, and subjects of messages, that owners may set."""

import re

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_FIELD_VALUE = re.compile(r"[!-~]([\t -~]{0,1022}[!-~])?")
_SUBJECT = re.compile(r"[!-~][ -~]{0,99}")

_OURS = frozenset({"content-type", "idempotency-key", "traceparent", "tracestate", "user-agent"})
_CONNECTIONS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_RESERVED_BEGINNINGS = ("carillon-", "webhook-", "proxy-")


def check_header_name(name: str) -> None:
    """A name that the owner of a job may set on its webhook."""
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"names {name[:40]!r}, which is no name of a header")
    lowered = name.lower()
    if lowered in _OURS or lowered in _CONNECTIONS or lowered.startswith(_RESERVED_BEGINNINGS):
        raise ValueError(f"must not set {name!r}: Carillon sets it, or the connection does")


def check_header_value(value: str) -> str:
    """Visible ASCII, with blanks inside; the content of a secret is checked when it is read."""
    if value and not _FIELD_VALUE.fullmatch(value):
        raise ValueError("must be printable ASCII, at most 1024 characters, without blanks around")
    return value


def check_subject(subject: str) -> str:
    """The subject of a message, as SNS accepts it."""
    if not _SUBJECT.fullmatch(subject):
        raise ValueError("must be printable ASCII on one line, at most 100 characters")
    return subject
