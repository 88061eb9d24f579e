"""What a tick sends in chunks, by which plan, and what it records meanwhile."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.chunks.message import ChunkMessage, Order
from carillon.domain.chunks.placing import Plan
from carillon.domain.execution.lateness import LATE
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message
from carillon.domain.policies import CatchUp
from carillon.domain.run import RunKind
from carillon.domain.wheel.entry import Slot, minute_of
from carillon.domain.wheel.segment import Backlog, Control, shared_out
from carillon.errors import StoreUnavailableError
from carillon.tick.counting import SegmentOutcome
from tests.support.world import World
from tests.unit.faults import dying, failing

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
DUE_AT = NOON + timedelta(hours=2)
"""Of jobs that are made at noon: they are settled since one o'clock."""
MINUTE = minute_of(DUE_AT)
NORMAL = (0, Lane.NORMAL)


@pytest.fixture
def world() -> World:
    world = World(NOON, segments=1)
    chunked(world, on=True)
    return world


def chunked(world: World, *, on: bool) -> None:
    world.tick_ports = replace(world.tick_ports, chunked=on)


def made(world: World, count: int, name: str = "job", **settings: Any) -> list[Job]:
    """Hourly jobs."""
    settings = {"schedule": "0 * * * *", **settings}
    return [world.create(f"{name}-{number}", **settings) for number in range(count)]


def sent_at(world: World, instant: datetime = DUE_AT) -> list[Order]:
    """The orders of the tick that announces this minute, in the order of their sending."""
    world.leap_to(instant - timedelta(minutes=1))
    taken(world)
    world.tick()
    return taken(world)


def taken(world: World) -> list[Order]:
    kept = sorted(world.queue.kept(), key=lambda each: each.receipt)
    for each in kept:
        world.queue.delete(each.receipt)
    return [each.order for each in kept]


def chunks_in(orders: Sequence[Order]) -> list[ChunkMessage]:
    return [order for order in orders if isinstance(order, ChunkMessage)]


def ids_in(orders: Sequence[Order]) -> list[str]:
    """The jobs of what goes in chunks."""
    return sorted(member.job_id for chunk in chunks_in(orders) for member in chunk.members)


def alone_in(orders: Sequence[Order]) -> list[Message]:
    return [order for order in orders if isinstance(order, Message)]


def ids_of(jobs: Sequence[Job]) -> list[str]:
    return sorted(job.job_id for job in jobs)


