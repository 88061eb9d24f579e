"""Bugs planted into the tick: lease, watermark, chains, catch-up, and what a minute yields."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import carillon.domain.wheel.due as dispatch
import carillon.tick.lease as lease
import carillon.tick.segment_visit as visit
from carillon.domain.message import Message
from carillon.domain.wheel.entry import Entry, Slot, minute_of, slots_of_minute
from carillon.domain.wheel.segment import Control, acquired, freed, with_minute_done
from carillon.errors import CarillonError
from carillon.schedules import DstRule, SlotKind
from carillon.schedules.base import Fold
from carillon.schedules.kinds.cron import Cron
from carillon.simulation.deployment import Deployment
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import Page, WheelStore
from carillon.tick.counting import SegmentOutcome, SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import TickPorts
from carillon.tick.root import Root
from carillon.tick.segment_visit import Visit
from carillon.tick.sharing import Share
from tests.simulation.mutants.kit import (
    LANES,
    MEETING,
    Code,
    Mutant,
    Swap,
    asked,
    at_the_ticks,
    both,
    faulty,
    given,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario


class _AskedBefore:
    """A wheel that queries a segment's minutes just before they are announced."""

    def __init__(self, wheel: WheelStore) -> None:
        self._wheel = wheel
        self._pages: dict[tuple[int, Slot, str | None], Page[Entry]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wheel, name)

    def put_control(self, control: Control, over: Control | None) -> bool:
        if over is not None and control.token != over.token:
            self._pages.clear()
            for minute in range(control.watermark + 1, control.horizon + 1):
                for slot in slots_of_minute(minute):
                    self._ask(control.segment, slot)
        return self._wheel.put_control(control, over)

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        known = self._pages.get((segment, slot, after_key))
        return known or self._wheel.query(segment, slot, after_key)

    def _ask(self, segment: int, slot: Slot) -> None:
        after: str | None = None
        while True:
            page = self._pages[segment, slot, after] = self._wheel.query(segment, slot, after)
            after = page.next_cursor
            if after is None:
                return


def _query_first(original: Code) -> Code:
    def init(self: Dispatcher, ports: TickPorts, **more: Any) -> None:
        original(self, replace(ports, wheel=_AskedBefore(ports.wheel)), **more)

    return init


def _sends_last(original: Code) -> Code:
    """Visit.run, with all sends after the watermark has moved."""

    def run(self: Visit) -> SegmentReport:
        later: list[Message] = []
        keeper = SimpleNamespace(schedule_messages=lambda messages, until: later.extend(messages))
        self._outbox._indexer = keeper  # type: ignore[assignment]
        report: SegmentReport = original(self)
        try:
            self._ports.indexer.schedule_messages(later)
        except CarillonError as error:
            return replace(report, outcome=SegmentOutcome.FAILED, reason=str(error))
        return report

    return run


def _recorded_before(original: Code) -> Code:
    """Visit._wait_for_second, with the minute recorded as dispatched before the wait."""

    def wait(self: Visit) -> None:
        self._lease.checkpoint(with_minute_done(self._control, self._control.horizon))
        original(self)

    return wait


def _links_last(original: Code) -> Code:
    """Visit.run, with the next links of chains indexed after the watermark has moved."""
    file_link = Visit._put_next_entry

    def run(self: Visit) -> SegmentReport:
        links: list[Entry] = []
        self._put_next_entry = links.append  # type: ignore[method-assign, assignment]
        report: SegmentReport = original(self)
        try:
            for link in links:
                file_link(self, link)
        except CarillonError as error:
            return replace(report, outcome=SegmentOutcome.FAILED, reason=str(error))
        return report

    return run


def _announces_anew(original: Code) -> Code:
    def acquired(
        seen: Control, lease_owner: str, now: datetime, look_ahead: int, tzdata: str = ""
    ) -> Control | None:
        control: Control | None = original(seen, lease_owner, now, look_ahead, tzdata)
        return control and replace(control, horizon=minute_of(now) + look_ahead)

    return acquired


