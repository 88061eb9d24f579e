"""The jobs that an app declares, checked as far as they are known at synthesis."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aws_cdk import Fn, Token
from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.schedules.preview import scheduling_of
from carillon.cdk.discovery import Found
from carillon.domain.spec.arns import every_revision
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import folded
from carillon.errors import CarillonError, ConfigurationError, InvalidFieldError
from carillon.manifest.manifest import Manifest, ManifestFile

Json = dict[str, Any]
Allow = Callable[[str, str, object], None]
"""Lets jobs call a resource: the service, its ARN, and the construct where there is one."""

_CALLED = ("target", "on_success", "on_failure")


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type of target that calls an AWS resource."""

    type: str
    service: str
    member: str
    attribute: str
    """Of a construct of the CDK."""
    sample: str
    """An ARN of that form: stands for one that is known at deployment only."""


_AT = "us-east-1:123456789012"
_ARN = f"arn:aws:{{}}:{_AT}:{{}}"
_BUS = _ARN.format("events", "event-bus/b")
_KINDS = (
    _Kind("lambda", "lambda", "function_arn", "function_arn", _ARN.format("lambda", "function:f")),
    _Kind("sqs", "sqs", "queue_arn", "queue_arn", _ARN.format("sqs", "q")),
    _Kind("sns", "sns", "topic_arn", "topic_arn", _ARN.format("sns", "t")),
    _Kind(
        "eventbridge", "events", "bus_arn", "event_bus_arn", _ARN.format("events", "event-bus/b")
    ),
    _Kind(
        "stepfunctions",
        "states",
        "state_machine_arn",
        "state_machine_arn",
        _ARN.format("states", "stateMachine:m"),
    ),
    _Kind(
        "ecs",
        "ecs",
        "task_definition_arn",
        "task_definition_arn",
        _ARN.format("ecs", "task-definition/t:1"),
    ),
    _Kind(
        "batch",
        "batch",
        "job_definition_arn",
        "job_definition_arn",
        _ARN.format("batch", "job-definition/j:1"),
    ),
    _Kind("batch", "batch", "job_queue_arn", "job_queue_arn", _ARN.format("batch", "job-queue/q")),
)
_WITH_REVISIONS = ("task_definition_arn", "job_definition_arn")
_PARTS_BEFORE_REVISION = 6
"""`arn`, partition, service, region, account, and what is defined."""
_SAMPLES = {
    **{kind.member: kind.sample for kind in _KINDS},
    "cluster_arn": _ARN.format("ecs", "cluster/c"),
    "subnets": "subnet-0a1b2c3d",
    "security_groups": "sg-0a1b2c3d",
}


