"""JSON given on the command line, in a file, or on stdin."""

import json
import sys
from pathlib import Path
from typing import Any

from shared.errors import InvalidFieldError


def parse_json(text: str | bytes, field: str) -> Any:
    """The JSON value; raises InvalidFieldError naming `field`."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError(field, f"is not JSON: {error}") from error


def read_json(source: str, field: str) -> Any:
    """The JSON value in a file, or on stdin for `-`; raises InvalidFieldError naming `field`."""
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidFieldError(field, f"{source} cannot be read: {error}") from error
    return parse_json(content, field)


def schedule_form(text: str) -> Any:
    """The value of a SCHEDULE argument: JSON when it looks like it, else the text itself.

    Raises InvalidFieldError on `schedule`.
    """
    return parse_json(text, "schedule") if text.lstrip().startswith(("{", "[")) else text


def payload_value(text: str) -> Any:
    """The value of --payload: JSON, or `@file` (`@-` for stdin); raises InvalidFieldError."""
    if text.startswith("@"):
        return read_json(text[1:], "payload")
    return parse_json(text, "payload")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
