"""The root and its shares on memory stores: an idle minute invites nobody, a heavy one does."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SideBySideThreads, SystemClock
from carillon.domain.message import Message
from carillon.domain.wheel.entry import minute_of
from carillon.errors import StoreUnavailableError
from carillon.services.indexer import Indexer
from carillon.tick.counting import SegmentOutcome, SegmentReport, change_of
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.root import Root
from carillon.tick.segment_visit import Visit
from carillon.tick.sharing import Bound, Share, Shares, Worth, in_order, segments_of
from tests.support.world import World
from tests.unit.faults import failing
from tests.unit.tick.test_aligned_sends import Standing

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
SEGMENTS = 8
SEND_SECONDS = 0.5
"""Of one call of the queue, where it is slow."""


class Invited(list[Share]):
    """The shares that were invited; a list that is `closed` takes none."""

    is_closed = False

    def invite(self, share: Share) -> None:
        if self.is_closed:
            raise StoreUnavailableError("may not invoke")
        self.append(share)


class Herd:
    """Many jobs that are due in each minute, over a queue that is slow, or none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
        self.world = World(START, segments=SEGMENTS)
        for number in range(jobs):
            self.world.create(f"job-{number}", "30 * * * * *")
        self.world.tick()
        self.world.clock.set(START + timedelta(minutes=1))
        self.invited = Invited()
        self.uninvited: list[Share] = []
        self._send = self.world.queue.send
        monkeypatch.setattr(self.world.queue, "send", self._slow_send)

    def _slow_send(self, messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        self._send(messages, delays)
        self.world.clock.advance(SEND_SECONDS)

    def root(self, workers: int = 4, **members: Any) -> Root:
        ports = replace(self.world.tick_ports, **members)
        return Root(
            ports,
            self.world.dispatcher(),
            self.invited.invite,
            lambda share, error: self.uninvited.append(share),
            workers=workers,
            worth=Worth(messages=10),
        )

    def tick(self, root: Root) -> list[SegmentReport]:
        return root.tick(SEGMENTS, self.world.clock.now() + timedelta(seconds=52))

    def share(self, share: Share) -> list[SegmentReport]:
        order = in_order(SEGMENTS, minute_of(self.world.clock.now()))
        deadline = self.world.clock.now() + timedelta(seconds=52)
        return self.world.dispatcher().tick(*segments_of(order, share), deadline)

    def are_dispatched(self) -> bool:
        """True if all that the tick of this minute has to dispatch is."""
        last = minute_of(self.world.clock.now()) + 2
        controls = [self.world.indexer.control(segment) for segment in range(SEGMENTS)]
        return all(each.watermark == last and each.lease_until is None for each in controls)


@pytest.fixture
def herd(monkeypatch: pytest.MonkeyPatch) -> Herd:
    return Herd(monkeypatch, 120)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Herd:
    return Herd(monkeypatch, 0)


def served(reports: Sequence[SegmentReport]) -> list[int]:
    return [each.segment for each in reports if each.outcome is SegmentOutcome.DISPATCHED]


def test_an_idle_minute_invites_nobody(idle: Herd) -> None:
    root = idle.root()
    assert sorted(served(idle.tick(root))) == list(range(SEGMENTS))
    assert idle.invited == []
    assert root.shares == Shares(1, Bound.SECONDS)
    assert idle.are_dispatched()


def test_a_heavy_minute_is_shared_and_each_segment_is_served_once(herd: Herd) -> None:
    root = herd.root()
    first = served(herd.tick(root))
    # A half second for each of seven segments, in ticks of two seconds.
    assert root.shares == Shares(2, Bound.SECONDS)
    assert herd.invited == [Share(1, 2)]
    order = in_order(SEGMENTS, minute_of(START) + 1)
    assert first[:4] == list(order[0::2])
    assert served(herd.share(Share(1, 2))) == [], "nobody came, so the root has taken those, too"
    assert sorted(first) == list(range(SEGMENTS))
    assert herd.are_dispatched()


def test_shares_that_come_at_once_leave_the_root_its_own(herd: Herd) -> None:
    by_share: dict[Share, list[int]] = {}

    def invite(share: Share) -> None:
        by_share[share] = served(herd.share(share))

    herd.invited.invite = invite  # type: ignore[method-assign]
    first = served(herd.tick(herd.root()))
    order = in_order(SEGMENTS, minute_of(START) + 1)
    # The share was first, and the root's own were still free when it had served its own.
    assert by_share[Share(1, 2)][:4] == list(order[1::2])
    together = Counter([*first, *by_share[Share(1, 2)]])
    assert together == Counter(range(SEGMENTS))
    assert herd.are_dispatched()


def test_a_root_that_cannot_invite_serves_all_and_tells(herd: Herd) -> None:
    herd.invited.is_closed = True
    root = herd.root()
    assert sorted(served(herd.tick(root))) == list(range(SEGMENTS))
    assert herd.uninvited == root.uninvited == [Share(1, 2)]
    assert sorted(root.own) == list(range(SEGMENTS))


@pytest.mark.parametrize("share", [Share(1, 2), Share(5, 64), Share(0, 1)], ids=str)
def test_a_share_that_comes_late_or_twice_finds_nothing_to_write(herd: Herd, share: Share) -> None:
    herd.tick(herd.root())
    before = [herd.world.indexer.control(segment) for segment in range(SEGMENTS)]
    for _ in range(2):
        assert served(herd.share(share)) == []
    assert [herd.world.indexer.control(segment) for segment in range(SEGMENTS)] == before


def test_a_doubled_root_does_the_rest_and_one_after_all_is_done_writes_nothing(herd: Herd) -> None:
    order = in_order(SEGMENTS, minute_of(START) + 1)
    deadline = herd.world.clock.now() + timedelta(seconds=52)
    held = herd.world.dispatcher().begin(order[0], deadline)
    assert not isinstance(held, SegmentReport)
    reports = herd.tick(herd.root())
    assert [each.outcome for each in reports if each.segment == order[0]] == [SegmentOutcome.HELD]
    assert sorted(served(reports)) == sorted(order[1:])
    held.run()
    invited = list(herd.invited)
    assert served(herd.tick(herd.root())) == []
    assert herd.invited == invited
    assert herd.are_dispatched()


def test_a_backlog_whose_segment_was_held_at_first_is_worked_on_once(
    herd: Herd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the tick of the minute before is still at it when the root comes."""
    order = in_order(SEGMENTS, minute_of(START) + 20)
    herd.world.clock.set(START + timedelta(minutes=19, seconds=50))
    deadline = herd.world.clock.now() + timedelta(seconds=52)
    held = [herd.world.dispatcher().begin(segment, deadline) for segment in order[:2]]
    herd.world.clock.set(START + timedelta(minutes=20))

    def invite(share: Share) -> None:
        for each in held:
            assert isinstance(each, Visit)
            each.run()

    herd.invited.invite = invite  # type: ignore[method-assign]
    monkeypatch.setattr(herd.world.queue, "send", herd._send)
    begun: list[int] = []
    dispatch = Dispatcher._dispatch_backlog

    def counted(self: Dispatcher, segment: int, deadline: datetime) -> SegmentReport:
        begun.append(segment)
        return dispatch(self, segment, deadline)

    monkeypatch.setattr(Dispatcher, "_dispatch_backlog", counted)
    reports = herd.tick(herd.root())
    assert [each.outcome for each in reports if each.segment == order[1]][:2] == [
        SegmentOutcome.HELD,
        SegmentOutcome.DISPATCHED,
    ]
    assert Counter(begun) == Counter(range(SEGMENTS))


def test_an_outage_is_made_up_by_all(idle: Herd) -> None:
    idle.world.clock.set(START + timedelta(minutes=20))
    root = idle.root()
    idle.tick(root)
    assert root.shares == Shares(4, Bound.WORKERS)
    assert idle.invited == [Share(1, 4), Share(2, 4), Share(3, 4)]


def test_with_one_worker_nothing_is_weighed(herd: Herd) -> None:
    root = herd.root(workers=1)
    assert len(served(herd.tick(root))) == SEGMENTS
    assert (root.shares.of, herd.invited) == (1, [])


def test_a_store_that_fails_under_the_first_segment_leaves_the_root_alone(herd: Herd) -> None:
    with failing(herd.world.wheel, "query", times=1):
        reports = herd.tick(herd.root())
    outcomes = Counter(each.outcome for each in reports)
    assert outcomes == {SegmentOutcome.FAILED: 1, SegmentOutcome.DISPATCHED: SEGMENTS - 1}
    assert herd.invited == []


def test_all_of_an_ordinary_minute_waits_for_one_tenth_of_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first segment's visit does not keep the others from theirs while it waits."""
    herd = Herd(monkeypatch, 60)
    herd.world.clock.set(START + timedelta(minutes=1, seconds=0.4))
    slept: list[float] = []

    class Counting(Standing):
        def sleep(self, seconds: float) -> None:
            slept.append(seconds)
            super().sleep(seconds)

    clock = Counting(herd.world.clock.now())
    monkeypatch.setattr(herd.world.queue, "send", herd._send)
    world = herd.world
    world.tick_ports = replace(
        world.tick_ports, clock=clock, side_by_side=SideBySideThreads(SEGMENTS + 2)
    )
    root = Root(
        world.tick_ports,
        world.dispatcher(),
        herd.invited.invite,
        lambda share, error: None,
        workers=4,
        worth=Worth(),
    )
    began = datetime.now(UTC)
    reports = root.tick(SEGMENTS, clock.now() + timedelta(seconds=52))
    assert sum(report.messages for report in reports) == 60
    assert (datetime.now(UTC) - began).total_seconds() < 2 * 0.57, "side by side"
    waits = Counter(round(each, 2) for each in slept)
    assert waits[0.57] == SEGMENTS
    assert herd.invited == []
    assert root.shares.of == 1


class Moving(SystemClock):
    """The machine's time, as if it were another day's."""

    def __init__(self, start: datetime) -> None:
        self._ahead = start - super().now()

    def now(self) -> datetime:
        return super().now() + self._ahead


def test_after_a_second_the_root_goes_by_what_it_knows_of_its_first_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its queue is so slow until others are invited that the first segment alone takes longer."""
    herd = Herd(monkeypatch, 320)
    world, invited_at = herd.world, list[datetime]()
    clock = Moving(START + timedelta(minutes=1))
    monkeypatch.setattr("carillon.tick.outbox.FULL", 1)

    def slow_send(messages: Sequence[Message], delays: Sequence[float], *until: Any) -> None:
        herd._send(messages, delays)
        clock.sleep(0.0 if invited_at else 0.05)

    monkeypatch.setattr(world.queue, "send", slow_send)
    world.indexer = Indexer(world.jobs, world.wheel, world.queue, clock, world.calendars)
    world.tick_ports = replace(
        world.tick_ports,
        clock=clock,
        indexer=world.indexer,
        side_by_side=SideBySideThreads(SEGMENTS + 2),
    )
    herd.invited.invite = lambda share: invited_at.append(clock.now())  # type: ignore[method-assign]
    root, began_at = herd.root(), clock.now()
    reports = root.tick(SEGMENTS, began_at + timedelta(seconds=52))
    # In a second seven segments take seven seconds, in ticks of two.
    assert (root.shares, len(invited_at)) == (Shares(4, Bound.WORKERS), 3)
    assert 1.0 <= (min(invited_at) - began_at).total_seconds() < 1.5
    assert sorted(served(reports)) == list(range(SEGMENTS))


def test_the_root_alone_tells_when_the_scheduler_starts_and_is_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    herd = Herd(monkeypatch, 0)
    told = []
    for minute in range(1, 6):
        herd.world.clock.set(START + timedelta(minutes=minute))
        if minute == 2:
            for number in range(120):
                herd.world.create(f"late-{number}", "5 12 * * *")
        root = herd.root()
        reports = herd.tick(root)
        for share in herd.invited:
            herd.share(share)
        herd.invited.clear()
        change = change_of(reports, root.own, herd.world.clock.now())
        told += [] if change is None else [(minute, change.type.value, change.subject)]
    assert told == [
        (3, "scheduler.started", "scheduler"),
        (4, "scheduler.idle", "scheduler"),
    ]
