"""The input of a schedule as a payload, with AWS's context attributes as placeholders."""

import re
from collections.abc import Mapping
from typing import Any

from carillon.domain.spec.fields import compact_json
from carillon.domain.templates import check_template
from carillon.importers.entries import Json, Note, json_of

_ATTRIBUTE = re.compile(r"<aws\.scheduler\.([a-z-]+)>")
_PLACEHOLDERS = {
    "scheduled-time": "{{fire_at}}",
    "execution-id": "{{run_id}}",
    "attempt-number": "{{attempt}}",
}
_CHANGED = {
    "execution-id": "execution-id is the run's id here, the same at each of its attempts",
    "attempt-number": "attempt-number is a number here, where it is all of a text",
}
_FIELD = "Target.Input"


def payload_of(text: str | None, schedule_arn: str) -> tuple[Json, list[Note]]:
    """The members `payload` and `template` of a job."""
    if text is None:
        message = "none: AWS sends a notification of its own, and Carillon null"
        return {}, [Note(_FIELD, message)]
    notes: list[Note] = []
    try:
        value = json_of(text)
    except (ValueError, RecursionError):
        value = text
        message = "is not JSON: it is sent as a JSON text, in quotes"
        notes.append(Note(_FIELD, message))
    if not _ATTRIBUTE.search(text):
        return {"payload": value}, notes
    made = _mapped(value, schedule_arn)
    left = sorted(set(_ATTRIBUTE.findall(compact_json(made))))
    if left:
        message = f"not replaced, as they are unknown or in a member's name: {', '.join(left)}"
        notes.append(Note(_FIELD, message))
    problems = check_template(made)
    if problems:
        told = "; ".join(f"{path} {problem}" for path, problem in problems)
        notes.append(Note(_FIELD, f"its context attributes are sent as they are: {told}"))
        return {"payload": value}, notes
    notes += [Note(_FIELD, told) for name, told in _CHANGED.items() if name in text]
    return {"payload": made, "template": True}, notes


def _mapped(value: Any, arn: str) -> Any:
    """The value with placeholders; braces that were there stay what they are."""
    if isinstance(value, str):
        escaped = value.replace("{{", "{{{{").replace("<aws.scheduler.schedule-arn>", arn)
        return _ATTRIBUTE.sub(lambda found: _PLACEHOLDERS.get(found[1], found[0]), escaped)
    if isinstance(value, list):
        return [_mapped(item, arn) for item in value]
    if isinstance(value, Mapping):
        return {name: _mapped(member, arn) for name, member in value.items()}
    return value
