"""Bugs planted into what keeps a bad item to itself."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from carillon.domain.job import Lane
from carillon.domain.wheel.entry import Entry, Slot, minute_start
from carillon.errors import CarillonError
from carillon.schedules import SlotKind, parse_schedule
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import EntryPage
from carillon.tick.segment_visit import Visit
from tests.simulation.judging.recorder import PLANTED
from tests.simulation.mutants.kit import Code, Mutant, Swap, both, faulty, scheduled, small


def _a_bad_entry(segment: int, slot: Slot) -> Entry:
    """What a bug or a hand may leave: its generation id tells no time, so it cannot be decided."""
    return Entry(
        segment=segment,
        slot=slot,
        owner="nobody",
        job_id=PLANTED,
        generation_id="notaulid",
        from_at=minute_start(slot.number - 10),
        lane=Lane.NORMAL,
        schedule=parse_schedule("every 1m"),
    )


def _with_a_bad_entry(original: Code) -> Code:
    """Of each dated slot the first page begins with a bad entry."""

    def query(self: Any, segment: int, slot: Slot, after_key: str | None = None) -> EntryPage:
        page: EntryPage = original(self, segment, slot, after_key)
        if slot.kind is not SlotKind.DATED or after_key is not None:
            return page
        return replace(page, entries=(_a_bad_entry(segment, slot), *page.entries))

    return query


def _unbounded(original: Code) -> Code:
    def decided(self: Visit, entry: Entry, decide: Callable[[], Any]) -> Any:
        return decide()

    return decided


def _any_error_aside(original: Code) -> Code:
    """Visit._entry, with what stores and queue did not take set aside as if the entry were bad."""

    def entry(self: Visit, met: Entry, minute: int) -> None:
        try:
            original(self, met, minute)
        except CarillonError as error:
            self._set_aside(met, error)

    return entry


ISOLATION = (
    Mutant(
        "bad_row_not_bounded",
        ("I1", "I3"),
        "an entry that cannot be decided fails its segment's minute",
        (Swap(Visit, "_decided", _unbounded),),
        world=(Swap(MemoryWheelStore, "query", _with_a_bad_entry),),
        reshape=small(12),
    ),
    Mutant(
        "queue_error_set_aside",
        ("I1",),
        "an entry is set aside when a store or the queue fails, and the watermark goes over it",
        (Swap(Visit, "_entry", _any_error_aside),),
        reshape=both(
            small(260), scheduled("every 121m", "every 125m"), faulty(throttled=0.1, dies=0.02)
        ),
    ),
)
