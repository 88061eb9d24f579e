"""The protocol of chunks: what goes in them, what comes of it, and crashes at each step."""

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from carillon.domain.chunks.chunk import Ended, Outcome, finished
from carillon.domain.execution.transitions import EXECUTOR_DIED
from carillon.domain.job import Slow
from carillon.domain.run import Run, RunStatus
from carillon.errors import HeldError, UnreadableRowError
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.executor.targets import Call, Success
from carillon.executor.targets import Outcome as Answer
from tests.contract.samples import a_link
from tests.support.world import quotas_of
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World, member_of
from tests.unit.executor.kit import LEASE_SECONDS, SECOND
from tests.unit.faults import preceded

OK, ALONE, DIED = Outcome.OK, Outcome.ALONE, Outcome.DIED
STORE_WAIT_SECONDS = 10


@pytest.fixture
def world() -> World:
    return World("a", "b", "c")


def answered_late(world: World, answer: Answer, call: Call) -> Answer:
    world.clock.advance(0.25)
    return answer


class TestTogether:
    def test_all_succeed_by_one_claim_and_one_finish(self, world: World) -> None:
        with ExitStack() as second:
            for write in ("claim", "finish"):
                second.enter_context(world.failing(world.chunks, write, after=1))
            report = world.handle_chunk(world.order())
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]
        assert world.ends() == {"a": OK, "b": OK, "c": OK}
        assert world.sent() == []
        assert report.handled is Handled.CHUNK
        assert [each.handled for each in report.whole] == [Handled.RAN] * 3
        assert [each.run for each in report.whole] == [world.run(name) for name in "abc"]
        assert [each.job for each in report.whole] == list(world.by_name.values())

    @pytest.mark.parametrize("window", ["", "10m"])
    @pytest.mark.parametrize("answer", [Success("done"), BUSY])
    def test_runs_are_as_those_that_went_alone(self, answer: Answer, window: str) -> None:
        worlds = [World(), World()]
        for world in worlds:
            schedule = "0 * * * *" if not window else "55 * * * *"
            world.make("job", schedule, window=window, fraction=0.5)
            world.answer(job=partial(answered_late, world, answer))
        together, alone = worlds
        together.handle_chunk(together.order())
        alone.handle(alone.alone("job"))
        runs = [world.run("job") for world in worlds]
        assert all(run is not None for run in runs)
        one, other = [dataclasses.replace(run, claim_id="") for run in runs if run]
        assert one == other
        assert (one.status is RunStatus.SUCCEEDED) == (answer is not BUSY)

    def test_it_costs_no_read_but_that_of_the_jobs(self, world: World) -> None:
        reads = [(world.chunks, "get"), (world.runs, "get"), (world.jobs, "get")]
        with ExitStack() as none:
            for port, method in reads:
                none.enter_context(world.failing(port, method))
            world.handle_chunk(world.order())
        assert world.ends() == {"a": OK, "b": OK, "c": OK}

    def test_each_starts_at_its_own_call(self, world: World) -> None:
        world.answer(a=partial(answered_late, world, Success("done")))
        world.handle_chunk(world.order())
        starts = [run and run.started_at for run in map(world.run, "abc")]
        assert starts == [DUE_AT, DUE_AT + 0.25 * SECOND, DUE_AT + 0.25 * SECOND]

    def test_one_that_fails_goes_on_as_any_other(self, world: World) -> None:
        world.answer(b=BUSY)
        world.handle_chunk(world.order())
        failed = world.row("b")
        assert failed is not None
        assert (failed.status, failed.attempt) == (RunStatus.RETRYING, 1)
        assert failed.error == BUSY.error
        assert world.sent() == [("b", 2)]
        assert world.ends() == {"a": OK, "b": ALONE, "c": OK}
        world.handle_chunk(world.order())  # a duplicate
        world.answer()
        world.run_until(DUE_AT + timedelta(minutes=2), ticking=False)
        assert world.called() == [("a", 1), ("b", 1), ("c", 1), ("b", 2)]

    def test_an_early_message_waits_for_its_second(self, world: World) -> None:
        world.clock.set(DUE_AT - 30 * SECOND)
        assert world.handle_chunk(world.order()).handled is Handled.DEFERRED
        assert world.sent() == [("chunk", 0)]
        world.run_until(DUE_AT, ticking=False)
        assert [run.started_at for run in map(world.run, "abc") if run] == [DUE_AT] * 3