class TestWhatGoesInChunks:
    def test_occurrences_of_settled_jobs_go_in_chunks_by_the_plan(self, world: World) -> None:
        jobs = made(world, 60)
        orders = sent_at(world)
        assert alone_in(orders) == []
        assert ids_in(orders) == ids_of(jobs)
        plan = world.chunks.get_plan(0, MINUTE)
        assert plan is not None
        assert plan.chunks == {NORMAL: 3}
        chunk_expires_at = DUE_AT + LATE + world.tick_ports.run_lifetime
        assert plan.expires_at > chunk_expires_at, "or nobody would find the chunk's runs"
        for chunk in chunks_in(orders):
            key = chunk.key
            assert (key.segment, key.minute, key.second, key.lane) == (0, MINUTE, *NORMAL)
            buckets = {plan.bucket_of(NORMAL, member.job_id) for member in chunk.members}
            assert buckets == {key.bucket}
        assert len(chunks_in(orders)) == 3

    def test_their_messages_are_those_that_would_have_gone_alone(self) -> None:
        orders: list[list[Order]] = []
        for on in (True, False):
            world = World(NOON, segments=1)
            chunked(world, on=on)
            made(world, 3, window="10m", fraction=0.5, schedule="55 * * * *")
            made(world, 3, "daily", schedule="0 14 * * *")
            orders.append(sent_at(world))
        (chunk,) = chunks_in(orders[0])
        together = {member.job_id: chunk.alone(member) for member in chunk.members}
        assert together == {each.key.job_id: each for each in alone_in(orders[1])}
        assert len(together) == 6

    def test_each_second_and_lane_has_chunks_of_its_own(self, world: World) -> None:
        groups = {
            (0, Lane.NORMAL): made(world, 4),
            (0, Lane.HIGH): made(world, 5, "high", priority=Lane.HIGH),
            (30, Lane.NORMAL): made(world, 6, "later", schedule="30 0 * * * *"),
        }
        chunks = chunks_in(sent_at(world))
        found = {(chunk.key.second, chunk.key.lane): ids_in([chunk]) for chunk in chunks}
        assert found == {group: ids_of(jobs) for group, jobs in groups.items()}

    @pytest.mark.parametrize(
        "settings",
        [
            {"grace": 600},
            {"catch_up": CatchUp.SKIP},
            {"end_at": NOON + timedelta(days=365)},
            {"schedule": f"every 1001m offset {MINUTE % 1001}m"},
            {"schedule": "at 2026-12-01T14:00:00"},
        ],
        ids=str,
    )
    def test_others_go_alone(self, world: World, settings: dict[str, Any]) -> None:
        jobs = made(world, 3, "other", **settings)
        together = made(world, 3)
        orders = sent_at(world)
        assert ids_in(orders) == ids_of(together)
        assert sorted(each.key.job_id for each in alone_in(orders)) == ids_of(jobs)

    def test_two_of_one_second_go_alone(self, world: World) -> None:
        jobs = made(world, 2)
        orders = sent_at(world)
        assert chunks_in(orders) == []
        assert sorted(each.key.job_id for each in alone_in(orders)) == ids_of(jobs)

    def test_generations_that_are_not_settled_go_alone(self, world: World) -> None:
        old = made(world, 3)
        world.clock.set(DUE_AT - timedelta(minutes=59))
        young = made(world, 3, "young")
        orders = sent_at(world)
        assert ids_in(orders) == ids_of(old)
        assert sorted(each.key.job_id for each in alone_in(orders)) == ids_of(young)
        assert ids_in(sent_at(world, DUE_AT + timedelta(hours=1))) == ids_of([*old, *young])

    def test_checks_for_missed_runs_go_alone(self, world: World) -> None:
        jobs = made(world, 3, expect_within=600)
        assert ids_in(sent_at(world)) == ids_of(jobs)
        checks = alone_in(sent_at(world, DUE_AT + timedelta(minutes=10)))
        assert [each.key.kind for each in checks] == [RunKind.WATCH] * 3


def plan_of(count: int) -> Plan:
    return Plan(0, MINUTE, "earlier", DUE_AT, {NORMAL: count} if count else {})


