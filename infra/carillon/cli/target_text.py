"""Targets on the command line: JSON, or the one word that says which it is."""

from typing import Any

from carillon.cli.inputs import parse_json
from carillon.errors import InvalidFieldError

_BY_SERVICE = {
    "lambda": ("lambda", "function_arn"),
    "sqs": ("sqs", "queue_arn"),
    "sns": ("sns", "topic_arn"),
    "states": ("stepfunctions", "state_machine_arn"),
}
"""By the service in an ARN: the type of target and the member that names it."""


def target_form(text: str, field: str) -> Any:
    """The target of a JSON object, an ARN, a URL, or the name of a task.

    What else is not allowed in it is the API's to say. Raises InvalidFieldError on `field`.
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
    if service == "events":
        message = (
            "an event bus needs JSON: "
            '{"type": "eventbridge", "bus_arn": ..., "source": ..., "detail_type": ...}'
        )
    else:
        message = f"{arn!r} is of none of {', '.join(_BY_SERVICE)}, events"
    raise InvalidFieldError(field, message)
