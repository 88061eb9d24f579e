"""The activity feed in DynamoDB, in the runs' table.

A record is one item: JSON, compressed, so that ten results with the names and tags of their jobs
fit into one write unit.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, time, timedelta
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any

from carillon.clock import ceil_second
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.schedules.base import EPOCH
from carillon.stores.activity import Record
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.dynamo.models import ActivityRow
from carillon.stores.dynamo.table import RawItem, Table

SHARDS = 8
"""Partitions that an owner's day is spread over: each takes 1,000 records a second."""
_EARLIEST, _LATEST = "!", "~"
_MEMBERS = 14
"""Of a result in the body of an item."""
_UNIT_BYTES = 1024
"""Of a write unit."""
_MILLISECOND = timedelta(milliseconds=1)


class DynamoActivityStore:
    """ActivityStore on table runs; records leave by TTL."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._threads = ThreadPoolExecutor(2 * SHARDS, thread_name_prefix="feed")

    def put(self, record: Record, most_units: int | None = None) -> bool:
        item = item_of(record)
        if most_units is not None and item_size(item) > most_units * _UNIT_BYTES:
            return False
        return self._table.put(item)

    def read(
        self, owner: str, day: datetime, limit: int, before: str = "", since: str = ""
    ) -> Sequence[Record]:
        since = since or _EARLIEST
        before = min(before or _LATEST, _LATEST)  # DynamoDB refuses to begin outside of the span
        if before < since:
            return []
        read = partial(self._shard, owner, day, limit, before, since)
        shards = self._threads.map(read, range(SHARDS))
        newest_first = merge(*shards, key=lambda record: record.position, reverse=True)
        return list(islice(newest_first, limit))

    def _shard(
        self, owner: str, day: datetime, limit: int, before: str, since: str, shard: int
    ) -> list[Record]:
        partition, found = _partition(owner, day, shard), list[Record]()
        span = (since, _LATEST)
        after: str | None = before if before < _LATEST else None
        while len(found) < limit:
            items, after = self._table.query(
                partition, after, limit - len(found), span=span, backwards=True
            )
            found += _readable(owner, day, items)
            if after is None:
                break
        return found


def item_of(record: Record) -> RawItem:
    """The item of a record."""
    day = record.recorded_at.replace(hour=0, minute=0, second=0)
    shard = zlib.crc32(record.batch_id.encode()) % SHARDS
    return ActivityRow(
        partition=_partition(record.owner, day, shard),
        position=record.position,
        body=zlib.compress(_body_of(record), 9),
        expires_at=ceil_second(record.expires_at),
    ).serialize()


def _partition(owner: str, day: datetime, shard: int) -> str:
    return f"{owner}#feed#{day:%Y%m%d}#{shard}"


def _readable(owner: str, day: datetime, items: Sequence[RawItem]) -> Iterator[Record]:
    for item in items:
        try:
            row = ActivityRow.from_raw_data(item)
            results = tuple(_results_of(owner, json.loads(zlib.decompress(row.body))))
        except Exception:
            continue
        clock, _, batch_id = row.position.partition("#")
        recorded_at = datetime.combine(day, time.fromisoformat(clock), day.tzinfo)
        yield Record(owner, recorded_at, batch_id, results, row.expires_at)


def _body_of(record: Record) -> bytes:
    """Jobs by id with name and tags, then each result as a list, without what is empty at its
    end; a lag of 0.0 is not."""
    jobs = {each.key.job_id: [each.job_name, dict(each.tags)] for each in record.results}
    places = {job_id: place for place, job_id in enumerate(jobs)}
    results = []
    for each in record.results:
        key = each.key
        line: list[Any] = [places[key.job_id], key.kind.value, _number(key.fire_at)]
        line += [each.status.value, each.attempt, (each.at - key.fire_at) // _MILLISECOND]
        line += [each.lag_seconds, each.duration_seconds, each.reason, each.error_kind]
        line += [key.request_id or None, key.redrive or None]
        line += [each.covers_from and _number(each.covers_from), each.covers_count]
        while line[-1] is None:
            line.pop()
        results.append(line)
    return json.dumps([jobs, results], separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "replace"
    )


def _results_of(owner: str, body: list[Any]) -> Iterator[Result]:
    jobs = list(body[0].items())
    for line in body[1]:
        whole: list[Any] = [*line, *[None] * (_MEMBERS - len(line))]
        place, kind, fired, status, attempt, after_ms, lag, duration, *rest = whole
        reason, error_kind, request_id, redrive, covers_from, covers_count = rest
        job_id, (name, tags) = jobs[place]
        fire_at = _instant(fired)
        yield Result(
            RunKey(owner, job_id, RunKind(kind), fire_at, request_id or "", redrive or 0),
            RunStatus(status),
            attempt or 0,
            fire_at + (after_ms or 0) * _MILLISECOND,
            name,
            tuple(tags.items()),
            lag,
            duration,
            reason,
            error_kind,
            None if covers_from is None else _instant(covers_from),
            covers_count,
        )


def _number(instant: datetime) -> int:
    return int(instant.timestamp())


def _instant(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)
