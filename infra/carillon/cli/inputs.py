"""JSON and targets as given on the command line, in a file or on stdin."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carillon.errors import InvalidFieldError


def parse_json(text: str | bytes, field: str) -> Any:
    """The JSON value; raises InvalidFieldError naming `field`."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError(field, f"is not JSON: {error}") from error


def read_json(source: str, field: str) -> Any:
    """The JSON value in a file, or on stdin for `-`; raises InvalidFieldError naming `field`."""
    return parse_json(_content(source, field), field)


def read_text(source: str, field: str) -> str:
    """The text in a file, or on stdin for `-`; raises InvalidFieldError naming `field`."""
    try:
        return _content(source, field).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidFieldError(field, f"{source} is not UTF-8: {error}") from error


def schedule_form(text: str, field: str = "schedule") -> Any:
    """The value of a SCHEDULE argument: JSON if it begins like JSON, else the text itself.

    Raises InvalidFieldError naming `field`.
    """
    return parse_json(text, field) if text.lstrip().startswith(("{", "[")) else text


def exception_forms(texts: Sequence[str] | None) -> tuple[Any, ...]:
    """The values of each --except; raises InvalidFieldError on `except[0]`, ..."""
    forms = enumerate(texts or ())
    return tuple(schedule_form(text, f"except[{number}]") for number, text in forms)


def payload_value(text: str) -> Any:
    """The value of --payload: JSON, or `@file` (`@-` for stdin); raises InvalidFieldError."""
    if text.startswith("@"):
        return read_json(text[1:], "payload")
    return parse_json(text, "payload")


def _content(source: str, field: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidFieldError(field, f"{source} cannot be read: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


_BY_SERVICE = {
    "lambda": ("lambda", "function_arn"),
    "sqs": ("sqs", "queue_arn"),
    "sns": ("sns", "topic_arn"),
    "states": ("stepfunctions", "state_machine_arn"),
}
"""By the service in an ARN: the type of target and the member that names it."""

_IN_JSON = {
    "batch": '{"type": "batch", "job_definition_arn": ..., "job_queue_arn": ...}',
    "ecs": '{"type": "ecs", "task_definition_arn": ..., "subnets": [...], "container": ...}',
    "events": '{"type": "eventbridge", "bus_arn": ..., "source": ..., "detail_type": ...}',
}
"""By the service in an ARN: the targets that an ARN alone does not make."""


def target_form(text: str, field: str) -> Any:
    """The target of a JSON object, an ARN, a URL, or the name of a task.

    The API judges what else is not allowed in it. Raises InvalidFieldError on `field`.
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        return parse_json(stripped, field)
    if stripped.startswith(("https://", "http://")):
        return {"type": "webhook", "url": stripped}
    if stripped.startswith("arn:"):
        return _of_arn(stripped, field)
    return {"type": "task", "name": stripped}


def _of_arn(arn: str, field: str) -> dict[str, str]:
    service = [*arn.split(":"), "", ""][2]
    if service in _BY_SERVICE:
        kind, member = _BY_SERVICE[service]
        return {"type": kind, member: arn}
    if service in _IN_JSON:
        message = f"{arn} alone is no target, give JSON: {_IN_JSON[service]}"
    else:
        message = f"{arn!r} is of none of {', '.join((*_BY_SERVICE, *_IN_JSON))}"
    raise InvalidFieldError(field, message)