def _falls(original: Code) -> Code:
    return lambda held, minute: replace(held, watermark=minute, cursor=None)


def _look_aheads_differ(original: Code) -> Code:
    """A second tick worker, deployed with another look-ahead, is invoked for every other tick."""

    def tick(self: Deployment, share: Share | None) -> None:
        usual = self.options
        if minute_of(self.clock.now()) % 2:
            self.options = replace(usual, look_ahead_minutes=0)
        other = copy(self)
        self.options = usual
        original(other, share)

    return tick


def _over_whatever(original: Code) -> Code:
    def put(self: lease.Lease, control: Control) -> None:
        self.stored = self._wheel.get_control(control.segment) or self.stored
        original(self, control)

    return put


def _gap_later(original: Code) -> Code:
    """The gap is known to the tick alone until it records its progress."""

    def acquire(
        wheel: WheelStore,
        clock: Any,
        seen: Control,
        lease_owner: str,
        look_ahead: int,
        tzdata: str,
    ) -> lease.Lease | None:
        control = acquired(seen, lease_owner, clock.now(), look_ahead, tzdata)
        if control is None:
            return None
        if not wheel.put_control(replace(control, backlog=seen.backlog), over=seen):
            return None
        return lease.Lease(wheel, clock, control)

    return staticmethod(acquire)


def _now_decides(original: Code) -> Code:
    def entry(self: Visit, met: Entry, minute: int) -> None:
        now, kept = self._ports.clock.now(), self._control.backlog
        until = minute_of(now) - 1
        moved = tuple(replace(b, until=max(b.until, until), taken_up_at=now) for b in kept)
        self._control = replace(self._control, backlog=moved)
        try:
            original(self, met, minute)
        finally:
            self._control = replace(self._control, backlog=kept)

    return entry


def _twice_in_a_fold(original: Code) -> Code:
    def standing_times(entry: Entry, sent: Any, minute: int) -> Iterator[datetime]:
        if isinstance(sent, Cron):
            sent = replace(sent, dst=DstRule(sent.dst.gap, Fold.BOTH))
        yield from original(entry, sent, minute)

    return standing_times


def _forgets_the_gap(original: Code) -> Code:
    """The tick goes by the minute that it is invoked in, not by the watermark."""

    def acquired(seen: Control, *terms: Any) -> Control | None:
        control: Control | None = original(seen, *terms)
        return control and replace(control, backlog=seen.backlog)

    return acquired


def _drifts(original: Code) -> Code:
    """Occurrences are counted from when the tick happens to work."""

    def entry(self: Visit, met: Entry, minute: int) -> None:
        late = timedelta(seconds=self._ports.clock.now().second)

        def send(order: Any) -> None:
            key = replace(order.key, fire_at=order.key.fire_at + late)
            Visit._send(self, replace(order, key=key, due_at=order.due_at + late))

        if met.slot.kind is not SlotKind.DATED:
            self._send = send  # type: ignore[method-assign]
        try:
            original(self, met, minute)
        finally:
            vars(self).pop("_send", None)

    return entry


