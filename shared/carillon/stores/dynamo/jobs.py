"""Jobs in DynamoDB."""

import json

from pynamodb.expressions.condition import Condition

from carillon.clock import ceil_second
from carillon.domain.job import Generation, Job, JobState, PastGeneration, Slow
from carillon.domain.spec.job_spec import JobSpec
from carillon.errors import UnreadableRowError, reason_of
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.models import GenerationMap, JobRow, SlowMap
from carillon.stores.dynamo.table import RawItem, Table, readable, unchanged
from carillon.stores.ports import JobFilter, Page

_ALIVE: Condition = (JobRow.state != JobState.DELETED.value) & (
    JobRow.state != JobState.COMPLETED.value
)
_SCAN = ("all jobs",)
_JOBS = ("!", "~")
"""The keys of an owner's jobs; calendars, gates and operations are kept behind them."""


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
    spec = job.spec
    return JobRow(
        owner=job.owner,
        job_id=job.job_id,
        spec=spec.text,
        parent=spec.parent,
        tags=spec.tags or None,
        ends_at=job.schedule.end_at,
        segment=job.segment,
        generation=GenerationMap(
            generation_id=job.generation.generation_id, from_at=job.generation.from_at
        ),
        previous=_previous_map(job.previous) if job.previous else None,
        earlier=[_previous_map(each) for each in job.earlier] or None,
        created_at=job.created_at,
        updated_at=job.updated_at,
        state=job.state.value,
        revision=job.revision,
        slow=job.slow and SlowMap(since=job.slow.since, reason=job.slow.reason),
        note=job.note or None,
        fingerprint=job.fingerprint,
        spread_seconds=job.spread_seconds or None,
        paused_at=job.paused_at,
        expires_at=job.expires_at and ceil_second(job.expires_at),
    ).serialize()


def job_of(item: RawItem) -> Job:
    """The job of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        return _job_of(JobRow.from_raw_data(item))
    except Exception as error:  # whatever a row makes of the parsers
        where = item["job_id"]["S"]
        raise UnreadableRowError(f"job {where}: {reason_of(error)}") from error


def _job_of(row: JobRow) -> Job:
    spec = JobSpec.of_text(row.spec)
    return Job(
        owner=row.owner,
        job_id=row.job_id,
        spec=spec,
        schedule=spec.parsed(row.ends_at),
        segment=row.segment,
        generation=Generation(row.generation.generation_id, row.generation.from_at),
        previous=_previous_of(row.previous) if row.previous else None,
        earlier=tuple(map(_previous_of, row.earlier or ())),
        created_at=row.created_at,
        updated_at=row.updated_at,
        state=JobState(row.state),
        revision=row.revision,
        slow=Slow(row.slow.since, row.slow.reason) if row.slow else None,
        note=row.note or "",
        fingerprint=row.fingerprint,
        spread_seconds=row.spread_seconds or 0,
        paused_at=row.paused_at,
        expires_at=row.expires_at,
    )


def _wanted(only: JobFilter) -> Condition:
    """Jobs that pass the filter and are no tombstones."""
    wanted = _ALIVE
    if only.parent:
        wanted &= JobRow.parent == only.parent
    for key, value in only.tags:
        wanted &= JobRow.tags.has(key, value)
    return wanted


def _previous_map(previous: PastGeneration) -> GenerationMap:
    return GenerationMap(
        generation_id=previous.generation_id, from_at=previous.from_at, until_at=previous.until_at
    )


def _previous_of(stored: GenerationMap) -> PastGeneration:
    return PastGeneration(stored.generation_id, stored.from_at, stored.until_at)
