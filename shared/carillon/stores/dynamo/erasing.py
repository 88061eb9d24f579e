"""Erasure of an owner. Its items are found by reading the three tables whole: no index has all."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from carillon.clock import Clock, Entropy, SystemEntropy
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.quotas import QUOTAS_OWNER
from carillon.domain.spec.names import JOB_ID
from carillon.errors import UnreadableRowError
from carillon.settings import Settings
from carillon.stores.dynamo.attributes import RawItem
from carillon.stores.dynamo.models import JobRow, RunRow, WheelRow
from carillon.stores.dynamo.side_rows import keys_of, row_of
from carillon.stores.dynamo.table import Table
from carillon.stores.ports import OPERATIONS, QUOTAS

UNDER_WAY = timedelta(minutes=30)
"""What was under way at the erasure may leave rows for so long: the longest delay of a message, and
the longest process."""
_PAGE = 10_000
"""Items of a request; a megabyte has fewer."""


@dataclass(slots=True)
class Erased:
    """The progress so far: items read, and those of the owner by what they are. `left` says when to
    repeat it."""

    read: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)


class HandOverUnderWayError(Exception):
    """Jobs are being handed over from or to the owner: what they are could be lost to both."""


class Erasure:
    """Deletes all items of an owner, its jobs first: what comes due then finds no job, and is
    dropped. With `is_rehearsal` it only counts.

    It can be cut off anywhere and begun anew. Nothing tells of it that has the owner's name. Raises
    HandOverUnderWayError before anything is deleted, and StoreUnavailableError.
    """

    def __init__(
        self,
        owner: str,
        tables: Sequence[Table],
        clock: Clock,
        entropy: Entropy,
        *,
        is_rehearsal: bool = False,
    ) -> None:
        """`tables` are those of jobs, of the wheel, and of runs."""
        self.done = Erased()
        self._owner = owner
        self._jobs, *self._others = tables
        self._clock = clock
        self._entropy = entropy
        self._is_rehearsal = is_rehearsal
        self._kind_of = kinds(owner)

    @classmethod
    def of(
        cls, owner: str, settings: Settings, clock: Clock, *, is_rehearsal: bool = False
    ) -> "Erasure":
        """That of a deployment."""
        from carillon.stores.dynamo import open_connection

        connection = open_connection()
        tables = [
            Table(connection, JobRow, settings.jobs_table),
            Table(connection, WheelRow, settings.wheel_table),
            Table(connection, RunRow, settings.runs_table),
        ]
        return cls(owner, tables, clock, SystemEntropy(), is_rehearsal=is_rehearsal)

    def run(self, on_progress: Callable[[Erased], None] = lambda done: None) -> None:
        """Do all of it; `on_progress` hears of each page."""
        self._refuse_hand_overs()
        for table in (self._jobs, *self._others):
            for items in _pages(table):
                self._erase(table, items)
                on_progress(self.done)
        if self.done.removed and not self._is_rehearsal:
            again = self._clock.now() + UNDER_WAY
            self.done.left.append(
                "what was under way may leave rows: repeat it after"
                f" {again:%Y-%m-%dT%H:%M:%SZ}, until nothing is found"
            )

    def _refuse_hand_overs(self) -> None:
        for items in _pages(self._jobs):
            for item in items:
                moving = _moving(item)
                if moving is not None and self._owner in (moving.owner, moving.to):
                    detail = f"operation {moving.operation_id} of {moving.owner} to {moving.to}"
                    raise HandOverUnderWayError(f"{detail} is under way: wait for its end")

    def _erase(self, table: Table, items: Sequence[RawItem]) -> None:
        kinds = [self._kind_of(item) for item in items]
        self.done.read += len(items)
        self.done.removed.update(kind for kind in kinds if kind is not None)
        if not self._is_rehearsal:
            pairs = zip(items, kinds, strict=True)
            keys = [table.keys_of(item) for item, kind in pairs if kind is not None]
            table.delete_all(keys, self._clock, self._entropy)


def kinds(owner: str) -> Callable[[RawItem], str | None]:
    """A function that names what an item of the owner is; None for an item of nobody or others."""
    # Exact, since owners have names with any sign in them, also what looks like a part of a key.
    name, job_id = re.escape(owner), JOB_ID.pattern
    of_runs = re.compile(
        rf"{name}#(?:(?P<run>{job_id})|(?P<feed>feed#\d{{8}}#\d{{1,4}})|(?P<result>result#{job_id}_[^#]+))"
        rf"|(?P<change>~changes#{name}#[a-z]+#[^#]*)|(?P<generation>~generations#{name}#{job_id})"
    )
    own_limits = keys_of(QUOTAS, QUOTAS_OWNER, owner)

    def kind_of(item: RawItem) -> str | None:
        if "job_key" in item:
            found = of_runs.fullmatch(item["job_key"]["S"])
            return None if found is None else found.lastgroup
        if "segment_slot" in item:
            return "entry" if item.get("o", {}).get("S") == owner else None
        partition, sort_key = item["pk"]["S"], item["sk"]["S"]
        if item["owner"]["S"] == owner or (partition, sort_key) == own_limits:
            return str(sort_key).partition("/")[0]
        return None

    return kind_of


def _moving(item: RawItem) -> Operation | None:
    """The hand-over that the item is, if it is under way."""
    if not item["sk"]["S"].startswith(f"{OPERATIONS.name}/"):
        return None
    try:
        found = row_of(OPERATIONS, item)
    except UnreadableRowError:
        return None
    is_moving = (found.kind, found.state) == (OperationKind.HAND_OVER, OperationState.RUNNING)
    return found if is_moving else None


def _pages(table: Table) -> Iterator[Sequence[RawItem]]:
    after = None
    while True:
        items, after = table.scan(after, _PAGE)
        yield items
        if after is None:
            return
