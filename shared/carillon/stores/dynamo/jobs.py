"""Jobs in DynamoDB."""

import json
from typing import Any

from pynamodb.expressions.condition import Condition

from carillon.clock import ceil_second
from carillon.domain.calendar import CalendarUse
from carillon.domain.events import EventType
from carillon.domain.job import Filing, Job, JobState, PreviousFiling, Slow, priority_of
from carillon.domain.policies import (
    Backoff,
    BackoffType,
    CatchUp,
    Concurrency,
    OnComplete,
    Overlap,
    Rate,
    RetryPolicy,
)
from carillon.domain.targets import Target, target_adapter
from carillon.errors import UnreadableRowError, reason_of
from carillon.schedules import CalendarRule, DstRule, parse_schedule
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.models import (
    CalendarUseMap,
    ConcurrencyMap,
    FilingMap,
    JobRow,
    RateMap,
    RetryMap,
    SlowMap,
)
from carillon.stores.dynamo.table import RawItem, Table, readable, unchanged
from carillon.stores.ports import JobFilter, Page


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


_ALIVE: Condition = (JobRow.state != JobState.DELETED.value) & (
    JobRow.state != JobState.COMPLETED.value
)
_SCAN = ("all jobs",)
_JOBS = ("!", "~")
"""Where an owner's jobs stand; calendars, gates and operations are kept behind them."""


class DynamoJobStore:
    """JobStore on table jobs."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, owner: str, job_id: str) -> Job | None:
        item = self._table.get(owner, job_id)
        return None if item is None else job_of(item)

    def create(self, job: Job) -> bool:
        return self._table.put(item_of(job), JobRow.job_id.does_not_exist())

    def replace(self, job: Job, revision: int) -> bool:
        return self._table.put(item_of(job), JobRow.revision == revision)

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        scope = ("jobs", owner)
        after = None if cursor is None else decode_cursor(scope, cursor)
        wanted = _wanted(only or JobFilter())
        items, last = self._table.page(owner, after, limit, only=wanted, span=_JOBS)
        jobs, unreadable = readable(items, job_of, lambda item: item["job_id"]["S"])
        return Page(jobs, None if last is None else encode_cursor(scope, last), unreadable)

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        item = self._table.get(owner, job_id)
        if item is None:
            return False
        try:
            job_of(item)
        except UnreadableRowError:
            return self._table.delete(owner, job_id, unchanged(item))
        return False

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        after = None
        if cursor is not None:
            owner, job_id = json.loads(decode_cursor(_SCAN, cursor))
            after = owner, job_id
        items, last = self._table.scan(after, limit)
        own = [item for item in items if item["job_id"]["S"] < _JOBS[1]]
        jobs, unreadable = readable(own, job_of, lambda item: item["job_id"]["S"])
        next_cursor = None if last is None else encode_cursor(_SCAN, json.dumps(last))
        return Page(jobs, next_cursor, unreadable)


def item_of(job: Job) -> RawItem:
    """The item of a job."""
    schedule = job.schedule
    return JobRow(
        owner=job.owner,
        job_id=job.job_id,
        name=job.name,
        schedule=schedule.text,
        timezone=schedule.timezone,
        start_at=schedule.start_at,
        ends_at=schedule.end_at,
        dst=schedule.dst.text or None,
        target=target_text(job.target),
        payload=job.payload,
        segment=job.segment,
        filing=FilingMap(filing_id=job.filing.filing_id, from_at=job.filing.from_at),
        previous=_previous_map(job.previous) if job.previous else None,
        earlier=[_previous_map(each) for each in job.earlier] or None,
        created_at=job.created_at,
        updated_at=job.updated_at,
        state=job.state.value,
        revision=job.revision,
        priority=job.priority.value,
        slow=job.slow and SlowMap(since=job.slow.since, reason=job.slow.reason),
        fingerprint=job.fingerprint,
        end_at=job.end_at,
        max_runs=job.max_runs,
        on_complete=job.on_complete.value if job.on_complete is not OnComplete.KEEP else None,
        window=job.window or None,
        spread_seconds=job.spread_seconds or None,
        calendar=job.calendar and _calendar_use_map(job.calendar),
        paused_at=job.paused_at,
        expires_at=job.expires_at and ceil_second(job.expires_at),
        **attributes_of(job),
    ).serialize()


def job_of(item: RawItem) -> Job:
    """The job of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        return _job_of(JobRow.from_raw_data(item))
    except Exception as error:  # whatever a row makes of the parsers
        where = item["job_id"]["S"]
        raise UnreadableRowError(f"job {where}: {reason_of(error)}") from error


def _job_of(row: JobRow) -> Job:
    return Job(
        owner=row.owner,
        job_id=row.job_id,
        name=row.name,
        schedule=parse_schedule(
            row.schedule,
            row.timezone,
            row.start_at,
            row.ends_at,
            DstRule.from_text(row.dst or ""),
        ),
        target=target_of(row.target),
        payload=row.payload,
        segment=row.segment,
        filing=Filing(row.filing.filing_id, row.filing.from_at),
        previous=_previous_of(row.previous) if row.previous else None,
        earlier=tuple(map(_previous_of, row.earlier or ())),
        created_at=row.created_at,
        updated_at=row.updated_at,
        state=JobState(row.state),
        revision=row.revision,
        priority=priority_of(row.priority),
        slow=Slow(row.slow.since, row.slow.reason) if row.slow else None,
        fingerprint=row.fingerprint,
        end_at=row.end_at,
        max_runs=row.max_runs,
        on_complete=OnComplete(row.on_complete or OnComplete.KEEP),
        window=row.window or "",
        spread_seconds=row.spread_seconds or 0,
        calendar=_calendar_use(row.calendar) if row.calendar else None,
        paused_at=row.paused_at,
        expires_at=row.expires_at,
        **fields_of(row),
    )


def _wanted(only: JobFilter) -> Condition:
    """Jobs that pass the filter and are no tombstones."""
    wanted = _ALIVE
    if only.parent:
        wanted &= JobRow.parent == only.parent
    for key, value in only.tags:
        wanted &= JobRow.tags.has(key, value)
    return wanted


def _previous_map(previous: PreviousFiling) -> FilingMap:
    return FilingMap(
        filing_id=previous.filing_id, from_at=previous.from_at, until_at=previous.until_at
    )


def _previous_of(stored: FilingMap) -> PreviousFiling:
    return PreviousFiling(stored.filing_id, stored.from_at, stored.until_at)


def _calendar_use_map(use: CalendarUse) -> CalendarUseMap:
    return CalendarUseMap(name=use.name, rule=use.rule.value)


def _calendar_use(stored: CalendarUseMap) -> CalendarUse:
    return CalendarUse(stored.name, CalendarRule(stored.rule))
