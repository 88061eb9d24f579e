"""A job as the JSON document that would create it, and a change merged into it (RFC 7396)."""

import json
from collections.abc import Mapping
from typing import Any

from carillon.api.schedules.scheduling import spoken
from carillon.domain.job import Job
from carillon.domain.policies import Concurrency, Rate, RetryPolicy
from carillon.errors import InvalidFieldError
from carillon.schedules import format_duration

_MERGED = frozenset({"retry", "dst", "calendar", "concurrency", "rate", "tags"})
"""Objects whose members a change names one by one."""

TARGETS = ("target", "on_success", "on_failure")
"""These are merged too, while they keep their type, and their headers one by one; what a member or
a header holds is replaced whole."""


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
