"""A job's policies, and what else it says about its runs, as attributes of its item."""

import json
from typing import Any

from carillon.domain.events import EventType
from carillon.domain.job import Job
from carillon.domain.policies import (
    Backoff,
    BackoffType,
    CatchUp,
    Concurrency,
    Overlap,
    Rate,
    RetryPolicy,
)
from carillon.domain.targets import Target, target_adapter
from carillon.stores.dynamo.models import ConcurrencyMap, JobRow, RateMap, RetryMap


def attributes_of(job: Job) -> dict[str, Any]:
    """The attributes, by their names in JobRow; None for what is left to its default."""
    return {
        "catch_up": job.catch_up.value,
        "retry": _retry_map(job.retry),
        "timeout_seconds": job.timeout_seconds,
        "overlap": None if job.overlap is Overlap.ALLOW else job.overlap.value,
        "tolerance_seconds": job.tolerance_seconds,
        "grace_seconds": job.grace_seconds,
        "concurrency": job.concurrency and _concurrency_map(job.concurrency),
        "rate": job.rate and _rate_map(job.rate),
        "pause_after_failures": job.pause_after_failures,
        "expect_within_seconds": job.expect_within_seconds,
        "on_success": job.on_success and target_text(job.on_success),
        "on_failure": job.on_failure and target_text(job.on_failure),
        "events": tuple(event.value for event in job.events) or None,
        "template": job.template or None,
        "parent": job.parent or None,
        "tags": dict(job.tags) or None,
        "note": job.note or None,
    }


def fields_of(row: JobRow) -> dict[str, Any]:
    """The fields of a job that `attributes_of` wrote; raises ValueError for unknown values."""
    return {
        "catch_up": CatchUp(row.catch_up),
        "retry": _retry_policy(row.retry),
        "timeout_seconds": row.timeout_seconds,
        "overlap": Overlap(row.overlap or Overlap.ALLOW),
        "tolerance_seconds": row.tolerance_seconds,
        "grace_seconds": row.grace_seconds,
        "concurrency": _concurrency(row.concurrency) if row.concurrency else None,
        "rate": _rate(row.rate) if row.rate else None,
        "pause_after_failures": row.pause_after_failures,
        "expect_within_seconds": row.expect_within_seconds,
        "on_success": target_of(row.on_success) if row.on_success else None,
        "on_failure": target_of(row.on_failure) if row.on_failure else None,
        "events": tuple(EventType(event) for event in row.events or ()),
        "template": bool(row.template),
        "parent": row.parent or "",
        "tags": tuple(sorted((row.tags or {}).items())),
        "note": row.note or "",
    }


def target_text(target: Target) -> str:
    """A target as JSON, without what it leaves to its default."""
    form = {"type": target.type, **target.model_dump(mode="json", exclude_defaults=True)}
    return json.dumps(form, ensure_ascii=False, separators=(",", ":"))


def target_of(text: str) -> Target:
    """The target that `target_text` wrote; raises pydantic.ValidationError, a ValueError."""
    return target_adapter.validate_json(text)


def _retry_map(retry: RetryPolicy) -> RetryMap:
    backoff = retry.backoff
    return RetryMap(
        max_attempts=retry.max_attempts,
        base_seconds=backoff.base_seconds,
        factor=repr(float(backoff.factor)),
        cap_seconds=backoff.cap_seconds,
        type=None if backoff.type is BackoffType.EXPONENTIAL else backoff.type.value,
        retry_on=retry.retry_on or None,
    )


def _retry_policy(stored: RetryMap) -> RetryPolicy:
    backoff = Backoff(
        stored.base_seconds,
        float(stored.factor),
        stored.cap_seconds,
        BackoffType(stored.type or BackoffType.EXPONENTIAL),
    )
    return RetryPolicy(stored.max_attempts, backoff, stored.retry_on or ())


def _concurrency_map(concurrency: Concurrency) -> ConcurrencyMap:
    return ConcurrencyMap(key=concurrency.key, limit=concurrency.limit)


def _concurrency(stored: ConcurrencyMap) -> Concurrency:
    return Concurrency(stored.key, stored.limit)


def _rate_map(rate: Rate) -> RateMap:
    return RateMap(limit=rate.limit, per_seconds=rate.per_seconds, key=rate.key or None)


def _rate(stored: RateMap) -> Rate:
    return Rate(stored.limit, stored.per_seconds, stored.key or "")
