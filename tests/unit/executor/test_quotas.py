"""Limits of an owner's own, where executors read them."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event

import pytest

from carillon.domain.admission.state import OWNER_ROW, PERMITS_ROW
from carillon.domain.quotas import NO_LIMITS, QUOTAS_OWNER, OwnLimits, Quota
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.services import quotas as services
from carillon.services.quotas import KNOWN_FOR, Quotas
from carillon.stores.memory import MemoryVersionedRows
from carillon.stores.ports import QUOTAS, Page
from tests.support.world import OWNER, quotas_of
from tests.unit.executor.kit import MINUTE, NOON, World

DEFAULTS = {**NO_LIMITS, Quota.STARTS: 7, Quota.JOBS: 3}


class Rows(MemoryVersionedRows[OwnLimits]):
    """Counts reads of all limits; two are a page."""

    def __init__(self) -> None:
        super().__init__(QUOTAS)
        self.lists = 0
        self.fails = False
        self.answers = Event()
        self.answers.set()

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[OwnLimits]:
        self.lists += 1
        assert self.answers.wait(10)
        if self.fails:
            raise StoreUnavailableError("throttled")
        return super().list(owner, 2, cursor)

    def set(self, of: str, **limits: int) -> None:
        stored = self.get(QUOTAS_OWNER, of)
        revision = 1 if stored is None else stored.revision + 1
        own = {Quota(name): limit for name, limit in limits.items()}
        row = OwnLimits(of, revision, NOON, own)
        assert self.put(row, None if stored is None else stored.revision)


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def quotas(world: World, rows: Rows) -> Quotas:
    return Quotas(DEFAULTS, rows, world.clock)


def test_an_owner_s_own_limits_go_before_the_deployment_s(quotas: Quotas, rows: Rows) -> None:
    for name in "abcde":
        rows.set(f"team/{name}", starts_per_minute=1, concurrent_runs=2)

    for name in "abcde":
        own = {Quota.STARTS: 1, Quota.RUNS: 2}
        assert quotas.of(f"team/{name}") == {**DEFAULTS, **own}
    assert quotas.of("team/f") == DEFAULTS
    assert rows.lists == 3  # pages, once


def test_an_owner_without_any_costs_nothing(quotas: Quotas, rows: Rows, world: World) -> None:
    for number in range(100):
        quotas.of(f"team/{number}")
    assert rows.lists == 1

    rows.set("team/7", starts_per_minute=0)
    world.clock.advance(KNOWN_FOR.total_seconds() - 1)
    assert quotas.of("team/7") == DEFAULTS
    world.clock.advance(1)
    assert quotas.of("team/7")[Quota.STARTS] == 0
    assert rows.lists == 2


def test_a_clock_that_is_set_back_reads_anew(quotas: Quotas, rows: Rows, world: World) -> None:
    quotas.of(OWNER)
    world.clock.set(NOON - 2 * MINUTE)
    quotas.of(OWNER)
    assert rows.lists == 2


def test_while_the_store_fails_what_is_known_goes_on(
    quotas: Quotas, rows: Rows, world: World
) -> None:
    rows.fails = True
    assert quotas.of(OWNER) == DEFAULTS
    assert quotas.of(OWNER) == DEFAULTS
    assert rows.lists == 1  # not by each who asks

    rows.fails = False
    rows.set(OWNER, starts_per_minute=1)
    world.clock.advance(30)
    assert quotas.of(OWNER)[Quota.STARTS] == 1
    rows.fails = True
    world.clock.advance(30)
    assert quotas.of(OWNER)[Quota.STARTS] == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["of a new process", "after a pause"])
def test_who_asks_while_they_are_read_gets_what_is_read(
    quotas: Quotas, rows: Rows, world: World, is_known: bool
) -> None:
    if is_known:  # minutes ago: a process stands still between its invocations
        quotas.of(OWNER)
        world.clock.advance(600)
    rows.set(OWNER, starts_per_minute=1)
    rows.answers.clear()
    rows.lists = 0
    with ThreadPoolExecutor(10) as batch:
        asked = [batch.submit(quotas.of, OWNER) for _ in range(10)]
        wait(asked, timeout=0.2)
        rows.answers.set()
    assert [each.result()[Quota.STARTS] for each in asked] == [1] * 10
    assert rows.lists == 1


def test_a_store_that_hangs_holds_up_one_who_asks(
    quotas: Quotas, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_LONGEST_WAIT_SECONDS", 0.1)
    rows.answers.clear()
    with ThreadPoolExecutor(3) as batch:
        asked = [batch.submit(quotas.of, OWNER) for _ in range(3)]
        ended, held_up = wait(asked, timeout=2)
        rows.answers.set()
    assert [each.result() for each in ended] == [DEFAULTS] * 2
    assert len(held_up) == 1


class TestRuns:
    @pytest.fixture(autouse=True)
    def executor(self, world: World, quotas: Quotas) -> None:
        ports = replace(world.executor_ports, quotas=quotas)
        world.executor = Router(ports)

    def test_starts_are_held_to_the_owner_s_own_limit(self, world: World, rows: Rows) -> None:
        rows.set(OWNER, starts_per_minute=1)
        job = world.create("job", "* * * * *")

        assert world.lane(world.due(job)) is Handled.RAN
        assert world.lane(world.due(world.create("other", "* * * * *"))) is Handled.DEFERRED

    def test_one_whose_limit_is_none_costs_no_row(
        self, world: World, rows: Rows, calls: Counter[str]
    ) -> None:
        rows.set(OWNER, starts_per_minute=0)
        job = world.create("job", "* * * * *")
        for minutes in (1, 2, 3):
            assert world.lane(world.due(job, minutes)) is Handled.RAN
        assert (calls["get"], calls["put"]) == (0, 0)
        assert world.admission_rows.get(OWNER, OWNER_ROW) is None

    def test_a_raised_limit_lets_those_that_wait_start(self, world: World, rows: Rows) -> None:
        rows.set(OWNER, starts_per_minute=1)
        job = world.create("job", "* * * * *")
        assert world.lane(world.due(job)) is Handled.RAN
        assert world.lane(world.due(world.create("other", "* * * * *"))) is Handled.DEFERRED
        (kept,) = world.queue.kept()
        rows.set(OWNER, starts_per_minute=0)

        world.clock.set(max(kept.visible_at, world.clock.now() + KNOWN_FOR))
        assert world.lane(kept.message) is Handled.RAN


class LateTimers:
    """Whatever is not called off is done when a test says so."""

    def __init__(self) -> None:
        self.ordered: list[Callable[[], None]] = []

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        self.ordered.append(act)
        return lambda: self.ordered.remove(act)

    every = after


def test_a_call_that_has_ended_takes_no_permit_where_it_cannot_be_recorded(world: World) -> None:
    """Its owner's other runs would wait for the end of its lease."""
    timers = LateTimers()
    quotas = quotas_of(concurrent_runs=1)
    world.executor = Router(replace(world.executor_ports, quotas=quotas, timers=timers))
    job = world.create("job", "* * * * *")
    message = world.due(job)
    with world.failing(world.runs, "finish"), pytest.raises(StoreUnavailableError):
        world.handle(message)
    for act in timers.ordered:
        act()
    gate = world.admission_rows.get(OWNER, PERMITS_ROW)
    assert gate is None or gate.holders == ()
