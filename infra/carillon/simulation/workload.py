"""The workload of a simulation: the jobs of a manifest, and how their targets behave."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from carillon.api.calendars.models import CalendarBody
from carillon.api.http.fields import field_errors
from carillon.domain.calendar import CalendarName
from carillon.domain.spec.fields import Document
from carillon.domain.spec.job_spec import JobSpec
from carillon.manifest.manifest import Manifest, ManifestRefusedError, Path

MOST_JOBS = 200_000
"""Of one workload, copies included: each takes a few KB of memory."""
_MOST_ERRORS = 50
_CALENDAR_NAME: TypeAdapter[str] = TypeAdapter(CalendarName)
_Model = TypeVar("_Model", bound=BaseModel)

Errors = list[tuple[Path, str]]


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
    """One definition of a job."""

    body: JobSpec
    profile: BehaviourProfile

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
    def of(cls, manifest: Manifest) -> "Workload":
        """Raises ManifestRefusedError naming all that is wrong."""
        errors: Errors = []
        if not manifest.jobs:
            errors.append((("jobs",), "must have at least one job"))
        calendars = tuple(_calendars(manifest.calendars, errors))
        profiles = _profiles(manifest.simulate, errors)
        definitions = [
            Definition(body, profiles.get(name, BehaviourProfile()))
            for name, members in manifest.jobs.items()
            if (body := _job(name, members, errors)) is not None
        ]
        if errors:
            raise ManifestRefusedError(errors[:_MOST_ERRORS])
        workload = cls(tuple(definitions), calendars)
        if workload.job_count > MOST_JOBS:
            message = f"make {workload.job_count:,} with their copies; {MOST_JOBS:,} are the most"
            raise ManifestRefusedError([(("jobs",), message)])
        return workload


def _job(name: str, members: Mapping[str, Any], errors: Errors) -> JobSpec | None:
    """`was` is for those that apply the manifest: nothing is there to be renamed."""
    body = {**{member: members[member] for member in members if member != "was"}, "name": name}
    return _checked(JobSpec, body, ("jobs", name), errors)


def _profiles(forms: Mapping[str, Any], errors: Errors) -> dict[str, BehaviourProfile]:
    found = {
        name: _checked(BehaviourProfile, form, ("simulate", name), errors)
        for name, form in forms.items()
    }
    return {name: profile for name, profile in found.items() if profile is not None}


def _calendars(forms: Mapping[str, Any], errors: Errors) -> Iterator[tuple[str, CalendarBody]]:
    for name, form in forms.items():
        path = ("calendars", name)
        try:
            _CALENDAR_NAME.validate_python(name)
        except ValidationError as error:
            errors.append((path, f"name: {field_errors(error.errors())[0][1]}"))
        body = _checked(CalendarBody, form, path, errors)
        if body is not None:
            yield name, body


def _checked(model: type[_Model], form: object, path: Path, errors: Errors) -> _Model | None:
    """The form as the API would read it from JSON; None when it is wrong."""
    try:
        return model.model_validate_json(json.dumps(form))
    except ValidationError as error:
        found = field_errors(error.errors())
        errors += [(path if field == "body" else (*path, field), text) for field, text in found]
    except (TypeError, ValueError, RecursionError) as error:
        errors.append((path, f"is not JSON: {error}"))
    return None
