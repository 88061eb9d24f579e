"""Packed history: runs that have succeeded in chunks and have no row of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from carillon.clock import Clock
from carillon.domain.changes.handing_over import former_owner
from carillon.domain.chunks.chunk import Chunk, Outcome, run_under, success_of
from carillon.domain.chunks.history import (
    looks_at,
    newest_first,
    records_of,
)
from carillon.domain.chunks.looking import CLAIMED_WITHIN, Look
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey, RunKind
from carillon.errors import InvalidFieldError, UnreadableRowError
from carillon.schedules.base import EPOCH
from carillon.stores.chunks import Minute, Read
from carillon.stores.cursors import REFUSED, decode_cursor, encode_cursor, runs_of
from carillon.stores.ports import ChunkStore, JobStore, Page

_MOST_LOOKED_FOR = 200
"""Occurrences without a row that one page looks for beyond its limit: of these there may be none,
as in an outage. Then the page ends there, with a cursor."""
_CLOCKS_DIFFER_BY = timedelta(minutes=1)
_JUST_CHANGED = 2 * _CLOCKS_DIFFER_BY
"""After a change a record that is read without consistency may be missing, and with it all that ran
before the change."""
_MOST_PLANS = 4_096
"""Plans that are kept in memory: about a megabyte."""
_MOST_AT_ONCE = 100
"""Rows that one request reads."""


@dataclass(frozen=True, slots=True)
class _Occurrence:
    key: RunKey
    looks: tuple[Look, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """The runs of occurrences, by sort key, and why some of them are not known. Those of `alone`
    go on by themselves: a row has been put, or is to come."""

    runs: Mapping[str, Run]
    alone: Sequence[RunKey]
    unreadable: Mapping[str, str]


class PackedRuns:
    """Raises StoreUnavailableError. Chunks live for `lifetime` after their claim."""

    def __init__(
        self, jobs: JobStore, chunks: ChunkStore, clock: Clock, lifetime: timedelta
    ) -> None:
        self._jobs = jobs
        self._chunks = chunks
        self._clock = clock
        self._lifetime = lifetime
        self._plans: dict[Minute, Plan] = {}
        """Plans that were read: one that stands never changes."""

    def get(self, key: RunKey, job: Job | None = None) -> Run | None:
        """The run as a chunk has it, by strong reads; None where none has it, or where it goes on
        by itself. `job` is the row as it is, if it is known. Raises UnreadableRowError for what
        cannot be read, if nothing else has the run."""
        is_to_come = key.fire_at > self._clock.now() + _CLOCKS_DIFFER_BY
        if not key.is_occurrence or is_to_come:
            return None
        looks, reasons = self._looks(job or self._jobs.get(key.owner, key.job_id), key)
        for look in looks:
            try:
                _, chunk = named_by(self._chunks, look)
            except UnreadableRowError as error:
                reasons.append(str(error))
                continue
            if chunk is None or look.ref not in chunk.refs:
                continue
            found = _in_chunk(chunk, look, key)
            if found is not None:
                return found
        for reason in reasons:
            raise UnreadableRowError(reason)
        return None

    def fence(self, key: RunKey, claim_id: str) -> bool:
        """Take the chunk that has the run from its executor, which has died: nobody records a
        success of it then. False where its lease has not lapsed, or another chunk may have the run.

        By strong reads. Raises UnreadableRowError.
        """
        now, fenced = self._clock.now(), False
        if not key.is_occurrence:
            return False
        for look in self.looks(self._jobs.get(key.owner, key.job_id), key):
            chunk_key, chunk = named_by(self._chunks, look)
            if chunk is None:
                if chunk_key is not None and now < chunk_key.due_at + CLAIMED_WITHIN:
                    return False
            elif look.ref in chunk.refs and _in_chunk(chunk, look, key) is not None:
                if now < chunk.lease_until or not self._chunks.fence(chunk, claim_id):
                    return False
                fenced = True
        return fenced

    def former(self, job: Job) -> Job | None:
        """The row of the job that this one was renamed or handed over from; None where another one
        has its name by now. Raises UnreadableRowError."""
        row = self._jobs.get(former_owner(job) or job.owner, job.renamed_from)
        return row if row is not None and row.renamed_to == job.job_id else None

    def looks(self, job: Job | None, key: RunKey) -> list[Look]:
        """All the chunks in which the occurrence may be. Raises UnreadableRowError."""
        looks, reasons = self._looks(job, key)
        for reason in reasons:
            raise UnreadableRowError(reason)
        return looks

    def _looks(self, job: Job | None, key: RunKey) -> tuple[list[Look], list[str]]:
        """As far as they are known, and why there may be more."""
        records = self._chunks.get_records(key.owner, key.job_id, consistent=True)
        found = records_of(job, records.rows.values(), self._clock.now(), self._lifetime)
        return looks_at(job, found, key.fire_at), list(records.unreadable.values())

    def merged(
        self,
        rows: Page[Run],
        get_row: Callable[[RunKey], Run | None],
        scope: tuple[str, str],
        limit: int,
        cursor: str | None,
        span: tuple[datetime | None, datetime | None],
        *,
        consistent: bool,
    ) -> Page[Run]:
        """A page of the job's rows, with the runs between them that only chunks tell of.

        `scope` is owner and job id; `rows` are those of the same `limit`, `cursor` and `span`. A
        chunk's success counts where a row is not final: such a row is a claim that is to be
        withdrawn.
        """
        by_key = {row.key.sort_key: row for row in rows.items}
        unreadable = dict(rows.unreadable)
        settled = {key for key, row in by_key.items() if row.is_final} | unreadable.keys()
        stop, looked = None, 0
        ahead = self._ahead(scope, cursor, rows.next_cursor, span, unreadable, consistent)
        wanted = (each for each in ahead if each.key.sort_key not in settled)
        size = limit
        while batch := list(islice(wanted, min(size, _MOST_AT_ONCE))):
            found = self._found(batch, consistent=consistent)
            by_key |= {k: run for k, run in found.runs.items() if run.is_final or k not in by_key}
            unreadable |= found.unreadable
            # The rows of these were put between the two reads, if at all.
            missing = [key for key in found.alone if key.sort_key not in by_key]
            _take_rows(missing, get_row, by_key, unreadable)
            looked += len(batch)
            reached, size = batch[-1].key.sort_key, 2 * size
            is_full = sum(1 for key in by_key if key <= reached) >= limit
            if is_full or looked >= limit + _MOST_LOOKED_FOR:
                stop = reached
                break
        return _page(scope, by_key, unreadable, limit, stop, rows.next_cursor)

    def _ahead(
        self,
        scope: tuple[str, str],
        cursor: str | None,
        last_cursor: str | None,
        span: tuple[datetime | None, datetime | None],
        unreadable: dict[str, str],
        consistent: bool,
    ) -> Iterator[_Occurrence]:
        """The occurrences between two cursors that may have gone in chunks, newest first."""
        now = self._clock.now()
        after = "" if cursor is None else decode_cursor(runs_of(*scope), cursor)
        last = "~" if last_cursor is None else decode_cursor(runs_of(*scope), last_cursor)
        newest, oldest = span[1] or now, span[0] or EPOCH
        if cursor is not None:
            newest = min(newest, _fire_at_of(after))
        if last_cursor is not None:
            oldest = max(oldest, _fire_at_of(last))
        try:
            job = self._jobs.get(*scope)  # first: what it replaces has left its record before
        except UnreadableRowError as error:
            job = None
            unreadable["0 job"] = str(error)
        is_new = job is None or _may_be_new(job, now)
        stored = self._chunks.get_records(*scope, consistent=consistent or is_new)
        unreadable |= {
            f"0 generation record {revision}": reason
            for revision, reason in stored.unreadable.items()
        }
        records = records_of(job, stored.rows.values(), now, self._lifetime)
        # Chunks live from their claims on, which come that much later.
        spread = max((each.place.spread_seconds for each in records), default=0)
        oldest = max(oldest, now - self._lifetime - timedelta(seconds=spread))
        for fire_at, looks in newest_first(records, newest, oldest, now):
            key = RunKey(*scope, RunKind.SCHEDULED, fire_at)
            if after < key.sort_key <= last:
                yield _Occurrence(key, looks)

    def _found(self, batch: Sequence[_Occurrence], *, consistent: bool) -> _Found:
        looks = [(each.key, look) for each in batch for look in each.looks]
        minutes = list(dict.fromkeys((look.segment, look.minute) for _, look in looks))
        plans = self._planned(minutes, consistent=consistent)
        named = ((look, plans.rows.get((look.segment, look.minute))) for _, look in looks)
        chunk_keys = {look: name for look, plan in named if (name := look.key_by(plan)) is not None}
        chunks = self._chunks.get_all(
            list(dict.fromkeys(chunk_keys.values())), consistent=consistent
        )
        runs, alone, unreadable = dict[str, Run](), list[RunKey](), dict[str, str]()
        for key, look in looks:
            reason = plans.unreadable.get((look.segment, look.minute))
            chunk_key = chunk_keys.get(look)
            if chunk_key is not None:
                reason = chunks.unreadable.get(chunk_key)
            if reason is not None:
                unreadable[key.sort_key] = reason
            chunk = None if chunk_key is None else chunks.rows.get(chunk_key)
            if chunk is None or look.ref not in chunk.refs:
                continue
            run = _in_chunk(chunk, look, key)
            if run is None:
                alone.append(key)
            elif key.sort_key not in runs or run.is_final:
                runs[key.sort_key] = run
        ended = {key for key, run in runs.items() if run.is_final}
        unknown = {key: reason for key, reason in unreadable.items() if key not in ended}
        return _Found(runs, alone, unknown)

    def _planned(self, minutes: Sequence[Minute], *, consistent: bool) -> Read[Minute, Plan]:
        known = {each: plan for each in minutes if (plan := self._plans.get(each)) is not None}
        unknown = [each for each in minutes if each not in known]
        read = self._chunks.get_plans(unknown, consistent=consistent)
        if len(self._plans) > _MOST_PLANS:
            self._plans.clear()
        self._plans.update(read.rows)
        return Read({**known, **read.rows}, read.unreadable)


def _may_be_new(job: Job, now: datetime) -> bool:
    """True if the job may just have left a record; one that is moved in its pause has its time."""
    return job.state is JobState.PAUSED or now - job.updated_at < _JUST_CHANGED


def _take_rows(
    keys: Sequence[RunKey],
    get_row: Callable[[RunKey], Run | None],
    by_key: dict[str, Run],
    unreadable: dict[str, str],
) -> None:
    """Put what there are of these rows into `by_key`, and why others cannot be read."""
    for key in keys:
        try:
            row = get_row(key)
        except UnreadableRowError as error:
            unreadable[key.sort_key] = str(error)
            continue
        if row is not None:
            by_key[key.sort_key] = row


def _page(
    scope: tuple[str, str],
    by_key: Mapping[str, Run],
    unreadable: Mapping[str, str],
    limit: int,
    stop: str | None,
    next_cursor: str | None,
) -> Page[Run]:
    """At most `limit` of the runs, up to the position `stop`, behind which nothing is known yet."""
    ordered = sorted(key for key in by_key if stop is None or key <= stop)
    if len(ordered) > limit:
        stop = ordered[limit - 1]
    if stop is not None:
        next_cursor = encode_cursor(runs_of(*scope), stop)
    items = tuple(by_key[key] for key in ordered[:limit])
    shown = {key: reason for key, reason in unreadable.items() if stop is None or key <= stop}
    return Page(items, next_cursor, shown)


def _fire_at_of(position: str) -> datetime:
    try:
        return RunKey.fire_at_of(position)
    except (ValueError, OverflowError, OSError):
        raise InvalidFieldError("cursor", REFUSED) from None


def named_by(chunks: ChunkStore, look: Look) -> tuple[ChunkKey | None, Chunk | None]:
    """The chunk that the plan names for the occurrence, if any, and its row once it has been
    claimed, by two strong reads. Raises UnreadableRowError, StoreUnavailableError."""
    key = look.key_by(chunks.get_plan(look.segment, look.minute))
    return key, None if key is None else chunks.get(key)


def _in_chunk(chunk: Chunk, look: Look, key: RunKey) -> Run | None:
    """The run as its chunk has it; None where it goes on by itself."""
    message = Message(key, look.generation_id, look.segment, chunk.key.lane, chunk.key.due_at)
    if chunk.ends is None:
        return run_under(chunk, message)
    end = chunk.ends[look.ref]
    return success_of(chunk, message, end) if end.outcome is Outcome.OK else None