class TestPlans:
    @pytest.mark.parametrize("on", [True, False])
    def test_the_plan_of_an_earlier_tick_is_obeyed(self, world: World, *, on: bool) -> None:
        jobs = made(world, 40)
        plan = plan_of(5)
        assert world.chunks.put_plan(plan)
        chunked(world, on=on)
        orders = sent_at(world)
        assert ids_in(orders) == ids_of(jobs)
        assert {chunk.key.bucket for chunk in chunks_in(orders)} == set(range(5))
        for chunk in chunks_in(orders):
            found = {plan.bucket_of(NORMAL, member.job_id) for member in chunk.members}
            assert found == {chunk.key.bucket}

    def test_so_is_one_by_which_all_go_alone(self, world: World) -> None:
        jobs = made(world, 40)
        assert world.chunks.put_plan(plan_of(0))
        orders = sent_at(world)
        assert chunks_in(orders) == []
        assert sorted(each.key.job_id for each in alone_in(orders)) == ids_of(jobs)

    def test_where_chunks_are_off_a_later_tick_makes_none_either(self, world: World) -> None:
        """Of two ticks that overlap while the option is changed."""
        made(world, 40)
        chunked(world, on=False)
        assert chunks_in(sent_at(world)) == []
        chunked(world, on=True)
        assert chunks_in(sent_at(world)) == []

    def test_a_tick_that_died_is_repeated_chunk_by_chunk(self, world: World) -> None:
        made(world, 60)
        world.leap_to(DUE_AT - timedelta(minutes=1))
        with dying(world.wheel, "put_control", after=1):
            world.tick()
        first = taken(world)
        world.clock.advance(60)
        world.tick()
        again = [order for order in taken(world) if order in first]
        assert len(chunks_in(first)) == 3
        assert again == first

    def test_nothing_is_sent_before_the_plan_is_there(self, world: World) -> None:
        made(world, 40)
        with failing(world.chunks, "put_plan", StoreUnavailableError("down")):
            assert sent_at(world) == []
        world.tick()
        assert len(chunks_in(taken(world))) == 2

    def test_a_minute_without_any_costs_no_plan(self, world: World) -> None:
        made(world, 3, grace=600)
        with failing(world.chunks, "put_plan"):
            assert len(alone_in(sent_at(world))) == 3

    def test_no_plan_has_the_salt_of_another(self, world: World) -> None:
        """Nobody can find jobs that share a chunk every time."""
        made(world, 3)
        later = DUE_AT + timedelta(hours=1)
        sent_at(world)
        sent_at(world, later)
        plans = [world.chunks.get_plan(0, minute_of(each)) for each in (DUE_AT, later)]
        assert len({plan.salt for plan in plans if plan}) == 2


def control_of(world: World) -> Control:
    control = world.wheel.get_control(0)
    assert control is not None
    return control


