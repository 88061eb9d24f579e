"""What a user wants simulated: definitions of jobs, their calendars, and how their targets behave.

A document is a list of bodies of POST /jobs, or a mapping: `jobs`, that list; `calendars`, bodies
of PUT /calendars by name; `simulate`, by the name of a job what the simulation is to know of it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from carillon.api.calendars.models import CalendarBody
from carillon.api.http.fields import field_errors
from carillon.api.jobs.request_models import JobBody
from carillon.api.schedules.request_models import CalendarName, Document
from carillon.errors import CarillonError

MOST_JOBS = 200_000
"""Of one fleet, copies included: each takes a few KB of memory."""
_MOST_ERRORS = 50
_MEMBERS = ("jobs", "calendars", "simulate")
_CALENDAR_NAME: TypeAdapter[str] = TypeAdapter(CalendarName)
_Model = TypeVar("_Model", bound=BaseModel)

Errors = list[tuple[str, str]]


class FleetRefusedError(CarillonError):
    """`errors` are pairs of a path in the document and what is wrong there: `jobs[3].schedule`."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in errors))
        self.errors = tuple(errors)


class Conduct(Document):
    """How the target of a job behaves: it takes `seconds` (null: up to 50 ms, by the seed), and
    fails at `failure_rate`. `copies`: so many jobs have the definition, with numbered names.
    `owner` is whose they are."""

    seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    failure_rate: Annotated[float, Field(ge=0, le=1)] = 0.0
    copies: Annotated[int, Field(ge=1, le=MOST_JOBS, strict=True)] = 1
    owner: Annotated[str, Field(min_length=1, max_length=128)] = "simulated"


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition of a job; `number` is its place in the document, from 0."""

    number: int
    body: JobBody
    conduct: Conduct

    @property
    def path(self) -> str:
        return f"jobs[{self.number}]"

    def bodies(self) -> Iterator[JobBody]:
        """One for each copy."""
        if self.conduct.copies == 1:
            yield self.body
            return
        for copy in range(1, self.conduct.copies + 1):
            yield self.body.model_copy(update={"name": f"{self.body.name}-{copy}"})


@dataclass(frozen=True, slots=True)
class Fleet:
    """Checked as the API checks requests, as far as that goes before they are served."""

    definitions: tuple[Definition, ...]
    calendars: tuple[tuple[str, CalendarBody], ...] = ()

    @property
    def job_count(self) -> int:
        return sum(definition.conduct.copies for definition in self.definitions)

    @property
    def owners(self) -> list[str]:
        """Each once, in the order of the document."""
        return list(dict.fromkeys(definition.conduct.owner for definition in self.definitions))

    @classmethod
    def of(cls, document: object) -> "Fleet":
        """From a document of JSON's types; raises FleetRefusedError naming all that is wrong."""
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
        jobs = [_checked(JobBody, body, f"jobs[{at}]", errors) for at, body in enumerate(bodies)]
        calendars = list(_calendars(_mapping(parts, "calendars", errors), errors))
        conducts = _conducts(_mapping(parts, "simulate", errors), bodies, errors)
        if errors:
            raise FleetRefusedError(errors[:_MOST_ERRORS])
        definitions = tuple(
            Definition(number, body, conducts.get(body.name, Conduct()))
            for number, body in enumerate(jobs)
            if body is not None
        )
        fleet = cls(definitions, tuple(calendars))
        if fleet.job_count > MOST_JOBS:
            message = f"make {fleet.job_count:,} with their copies; {MOST_JOBS:,} are the most"
            raise FleetRefusedError([("jobs", message)])
        return fleet


def _conducts(
    forms: Mapping[Any, Any], bodies: Sequence[Any], errors: Errors
) -> dict[str, Conduct]:
    names = {body.get("name") for body in bodies if isinstance(body, dict) and _is_named(body)}
    found: dict[str, Conduct] = {}
    for name, form in forms.items():
        path = f"simulate.{name}"
        if name not in names:
            errors.append((path, "names no job of this fleet"))
        conduct = _checked(Conduct, form, path, errors)
        if conduct is not None:
            found[str(name)] = conduct
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
