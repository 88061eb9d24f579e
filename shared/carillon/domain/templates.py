"""Payload templates: what a run knows of itself, put in the places that its job's payload names.

A string of the payload may hold `{{fire_at}}`, `{{effective_at}}`, `{{run_id}}`, `{{attempt}}`,
`{{job_id}}`, `{{job_name}}`, `{{tags.KEY}}` and `{{tags}}`; blanks inside the braces do not count.
Of a job that runs after another one `{{after.run_id}}`, `{{after.status}}`, `{{after.result}}` and
`{{after.fire_at}}`, too: of the run that it follows, null where it was started otherwise.
A string that is one placeholder and nothing else becomes the value with its type: the attempt a
number, the tags an object. In other text the value is put as text, the tags as compact JSON. A tag
that the job has not is null, or no text at all. `{{{{` stands for two braces as they are.

Names of members are no templates. The content of a value is not expanded again.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from carillon.clock import utc_text
from carillon.domain.run import Run

MOST_PLACEHOLDERS = 100
"""In one payload; with the limits of tags this bounds what a payload can grow to."""
MOST_PROBLEMS = 50
"""Of a payload with more problems only the first ones are reported."""
DEEPEST = 100
"""Arrays and objects may be nested this deep."""
PATH_LIMIT_CHARACTERS = 200
"""Longer paths of problems are cut: a name may be as long as the payload."""

NAMES = ("fire_at", "effective_at", "run_id", "attempt", "job_id", "job_name", "tags")
AFTER_NAMES = ("after.run_id", "after.status", "after.result", "after.fire_at")
_TAG = "tags."
_OPENING = "{{"
# Blanks are cut off afterwards: a pattern for them would take ages for many.
_PART = re.compile(r"\{\{\{\{|\{\{([^{}]*)\}\}")
_KNOWN = ", ".join(f"{{{{{name}}}}}" for name in (*NAMES, "tags.KEY"))
_ONLY_AFTER = "is of a run of another job: this job does not run `after` one"


@dataclass(frozen=True, slots=True)
class TemplateValues:
    """The values of placeholders; both instants are aware and in UTC."""

    fire_at: datetime
    effective_at: datetime
    run_id: str
    attempt: int
    job_id: str
    job_name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    after: Run | None = None

    def value_of(self, name: str) -> Any:
        """A JSON value; raises KeyError for a name that is none."""
        if name.startswith(_TAG):
            return self.tags.get(name.removeprefix(_TAG))
        if name in AFTER_NAMES:
            return self._of_run_before(name)
        if name not in NAMES:
            raise KeyError(name)
        value = getattr(self, name)
        if isinstance(value, datetime):
            return utc_text(value)
        return dict(value) if name == "tags" else value

    def _of_run_before(self, name: str) -> str | None:
        if self.after is None:
            return None
        match name:
            case "after.run_id":
                return self.after.key.run_id
            case "after.status":
                return self.after.status.value
            case "after.fire_at":
                return utc_text(self.after.key.fire_at)
            case _:
                return self.after.result


def render_payload(payload: str, values: TemplateValues) -> str:
    """The payload (compact JSON text) of one attempt, as compact JSON text.

    A placeholder that is none, which `check_template` refuses, stays as it is.
    """
    # Only strings can hold it: no object of JSON begins with an object.
    if _OPENING not in payload:
        return payload
    rendered = _map_strings(json.loads(payload), lambda text: _render(text, values))
    return json.dumps(rendered, separators=(",", ":"), ensure_ascii=False)


def check_template(payload: Any, *, runs_after: bool = False) -> list[tuple[str, str]]:
    """The problems of a payload (a JSON value) as a template: pairs of path and message.
    `runs_after`: its job runs after another one.

    Paths are those of the API's problems, `payload.items[3].to`, cut at PATH_LIMIT_CHARACTERS; the
    first MOST_PROBLEMS are reported.
    """
    problems: list[tuple[str, str]] = []
    placeholders = 0
    for place, value in _values(payload):
        if place.depth > DEEPEST:
            return [("payload", f"is nested more than {DEEPEST} deep: no template can be")]
        if isinstance(place.step, str) and _OPENING in place.step:
            problems.append((place.path, f"has {_OPENING} in its name, where nothing is put in"))
        if isinstance(value, str):
            found = islice(_problems_of(value, runs_after), MOST_PROBLEMS)
            problems.extend((place.path, problem) for problem in found)
            placeholders += sum(1 for part in _PART.finditer(value) if _name(part) is not None)
        if len(problems) >= MOST_PROBLEMS:
            return problems[:MOST_PROBLEMS]
    if placeholders > MOST_PLACEHOLDERS:
        problems.append(("payload", f"has more than {MOST_PLACEHOLDERS} placeholders"))
    return problems


@dataclass(frozen=True, slots=True)
class _Place:
    """The path of a value: a member's name or an item's number, within another path.

    Its path is put together for a problem only: those of all values may take far more memory than
    the payload.
    """

    step: str | int
    parent: "_Place | None" = None
    depth: int = 0

    def inside(self, value: list[Any] | dict[str, Any]) -> "Iterator[tuple[_Place, Any]]":
        """The values of an array or object at this path, in order."""
        steps: Iterable[tuple[int | str, Any]]
        steps = enumerate(value) if isinstance(value, list) else value.items()
        return ((_Place(step, self, self.depth + 1), inner) for step, inner in steps)

    @property
    def path(self) -> str:
        steps: list[str] = []
        place = self
        while place.parent is not None:
            step = place.step
            steps.append(f".{step}" if isinstance(step, str) else f"[{step}]")
            place = place.parent
        path = "".join(["payload", *reversed(steps)])
        cut = len(path) > PATH_LIMIT_CHARACTERS
        return f"{path[: PATH_LIMIT_CHARACTERS - 1]}…" if cut else path


def _values(payload: Any) -> Iterator[tuple[_Place, Any]]:
    """The payload and every value in it, each before what it holds."""
    waiting = [iter([(_Place(""), payload)])]
    while waiting:
        for place, value in waiting[-1]:
            yield place, value
            if isinstance(value, list | dict):
                waiting.append(place.inside(value))
                break
        else:
            waiting.pop()


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


def _problems_of(text: str, runs_after: bool) -> Iterator[str]:
    """The problems of one string."""
    for part in _PART.finditer(text):
        name = _name(part)
        if name in AFTER_NAMES and not runs_after:
            yield f"has {{{{{name}}}}}, which {_ONLY_AFTER}"
        elif name is not None and not _is_known(name):
            yield f"has {{{{{name[:64]}}}}}, which is none of {_KNOWN}"
    if _OPENING in _PART.sub("\0", text):
        yield "has {{ that is never closed; write {{{{ for two braces as they are"


def _name(part: re.Match[str]) -> str | None:
    """The name in a placeholder; None for braces that are meant literally."""
    return None if part[1] is None else str(part[1]).strip()


def _is_known(name: str) -> bool:
    return name in (*NAMES, *AFTER_NAMES) or (name.startswith(_TAG) and len(name) > len(_TAG))
