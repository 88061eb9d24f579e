"""From the body of a request to the checked values of a job, and what a change makes of one."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from functions.api.errors import InvalidFieldsError, PayloadTooLargeError
from functions.api.fields import field_errors
from functions.api.schemas import JobBody, JobPatch, RetryForm
from shared.domain.job import (
    DEFAULT_TIMEOUT_SECONDS,
    PAYLOAD_LIMIT_BYTES,
    Backoff,
    CatchUp,
    Job,
    Lane,
    RetryPolicy,
)
from shared.domain.targets import Target, WebhookTarget
from shared.errors import InvalidFieldError
from shared.recurrence import Schedule, parse_schedule
from shared.settings import Settings

SCHEDULE_FIELDS = frozenset({"schedule", "timezone", "start_at"})
ALL_FIELDS = frozenset(JobBody.model_fields)


@dataclass(frozen=True, slots=True)
class Draft:
    """The checked values of a job, each named as in Job."""

    name: str
    schedule: Schedule
    target: Target
    payload: str
    lane: Lane
    catch_up: CatchUp
    retry: RetryPolicy
    timeout_seconds: int


def fingerprint_of(body: JobBody) -> str:
    """A digest of what the request said: the order of its members does not count."""
    said = body.model_dump(mode="json", exclude_unset=True)
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def created_draft(body: JobBody, settings: Settings, now: datetime) -> Draft:
    """The values of a new job; raises InvalidFieldError or PayloadTooLargeError."""
    return _draft(body, _new_schedule(body, now), ALL_FIELDS, settings)


def changed_draft(job: Job, patch: JobPatch, settings: Settings, now: datetime) -> Draft:
    """The values of `job` after a change; fields that are not named keep what they have.

    Raises InvalidFieldError, InvalidFieldsError or PayloadTooLargeError.
    """
    changes = patch.model_dump(exclude_unset=True)
    try:
        body = JobBody.model_validate(_merged_document(_document_of(job), changes))
    except ValidationError as error:
        raise InvalidFieldsError(field_errors(error.errors())) from error
    schedule = _new_schedule(body, now) if SCHEDULE_FIELDS & changes.keys() else job.schedule
    return _draft(body, schedule, changes.keys(), settings)


def _draft(
    body: JobBody, schedule: Schedule, changed: Collection[str], settings: Settings
) -> Draft:
    """Limits of the deployment hold for what is `changed`: an older value may be beyond them."""
    if "target" in changed:
        _refuse_plain_http(body.target, settings)
    longest = settings.longest_timeout_seconds
    timeout_seconds = body.timeout_seconds or min(DEFAULT_TIMEOUT_SECONDS, longest)
    if "timeout_seconds" in changed and timeout_seconds > longest:
        raise InvalidFieldError(
            "timeout_seconds", f"must be at most {longest}, the limit of this deployment"
        )
    return Draft(
        name=body.name,
        schedule=schedule,
        target=body.target,
        payload=_compact_payload(body.payload),
        lane=body.lane,
        catch_up=body.catch_up,
        retry=_retry_policy(body.retry),
        timeout_seconds=timeout_seconds,
    )


def _new_schedule(body: JobBody, now: datetime) -> Schedule:
    schedule = parse_schedule(body.schedule, body.timezone, body.start_at)
    if schedule.next(now.replace(microsecond=0)) is not None:
        return schedule
    last = schedule.previous(now + timedelta(seconds=1))
    word = "last" if schedule.is_recurring else "only"
    past = "" if last is None else f": the {word} one, {last:%Y-%m-%dT%H:%M:%SZ}, is past"
    raise InvalidFieldError("schedule", f"has no occurrence after now{past}")


def _compact_payload(payload: Any) -> str:
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    size_bytes = len(text.encode())
    if size_bytes > PAYLOAD_LIMIT_BYTES:
        raise PayloadTooLargeError("payload", size_bytes, PAYLOAD_LIMIT_BYTES)
    return text


def _retry_policy(form: RetryForm) -> RetryPolicy:
    backoff = form.backoff
    return RetryPolicy(
        form.max_attempts, Backoff(backoff.base_seconds, backoff.factor, backoff.cap_seconds)
    )


def _refuse_plain_http(target: Target, settings: Settings) -> None:
    """Plain http is for addresses that the operator has named; the executor checks again."""
    if not isinstance(target, WebhookTarget):
        return
    parts = urlsplit(target.url)
    if parts.scheme != "http":
        return
    try:
        address = ip_address(parts.hostname or "")
    except ValueError:
        address = None
    networks = settings.webhook_allowed_networks
    if address is None or not any(address in network for network in networks):
        raise InvalidFieldError("target.url", "must begin with https://")


def _document_of(job: Job) -> dict[str, Any]:
    """The job as the body that would create it."""
    backoff = job.retry.backoff
    return {
        "name": job.name,
        "schedule": job.schedule.text,
        "timezone": job.schedule.timezone,
        "start_at": job.schedule.start_at,
        "target": job.target.model_dump(),
        "payload": json.loads(job.payload),
        "lane": job.lane,
        "catch_up": job.catch_up,
        "retry": {
            "max_attempts": job.retry.max_attempts,
            "backoff": {
                "base_seconds": backoff.base_seconds,
                "factor": backoff.factor,
                "cap_seconds": backoff.cap_seconds,
            },
        },
        "timeout_seconds": job.timeout_seconds,
    }


def _merged_document(document: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for field, value in changes.items():
        if value is None:
            del merged[field]
        elif field == "retry" or (field == "target" and _keeps_type(document["target"], value)):
            merged[field] = _merge(merged[field], value)
        else:
            merged[field] = value
    return merged


def _keeps_type(target: Mapping[str, Any], change: Mapping[str, Any]) -> bool:
    return bool(change.get("type", target["type"]) == target["type"])


def _merge(value: Any, change: Any) -> Any:
    """RFC 7396: members are merged, null removes one, anything but objects replaces."""
    if not isinstance(change, dict):
        return change
    merged = dict(value) if isinstance(value, dict) else {}
    for name, member in change.items():
        if member is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), member)
    return merged
