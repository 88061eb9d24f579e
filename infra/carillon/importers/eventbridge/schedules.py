"""From one schedule of EventBridge Scheduler, as GetSchedule answers it, to a job.

The authority is AWS's documentation: the API reference of GetSchedule and Target, and "Schedule
types" and "Adding context attributes" in the user guide.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.policies import MOST_ATTEMPTS, Backoff
from carillon.domain.spec.arns import every_revision
from carillon.domain.spec.fields import compact_json
from carillon.errors import InvalidFieldError
from carillon.importers.entries import Entry, Json, Note, second_of, without_none
from carillon.importers.eventbridge.containers import task_of
from carillon.importers.eventbridge.inputs import payload_of
from carillon.schedules import Every, format_duration, parse_schedule

_MOST_RETRIES, _LONGEST_AGE_SECONDS = 185, 86_400
"""AWS's defaults, and bounds."""
_DEFAULT_GROUP = "default"
_CARRIED = frozenset(
    {
        "Arn",
        "EcsParameters",
        "EventBridgeParameters",
        "Input",
        "RetryPolicy",
        "RoleArn",
        "SqsParameters",
    }
)
_SERVICES = {
    "lambda": ("lambda", "function_arn"),
    "sqs": ("sqs", "queue_arn"),
    "sns": ("sns", "topic_arn"),
    "events": ("eventbridge", "bus_arn"),
    "states": ("stepfunctions", "state_machine_arn"),
}
"""By the service in a target's ARN: our type of target, and its member for the ARN."""
_ARN_MEMBERS = {**dict(_SERVICES.values()), "ecs": "task_definition_arn"}


def place_of(group: str, name: str) -> str:
    return f"{group}/{name}"


def entry_of(schedule: Mapping[str, Any]) -> Entry:
    """The job that a schedule becomes; left out where its target or its times have no equal."""
    name, group = schedule["Name"], schedule.get("GroupName", _DEFAULT_GROUP)
    place = place_of(group, name)
    try:
        target, notes = _target(schedule["Target"], schedule.get("Arn", ""))
        times, more = _times(schedule)
    except InvalidFieldError as error:
        return Entry.left_out(place, error.field, error.message)
    attempts, lost = _attempts(schedule["Target"].get("RetryPolicy", {}))
    body = without_none(
        {
            **times,
            **target,
            "retry": {"max_attempts": attempts},
            "description": schedule.get("Description") or None,
            "parent": None if group == _DEFAULT_GROUP else group,
            "on_complete": "delete" if schedule.get("ActionAfterCompletion") == "DELETE" else None,
            "initial_state": "paused" if schedule.get("State") == "DISABLED" else None,
        }
    )
    return Entry(place, name, body, (*more, *notes, *lost, *_unused(schedule)))


def remarks_on(entries: Iterable[Entry]) -> list[str]:
    """The allow-list that a deployment needs for these jobs."""
    targets = [entry.body["target"] for entry in entries if entry.body]
    called = {(each["type"], each[_ARN_MEMBERS[each["type"]]]) for each in targets}
    arns = sorted(every_revision(arn) if kind == "ecs" else arn for kind, arn in called)
    told = [f"The deployment must allow the targets: target_arns {compact_json(arns)}"]
    if any(kind == "ecs" for kind, _ in called):
        told.append("Its executors must pass the roles of the task definitions: pass_role_arns")
    return told if arns else []


def _times(schedule: Mapping[str, Any]) -> tuple[Json, list[Note]]:
    """Its times, and the window."""
    text, zone = schedule["ScheduleExpression"], schedule.get("ScheduleExpressionTimezone", "UTC")
    begin, end = schedule.get("StartDate"), schedule.get("EndDate")
    window = schedule.get("FlexibleTimeWindow", {})
    notes: list[Note] = []
    if text.strip().lower().startswith("at("):
        if begin or end:
            message = "without effect on a one-time schedule, at AWS too: omitted"
            notes.append(Note("StartDate, EndDate", message))
        begin = end = None
    elif text.strip().lower().startswith("rate("):
        begin, note = _anchor(text, begin, schedule.get("CreationDate"))
        notes.append(note)
    body: Json = {"schedule": text, "timezone": None if zone == "UTC" else zone}
    if begin:
        body["start_at"] = second_of(begin, up=True)
    if end:
        body["end_at"] = second_of(end, up=False)
    if window.get("Mode") == "FLEXIBLE":
        body["window"] = format_duration(60 * int(window["MaximumWindowInMinutes"]))
        message = "each job has one offset within it, the same for all its occurrences"
        notes.append(Note("FlexibleTimeWindow", message))
    return body, notes