def paused(world: World) -> None:
    world.pause(world.by_name["b"])


def deleted(world: World) -> None:
    job = world.by_name["b"]
    assert world.jobs.replace(job.deleted(DUE_AT, DUE_AT), job.revision)


def gone(world: World) -> None:
    world.by_name["b"] = replace(world.by_name["b"], job_id="0" * 26)


def foreign(world: World) -> None:
    world.by_name["b"] = replace(world.by_name["b"], owner="user/another")


def changed(world: World) -> None:
    world.new_generation(world.by_name["b"], "30 * * * *")
    world.drain()


def not_plain(world: World) -> None:
    world.change(world.by_name["b"], overlap="skip")


def followed(world: World) -> None:
    job = world.by_name["b"]
    assert world.jobs.relink(replace(job, successors=(a_link(),)), ())


def slow(world: World) -> None:
    job = world.by_name["b"]
    marked = replace(job, slow=Slow(DUE_AT, "attempts keep lasting long"))
    assert world.jobs.replace(marked, job.revision)


def long(world: World) -> None:
    world.change(world.by_name["b"], timeout_seconds=55)


def spoilt(world: World) -> None:
    world.jobs.spoil(world.by_name["b"].job_id)


class TestAlone:
    @pytest.mark.parametrize(
        "happened",
        [paused, deleted, gone, foreign, changed, not_plain, followed, slow, long, spoilt],
    )
    def test_what_may_not_go_in_it_is_sent_alone(
        self, world: World, happened: Callable[[World], None]
    ) -> None:
        happened(world)
        report = world.handle_chunk(world.order(), seconds=56)
        assert world.called() == [("a", 1), ("c", 1)]
        assert world.ends() == {"a": OK, "b": ALONE, "c": OK}
        assert [each.message for each in world.queue.kept()] == [world.alone("b")]
        assert world.row("b") is None
        handled = {each.message.key.job_id: each.handled for each in report.whole}
        assert handled[world.by_name["b"].job_id] is Handled.DEFERRED

    @pytest.mark.parametrize(("seconds", "called"), [(60, 3), (61, 0)])
    def test_what_is_late_is_for_catch_up_to_decide(
        self, world: World, seconds: int, called: int
    ) -> None:
        world.clock.advance(seconds)
        world.handle_chunk(world.order())
        assert len(world.called()) == called
        assert len(world.sent()) == 3 - called

    def test_with_a_limit_on_starts_all_go_alone(self, world: World) -> None:
        world.executor = Router(
            replace(world.executor_ports, quotas=quotas_of(starts_per_minute=9))
        )
        world.handle_chunk(world.order())
        assert world.called() == []
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]

    def test_of_two_generations_of_a_job_only_that_which_counts_goes_in_it(
        self, world: World
    ) -> None:
        """A change long ago: the entry of the generation before has yet to be removed."""
        old = world.order()
        world.clock.set(DUE_AT - timedelta(minutes=61))
        job = world.by_name["b"] = world.new_generation(world.by_name["b"])
        world.clock.set(DUE_AT)
        world.drain()
        both = replace(old, members=(*old.members, member_of(job)))
        world.handle_chunk(both)
        assert world.called() == [("a", 1), ("c", 1), ("b", 1)]
        world.execute()
        world.handle_chunk(both)
        world.execute()
        assert len(world.called()) == 3


