"""The parts of a request besides its fields: its body's form, its preconditions."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.event_handler.openapi.params import Header

from carillon.api.http.problems import (
    Kind,
    PayloadTooLargeError,
    ProblemError,
    unsupported_media_type,
)

BODY_LIMIT_BYTES = 1024 * 1024
MOST_LEVELS = 64
"""The nesting of a body; stored values must be readable again, on any stack."""

MOST_KEY_CHARACTERS = 255

ETAG_PATTERN = '^(?:[*]|"[0-9]{1,18}"|[0-9]{1,18})$'
KEY_PATTERN = '^(?:"[!-~](?:[ -~]{0,253}[!-~])?"|[!#-~](?:[ -~]{0,253}[!-~])?)$'
"""With or without quotes."""
_KEY = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="Only over the one of this ETag; `*`: over any.",
        json_schema_extra={"pattern": ETAG_PATTERN},
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="`*`: only if there is none of this name yet.",
        json_schema_extra={"pattern": "^[*]$"},
    ),
]

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Precondition:
    """A condition on the stored row: `revision` None is any."""

    revision: int | None = None
    must_exist: bool = False
    must_be_absent: bool = False

    def holds(self, stored: int | None) -> bool:
        """True if it holds for a stored revision; None when there is no row."""
        if stored is None:
            return not self.must_exist
        return not self.must_be_absent and self.revision in (None, stored)


def with_checked_body(event: Event) -> dict[str, Any]:
    """The event, its body either absent or one JSON object in plain text.

    The resolver's own reading takes forms for JSON, the first item of a list for the body, and
    NaN, infinities and lone surrogates for values. Raises ProblemError or PayloadTooLargeError.
    """
    headers = _joined(event.get("headers") or {})
    data = _body_bytes(event)
    media_type = str(headers.pop("content-type", "")).partition(";")[0].strip().lower()
    if not data:
        return {**event, "headers": headers, "body": None, "isBase64Encoded": False}
    if len(data) > BODY_LIMIT_BYTES:
        raise PayloadTooLargeError("body", len(data), BODY_LIMIT_BYTES)
    if media_type not in ("", "application/json"):
        raise unsupported_media_type()
    text = _checked_json(data)
    headers["content-type"] = "application/json"
    return {**event, "headers": headers, "body": text, "isBase64Encoded": False}


def _joined(headers: Mapping[str, Any]) -> dict[str, Any]:
    """The headers by their names in lower case; several of one name as a gateway joins them."""
    joined: dict[str, Any] = {}
    for name, text in headers.items():
        lower = str(name).lower()
        joined[lower] = f"{joined[lower]},{text}" if lower in joined else text
    return joined


def body_fields(app: APIGatewayHttpResolver) -> list[str]:
    """The top-level fields of the body."""
    return list(app.current_event.json_body or {})


def expected_revision(app: APIGatewayHttpResolver) -> int | None:
    """The revision that `If-Match` names; None for `*`, any."""
    condition = _if_match(app)
    if not condition.must_exist:
        raise ProblemError(
            Kind.REVISION_REQUIRED,
            "send If-Match with the ETag of the job as you know it",
            [("If-Match", 'is required, as in If-Match: "3"')],
        )
    return condition.revision


def precondition(app: APIGatewayHttpResolver) -> Precondition:
    """The condition in `If-Match` and `If-None-Match`, which only takes `*`."""
    unless = _header(app, "if-none-match")
    if unless not in (None, "*"):
        message = "must be *"
        raise ProblemError(
            Kind.INVALID_HEADER, f"If-None-Match {message}", [("If-None-Match", message)]
        )
    return replace(_if_match(app), must_be_absent=unless == "*")


def idempotency_key(
    app: APIGatewayHttpResolver, most_characters: int = MOST_KEY_CHARACTERS
) -> str | None:
    """The `Idempotency-Key`, with or without its quotes; None when there is none."""
    text = _header(app, "idempotency-key")
    if text is None:
        return None
    key = text[1:-1] if text.startswith('"') else text
    if not re.fullmatch(KEY_PATTERN, text) or len(key) > most_characters:
        message = f"must be 1 to {most_characters} printable ASCII characters"
        raise ProblemError(
            Kind.INVALID_HEADER, f"Idempotency-Key {message}", [("Idempotency-Key", message)]
        )
    return key


def key_of(text: str) -> str | None:
    """The text if it can be an idempotency key."""
    return text if _KEY.fullmatch(text) else None


def _if_match(app: APIGatewayHttpResolver) -> Precondition:
    tag = _header(app, "if-match")
    if tag is None or tag == "*":
        return Precondition(must_exist=tag == "*")
    if not re.fullmatch(ETAG_PATTERN, tag):
        message = 'must be one ETag, as in If-Match: "3", or *'
        raise ProblemError(Kind.INVALID_HEADER, f"If-Match {message}", [("If-Match", message)])
    return Precondition(int(tag.strip('"')), must_exist=True)


def _header(app: APIGatewayHttpResolver, name: str) -> str | None:
    text = app.current_event.headers.get(name)
    return None if text is None else str(text).strip()


def etag(revision: int) -> str:
    return f'"{revision}"'


def _body_bytes(event: Event) -> bytes:
    body = str(event.get("body") or "")
    if not event.get("isBase64Encoded"):
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid_json("the body cannot be decoded") from error


def _checked_json(data: bytes) -> str:
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise _invalid_json("the body is not UTF-8") from error
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise _invalid_json(detail) from error
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise _invalid_json(f"a number cannot be stored: {str(error)[:80]}") from error
    if not isinstance(value, dict):
        raise _invalid_json("the body must be one JSON object")
    if _levels(value) > MOST_LEVELS:
        raise _too_deep()
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise _invalid_json("a text has half of a surrogate pair (\\ud800 to \\udfff)") from error
    return text


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:40]} is out of range")
    return number


def _levels(value: Any) -> int:
    """The depth to which objects and lists are nested; stops one level behind the limit."""
    level, containers = 0, [value]
    while containers and level <= MOST_LEVELS:
        level += 1
        members = [
            member
            for container in containers
            for member in (container.values() if isinstance(container, dict) else container)
        ]
        containers = [member for member in members if isinstance(member, dict | list)]
    return level


def _invalid_json(detail: str) -> ProblemError:
    return ProblemError(Kind.INVALID_JSON, detail, [("body", detail)])


def _too_deep() -> ProblemError:
    return _invalid_json(f"the body is nested deeper than {MOST_LEVELS} levels")
