"""The activity feed in DynamoDB, in the runs' table.

A record is one item: JSON, compressed, so that ten results with the names and tags of their jobs
fit into one write unit.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from heapq import merge
from typing import Any

from carillon.clock import ceil_second
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.schedules.base import EPOCH
from carillon.stores.activity import Record
from carillon.stores.dynamo.attributes import RawItem, item_size, row_as
from carillon.stores.dynamo.models import ActivityRow
from carillon.stores.dynamo.table import Span, Table

SHARDS = 8
"""Partitions that an owner's day is spread over: each takes 1,000 records a second."""
_EARLIEST, _LATEST = "!", "~"
_FIRST, _MOST = 8, 256
"""Records of a shard that are read at once: at first, and at most."""
_Part = tuple[list[RawItem], str | None]
"""Items, and where the next ones begin."""
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
        self, owner: str, day: datetime, before: str = "", since: str = ""
    ) -> Iterator[Record]:
        span = (since or _EARLIEST, _LATEST)
        before = min(before or _LATEST, _LATEST)  # DynamoDB refuses to begin outside of the span
        if before < span[0]:
            return iter(())
        shards = [_Shard(self._table, owner, day, span, number) for number in range(SHARDS)]
        begin = before if before < _LATEST else None
        # The first parts side by side; of what each has fetched nothing is fetched again.
        firsts = list(self._threads.map(lambda shard: shard.part(begin, _FIRST), shards))
        records = [shard.records(first) for shard, first in zip(shards, firsts, strict=True)]
        return merge(*records, key=lambda record: record.position, reverse=True)


@dataclass(frozen=True, slots=True)
class _Shard:
    """One of the partitions of a day, read in parts that grow: who wants few reads few, and who
    wants many asks seldom."""

    table: Table
    owner: str
    day: datetime
    span: Span
    number: int

    def part(self, after: str | None, size: int) -> _Part:
        partition = _partition(self.owner, self.day, self.number)
        return self.table.query(partition, after, size, span=self.span, backwards=True)

    def records(self, part: _Part) -> Iterator[Record]:
        size = _FIRST
        while True:
            items, after = part
            yield from _readable(self.owner, self.day, items)
            if after is None:
                return
            size = min(2 * size, _MOST)
            part = self.part(after, size)


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
            row = row_as(ActivityRow, item)
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