def _first_page(original: Code) -> Code:
    def query(self: Any, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        page: Page[Entry] = original(self, segment, slot, after_key)
        return replace(page, next_cursor=None)

    return query


def _given_away(original: Code) -> Code:
    """Root._left_to_root, with the segments of those that it has invited recorded as dispatched."""

    def left_to_root(self: Root, first: Any, order: Any, left: Any) -> Any:
        rest = original(self, first, order, left)
        ports = self._ports
        for segment in order:
            if segment not in self.own:
                seen = ports.indexer.control(segment)
                held = acquired(seen, "root", ports.clock.now(), 2)
                if held is not None:
                    ports.wheel.put_control(freed(with_minute_done(held, held.horizon)), over=seen)
        return rest

    return left_to_root


def _shared(scenario: Scenario) -> Scenario:
    """Ticks share every minute in which the first segment has anything to send."""
    options = replace(
        scenario.options, segments=3, tick_workers=2, share_seconds=1e-6, share_messages=1
    )
    return replace(scenario, options=options, most_latency_us=100_000)


TICKS = (
    Mutant(
        "query_before_announcement",
        ("I1",),
        "the tick queries its minutes before it announces them",
        (Swap(Dispatcher, "__init__", _query_first),),
        reshape=MEETING,
    ),
    Mutant(
        "watermark_before_sends",
        ("I1",),
        "the watermark moves before the sends are acknowledged",
        (Swap(Visit, "run", _sends_last),),
    ),
    Mutant(
        "recorded_before_the_wait",
        ("I1",),
        "a minute is recorded as dispatched before the tick waits for the end of a second",
        (Swap(Visit, "_wait_for_second", _recorded_before),),
    ),
    Mutant(
        "watermark_falls",
        ("I1",),
        "horizon and watermark fall when a tick looks less far ahead",
        (
            Swap(lease, "acquired", _announces_anew),
            Swap(visit, "with_minute_done", _falls),
        ),
        world=(Swap(Deployment, "_tick", _look_aheads_differ),),
        reshape=both(
            small(12),
            scheduled("every 20s", overlap="allow"),
            asked("change", 4, *LANES),
            asked("pause", 3),
            asked("resume", 4),
        ),
    ),
    Mutant(
        "checkpoint_without_token",
        ("I1",),
        "a tick writes its progress over whatever stands there",
        (Swap(lease.Lease, "_put", _over_whatever),),
        reshape=both(
            small(12),
            scheduled("every 20s", overlap="allow"),
            asked("change", 6, *LANES),
            asked("pause", 3),
            asked("resume", 4),
            at_the_ticks,
            faulty(paused=0.06, tick_doubled=0.5),
        ),
    ),
    Mutant(
        "gap_noted_later",
        ("I1",),
        "the write that takes the lease lifts the watermark without noting the backlog",
        (Swap(lease.Lease, "acquire", _gap_later),),
        reshape=both(
            small(12), scheduled("every 20s", overlap="allow"), faulty(tick_missing=0.5, dies=0.05)
        ),
    ),
    Mutant(
        "chain_link_after_watermark",
        ("I1",),
        "a chain's next entry is indexed after the watermark has moved",
        (Swap(Visit, "run", _links_last),),
        reshape=both(small(260), scheduled("every 121m", "every 2h 5m"), faulty(dies=0.05)),
    ),
    Mutant(
        "catch_up_by_now",
        ("I1",),
        "catch-up is decided against now, not against the backlog's own instant",
        (Swap(Visit, "_entry", _now_decides),),
    ),
    Mutant(
        "fold_fired_twice",
        ("I1",),
        "an hour that the clocks show twice is fired twice",
        (Swap(dispatch, "_standing_times", _twice_in_a_fold),),
        reshape=both(
            small(60),
            scheduled("30 2 * * *", "*/10 2 * * *", timezone="Europe/Berlin"),
            given(start=datetime(2026, 10, 25, 1, 5, tzinfo=UTC), ticks_down=(), executors_down=()),
        ),
    ),
    Mutant(
        "minute_from_the_event",
        ("I1",),
        "a tick that comes late or after missing ones serves its own minutes only",
        (Swap(lease, "acquired", _forgets_the_gap),),
    ),
    Mutant(
        "given_away_counts_as_dispatched",
        ("I1",),
        "a root records the segments of the shares that it has invited as dispatched",
        (Swap(Root, "_left_to_root", _given_away),),
        reshape=both(small(12), scheduled("every 20s", overlap="allow"), _shared),
    ),
    Mutant(
        "drift",
        ("I1",),
        "occurrences are counted from the tick's own beginning",
        (Swap(Visit, "_entry", _drifts),),
    ),
    Mutant(
        "first_page_only",
        ("I1",),
        "of a slot with many entries the tick reads the first page",
        (Swap(MemoryWheelStore, "query", _first_page),),
    ),
)