class TestCrashes:
    def test_after_the_claim_the_attempt_of_each_counts(self, world: World) -> None:
        order = world.order()
        world.crash_after_claim(order)
        with pytest.raises(HeldError):
            world.handle_chunk(order)
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(order)
        assert world.ends() == {"a": DIED, "b": DIED, "c": DIED}
        assert world.called() == []
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]
        world.execute()
        assert world.called() == [("a", 2), ("b", 2), ("c", 2)]
        for row in map(world.row, "abc"):
            assert row is not None
            assert row.status is RunStatus.SUCCEEDED
            assert [each.error for each in row.attempts] == [EXECUTOR_DIED]

    def test_an_attempt_in_two_generations_is_one_which_the_older_does_not_take_along(
        self, world: World
    ) -> None:
        """Seed 83000363."""
        old = world.order("b")
        world.clock.set(DUE_AT - timedelta(minutes=61))
        job = world.by_name["b"] = world.new_generation(world.by_name["b"])
        world.clock.set(DUE_AT)
        world.drain()
        both = replace(old, members=(*old.members, member_of(job)))
        world.crash_after_claim(both)
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(both)
        assert world.sent() == [("b", 1)] * 2
        world.execute()
        assert world.called() == [("b", 2)]

    def test_a_row_that_is_put_meanwhile_is_waited_for(self, world: World) -> None:
        order = world.order()
        world.crash_after_claim(order)
        world.clock.advance(LEASE_SECONDS)
        put = partial(world.claim_for_another, "b")
        with preceded(world.runs, "claim", put, number=2), pytest.raises(HeldError):
            world.handle_chunk(order)
        assert world.sent() == [("a", 1), ("c", 1)]

    def test_the_attempt_counts_once_another_generations_claim_is_withdrawn(
        self, world: World
    ) -> None:
        """Seed 210: that claim left no row, and the run had all of its attempts still."""
        order = world.order()
        world.crash_after_claim(order)
        world.clock.advance(LEASE_SECONDS)
        other = world.claim_for_another("b")
        with preceded(world.clock, "sleep", lambda: world.runs.discard_claim(other)):
            world.handle_chunk(order)
        world.execute()
        assert world.called() == [("a", 2), ("b", 2), ("c", 2)]

    def test_it_is_left_to_the_queue_while_another_generations_claim_stands(
        self, world: World
    ) -> None:
        order = world.order()
        world.crash_after_claim(order)
        world.clock.advance(LEASE_SECONDS)
        other = world.claim_for_another("b")
        with pytest.raises(HeldError):
            world.handle_chunk(order)
        assert (world.row("b"), world.sent()) == (other, [("a", 1), ("c", 1)])
        world.drain()
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(order)
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]
        world.execute()
        assert world.called() == [("a", 2), ("b", 2), ("c", 2)]

    def test_behind_the_finish_nothing_is_left_to_do(self, world: World) -> None:
        order = world.order()
        world.handle_chunk(order)
        report = world.handle_chunk(order)
        assert [each.handled for each in report.whole] == [Handled.REPEATED] * 3
        runs = [world.run(name) for name in "abc"]
        assert [run and (run.status, run.result) for run in runs] == [
            (RunStatus.SUCCEEDED, "done")
        ] * 3
        assert [world.row(name) for name in "abc"] == [None] * 3
        assert (len(world.called()), world.sent()) == (3, [])

    def test_a_failure_has_its_row_before_the_chunk_is_finished(self, world: World) -> None:
        """Whoever dies between leaves a row whose lease lapses."""
        rows: list[Run | None] = []
        world.answer(c=BUSY)
        with preceded(world.chunks, "finish", lambda: rows.extend(map(world.row, "abc"))):
            world.handle_chunk(world.order())
        assert [row and row.status for row in rows] == [None, None, RunStatus.RETRYING]

    def test_a_duplicate_waits_while_the_chunk_is_under_way(self, world: World) -> None:
        order, held = world.order(), []

        def receive_again(call: Call) -> Answer:
            with pytest.raises(HeldError):
                world.handle_chunk(order)
            held.append(call)
            return Success("done")

        world.answer(b=receive_again)
        world.handle_chunk(order)
        assert len(held) == 1
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    def test_a_late_finish_is_refused_and_followed(self, world: World) -> None:
        """The process sleeps past its lease. The one that disbands its chunk dies in turn, and may
        not find the message again: it is acknowledged now."""
        order = world.order()

        def sleep_on(call: Call) -> Answer:
            world.answer()
            world.clock.advance(LEASE_SECONDS)
            with world.dying(world.queue, "send"):
                world.handle_chunk(order)
            return Success("late")

        world.answer(c=sleep_on)
        world.handle_chunk(order)
        assert world.ends() == {"a": DIED, "b": DIED, "c": DIED}
        world.execute()
        assert world.called()[3:] == [("a", 2), ("b", 2), ("c", 2)]
        assert all(row and row.status is RunStatus.SUCCEEDED for row in map(world.row, "abc"))

    def test_what_is_finished_after_all_is_not_disbanded(self, world: World) -> None:
        order = world.order()
        world.crash_after_claim(order)
        held = world.chunk()
        world.clock.advance(LEASE_SECONDS)
        end = Ended(OK, DUE_AT, DUE_AT + SECOND, "late")
        final = finished(held, dict.fromkeys(held.refs, end))
        with preceded(world.chunks, "finish", partial(world.chunks.finish, final)):
            world.handle_chunk(order)
        assert [run and run.result for run in map(world.run, "abc")] == ["late"] * 3
        assert (world.called(), world.sent()) == ([], [])

    def test_a_process_past_its_end_claims_nothing(self, world: World) -> None:
        with pytest.raises(HeldError):
            world.handle_chunk(world.order(), seconds=-1)
        assert world.chunks.get(world.order().key) is None


