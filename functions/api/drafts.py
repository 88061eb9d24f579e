"""From the body of a request to the checked values of a job, and what a change makes of one."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from functions.api.errors import InvalidFieldsError, PayloadTooLargeError
from functions.api.fields import field_errors
from functions.api.schedule_fields import ScheduleFields
from functions.api.scheduling import (
    Scheduling,
    is_same,
    offset_seconds,
    refuse_finished,
    scheduling_of,
    spoken,
)
from functions.api.schemas import JobBody, JobPatch, RetryForm
from shared.domain.calendar import CalendarUse
from shared.domain.job import DEFAULT_TIMEOUT_SECONDS, PAYLOAD_LIMIT_BYTES, Job, Lane, fraction_of
from shared.domain.policies import Backoff, CatchUp, OnComplete, RetryPolicy
from shared.domain.resolving import rolls
from shared.domain.targets import Target, WebhookTarget
from shared.errors import InvalidFieldError
from shared.recurrence import Schedule
from shared.settings import Settings

SCHEDULE_FIELDS = frozenset(
    {"schedule", "except", "timezone", "start_at", "end_at", "max_runs", "dst"}
)
"""A change of what these say is another schedule: `max_runs` is counted anew from then."""

_MERGED = frozenset({"retry", "dst", "calendar"})
"""Objects whose members a change names one by one."""


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
    end_at: datetime | None
    max_runs: int | None
    on_complete: OnComplete
    window: str
    spread_seconds: int
    calendar: CalendarUse | None


def fingerprint_of(body: JobBody) -> str:
    """A digest of what the request said: the order of its members does not count."""
    said = body.model_dump(mode="json", exclude_unset=True, by_alias=True)
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def created_draft(job_id: str, body: JobBody, settings: Settings, now: datetime) -> Draft:
    """The values of a new job; raises InvalidFieldError or PayloadTooLargeError."""
    scheduling = _new_scheduling(body, now)
    rolled = rolls(_calendar_use(body))
    window = offset_seconds(body.window, scheduling.schedule, fraction_of(job_id), rolled)
    return _draft(body, scheduling, window, frozenset({"target", "timeout_seconds"}), settings)


def changed_draft(job: Job, patch: JobPatch, settings: Settings, now: datetime) -> Draft:
    """The values of `job` after a change; fields that are not named keep what they have.

    Raises InvalidFieldError, InvalidFieldsError or PayloadTooLargeError.
    """
    changes = patch.model_dump(exclude_unset=True, by_alias=True)
    document = _document_of(job)
    try:
        body = JobBody.model_validate(_merged_document(document, changes))
    except ValidationError as error:
        raise InvalidFieldsError(field_errors(error.errors())) from error
    scheduling = Scheduling(job.schedule, job.end_at, job.max_runs)
    window = (job.window, job.spread_seconds)
    said = {name: document[name] for name in SCHEDULE_FIELDS}
    if SCHEDULE_FIELDS & changes.keys() and not is_same(body, ScheduleFields.model_validate(said)):
        scheduling = _new_scheduling(body, now)
    rolled = rolls(_calendar_use(body))
    is_same_room = scheduling.schedule == job.schedule and rolled == rolls(job.calendar)
    if not is_same_room or "window" in changes:
        window = offset_seconds(body.window, scheduling.schedule, fraction_of(job.job_id), rolled)
    return _draft(body, scheduling, window, changes.keys(), settings)


def _draft(
    body: JobBody,
    scheduling: Scheduling,
    window: tuple[str, int],
    changed: Collection[str],
    settings: Settings,
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
        schedule=scheduling.schedule,
        target=body.target,
        payload=_compact_payload(body.payload),
        lane=body.lane,
        catch_up=body.catch_up,
        retry=_retry_policy(body.retry),
        timeout_seconds=timeout_seconds,
        end_at=scheduling.end_at,
        max_runs=scheduling.max_runs,
        on_complete=body.on_complete,
        window=window[0],
        spread_seconds=window[1],
        calendar=_calendar_use(body),
    )


def _new_scheduling(body: JobBody, now: datetime) -> Scheduling:
    """Calendars have no say: what is closed today may be open tomorrow."""
    scheduling = scheduling_of(body, now.replace(microsecond=0))
    refuse_finished(scheduling.schedule, scheduling.end_at, now)
    return scheduling


def _calendar_use(body: JobBody) -> CalendarUse | None:
    form = body.calendar
    return None if form is None else CalendarUse(form.name, form.rule)


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
    schedule, exceptions = spoken(job.schedule)
    dst, use = job.schedule.dst, job.calendar
    return {
        "name": job.name,
        "schedule": schedule,
        "except": exceptions,
        "timezone": job.schedule.timezone,
        "start_at": job.schedule.start_at,
        "end_at": job.end_at,
        "max_runs": job.max_runs,
        "dst": {"gap": dst.gap, "fold": dst.fold},
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
        "on_complete": job.on_complete,
        "window": job.window or None,
        "calendar": None if use is None else {"name": use.name, "rule": use.rule},
    }


def _merged_document(document: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for field, value in changes.items():
        if value is None:
            del merged[field]
        elif field in _MERGED or (field == "target" and _keeps_type(document["target"], value)):
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
