"""Payload templates: what a run knows of itself, put in the places that its job's payload names.

A string of the payload may hold `{{fire_at}}`, `{{effective_at}}`, `{{run_id}}`, `{{attempt}}`,
`{{job_id}}`, `{{job_name}}`, `{{tags.KEY}}` and `{{tags}}`; blanks inside the braces do not count.
A string that is one placeholder and nothing else becomes the value with its type: the attempt a
number, the tags an object. In other text the value is put as text, the tags as compact JSON. A tag
that the job has not is null, or no text at all. `{{{{` stands for two braces as they are.

Names of members are no templates. What a value holds is never looked at again.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

MOST_PLACEHOLDERS = 100
"""In one payload; with the limits of tags this bounds what a payload can grow to."""
MOST_PROBLEMS = 50
"""Of a payload with more the first are told."""
DEEPEST = 100
"""So many arrays and objects may lie in each other."""

NAMES = ("fire_at", "effective_at", "run_id", "attempt", "job_id", "job_name", "tags")
_TAG = "tags."
_OPENING = "{{"
# Blanks are cut off afterwards: a pattern for them would take ages for many.
_PART = re.compile(r"\{\{\{\{|\{\{([^{}]*)\}\}")
_KNOWN = ", ".join(f"{{{{{name}}}}}" for name in (*NAMES, "tags.KEY"))


@dataclass(frozen=True, slots=True)
class TemplateValues:
    """What placeholders stand for; both instants are aware and in UTC."""

    fire_at: datetime
    effective_at: datetime
    run_id: str
    attempt: int
    job_id: str
    job_name: str
    tags: Mapping[str, str] = field(default_factory=dict)

    def value_of(self, name: str) -> Any:
        """A JSON value; raises KeyError for a name that is none."""
        if name.startswith(_TAG):
            return self.tags.get(name.removeprefix(_TAG))
        if name not in NAMES:
            raise KeyError(name)
        value = getattr(self, name)
        if isinstance(value, datetime):
            return f"{value:%Y-%m-%dT%H:%M:%SZ}"
        return dict(value) if name == "tags" else value


def render_payload(payload: str, values: TemplateValues) -> str:
    """The payload (compact JSON text) of one attempt, as compact JSON text.

    A placeholder that is none, which `check_template` refuses, stays as it is.
    """
    # Only strings can hold it: no object of JSON begins with an object.
    if _OPENING not in payload:
        return payload
    rendered = _map_strings(json.loads(payload), lambda text: _render(text, values))
    return json.dumps(rendered, separators=(",", ":"), ensure_ascii=False)


def check_template(payload: Any) -> list[tuple[str, str]]:
    """What is wrong with a payload (a JSON value) as a template: pairs of path and message.

    Paths are those of the API's problems: `payload.items[3].to`; the first MOST_PROBLEMS are told.
    """
    problems: list[tuple[str, str]] = []
    placeholders = 0
    waiting: list[tuple[str, Any, int]] = [("payload", payload, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if depth > DEEPEST:
            return [("payload", f"is nested more than {DEEPEST} deep: no template can be")]
        if isinstance(value, str):
            problems.extend((path, problem) for problem in _problems_of(value))
            placeholders += sum(1 for part in _PART.finditer(value) if _name(part) is not None)
        elif isinstance(value, list):
            items = [(f"{path}[{n}]", item, depth + 1) for n, item in enumerate(value)]
            waiting.extend(reversed(items))
        elif isinstance(value, dict):
            problems.extend(
                (f"{path}.{name}", f"has {_OPENING} in its name, where nothing is put in")
                for name in value
                if _OPENING in name
            )
            members = [(f"{path}.{name}", member, depth + 1) for name, member in value.items()]
            waiting.extend(reversed(members))
    if placeholders > MOST_PLACEHOLDERS:
        problems.append(("payload", f"has more than {MOST_PLACEHOLDERS} placeholders"))
    return problems[:MOST_PROBLEMS]


def _map_strings(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _map_strings(member, change) for name, member in value.items()}
    return value


def _render(text: str, values: TemplateValues) -> Any:
    whole = _PART.fullmatch(text)
    name = _name(whole) if whole else None
    if name is not None and _is_known(name):
        return values.value_of(name)
    return _PART.sub(lambda part: _text_of(part, values), text)


def _text_of(part: re.Match[str], values: TemplateValues) -> str:
    name = _name(part)
    if name is None:
        return _OPENING
    if not _is_known(name):
        return part[0]
    value = values.value_of(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _problems_of(text: str) -> list[str]:
    """What is wrong with one string."""
    names = [_name(part) for part in _PART.finditer(text)]
    problems = [
        f"has {{{{{name[:64]}}}}}, which is none of {_KNOWN}"
        for name in names
        if name is not None and not _is_known(name)
    ]
    if _OPENING in _PART.sub("\0", text):
        problems.append("has {{ that is never closed; write {{{{ for two braces as they are")
    return problems


def _name(part: re.Match[str]) -> str | None:
    """What a placeholder names; None for braces that stand for themselves."""
    return None if part[1] is None else str(part[1]).strip()


def _is_known(name: str) -> bool:
    return name in NAMES or (name.startswith(_TAG) and len(name) > len(_TAG))