class Declared:
    """Jobs and calendars by name, from `@job`, `add_job` and manifests.

    Raises ConfigurationError, naming the place and the field.
    """

    def __init__(self, found: Found, allow: Allow) -> None:
        self._names = found.names
        self._allow = allow
        self._jobs: dict[str, Json] = {}
        self._calendars: dict[str, Json] = {}
        self._places: dict[str, str] = {}
        self._events: list[str] = []
        self._revisions: dict[str, str] = {}
        for each in found.jobs:
            target = {"type": "task", "name": each.name}
            self.add(each.name, {**each.settings, "target": target}, each.place)

    def add(self, name: str, members: Mapping[str, Any], place: str) -> None:
        called = {
            member: self._target(members[member]) for member in _CALLED if members.get(member)
        }
        wanted = {**members, **called}
        if folded(name) in self._places:
            other = self._places[folded(name)]
            raise ConfigurationError(place, f"the job {name!r} is there already: {other}")
        _check(name, wanted, place)
        for member, target in called.items():
            self._check_task(f"job {name!r}: {member}", target, place)
        self._places[folded(name)] = place
        self._jobs[name] = wanted

    def add_manifest(self, path: Path) -> None:
        try:
            manifest = Manifest.of_files([ManifestFile(path.name, path.read_text())])
        except OSError as error:
            raise ConfigurationError(str(path), str(error)) from error
        except CarillonError as error:
            raise ConfigurationError(path.name, str(error)) from error
        for name, members in manifest.jobs.items():
            self.add(name, members, manifest.located(("jobs", name), "").strip(" ()"))
        for name, members in manifest.calendars.items():
            if name in self._calendars:
                raise ConfigurationError(path.name, f"the calendar {name!r} is there already")
            self._calendars[name] = members

    def tell(self, event: str) -> None:
        """Have every job tell of an event, those to be declared later, too."""
        self._events.append(event)

    def document(self) -> tuple[Json, dict[str, str]]:
        """Jobs and calendars, with a reference for each value that is known at deployment only,
        and these values."""
        values: dict[str, str] = {}
        jobs = _referring({name: self._telling(job) for name, job in self._jobs.items()}, values)
        return {"jobs": jobs, "calendars": _referring(self._calendars, values)}, values

    def _telling(self, job: Json) -> Json:
        if not self._events:
            return job
        return {**job, "events": list(dict.fromkeys([*(job.get("events") or ()), *self._events]))}

    def _target(self, target: Any) -> Json:
        """A target as the API takes it: of a construct, or of a task's name."""
        if isinstance(target, str):
            return {"type": "task", "name": target}
        for kind in _KINDS:
            arn = getattr(target, kind.attribute, None)
            if isinstance(arn, str):
                self._allow(kind.service, self._pattern(kind, arn), target)
                return {"type": kind.type, kind.member: arn}
        return self._of_members(dict(target))

    def _of_members(self, target: Json) -> Json:
        """A target as an object, in which a construct may stand for its ARN."""
        for kind in _KINDS:
            named = target.get(kind.member)
            if named is None:
                continue
            arn = str(getattr(named, kind.attribute, named))
            target[kind.member] = arn
            self._allow(kind.service, self._pattern(kind, arn), None if named is arn else named)
        cluster = target.get("cluster_arn")
        if cluster is not None:
            target["cluster_arn"] = getattr(cluster, "cluster_arn", cluster)
        return target

    def _pattern(self, kind: _Kind, arn: str) -> str:
        """The pattern of what jobs may call where they name this ARN. A definition of the app gets
        a revision by each change: executors that know the one before are still there then, and jobs
        that name it until they are applied."""
        if kind.member not in _WITH_REVISIONS:
            return arn
        if not Token.is_unresolved(arn):
            return every_revision(arn)
        if arn not in self._revisions:
            parts = Fn.split(":", arn)
            named = [Fn.select(number, parts) for number in range(_PARTS_BEFORE_REVISION)]
            self._revisions[arn] = Fn.join(":", [*named, "*"])
        return self._revisions[arn]

    def _check_task(self, what: str, target: Json, place: str) -> None:
        if target.get("type") == "task" and target.get("name") not in self._names:
            known = ", ".join(self._names) or "none"
            message = f"{what}: no task {target.get('name')!r}; there are: {known}"
            raise ConfigurationError(place, message)


def _check(name: str, members: Json, place: str) -> None:
    """The form of a job; what depends on the time, or on what is stored, is judged when it is
    applied."""
    known = {**members, "name": name}
    known.pop("was", None)
    for member in _CALLED:
        if member in known:
            known[member] = _sampled(known[member])
    try:
        spec = JobSpec.model_validate(_known(known))
        scheduling_of(spec, datetime.now(UTC).replace(microsecond=0))
    except ValidationError as error:
        faults = "; ".join(f"{path}: {fault}" for path, fault in field_errors(error.errors()))
        raise ConfigurationError(place, f"job {name!r}: {faults}") from error
    except (InvalidFieldError, CarillonError) as error:
        raise ConfigurationError(place, f"job {name!r}: {error}") from error


def _sampled(target: Any) -> Any:
    """The target with a sample in place of each value of a form that deployment decides. The ARNs
    of one target are of one region and account."""
    if not isinstance(target, dict):
        return target
    texts = [each for each in target.values() if isinstance(each, str)]
    known = [each for each in texts if each.startswith("arn:") and not Token.is_unresolved(each)]
    at = ":".join(known[0].split(":")[3:5]) if known else _AT
    samples = {name: sample.replace(_AT, at) for name, sample in _SAMPLES.items()}
    return {name: _sample(samples.get(name), value) for name, value in target.items()}


def _sample(sample: str | None, value: Any) -> Any:
    if sample is None:
        return value
    if isinstance(value, list | tuple):
        return [_sample(sample, each) for each in value]
    return sample if Token.is_unresolved(value) else value


def _known(value: Any) -> Any:
    """The value with a text of no meaning for each that is known at deployment only."""
    if isinstance(value, dict):
        return {name: _known(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return "https://known.at.deployment.example" if Token.is_unresolved(value) else value


def _referring(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        made = {name: _referring(each, values) for name, each in value.items()}
        # What looks like a reference, and is none, is told from one by standing in another.
        return {"$ref": made} if made.keys() == {"$ref"} else made
    if isinstance(value, list | tuple):
        return [_referring(each, values) for each in value]
    if not (isinstance(value, str | float) and Token.is_unresolved(value)):
        return value
    kind, text = "t" if isinstance(value, str) else "n", Token.as_string(value)
    known = {(key[0], text): key for key, text in values.items()}
    key = known.get((kind, text), f"{kind}{len(values) + 1}")
    values[key] = text
    return {"$ref": key}
