"""From the body of a request to the checked values of a job, and what a change makes of one."""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.http.problems import InvalidFieldsError, PayloadTooLargeError, refuse_all
from carillon.api.jobs.policy_models import seconds_of
from carillon.api.jobs.request_models import TARGETS, JobBody, JobPatch
from carillon.api.jobs.validation import LIMITED, refuse_beyond_deployment, refuse_contradictions
from carillon.api.schedules.preview import (
    Scheduling,
    is_same,
    offset_seconds,
    refuse_finished,
    scheduling_of,
    spoken,
)
from carillon.api.schedules.request_models import ScheduleFields
from carillon.domain.calendar import CalendarUse, rolls
from carillon.domain.events import EventType
from carillon.domain.job import PAYLOAD_LIMIT_BYTES, Job, Priority, fraction_of
from carillon.domain.policies import CatchUp, Concurrency, OnComplete, Overlap, Rate, RetryPolicy
from carillon.domain.targets import Target
from carillon.errors import InvalidFieldError
from carillon.schedules import Schedule, format_duration
from carillon.settings import Settings

_MERGED = frozenset({"retry", "dst", "calendar", "concurrency", "rate", "tags"})
"""Objects whose members a change names one by one."""


def document_of(job: Job) -> dict[str, Any]:
    """The job as the body that would create it, every member said."""
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
        "template": job.template,
        "priority": job.priority,
        "catch_up": job.catch_up,
        "grace": _duration(job.grace_seconds),
        "overlap": job.overlap,
        "tolerance": _duration(job.tolerance_seconds),
        "concurrency": _concurrency(job.concurrency),
        "rate": _rate(job.rate),
        "retry": _retry(job.retry),
        "timeout_seconds": job.timeout_seconds,
        "pause_after_failures": job.pause_after_failures,
        "expect_within": _duration(job.expect_within_seconds),
        "on_success": None if job.on_success is None else job.on_success.model_dump(),
        "on_failure": None if job.on_failure is None else job.on_failure.model_dump(),
        "events": job.events,
        "on_complete": job.on_complete,
        "window": job.window or None,
        "calendar": None if use is None else {"name": use.name, "rule": use.rule},
        "parent": job.parent or None,
        "tags": dict(job.tags),
    }


def merged_document(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The document after a change: null takes a member away, so that it gets its default.

    Raises InvalidFieldError for a null member of a target that has no such member.
    """
    merged = dict(document)
    for field, value in changes.items():
        if value is None:
            del merged[field]
        elif field in _MERGED:
            merged[field] = _merge(merged[field], value)
        elif field in TARGETS and _keeps_type(document[field], value):
            merged[field] = _merged_target(field, merged[field], value)
        else:
            merged[field] = value
    return merged


def _keeps_type(target: Mapping[str, Any] | None, change: Mapping[str, Any]) -> bool:
    return target is not None and bool(change.get("type", target["type"]) == target["type"])


def _merged_target(
    field: str, target: Mapping[str, Any], change: Mapping[str, Any]
) -> dict[str, Any]:
    merged = dict(target)
    for member, value in change.items():
        if value is None:
            if member not in target:
                raise InvalidFieldError(f"{field}.{member}"[:200], "is not a known field")
            del merged[member]
        elif member == "headers" and isinstance(value, dict):
            merged[member] = _merged_headers(target.get(member, {}), value)
        else:
            merged[member] = value
    return merged


def _merged_headers(headers: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Upper and lower case are the same in the name of a header."""
    named = {name.lower() for name in change}
    kept = {name: value for name, value in headers.items() if name.lower() not in named}
    return kept | {name: value for name, value in change.items() if value is not None}


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


def _duration(seconds: int | None) -> str | None:
    return None if seconds is None else format_duration(seconds)


def _retry(retry: RetryPolicy) -> dict[str, Any]:
    backoff = retry.backoff
    return {
        "max_attempts": retry.max_attempts,
        "backoff": {
            "type": backoff.type,
            "base_seconds": backoff.base_seconds,
            "factor": backoff.factor,
            "cap_seconds": backoff.cap_seconds,
        },
        "retry_on": retry.retry_on,
    }


def _concurrency(concurrency: Concurrency | None) -> dict[str, Any] | None:
    return None if concurrency is None else {"key": concurrency.key, "limit": concurrency.limit}


def _rate(rate: Rate | None) -> dict[str, Any] | None:
    if rate is None:
        return None
    return {"limit": rate.limit, "per": format_duration(rate.per_seconds), "key": rate.key}


SCHEDULE_FIELDS = frozenset(
    {"schedule", "except", "timezone", "start_at", "end_at", "max_runs", "dst"}
)
"""A change of what these say is another schedule: `max_runs` is counted anew from then."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The checked values of a job, each named as in Job."""

    name: str
    schedule: Schedule
    target: Target
    payload: str
    priority: Priority
    catch_up: CatchUp
    retry: RetryPolicy
    timeout_seconds: int | None
    overlap: Overlap
    tolerance_seconds: int | None
    grace_seconds: int | None
    concurrency: Concurrency | None
    rate: Rate | None
    pause_after_failures: int | None
    expect_within_seconds: int | None
    on_success: Target | None
    on_failure: Target | None
    events: tuple[EventType, ...]
    template: bool
    parent: str
    tags: tuple[tuple[str, str], ...]
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
    """The values of a new job; raises InvalidFieldError, InvalidFieldsError or
    PayloadTooLargeError."""
    scheduling = _new_scheduling(body, now)
    rolled = rolls(_calendar_use(body))
    window = offset_seconds(body.window, scheduling.schedule, fraction_of(job_id), rolled)
    return _draft(body, scheduling, window, LIMITED, settings)


def changed_draft(job: Job, patch: JobPatch, settings: Settings, now: datetime) -> Draft:
    """The values of `job` after a change; fields that are not named keep what they have.

    Raises InvalidFieldError, InvalidFieldsError or PayloadTooLargeError.
    """
    changes = patch.model_dump(exclude_unset=True, by_alias=True)
    document = document_of(job)
    try:
        body = JobBody.model_validate(merged_document(document, changes))
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
    payload = _compact_payload(body.payload)
    refuse_all(
        lambda: refuse_contradictions(body, scheduling.schedule),
        lambda: refuse_beyond_deployment(body, changed, settings),
    )
    return Draft(
        name=body.name,
        schedule=scheduling.schedule,
        target=body.target,
        payload=payload,
        priority=body.priority,
        catch_up=body.catch_up,
        retry=body.retry.policy,
        timeout_seconds=body.timeout_seconds,
        overlap=body.overlap,
        tolerance_seconds=seconds_of(body.tolerance),
        grace_seconds=seconds_of(body.grace),
        concurrency=None if body.concurrency is None else body.concurrency.policy,
        rate=None if body.rate is None else body.rate.policy,
        pause_after_failures=body.pause_after_failures,
        expect_within_seconds=seconds_of(body.expect_within),
        on_success=body.on_success,
        on_failure=body.on_failure,
        events=body.events,
        template=body.template,
        parent=body.parent or "",
        tags=tuple(sorted(body.tags.items())),
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
