"""Runs in DynamoDB."""

import zlib
from datetime import datetime
from functools import reduce
from operator import and_

from pynamodb.expressions.condition import Condition

from carillon.clock import ceil_second
from carillon.domain.run import (
    FINAL,
    AttemptRecord,
    Attention,
    Completion,
    Resolution,
    Run,
    RunError,
    RunKey,
    RunKind,
    RunStatus,
    cut,
)
from carillon.errors import UnreadableRowError
from carillon.schedules.base import EPOCH
from carillon.stores.cursors import decode_cursor, encode_cursor, runs_of
from carillon.stores.dynamo.attributes import RawItem, item_as, row_as
from carillon.stores.dynamo.models import (
    AttemptMap,
    AttentionIndex,
    CompletionMap,
    ErrorMap,
    ResultRow,
    RunRow,
)
from carillon.stores.dynamo.table import Span, Table, readable, unchanged
from carillon.stores.ports import DeadLetterFilter, Page

_NOTHING = ("~", "!")
"""A span without keys."""


_ENDED = [{"S": status.value} for status in FINAL]


class DynamoRunStore:
    """RunStore on table runs; rows leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._attention = table.index(
            AttentionIndex.Meta.index_name,
            AttentionIndex.attention_owner,
            AttentionIndex.attention_key,
        )

    def get(self, key: RunKey) -> Run | None:
        item = self._table.get(job_key_of(key.owner, key.job_id), key.sort_key)
        return None if item is None else run_of(item)

    def claim(self, run: Run, over: Run | None) -> bool:
        if over is None:
            return self._table.put(item_of(run), RunRow.run_key.does_not_exist())
        stands = _stands_as(over, over.status) & (RunRow.attempt == over.attempt)
        return self._table.put(item_of(run), stands)

    def finish(self, run: Run) -> bool:
        return self._table.put(item_of(run), _stands_as(run, RunStatus.RUNNING))

    def replace_unreadable(self, run: Run) -> bool:
        item = self._table.get(job_key_of(run.key.owner, run.key.job_id), run.key.sort_key)
        if item is None:
            return False
        try:
            return run_of(item) == run
        except UnreadableRowError:
            has_ended = item.get(RunRow.status.attr_name) in _ENDED
            return not has_ended and self._table.put(item_of(run), unchanged(item))

    def discard_claim(self, run: Run) -> bool:
        key = run.key
        return self._table.delete(
            job_key_of(key.owner, key.job_id), key.sort_key, _stands_as(run, RunStatus.RUNNING)
        )

    def put_result(self, run: Run, text: str) -> None:
        self._table.put(result_item_of(run, text))

    def get_result(self, run: Run) -> str | None:
        item = self._table.get(_result_partition(run.key), run.claim_id)
        return None if item is None else result_of(item)

    def list(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
        consistent: bool = False,
    ) -> Page[Run]:
        scope = runs_of(owner, job_id)
        after = None if cursor is None else decode_cursor(scope, cursor)
        span = _span(from_at, until_at)
        partition = job_key_of(owner, job_id)
        items, last = self._table.page(partition, after, limit, span=span, consistent=consistent)
        runs, unreadable = readable(items, run_of, lambda item: item["run_key"]["S"])
        return Page(runs, None if last is None else encode_cursor(scope, last), unreadable)

    def newest(self, owner: str, job_id: str, count: int) -> tuple[Run, ...]:
        items, _ = self._table.query(job_key_of(owner, job_id), None, count)
        return readable(items, run_of, lambda item: item["run_key"]["S"])[0]

    def count(self, owner: str, attention: Attention, most: int) -> int:
        return self._attention.count(_attention_owner(owner, attention), most)

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        scope, only = ("dead_letters", owner), only or DeadLetterFilter()
        after = None if cursor is None else decode_cursor(scope, cursor)
        span, wanted = _span(only.from_at, only.until_at), _wanted(owner, only)
        items, last = self._attention.page(
            _attention_owner(owner, Attention.DEAD), after, limit, only=wanted, span=span
        )
        runs, unreadable = readable(items, run_of, lambda item: item["run_key"]["S"])
        return Page(runs, None if last is None else encode_cursor(scope, last), unreadable)


def job_key_of(owner: str, job_id: str) -> str:
    """The partition of a job's runs."""
    return f"{owner}#{job_id}"


def item_of(run: Run) -> RawItem:
    """The item of a run."""
    key = run.key
    attention = run.attention
    return item_as(
        RunRow,
        job_key=job_key_of(key.owner, key.job_id),
        run_key=key.sort_key,
        status=run.status.value,
        attempt=run.attempt,
        token=run.token,
        claim_id=run.claim_id,
        generation_id=run.generation_id,
        updated_at=_unless(run.finished_at, run.updated_at),
        lease_until=run.lease_until,
        started_at=_unless(run.attempt_started_at, run.started_at),
        attempt_started_at=run.attempt_started_at,
        finished_at=run.finished_at,
        next_attempt_at=run.next_attempt_at,
        result=run.result,
        result_bytes=run.result_bytes,
        error=run.error and _error_map(run.error),
        reason=run.reason,
        covers_from=run.covers_from,
        covers_count=run.covers_count,
        effective_at=run.effective_at,
        note=None if run.note is None else cut(run.note),
        settled=run.settled and run.settled.value,
        waits=run.waits or None,
        attempts=[_attempt_map(record) for record in run.attempts] or None,
        other_generations=",".join(run.other_generations) or None,
        completion=run.completion and _completion_map(run.completion),
        attention_owner=attention and _attention_owner(key.owner, attention),
        attention_key=attention and _attention_key(key),
        expires_at=ceil_second(run.expires_at),
    )


