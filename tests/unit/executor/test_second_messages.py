"""Second messages of runs that may be in a chunk: each looks there before it decides."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.chunks.placing import Plan
from carillon.domain.decisions import Claim
from carillon.domain.execution.transitions import decide_claim
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp, Overlap
from carillon.domain.run import RunKind, RunStatus
from carillon.domain.wheel.entry import minute_of
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure
from carillon.schedules import CalendarRule
from tests.support.jobs import job_with
from tests.support.world import LIFETIME
from tests.unit.executor.chunk_kit import BUSY, DUE_AT
from tests.unit.executor.kit import SECOND
from tests.unit.executor.packed_kit import HOUR, World, renewed, unreadable


@pytest.fixture
def world() -> World:
    return World("a", "b")


class TestSecondMessages:
    """No row stops a second message of what has succeeded in a chunk."""

    @pytest.fixture(params=["own", "old"])
    def again(self, request: pytest.FixtureRequest, world: World) -> Callable[[], Message]:
        def message() -> Message:
            alone = world.alone("a")
            if request.param == "old":
                world.by_name["a"] = world.new_generation(world.by_name["a"], "0 * * * *")
            world.clock.advance(61)
            return alone

        return message

    def test_a_late_one_is_dropped(self, world: World, again: Callable[[], Message]) -> None:
        world.pack()
        assert world.handle(again()).handled is Handled.DROPPED
        assert world.row("a") is None
        assert world.called() == [("a", 1), ("b", 1)]

    def test_so_it_is_where_it_would_be_skipped(self, world: World) -> None:
        """A row that says so would hide the success."""
        world.pack()
        alone, job = world.alone("a"), world.by_name["a"]
        assert world.executor_ports.jobs.replace(job.paused(world.clock.now()), job.revision)
        world.clock.advance(61)
        assert world.handle(alone).handled is Handled.DROPPED
        assert world.row("a") is None

    def test_one_in_time_is_not_skipped_after_the_chunk_of_another_generation(
        self, world: World
    ) -> None:
        """The job was changed by a clock that is behind, and paused."""
        job, jobs = world.by_name["a"], world.executor_ports.jobs
        changed = renewed(world, job, DUE_AT - timedelta(seconds=1))
        world.pack()
        assert world.indexer.index_job(changed, job.revision)
        world.by_name["a"] = changed
        alone = world.alone("a")
        assert jobs.replace(changed.paused(world.clock.now()), changed.revision)
        assert world.handle(alone).handled is Handled.DROPPED
        assert world.row("a") is None

    @pytest.mark.parametrize("rule", CalendarRule)
    def test_nor_is_one_moved_to_another_day(self, world: World, rule: CalendarRule) -> None:
        """The change has added a calendar."""
        world.close("closed", f"{DUE_AT:%Y-%m-%d}")
        job = world.by_name["a"]
        changed = renewed(world, job, DUE_AT - timedelta(seconds=1))
        changed = job_with(changed, calendar=CalendarUse(name="closed", rule=rule))
        world.pack()
        assert world.indexer.index_job(changed, job.revision)
        world.by_name["a"] = changed
        assert world.handle(world.alone("a")).handled is Handled.DROPPED
        assert world.row("a") is None

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(lambda job: job, id="none"),
            pytest.param(lambda job: replace(job, segment=3), id="segment"),
            pytest.param(lambda job: job_with(job, priority=Lane.HIGH), id="lane"),
            pytest.param(lambda job: job_with(job, overlap=Overlap.SKIP), id="not plain"),
        ],
    )
    def test_nor_run_again_after_a_change_of_the_paused_job(
        self, world: World, change: Callable[[Job], Job]
    ) -> None:
        """What was paused, changed and resumed by a clock that is behind has its former place in no
        row but the record."""
        job, jobs = world.by_name["a"], world.executor_ports.jobs
        begun = DUE_AT - timedelta(seconds=1.5)
        world.pack()
        paused = job.paused(begun)
        assert jobs.replace(paused, job.revision)
        changed = replace(change(paused), revision=paused.revision + 1)
        assert jobs.replace(changed, paused.revision)
        resumed = renewed(world, changed, begun + timedelta(seconds=0.3))
        assert world.indexer.index_job(resumed, changed.revision)
        world.by_name["a"] = resumed
        alone = replace(world.alone("a"), lane=resumed.lane, segment=resumed.segment)
        assert world.handle(alone).handled is Handled.DROPPED
        assert world.called() == [("a", 1), ("b", 1)]

    def test_what_it_stands_for_is_recorded_while_the_chunk_is_under_way(
        self, world: World
    ) -> None:
        """Its own run has failed, by its row; who holds the chunk has died."""
        world.crash_after_claim(world.order())
        alone = world.alone("a")
        terms = world.executor_ports.claim_terms(DUE_AT, DUE_AT + HOUR)
        claim = decide_claim(None, alone, DUE_AT, terms)
        assert isinstance(claim, Claim)
        assert world.runs.claim(claim.run, None)
        assert world.runs.finish(replace(claim.run, status=RunStatus.DEAD, finished_at=DUE_AT))
        job = world.by_name["a"]
        missed = Missed(DUE_AT - 2 * HOUR, CatchUp.LATEST, job.schedule)
        again = replace(alone, missed=missed, in_time=True)
        assert world.handle(again).handled is Handled.REPEATED
        assert RunKind.MISSED in [run.key.kind for run in world.history(job)]

    def test_one_waits_for_the_chunk_that_has_it(self, world: World) -> None:
        world.chunks.put_plan(
            Plan(0, minute_of(DUE_AT), "salt", DUE_AT + LIFETIME, {(0, Lane.NORMAL): 1})
        )
        order = world.order()
        world.crash_after_claim(order)
        world.clock.advance(61)
        assert world.handle(world.alone("a")).handled is Handled.DEFERRED

    def test_one_of_an_indexer_comes_when_no_chunk_can_be_claimed_any_more(
        self, world: World
    ) -> None:
        """An hour after the commit it does the rest; no tick has planned the minute yet."""
        due_at = DUE_AT + HOUR
        world.clock.set(due_at - SECOND)
        control = world.indexer.control(0)
        assert world.wheel.put_control(replace(control, horizon=minute_of(due_at)), control)
        world.indexer.index_again(world.by_name["a"])
        orders = [each.order for each in world.queue.kept()]
        messages = (each for each in orders if isinstance(each, Message))
        message = next(each for each in messages if each.key.fire_at == due_at)
        world.clock.set(due_at)
        assert world.handle(message).handled is Handled.DEFERRED
        world.pack(at=due_at)
        world.clock.set(message.starts_at)
        assert world.handle(message).handled is Handled.DROPPED
        assert world.called() == [("a", 1), ("b", 1)]

    def test_what_failed_in_its_chunk_goes_on(self, world: World) -> None:
        """By its row, as ever."""
        world.answer(a=Failure(BUSY.error))
        world.pack()
        world.clock.advance(61)
        assert world.handle(world.alone("a")).handled is Handled.REPEATED

    def test_a_late_one_that_is_in_no_chunk_runs(self, world: World) -> None:
        world.pack("b")
        world.clock.advance(61)
        assert world.handle(world.alone("a")).handled is Handled.RAN

    def test_one_in_time_costs_no_read(self, world: World) -> None:
        names = ("get_plan", "get", "get_records")
        kept = [world.failing(world.chunks, name) for name in names]
        for each in kept:
            each.__enter__()
        assert world.handle(world.alone("a")).handled is Handled.RAN
        for each in kept:
            each.__exit__(None, None, None)

    def test_a_chunk_that_cannot_be_read_is_not_run_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its runs go alone after a day; then each waits for it, too, and is a dead letter after
        another day, which says why."""
        world.pack()
        monkeypatch.setattr(world.chunks, "get", unreadable)
        world.handle_chunk(world.order())
        world.clock.advance(86_400 + 600)
        world.execute()
        sent = [each.order for each in world.queue.kept()]
        assert [type(each) for each in sent] == [Message, Message]
        assert world.called() == [("a", 1), ("b", 1)]
