"""The claims of a JSON web token."""

import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime
from typing import Any


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JSON web token, whose signature the API checks; raises ValueError for any
    other text."""
    try:
        part = token.split(".")[1]
        claims: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        int(claims.get("exp", 0))
    except (IndexError, TypeError, AttributeError) as error:
        raise ValueError("the token is not a JSON web token") from error
    return claims


def expiry_of(token: str) -> datetime | None:
    """The end of a JSON web token; None where it has none, and for any other text."""
    try:
        return datetime.fromtimestamp(int(claims_of(token)["exp"]), UTC)
    except (ValueError, KeyError, OverflowError, OSError):
        return None
