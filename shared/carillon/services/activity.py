"""The activity feed: what batches write to it, and how it is read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from threading import Lock
from typing import Protocol

from carillon.clock import Clock, Entropy, ceil_second
from carillon.domain.activity.results import DENSE, Result, told, without_doubles
from carillon.errors import InvalidFieldError, StoreUnavailableError, UnreadableRowError
from carillon.stores.activity import ActivityStore, Record
from carillon.stores.cursors import decode_cursor, encode_cursor
from carillon.stores.pages import Page

MOST_DAYS = 8
"""Days that one page looks into: where hardly anything passes its filter it is short, with more to
come."""
MOST_RECORDS = 2_000
"""Records that one page reads; one of many results counts as several of `DENSE` each."""
MOST_SUMMED = 10_000
"""Records that one summary reads, counted so, too."""
KEPT_LONGER = timedelta(days=1)
"""Records are kept longer than lists show them: a digest looks back to the beginning of its period,
a day at most, and comes later; so do sums, to that of a day."""
_DAY = timedelta(days=1)


class ActivitySink(Protocol):
    """Takes the results of ended attempts."""

    def add(self, results: Iterable[Result]) -> None:
        """Keep the results for the end of the batch. Raises nothing."""
        ...


class ActivityWriter:
    """Writes what a batch has ended: one record for each owner with a deviation in it, or with
    `DENSE` results; several where one could not hold the deviations.

    Successes are in it only while it takes no more than one write unit for each `DENSE` results:
    with long names or tags deviations are told alone, and successes only counted."""

    def __init__(
        self, store: ActivityStore, clock: Clock, entropy: Entropy, lifetime: timedelta
    ) -> None:
        """Lists and summaries reach back for `lifetime`."""
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._lifetime = lifetime

    def write(self, results: Iterable[Result]) -> list[Result]:
        """The results that are lost, since the store took no record with them. Raises nothing."""
        lost: list[Result] = []
        by_owner = sorted(without_doubles(results), key=lambda result: result.key.owner)
        for owner, own in groupby(by_owner, key=lambda result: result.key.owner):
            batch = tuple(own)
            if not told(batch):
                continue
            now = self._clock.now()
            expires_at = ceil_second(now + self._lifetime + KEPT_LONGER)
            at, batch_id = now.replace(microsecond=0), self._entropy.new_id(now)
            record = Record(owner, at, batch_id, batch, expires_at)
            deviations = tuple(result for result in batch if result.is_deviation)
            try:
                is_put = self._store.put(record, _weight(record))
                if not is_put and deviations:
                    self._put(replace(record, results=deviations))
            except StoreUnavailableError:
                lost += batch
        return lost

    def _put(self, record: Record) -> None:
        """Store the record; in halves where it is refused for good, as one that is larger than a
        row may be."""
        results, middle = record.results, len(record.results) // 2
        try:
            self._store.put(record)
        except UnreadableRowError:
            if not middle:
                raise
            batch_id = self._entropy.new_id(record.recorded_at)
            self._put(replace(record, results=results[:middle]))
            self._put(replace(record, batch_id=batch_id, results=results[middle:]))


class GatheredActivity:
    """ActivitySink that gathers results until `flush`; usable from several threads."""

    def __init__(self, writer: ActivityWriter) -> None:
        self._writer = writer
        self._held: list[Result] = []
        self._lock = Lock()

    def add(self, results: Iterable[Result]) -> None:
        with self._lock:
            self._held += results

    def flush(self) -> int:
        """Write all; answers how many are lost. Raises nothing."""
        with self._lock:
            held, self._held = self._held, []
        return len(self._writer.write(held))


@dataclass(frozen=True, slots=True)
class ActivityFilter:
    """A choice of results; empty members leave none out. `tags` are (key, value): all of them."""

    statuses: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    tags: tuple[tuple[str, str], ...] = ()

    def chooses(self, result: Result) -> bool:
        return (
            (not self.statuses or result.status.value in self.statuses)
            and (not self.kinds or result.key.kind.value in self.kinds)
            and set(self.tags) <= set(result.tags)
        )


class Activity:
    """Reads an owner's feed; raises StoreUnavailableError."""

    def __init__(self, store: ActivityStore) -> None:
        self._store = store

    def read(
        self,
        owner: str,
        only: ActivityFilter,
        from_at: datetime,
        until_at: datetime,
        limit: int,
        cursor: str | None = None,
    ) -> Page[Result]:
        """Results recorded in [from_at, until_at], the last first, without what doubles repeat.

        A page ends with a whole record, so it may have some more than `limit`. Raises
        InvalidFieldError("cursor", …).
        """
        day, before = _day_of(until_at), _behind(until_at)
        if cursor is not None:
            day, before = _place_of(owner, cursor)
        found: list[Result] = []
        first, last_day, records = day, _day_of(from_at), 0
        while day >= last_day:
            since = f"{from_at:%H:%M:%S}" if day == last_day else ""
            for record in self._store.read(owner, day, before, since):
                records += _weight(record)
                chosen = filter(only.chooses, record.results)
                found += sorted(chosen, key=lambda result: result.at, reverse=True)
                if len(found) >= limit or records >= MOST_RECORDS:
                    return _page(found, _cursor(owner, day, record.position))
            day, before = day - _DAY, ""
            if first - day >= MOST_DAYS * _DAY and day >= last_day:
                return _page(found, _cursor(owner, day, ""))
        return _page(found, None)

    def all(self, owner: str, from_at: datetime, until_at: datetime) -> tuple[list[Result], bool]:
        """The results recorded in [from_at, until_at], newest first, doubles too, up to
        `MOST_SUMMED` records; the second value is False where there are more."""
        day, found, records = _day_of(until_at), list[Result](), 0
        before, first = _behind(until_at), _day_of(from_at)
        while day >= first:
            since = f"{from_at:%H:%M:%S}" if day == first else ""
            for record in self._store.read(owner, day, before, since):
                records += _weight(record)
                if records > MOST_SUMMED:
                    return found, False
                found += record.results
            day, before = day - _DAY, ""
        return found, True


def _weight(record: Record) -> int:
    """The number of records of `DENSE` results that it is as long as."""
    return max(1, len(record.results) // DENSE)


def _page(found: Sequence[Result], next_cursor: str | None) -> Page[Result]:
    return Page(tuple(without_doubles(found)), next_cursor)


def _day_of(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def _behind(instant: datetime) -> str:
    """The position behind all records of that second."""
    return f"{instant:%H:%M:%S}$"


def _cursor(owner: str, day: datetime, position: str) -> str:
    return encode_cursor(("activity", owner), f"{day:%Y%m%d}{position}")


def _place_of(owner: str, cursor: str) -> tuple[datetime, str]:
    place = decode_cursor(("activity", owner), cursor)
    try:
        return datetime.strptime(f"{place[:8]}+0000", "%Y%m%d%z"), place[8:]
    except ValueError:
        message = "must be the next_cursor of the page before, unchanged"
        raise InvalidFieldError("cursor", message) from None
