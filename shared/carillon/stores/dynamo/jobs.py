"""Jobs in DynamoDB."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_

from pydantic import TypeAdapter
from pynamodb.expressions.condition import Condition

from carillon.clock import Clock, Entropy, ceil_second
from carillon.domain.changes.change import Change
from carillon.domain.chunks.placing import Place
from carillon.domain.job import (
    Generation,
    HandOver,
    Job,
    JobState,
    PastGeneration,
    Slow,
    Successor,
)
from carillon.domain.policies import Lane
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.spec.names import list_name
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from carillon.domain.spec.schedule_spec import TimingSpec
from carillon.errors import UnreadableRowError, reason_of
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.dynamo.attributes import RawItem, row_as
from carillon.stores.dynamo.changes import change_of_text, change_text
from carillon.stores.dynamo.models import GenerationMap, JobRow, SlowMap
from carillon.stores.dynamo.table import Keys, Table, readable, unchanged
from carillon.stores.ports import JobFilter, Page, Tally

_SCAN = ("all jobs",)
_JOB = "job"
"""The sort key of every job."""
_SUCCESSORS: TypeAdapter[tuple[Successor, ...]] = TypeAdapter(tuple[Successor, ...])
_LAST_LETTER = "\U0010ffff"
_STATES = {state.value: state for state in JobState}


class DynamoJobStore:
    """JobStore on table jobs, and its index by owner and name."""

    def __init__(self, table: Table, clock: Clock, entropy: Entropy) -> None:
        self._table = table
        self._by_owner = table.index("by_owner", JobRow.owner, JobRow.list_key)
        self._clock = clock
        self._entropy = entropy

    def get(self, owner: str, job_id: str) -> Job | None:
        item = self._item(owner, job_id)
        return None if item is None else job_of(item)

    def get_all(self, keys: Sequence[tuple[str, str]]) -> dict[str, Job]:
        wanted = [(job_id, _JOB) for job_id in dict.fromkeys(job_id for _, job_id in keys)]
        jobs, _ = readable(self._table.get_at_once(wanted), job_of, _id_of)
        return {job.job_id: job for job in jobs if (job.owner, job.job_id) in keys}

    def create(self, job: Job) -> bool:
        return self._table.put(item_of(job), JobRow.job_id.does_not_exist())

    def replace(self, job: Job, revision: int) -> bool:
        return self._replace(job, revision, job.successors)

    def relink(self, job: Job, over: tuple[Successor, ...]) -> bool:
        return self._replace(job, job.revision, over)

    def _replace(self, job: Job, revision: int, successors: tuple[Successor, ...]) -> bool:
        linked = _successors_text(successors)
        same = JobRow.successors.does_not_exist() if linked is None else JobRow.successors == linked
        seen = (JobRow.revision == revision) & (JobRow.owner == job.owner) & same
        return self._table.put(item_of(job), seen)

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        only = only or JobFilter()
        listed, next_cursor = self._listed(owner, limit, cursor, only)
        items = self._table.get_all([_keys(item) for item in listed], self._clock, self._entropy)
        jobs, unreadable = readable(items, job_of, _id_of)
        # The index may be behind its table.
        jobs = tuple(job for job in jobs if not job.is_tombstone and only.chooses(job))
        return Page(jobs, next_cursor, unreadable)

    def summaries(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[JobSummary]:
        items, next_cursor = self._listed(owner, limit, cursor, only or JobFilter())
        summaries, unreadable = readable(items, _summary_of, _id_of)
        return Page(summaries, next_cursor, unreadable)

    def tally(self, owner: str, cursor: str | None = None) -> Tally:
        scope = ("tally", owner)
        after = None if cursor is None else decode_cursor(scope, cursor)
        items, last = self._by_owner.query(owner, after)
        # Most are only counted: to read a thousand of them takes longer than to fetch them.
        ending = [item for item in items if _may_end(item)]
        states = Counter(_state_of(item) for item in items if not _may_end(item))
        unknown = states.pop(None, 0)
        counts = {state: count for state, count in states.items() if state is not None}
        summaries, unreadable = readable(ending, _summary_of, _id_of)
        next_cursor = None if last is None else encode_cursor(scope, last)
        return Tally(counts, summaries, unknown + len(unreadable), next_cursor)

    def _listed(
        self, owner: str, limit: int, cursor: str | None, only: JobFilter
    ) -> tuple[Sequence[RawItem], str | None]:
        """A page of the index, and the cursor behind it."""
        scope, begin = ("jobs", owner), list_name(only.name)
        after = None if cursor is None else decode_cursor(scope, cursor)
        span = (begin, begin + _LAST_LETTER) if begin else None
        items, last = self._by_owner.page(owner, after, limit, only=_condition(only), span=span)
        return items, None if last is None else encode_cursor(scope, last)

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        item = self._item(owner, job_id)
        if item is None:
            return False
        try:
            job_of(item)
        except UnreadableRowError:
            return self._table.delete(job_id, _JOB, unchanged(item))
        return False

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        after = None
        if cursor is not None:
            partition, sort_key = json.loads(decode_cursor(_SCAN, cursor))
            after = partition, sort_key
        items, last = self._table.scan(after, limit)
        own = [item for item in items if item["sk"]["S"] == _JOB]
        jobs, unreadable = readable(own, job_of, _id_of)
        next_cursor = None if last is None else encode_cursor(_SCAN, json.dumps(last))
        return Page(jobs, next_cursor, unreadable)

    def _item(self, owner: str, job_id: str) -> RawItem | None:
        item = self._table.get(job_id, _JOB)
        return item if item is not None and item.get("owner") == {"S": owner} else None


def _state_of(item: RawItem) -> JobState | None:
    """None for one that this version does not know."""
    return _STATES.get(item.get("state", {}).get("S", ""))


def _may_end(item: RawItem) -> bool:
    return "ends" in item and _state_of(item) is JobState.ACTIVE


def item_of(job: Job) -> RawItem:
    """The item of a job."""
    spec = job.spec
    return JobRow(
        job_id=job.job_id,
        sort_key=_JOB,
        owner=job.owner,
        list_key=None if job.is_tombstone else job.list_key,
        name=spec.name,
        times=spec.timing_text,
        spec=spec.text,
        parent=spec.parent,
        tags=spec.tags or None,
        ends_at=None if spec.after else job.schedule.end_at,
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
        creation_key=job.creation_key or None,
        former_keys=job.former_keys or None,
        managed_by=job.managed_by or None,
        applied=job.applied or None,
        author=_author_list(job.author),
        renamed_to=job.renamed_to or None,
        renamed_from=job.renamed_from or None,
        renamed_at=job.renamed_at,
        handed_to=_hand_over_list(job.handed_to),
        handed_from=_hand_over_list(job.handed_from),
        successors=_successors_text(job.successors),
        spread_seconds=job.spread_seconds or None,
        ends=job.ends or None,
        paused_at=job.paused_at,
        resume_at=job.resume_at,
        last_change=job.last_change and change_text(job.last_change),
        expires_at=job.expires_at and ceil_second(job.expires_at),
    ).serialize()


def job_of(item: RawItem) -> Job:
    """The job of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        return _job_of(row_as(JobRow, item))
    except Exception as error:  # whatever a row makes of the parsers
        raise UnreadableRowError(f"job {_id_of(item)}: {reason_of(error)}") from error


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
        creation_key=row.creation_key or "",
        former_keys=tuple(map(str, row.former_keys or ())),
        managed_by=row.managed_by or "",
        applied=row.applied or "",
        author=_author_of(row.author),
        renamed_to=row.renamed_to or "",
        renamed_from=row.renamed_from or "",
        renamed_at=row.renamed_at,
        handed_to=_hand_over_of(row.handed_to),
        handed_from=_hand_over_of(row.handed_from),
        successors=_SUCCESSORS.validate_json(row.successors or "[]"),
        spread_seconds=row.spread_seconds or 0,
        paused_at=row.paused_at,
        resume_at=row.resume_at,
        expires_at=row.expires_at,
        last_change=_change_of(row.last_change),
    )