def _anchor(text: str, start: datetime | None, created: datetime | None) -> tuple[Any, Note]:
    """The instant that our interval is to count from, so that it fires when AWS's does."""
    parsed = parse_schedule(text)
    if not isinstance(parsed, Every):
        raise InvalidFieldError("ScheduleExpression", f"{text} is no interval")
    if start is not None:
        message = "AWS fires first at StartDate, Carillon an interval after start_at: put before it"
        return start - timedelta(seconds=parsed.interval_seconds), Note("StartDate", message)
    if created is None:
        return None, Note("ScheduleExpression", "counts from the epoch here, not from the creation")
    message = (
        "AWS counts from the creation: start_at is that instant, to the second. Without it the "
        "interval counts from the epoch, as that of all your jobs"
    )
    return created, Note("ScheduleExpression", message)


def _target(target: Mapping[str, Any], schedule_arn: str) -> tuple[Json, list[Note]]:
    arn = target["Arn"]
    service = [*arn.split(":"), "", ""][2]
    if ":aws-sdk:" in arn:
        operation = arn.rpartition(":aws-sdk:")[2]
        raise InvalidFieldError(
            "Target.Arn", f"is the universal target {operation}, and no target here is its equal"
        )
    if service == "ecs":
        made, notes = task_of(target)
        return made, [*notes, *_role(target)]
    if service not in _SERVICES:
        raise InvalidFieldError("Target.Arn", f"{arn}: no target here calls {service or 'this'}")
    kind, member = _SERVICES[service]
    form: Json = {"type": kind, member: arn}
    if kind == "lambda":
        form["invocation"] = "event"  # AWS invokes it asynchronously
    if kind == "sqs" and target.get("SqsParameters", {}).get("MessageGroupId"):
        form["message_group_id"] = target["SqsParameters"]["MessageGroupId"]
    if kind == "eventbridge":
        parameters = target.get("EventBridgeParameters", {})
        form["source"] = parameters.get("Source", "")
        form["detail_type"] = parameters.get("DetailType", "")
    made, notes = payload_of(target.get("Input"), schedule_arn)
    return {"target": form, **made}, [*notes, *_role(target)]


def _role(target: Mapping[str, Any]) -> Iterator[Note]:
    role = target.get("RoleArn")
    if role:
        message = f"{role} is not used: executors call it by their own role, if target_arns has it"
        yield Note("Target.RoleArn", message)


def _attempts(policy: Mapping[str, Any]) -> tuple[int, list[Note]]:
    """As many attempts as AWS would make, as far as they fit into its time with our backoff."""
    retries = int(policy.get("MaximumRetryAttempts", _MOST_RETRIES))
    age = int(policy.get("MaximumEventAgeInSeconds", _LONGEST_AGE_SECONDS))
    attempts = 1 + min(retries, MOST_ATTEMPTS - 1, _retries_within(age))
    if attempts > retries:
        return attempts, []
    message = (
        f"{retries} retries within {format_duration(age)} are {attempts} attempts here, so many "
        "as fit into that time with the default backoff, at its longest"
    )
    return attempts, [Note("Target.RetryPolicy", message)]


def _retries_within(seconds: int) -> int:
    """The number of delays, each at its longest, that fit into a time."""
    backoff, count, left = Backoff(), 0, seconds
    while count < MOST_ATTEMPTS:
        ceiling = backoff.base_seconds * backoff.factor**count
        left -= math.ceil(min(backoff.cap_seconds, ceiling))
        if left < 0:
            break
        count += 1
    return count


def _unused(schedule: Mapping[str, Any]) -> Iterator[Note]:
    """The rest of a schedule, which no job has."""
    target = schedule["Target"]
    if schedule.get("KmsKeyArn"):
        message = f"{schedule['KmsKeyArn']} is not used: the deployment's tables have their own key"
        yield Note("KmsKeyArn", message)
    dead = target.get("DeadLetterConfig", {}).get("Arn")
    if dead:
        message = f"{dead} is not used: dead letters are kept here, and on_failure can tell a queue"
        yield Note("Target.DeadLetterConfig", message)
    for name in sorted(set(target) - _CARRIED - {"DeadLetterConfig"}):
        if target[name]:
            yield Note(f"Target.{name}", f"not carried over: {compact_json(target[name])}")