def result_item_of(run: Run, text: str) -> RawItem:
    """The item of a whole result."""
    return ResultRow(
        partition=_result_partition(run.key),
        claim_id=run.claim_id,
        body=zlib.compress(text.encode(), 9),
        expires_at=ceil_second(run.expires_at),
    ).serialize()


def result_of(item: RawItem) -> str:
    """The text of an item that `result_item_of` made; raises UnreadableRowError for any other."""
    try:
        return zlib.decompress(row_as(ResultRow, item).body).decode()
    except Exception as error:
        raise UnreadableRowError(f"result {item.get('job_key')}: {error}") from error


def _result_partition(key: RunKey) -> str:
    return f"{key.owner}#result#{key.run_id}"


def run_of(item: RawItem) -> Run:
    """The run of an item that `item_of` made; raises UnreadableRowError for any other."""
    try:
        return _run_of(row_as(RunRow, item))
    except Exception as error:
        where = f"{item.get('job_key')}/{item.get('run_key')}"
        raise UnreadableRowError(f"run {where}: {error}") from error


def _run_of(row: RunRow) -> Run:
    return Run(
        key=_key_of(row),
        status=RunStatus(row.status),
        attempt=row.attempt,
        token=row.token,
        claim_id=row.claim_id,
        generation_id=row.generation_id,
        updated_at=row.updated_at or row.finished_at,
        lease_until=row.lease_until,
        started_at=row.started_at or row.attempt_started_at,
        attempt_started_at=row.attempt_started_at,
        finished_at=row.finished_at,
        next_attempt_at=row.next_attempt_at,
        result=row.result,
        result_bytes=row.result_bytes,
        error=_error_of(row.error) if row.error else None,
        reason=row.reason,
        covers_from=row.covers_from,
        covers_count=row.covers_count,
        effective_at=row.effective_at,
        note=row.note,
        settled=Resolution(row.settled) if row.settled else None,
        waits=row.waits or 0,
        attempts=tuple(
            AttemptRecord(
                kept.attempt,
                kept.started_at,
                kept.finished_at,
                _error_of(kept.error),
                kept.token_hash or "",
            )
            for kept in row.attempts or ()
        ),
        other_generations=tuple(row.other_generations.split(",")) if row.other_generations else (),
        completion=_completion_of(row.completion) if row.completion else None,
        expires_at=row.expires_at,
    )


def _stands_as(run: Run, status: RunStatus) -> Condition:
    """The stored row has the token and claim id of `run`, and this status."""
    condition: Condition = (
        (RunRow.token == run.token)
        & (RunRow.claim_id == run.claim_id)
        & (RunRow.status == status.value)
    )
    return condition


def _wanted(owner: str, only: DeadLetterFilter) -> Condition | None:
    """The filter's conditions besides the span of fire times."""
    wanted = []
    if only.job_id:
        wanted.append(RunRow.job_key == job_key_of(owner, only.job_id))
    if only.reason:
        wanted.append(RunRow.reason == only.reason)
    if only.error:
        wanted.append(RunRow.error["kind"] == only.error)
    return reduce(and_, wanted) if wanted else None


def _span(from_at: datetime | None, until_at: datetime | None) -> Span | None:
    """The sort keys of runs and dead letters with fire times in [from_at, until_at].

    A fire time leads its key, newest first, and a mark follows it.
    """
    if from_at is None and until_at is None:
        return None
    if until_at is not None and until_at < EPOCH:
        return _NOTHING
    newest = "!" if until_at is None else f"{_newest_first(until_at)}#"
    oldest = "~" if from_at is None else f"{_newest_first(ceil_second(max(from_at, EPOCH)))}$"
    return newest, oldest


def _newest_first(instant: datetime) -> str:
    return RunKey("", "", RunKind.SCHEDULED, instant).sort_key.partition("#")[0]


def _attention_owner(owner: str, attention: Attention) -> str:
    return f"{attention}#{owner}"


def _attention_key(key: RunKey) -> str:
    """The place of a run among those of its owner that need the same attention."""
    return f"{key.sort_key}#{key.job_id}"


def _unless(same: datetime | None, at: datetime | None) -> datetime | None:
    """The instant as an item has it that has `same` besides: not at all if that is it."""
    return None if at == same else at


def _key_of(row: RunRow) -> RunKey:
    owner, _, job_id = row.job_key.rpartition("#")
    _, kind, rest = row.run_key.split("#", 2)
    request_id, _, redrive = rest.rpartition("#")
    fire_at = RunKey.fire_at_of(row.run_key)
    return RunKey(owner, job_id, RunKind(kind), fire_at, request_id, int(redrive))


def _error_map(error: RunError) -> ErrorMap:
    return ErrorMap(kind=error.kind, message=error.message, permanent=error.permanent or None)


def _error_of(stored: ErrorMap) -> RunError:
    return RunError(stored.kind, stored.message, permanent=bool(stored.permanent))


def _attempt_map(record: AttemptRecord) -> AttemptMap:
    return AttemptMap(
        attempt=record.attempt,
        started_at=record.started_at,
        finished_at=record.finished_at,
        error=_error_map(record.error),
        token_hash=record.token_hash or None,
    )


def _completion_map(completion: Completion) -> CompletionMap:
    return CompletionMap(
        token_hash=completion.token_hash,
        until=completion.until,
        heartbeat_seconds=completion.heartbeat_seconds,
        is_open=completion.is_open or None,
        permits=list(completion.permits) or None,
    )


def _completion_of(stored: CompletionMap) -> Completion:
    return Completion(
        stored.token_hash,
        stored.until,
        stored.heartbeat_seconds,
        is_open=bool(stored.is_open),
        permits=tuple(map(str, stored.permits or ())),
    )