class TestRowsBesideSuccesses:
    """Nobody knew that one was put, or a message of another generation is about to look here."""

    def test_a_claim_is_removed_once_its_lease_has_lapsed(self, world: World) -> None:
        order = world.order()
        world.handle_chunk(order)
        other = world.claim_for_another("b")
        with pytest.raises(HeldError):
            world.handle_chunk(order)
        assert world.row("b") == other
        assert other.lease_until is not None
        world.clock.set(other.lease_until)
        world.handle_chunk(order)
        assert (world.row("b"), world.sent()) == (None, [])

    @pytest.mark.parametrize("status", [RunStatus.SCHEDULED, RunStatus.SUCCEEDED])
    def test_any_other_row_is_left_as_it_is(self, world: World, status: RunStatus) -> None:
        order = world.order()
        world.handle_chunk(order)
        claimed = world.claim_for_another("b")
        row = replace(claimed, token=2, status=status, lease_until=None)
        assert world.runs.claim(row, claimed)
        report = world.handle_chunk(order)
        assert [each.handled for each in report.whole] == [Handled.REPEATED] * 3
        assert (world.row("b"), world.sent()) == (row, [])

    def test_one_that_cannot_be_read_holds_nobody_up(self, world: World) -> None:
        order = world.order()
        world.handle_chunk(order)
        with world.failing(world.runs, "get", UnreadableRowError("of a later version")):
            report = world.handle_chunk(order)
        assert [each.handled for each in report.whole] == [Handled.REPEATED] * 3
        assert world.sent() == []


class TestTwoVersions:
    """Noise was removed between two ticks, or only one of them saw it."""

    def test_what_the_claimed_one_did_not_list_goes_alone(self, world: World) -> None:
        world.handle_chunk(world.order("a", "b"))
        world.handle_chunk(world.order("b", "c"))
        assert world.called() == [("a", 1), ("b", 1)]
        assert world.sent() == [("c", 1)]

    def test_each_sends_what_it_has_of_a_disbanded_one(self, world: World) -> None:
        world.crash_after_claim(world.order("a", "b"))
        world.clock.advance(LEASE_SECONDS)
        world.handle_chunk(world.order("b", "c"))
        assert world.sent() == [("b", 1), ("c", 1)]
        world.execute()
        world.handle_chunk(world.order("a", "b"))
        world.execute()
        assert world.called() == [("b", 2), ("c", 1), ("a", 2)]


class TestDeadLetters:
    def test_a_chunk_that_nobody_claimed_goes_in_parts(self, world: World) -> None:
        order = world.order()
        world.handle_dead_chunk(order)
        assert world.called() == []
        assert world.ends() == {"a": ALONE, "b": ALONE, "c": ALONE}
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]
        world.execute()
        world.handle_chunk(order)
        world.execute()
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]

    def test_one_whose_executor_died_is_disbanded(self, world: World) -> None:
        order = world.order()
        world.crash_after_claim(order)
        with pytest.raises(HeldError):
            world.handle_dead_chunk(order)
        world.clock.advance(LEASE_SECONDS)
        world.handle_dead_chunk(order)
        assert world.ends() == {"a": DIED, "b": DIED, "c": DIED}
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]

    def test_of_one_that_has_ended_what_follows_is_repeated(self, world: World) -> None:
        world.handle_chunk(world.order("a", "b"))
        world.handle_dead_chunk(world.order("b", "c"))
        assert world.sent() == [("c", 1)]

    def test_one_that_is_disbanded_meanwhile_is_followed(self, world: World) -> None:
        """Nobody else has what it lists, or it would be lost."""
        order = world.order()
        world.crash_after_claim(order)
        held = world.chunk()
        world.clock.advance(LEASE_SECONDS)
        final = finished(held, dict.fromkeys(held.refs, Ended(DIED)))
        with preceded(world.chunks, "finish", partial(world.chunks.finish, final)):
            world.handle_dead_chunk(order)
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]
