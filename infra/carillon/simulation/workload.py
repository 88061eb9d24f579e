"""The workload of a simulation, and the YAML file that declares it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from carillon.api.calendars.models import CalendarBody
from carillon.api.http.fields import field_errors
from carillon.domain.calendar import CalendarName
from carillon.domain.spec.fields import Document
from carillon.domain.spec.job_spec import JobSpec
from carillon.errors import CarillonError, InvalidFieldError

MOST_JOBS = 200_000
"""Of one fleet, copies included: each takes a few KB of memory."""
_MOST_ERRORS = 50
_MEMBERS = ("jobs", "calendars", "simulate")
_CALENDAR_NAME: TypeAdapter[str] = TypeAdapter(CalendarName)
_Model = TypeVar("_Model", bound=BaseModel)

Errors = list[tuple[str, str]]


class WorkloadRefusedError(CarillonError):
    """`errors` are pairs: a path in the document (`jobs[3].schedule`), and its fault."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in errors))
        self.errors = tuple(errors)


class BehaviourProfile(Document):
    """The behaviour of a job's target: it takes `seconds` (null: up to 50 ms, by the seed), and
    fails at `failure_rate`. `copies` jobs have the definition, with numbered names. `owner` owns
    them."""

    seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    copies: Annotated[int, Field(ge=1, le=MOST_JOBS, strict=True)] = 1
    owner: Annotated[str, Field(min_length=1, max_length=128)] = "simulated"


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition of a job; `number` is its place in the document, from 0."""

    number: int
    body: JobSpec
    profile: BehaviourProfile

    @property
    def path(self) -> str:
        return f"jobs[{self.number}]"

    def bodies(self) -> Iterator[JobSpec]:
        """One for each copy."""
        if self.profile.copies == 1:
            yield self.body
            return
        for copy in range(1, self.profile.copies + 1):
            yield self.body.model_copy(update={"name": f"{self.body.name}-{copy}"})


@dataclass(frozen=True, slots=True)
class Workload:
    """Checked as the API checks requests, as far as that goes before they are served."""

    definitions: tuple[Definition, ...]
    calendars: tuple[tuple[str, CalendarBody], ...] = ()

    @property
    def job_count(self) -> int:
        return sum(definition.profile.copies for definition in self.definitions)

    @property
    def owners(self) -> list[str]:
        """Each once, in the order of the document."""
        return list(dict.fromkeys(definition.profile.owner for definition in self.definitions))

    @classmethod
    def of(cls, document: object) -> "Workload":
        """From a document of JSON's types; raises WorkloadRefusedError naming all that is wrong."""
        parts: Mapping[Any, Any] = document if isinstance(document, dict) else {"jobs": document}
        errors: Errors = [
            (str(name), f"is not a known member: a fleet has {', '.join(_MEMBERS)}")
            for name in parts
            if name not in _MEMBERS
        ]
        bodies = parts.get("jobs")
        if not isinstance(bodies, list) or not bodies:
            errors.append(("jobs", "must be a list of at least one job, as the body of POST /jobs"))
            bodies = []
        jobs = [_checked(JobSpec, body, f"jobs[{at}]", errors) for at, body in enumerate(bodies)]
        calendars = list(_calendars(_mapping(parts, "calendars", errors), errors))
        profiles = _profiles(_mapping(parts, "simulate", errors), bodies, errors)
        if errors:
            raise WorkloadRefusedError(errors[:_MOST_ERRORS])
        definitions = tuple(
            Definition(number, body, profiles.get(body.name, BehaviourProfile()))
            for number, body in enumerate(jobs)
            if body is not None
        )
        fleet = cls(definitions, tuple(calendars))
        if fleet.job_count > MOST_JOBS:
            message = f"make {fleet.job_count:,} with their copies; {MOST_JOBS:,} are the most"
            raise WorkloadRefusedError([("jobs", message)])
        return fleet


def _profiles(
    forms: Mapping[Any, Any], bodies: Sequence[Any], errors: Errors
) -> dict[str, BehaviourProfile]:
    names = {body.get("name") for body in bodies if isinstance(body, dict) and _is_named(body)}
    found: dict[str, BehaviourProfile] = {}
    for name, form in forms.items():
        path = f"simulate.{name}"
        if name not in names:
            errors.append((path, "names no job of this fleet"))
        profile = _checked(BehaviourProfile, form, path, errors)
        if profile is not None:
            found[str(name)] = profile
    return found


def _is_named(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("name"), str)


def _calendars(forms: Mapping[Any, Any], errors: Errors) -> Iterator[tuple[str, CalendarBody]]:
    for name, form in forms.items():
        path = f"calendars.{name}"
        try:
            _CALENDAR_NAME.validate_python(name)
        except ValidationError as error:
            errors.append((path, f"name: {field_errors(error.errors())[0][1]}"))
        body = _checked(CalendarBody, form, path, errors)
        if body is not None:
            yield str(name), body


def _mapping(parts: Mapping[Any, Any], member: str, errors: Errors) -> Mapping[Any, Any]:
    found = parts.get(member)
    if found is None:
        return {}
    if not isinstance(found, dict):
        errors.append((member, "must be an object, by name"))
        return {}
    return found


def _checked(model: type[_Model], form: object, path: str, errors: Errors) -> _Model | None:
    """The form as the API would read it from JSON; None when it is wrong."""

    def invalid(found: Sequence[tuple[str, str]]) -> None:
        errors.extend(
            (path if field == "body" else f"{path}.{field}", text) for field, text in found
        )

    return _attempted(lambda: model.model_validate_json(json.dumps(form)), invalid)


def _attempted(validate: Callable[[], _Model], invalid: Callable[[Errors], None]) -> _Model | None:
    try:
        return validate()
    except ValidationError as error:
        invalid(field_errors(error.errors()))
    except (TypeError, ValueError, RecursionError) as error:
        invalid([("body", f"is not JSON: {error}")])
    return None


_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """YAML's core schema (1.2): no dates, no numbers to base 60, no `yes` and `off`.

    What the API takes as text, such as an instant or `09:30`, need not be quoted then.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012 - declared so by its base

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Keys are text, and unique: otherwise the last of two would win in silence."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != "tag:yaml.org,2002:str":
                raise _error(key, "a key that is not text: quote it")
            if key.value in seen:
                raise _error(key, f"the key {key.value!r} appears twice")
            seen.add(key.value)
        return node


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(true|True|TRUE|false|False|FALSE)$"),
    list("tTfF"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)
_Loader.add_implicit_resolver(_MERGE, re.compile(r"^(?:<<)$"), ["<"])


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def document_of(text: str) -> Any:
    """Raises InvalidFieldError on `file`, with the line where the text goes wrong."""
    if text.lstrip().startswith(("[", "{")):
        try:
            # Quicker than YAML in Python.
            return json.loads(text, object_pairs_hook=_once_each)
        except (ValueError, RecursionError):
            pass  # flow style of YAML, perhaps; or YAML has the better words for it
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InvalidFieldError("file", f"is not YAML: {_told(error)}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError("file", f"is not YAML: {error}") from error


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key appears twice")
    return found


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _told(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return problem if mark is None else f"line {mark.line + 1}: {problem}"