class TestProgress:
    @pytest.mark.parametrize("is_on", [True, False])
    def test_a_minute_that_takes_longer_to_read_than_a_tick_has_is_sent_by_several(
        self, world: World, monkeypatch: pytest.MonkeyPatch, is_on: bool
    ) -> None:
        """What was gathered when time was over is sent, or each would begin where the first did."""
        chunked(world, on=is_on)
        jobs = made(world, 60)
        world.leap_to(DUE_AT - timedelta(minutes=1))
        taken(world)
        query, slow_from = world.wheel.query, Slot.from_key("h0")

        def slow_query(segment: int, slot: Slot, after_key: str | None = None) -> object:
            world.clock.advance(9 if slot == slow_from else 0)
            return query(segment, slot, after_key)

        monkeypatch.setattr(world.wheel, "query", slow_query)
        sent = []
        for number in range(4):
            world.clock.set(DUE_AT + timedelta(minutes=2 * number - 1))
            world.tick()
            sent += taken(world)
        alone = {each.key.job_id for each in alone_in(sent)}
        assert alone | {*ids_in(sent)} == {*ids_of(jobs)}

    def test_no_progress_is_recorded_beyond_what_is_gathered(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A herd takes longer than the tick to be read; what is gathered is sent by then."""
        jobs = made(world, 60)
        alone = made(world, 20, "alone", grace=600)
        world.leap_to(DUE_AT - timedelta(minutes=1))
        taken(world)
        query = world.wheel.query
        slow_from = Slot.from_key("h0")

        def slow_query(segment: int, slot: Slot, after_key: str | None = None) -> object:
            world.clock.advance(9 if slot == slow_from else 0)
            return query(segment, slot, after_key)

        monkeypatch.setattr(world.wheel, "query", slow_query)
        (report,) = world.tick()
        assert report.outcome is SegmentOutcome.OUT_OF_TIME
        sent = taken(world)
        assert 0 < len(alone_in(sent)) < len(alone)
        assert 0 < len(ids_in(sent)) < len(jobs)
        monkeypatch.setattr(world.wheel, "query", query)
        world.clock.set(DUE_AT)
        world.tick()
        sent += taken(world)
        assert ids_in(sent) == ids_of(jobs)
        assert {each.key.job_id for each in alone_in(sent)} == set(ids_of(alone))

    def test_a_queue_that_fails_gets_all_chunks_from_the_next_tick(self, world: World) -> None:
        jobs = made(world, 60)
        world.leap_to(DUE_AT - timedelta(minutes=1))
        taken(world)
        before = control_of(world).watermark
        with failing(world.queue, "send"):
            world.tick()
        assert control_of(world).watermark < MINUTE
        assert control_of(world).watermark >= before
        world.tick()
        assert ids_in(taken(world)) == ids_of(jobs)


class TestBacklog:
    @pytest.fixture
    def every_minute(self, world: World) -> list[Job]:
        return made(world, 4, schedule="* * * * *", catch_up=CatchUp.ALL)

    @pytest.mark.parametrize("is_on", [True, False])
    def test_what_was_announced_and_has_no_plan_is_throttled(
        self, world: World, every_minute: list[Job], is_on: bool
    ) -> None:
        """As where a control item without its watermark was mended."""
        chunked(world, on=is_on)
        world.tick_ports = replace(world.tick_ports, catch_up_share=60)
        world.leap_to(DUE_AT)
        taken(world)
        seen, now = control_of(world), minute_of(DUE_AT)
        gap = Backlog(announced=now - 1, done=now - 11, until=now - 1, taken_up_at=DUE_AT)
        assert world.wheel.put_control(replace(seen, backlog=(gap,)), over=seen)
        world.tick()
        late = [each for each in alone_in(taken(world)) if each.due_at < DUE_AT]
        assert len(late) == 40
        assert sum(1 for each in late if each.wait_until is None) <= 1

    def test_of_an_outage_only_what_was_announced_goes_in_chunks(
        self, world: World, every_minute: list[Job]
    ) -> None:
        """The last tick before died after its announcement."""
        world.leap_to(DUE_AT)
        taken(world)
        with dying(world.wheel, "put_control", after=1):
            world.tick()
        taken(world)
        announced = control_of(world).horizon
        world.clock.set(DUE_AT + timedelta(minutes=10))
        now = minute_of(world.clock.now())
        world.tick()
        orders = taken(world)
        together = {chunk.key.minute: len(chunk.members) for chunk in chunks_in(orders)}
        live = range(now, control_of(world).horizon + 1)
        assert together == dict.fromkeys([*range(MINUTE, announced + 1), *live], 4)
        alone = Counter(minute_of(each.due_at) for each in alone_in(orders))
        assert alone == dict.fromkeys(range(announced + 1, now), 4)

    def test_no_start_is_reserved_for_what_goes_in_chunks(
        self, world: World, every_minute: list[Job], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.tick_ports = replace(world.tick_ports, catch_up_share=60)
        world.leap_to(DUE_AT)
        with dying(world.wheel, "put_control", after=1):
            world.tick()
        announced = control_of(world).horizon
        taken(world)
        counted: list[int] = []

        def count(held: Control, counts: tuple[int, ...], *more: Any) -> Control:
            counted.append(sum(counts))
            return shared_out(held, counts, *more)

        monkeypatch.setattr("carillon.tick.segment_visit.shared_out", count)
        world.clock.set(DUE_AT + timedelta(minutes=10))
        world.tick()
        orders = taken(world)
        late = range(announced + 1, minute_of(world.clock.now()))
        assert counted == [4 * len(late)]
        assert len(chunks_in(orders)) > 0
        assert all(each.wait_until for each in alone_in(orders)[4:])

    def test_one_that_stands_for_the_others_goes_alone(self, world: World) -> None:
        made(world, 4, schedule="* * * * *")
        world.leap_to(DUE_AT)
        world.tick()
        taken(world)
        world.clock.set(DUE_AT + timedelta(minutes=10))
        world.tick()
        assert all(each.missed is not None for each in alone_in(taken(world)))


def test_a_report_counts_the_occurrences_in_chunks(world: World) -> None:
    made(world, 24)
    world.leap_to(DUE_AT - timedelta(minutes=1))
    (report,) = world.tick()
    assert (report.messages, report.occurrences) == (1, 24)
