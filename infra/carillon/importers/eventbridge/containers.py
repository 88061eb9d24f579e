"""The ECS target of a schedule as a target here.

Its Input is the `overrides` of RunTask (EventBridge Scheduler's user guide, "Amazon ECS RunTask").
"""

from collections.abc import Iterator, Mapping
from typing import Any

from carillon.domain.spec.fields import compact_json
from carillon.errors import InvalidFieldError
from carillon.importers.entries import Json, Note, json_of, without_none

_PARAMETERS = "Target.EcsParameters"
_INPUT = "Target.Input"
_CARRIED = frozenset(
    {"CapacityProviderStrategy", "LaunchType", "NetworkConfiguration", "TaskDefinitionArn"}
)


def task_of(target: Mapping[str, Any]) -> tuple[Json, list[Note]]:
    """The member `target` of a job; raises InvalidFieldError for a task that has no equal."""
    parameters = target.get("EcsParameters", {})
    if parameters.get("TaskCount", 1) != 1:
        raise InvalidFieldError(f"{_PARAMETERS}.TaskCount", "a run starts one task here")
    notes = list(_unused(parameters))
    provider = _capacity_provider(parameters)
    if provider is None and "LaunchType" not in parameters:
        message = "none: FARGATE here, not the default of the cluster"
        notes.append(Note(f"{_PARAMETERS}.LaunchType", message))
    network = parameters.get("NetworkConfiguration", {}).get("awsvpcConfiguration", {})
    form: Json = {
        "type": "ecs",
        "task_definition_arn": parameters.get("TaskDefinitionArn", ""),
        "cluster_arn": target["Arn"],
        "launch_type": parameters.get("LaunchType"),
        "capacity_provider": provider,
        "subnets": network.get("Subnets"),
        "security_groups": network.get("SecurityGroups") or None,
        "assign_public_ip": True if network.get("AssignPublicIp") == "ENABLED" else None,
        **_container(target.get("Input"), notes),
    }
    return {"target": without_none(form)}, notes


def _capacity_provider(parameters: Mapping[str, Any]) -> str | None:
    strategy = parameters.get("CapacityProviderStrategy") or []
    if len(strategy) > 1:
        field = f"{_PARAMETERS}.CapacityProviderStrategy"
        raise InvalidFieldError(field, "names several providers, and a target here one")
    return str(strategy[0].get("capacityProvider", "")) if strategy else None


def _unused(parameters: Mapping[str, Any]) -> Iterator[Note]:
    for name in sorted(set(parameters) - _CARRIED - {"TaskCount"}):
        if parameters[name]:
            message = f"not carried over: {compact_json(parameters[name])}"
            yield Note(f"{_PARAMETERS}.{name}", message)


def _container(text: str | None, notes: list[Note]) -> Json:
    """The container that gets overrides, with its command and environment; of several the first."""
    if not text:
        return {}
    try:
        overrides = json_of(text)
        first, *others = overrides["containerOverrides"]
        pairs = first.get("environment") or []
        found: Json = {
            "container": first["name"],
            "command": first.get("command"),
            "environment": {each["name"]: each["value"] for each in pairs} or None,
        }
        left = sorted({*overrides, *first} - {"containerOverrides", *found, "name"})
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        message = "is no override of a container, not carried over"
        notes.append(Note(_INPUT, f"{message}: {compact_json(text)}"))
        return {}
    if others or left:
        message = "only the first container's command and environment are carried over"
        notes.append(Note(_INPUT, f"{message}: {compact_json(overrides)}"))
    if "<aws.scheduler." in text:
        message = "its context attributes are sent as they are: CARILLON_FIRE_AT and others tell"
        notes.append(Note(_INPUT, message))
    return found
