"""Ticks that find nothing due, without running them: most of a month is such minutes."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from carillon.domain.wheel.entry import minute_of, slots_of_minute
from carillon.domain.wheel.segment import Control
from carillon.stores.memory.wheel import MemoryWheelStore


def pass_idle_tick(
    wheel: MemoryWheelStore, segments: Iterable[int], now: datetime, look_ahead: int
) -> bool:
    """Leave the control items as a tick would that finds nothing due, after one that did not
    either; False, and nothing changes, if any of that is otherwise."""
    last = minute_of(now) + look_ahead
    passed = []
    for segment in segments:
        seen = wheel.get_control(segment)
        if seen is None or not _is_idle(wheel, seen, last):
            return False
        # What `acquired`, `with_minute_done` and `freed` make of it one after the other.
        passed.append((replace(seen, horizon=last, watermark=last, token=seen.token + 1), seen))
    for control, seen in passed:
        assert wheel.put_control(control, over=seen), "nothing comes in between"
    return True


def _is_idle(wheel: MemoryWheelStore, control: Control, last: int) -> bool:
    """True if a tick would take the segment, and find nothing up to the minute `last`, nor in those
    that an outage left out."""
    if not control.idle or control.lease_until is not None or control.backlog or control.cursor:
        return False
    return not any(
        wheel.has_entries(control.segment, slot)
        for minute in range(control.watermark + 1, last + 1)
        for slot in slots_of_minute(minute)
    )