def _change_of(text: str | None) -> Change | None:
    """None too for one that this version cannot read: the job is to run all the same."""
    try:
        return None if text is None else change_of_text(text)
    except ValueError:
        return None


def _summary_of(item: RawItem) -> JobSummary:
    """The summary in an item of the index; raises UnreadableRowError."""
    try:
        row = row_as(JobRow, item)
        times = TimingSpec.of_timing_text(row.times)
        return JobSummary(
            owner=row.owner,
            job_id=row.job_id,
            name=row.name,
            spec=times,
            schedule=times.parsed(row.ends_at),
            state=JobState(row.state),
            generation=Generation(row.generation.generation_id, row.generation.from_at),
            spread_seconds=row.spread_seconds or 0,
            note=row.note or "",
            resume_at=row.resume_at,
            parent=row.parent,
            tags=dict(row.tags or {}),
            managed_by=row.managed_by or "",
        )
    except Exception as error:  # as in job_of
        raise UnreadableRowError(f"job {_id_of(item)}: {reason_of(error)}") from error


def _condition(only: JobFilter) -> Condition | None:
    """The filter on the index, but for the name."""
    wanted = [JobRow.tags.has(key, value) for key, value in only.tags]
    if only.parent:
        wanted.append(JobRow.parent == only.parent)
    if only.managed_by:
        wanted.append(JobRow.managed_by == only.managed_by)
    if only.state:
        wanted.append(JobRow.state == only.state)
    return reduce(and_, wanted) if wanted else None


def _successors_text(successors: tuple[Successor, ...]) -> str | None:
    return _SUCCESSORS.dump_json(successors).decode() if successors else None


def _author_list(author: Author) -> list[str] | None:
    return None if author == SYSTEM else [author.kind, author.id, author.name, author.via]


def _author_of(stored: Sequence[object] | None) -> Author:
    if stored is None:
        return SYSTEM
    kind, identifier, name, via = map(str, stored)
    return Author(AuthorKind(kind), identifier, name, Via(via))


def _hand_over_list(known: HandOver | None) -> list[str] | None:
    if known is None:
        return None
    return [known.owner, known.ended_id, *(["done"] if known.is_done else [])]


def _hand_over_of(stored: Sequence[object] | None) -> HandOver | None:
    if stored is None:
        return None
    owner, ended_id, *done = map(str, stored)
    return HandOver(owner, ended_id, bool(done))


def _keys(item: RawItem) -> Keys:
    return _id_of(item), _JOB


def _id_of(item: RawItem) -> str:
    job_id: str = item["pk"]["S"]
    return job_id


def _previous_map(previous: PastGeneration) -> GenerationMap:
    place = previous.place
    return GenerationMap(
        generation_id=previous.generation_id,
        from_at=previous.from_at,
        until_at=previous.until_at,
        place=place and [place.segment, place.lane.value, place.spread_seconds],
        owes_until=previous.owes_until,
    )


def _previous_of(stored: GenerationMap) -> PastGeneration:
    place = None if stored.place is None else _place_of(*stored.place)
    return PastGeneration(
        stored.generation_id, stored.from_at, stored.until_at, place, stored.owes_until
    )


def _place_of(segment: int, lane: str, spread_seconds: int) -> Place:
    return Place(int(segment), Lane(lane), int(spread_seconds))
