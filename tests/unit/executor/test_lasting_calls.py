"""Calls in a chunk that last: each gets a row of its own, and holds up no other's end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import pytest

from carillon.clock import SideBySideThreads
from carillon.domain.admission.state import PERMITS_ROW, job_admission
from carillon.domain.chunks.chunk import Outcome
from carillon.domain.execution.stopping import LOOK_SECONDS, decide_cancel
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.targets import WebhookTarget
from carillon.errors import (
    HeldError,
    StoreUnavailableError,
)
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.executor.runs.protocol import FINISH_RESERVE
from carillon.executor.targets import Call, Failure, Success
from carillon.executor.targets import Outcome as Ended
from tests.support.world import FUNCTION_SECONDS, OWNER, quotas_of
from tests.unit.executor.chunk_kit import BUSY, DUE_AT, World
from tests.unit.executor.kit import SECOND
from tests.unit.faults import preceded

OK, ALONE, DIED = Outcome.OK, Outcome.ALONE, Outcome.DIED


@pytest.fixture
def world() -> World:
    return World("a", "b", "c")


class LastingAtOnce:
    """Timers by which each call has lasted before it has begun; what is ordered then is called off
    before its time."""

    def __init__(self) -> None:
        self.on = 0
        """That have not been called off."""
        self.looks: list[Callable[[], None]] = []
        self._acts = False

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        if not self._acts:
            self._acts = True
            act()
            self._acts = False
        return self._call_off()

    def every(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        self.looks.append(act)
        return self._call_off()

    def _call_off(self) -> Callable[[], None]:
        self.on += 1

        def call_off() -> None:
            self.on -= 1

        return call_off


class LastingAtTheEnd(LastingAtOnce):
    """Timers whose first act is under way when it is called off."""

    ordered = 0

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        call_off, is_first = self._call_off(), not self.ordered
        self.ordered += 1

        def end() -> None:
            call_off()
            if is_first:
                act()

        return end


class Ordered(LastingAtOnce):
    """Timers whose time comes when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.acts: list[Callable[[], None]] = []

    def after(self, seconds: float, act: Callable[[], None]) -> Callable[[], None]:
        self.acts.append(act)
        return self._call_off()


@pytest.fixture
def timers(world: World) -> LastingAtOnce:
    timers = LastingAtOnce()
    world.executor = Router(replace(world.executor_ports, timers=timers))
    return timers


def run_b_during_a(
    world: World, timers: LastingAtOnce, *, concurrent_runs: int, then: Callable[[], Ended]
) -> None:
    """The second run of a chunk is made during the call of the first, which ends as `then` says."""

    def side_by_side(calls: Sequence[Callable[[], Any]]) -> list[Any]:
        def call_other(call: Call) -> Ended:
            calls[1]()
            return then()

        world.answer(a=call_other)
        return [calls[0]()]

    quotas = quotas_of(concurrent_runs=concurrent_runs)
    ports = replace(world.executor_ports, timers=timers, quotas=quotas, side_by_side=side_by_side)
    world.executor = Router(ports)


class TestCallsThatLast:
    def test_one_gets_its_row_and_the_others_end_meanwhile(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("carillon.executor.chunks.member_run.LOOK_SECONDS", 0.05)
        ports = replace(world.executor_ports, side_by_side=SideBySideThreads(3))
        world.executor = Router(ports)
        seen: list[Any] = []

        def last(call: Call) -> Ended:
            until = monotonic() + 10
            while monotonic() < until and world.chunk().ends is None:
                sleep(0.01)
            seen.extend(run and run.status for run in map(world.run, "abc"))
            assert world.ends() == {"a": OK, "b": ALONE, "c": OK}
            return Success("at last")

        world.answer(b=last)
        report = world.handle_chunk(world.order())
        assert seen == [RunStatus.SUCCEEDED, RunStatus.RUNNING, RunStatus.SUCCEEDED]
        row = world.row("b")
        assert row is not None
        assert (row.status, row.result, row.attempt) == (RunStatus.SUCCEEDED, "at last", 1)
        assert row.claim_id == world.chunk().claim_id
        assert world.sent() == []
        assert [each.handled for each in report.whole] == [Handled.RAN] * 3

    def test_all_that_last_get_rows_which_are_no_longer_watched_then(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        world.handle_chunk(world.order())
        assert world.ends() == {"a": ALONE, "b": ALONE, "c": ALONE}
        assert all(row and row.status is RunStatus.SUCCEEDED for row in map(world.row, "abc"))
        assert (timers.on, world.sent()) == (0, [])

    def test_one_that_cannot_get_its_row_ends_with_its_chunk(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        with world.failing(world.runs, "claim"):
            world.handle_chunk(world.order())
        assert world.ends() == {"a": OK, "b": OK, "c": OK}

    def test_a_row_whose_put_had_no_answer_goes_once_its_lease_has_lapsed(
        self, world: World, timers: LastingAtOnce, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would be shown as running until it expires."""
        put = world.runs.claim

        def lost(run: Run, over: Run | None) -> bool:
            put(run, over)
            raise StoreUnavailableError("no answer")

        with monkeypatch.context() as patch:
            patch.setattr(world.runs, "claim", lost)
            world.handle_chunk(world.order())
        assert world.ends() == {"a": OK, "b": OK, "c": OK}
        assert [row and row.status for row in map(world.row, "abc")] == [RunStatus.RUNNING] * 3
        world.run_until(DUE_AT + timedelta(minutes=8), ticking=False)
        assert [world.row(name) for name in "abc"] == [None] * 3
        assert world.called() == [("a", 1), ("b", 1), ("c", 1)]
        assert world.sent() == []

    def test_one_whose_row_was_cancelled_before_its_success_is_told_as_its_row_has_it(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        """Its executor has no answer of the put, and never learns of the row."""
        put = world.runs.claim

        def lost(run: Run, over: Run | None) -> bool:
            put(run, over)
            raise StoreUnavailableError("no answer")

        def cancel(call: Call) -> Ended:
            row, now = world.row("b"), world.clock.now() + timedelta(seconds=LOOK_SECONDS)
            assert row is not None
            cancelled = decide_cancel(row, "cancel", now, row.expires_at)
            assert isinstance(cancelled, Run)
            assert put(cancelled, row)
            return Success("done")

        world.answer(b=cancel)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world.runs, "claim", lost)
            world.handle_chunk(world.order("b"))
        assert world.ends() == {"b": OK}
        world.run_until(DUE_AT + timedelta(minutes=8), ticking=False)
        shown = [each.status for record in world.activity.all() for each in record.results]
        assert shown == [RunStatus.CANCELLED]
        assert (world.called(), world.sent()) == ([("b", 1)], [])

    def test_what_a_look_under_way_orders_is_called_off_too(self, world: World) -> None:
        """Or it would put a row after the end."""
        timers = LastingAtTheEnd()
        world.executor = Router(replace(world.executor_ports, timers=timers))
        with world.failing(world.runs, "claim", times=1):
            world.handle_chunk(world.order("a"))
        assert (timers.ordered, timers.on) == (2, 0)

    def test_a_failure_gets_its_row_once_anothers_claim_is_withdrawn(self, world: World) -> None:
        world.answer(b=BUSY)
        other = world.claim_for_another("b")
        with preceded(world.clock, "sleep", lambda: world.runs.discard_claim(other)):
            world.handle_chunk(world.order("b"))
        assert world.sent() == [("b", 2)]

    def test_a_failure_whose_put_had_no_answer_is_recorded(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        """Its row tells of it: nothing has to come again."""
        world.answer(b=BUSY)
        with world.failing(world.runs, "claim", times=1):
            world.handle_chunk(world.order("b"))
        assert world.sent() == [("b", 2)]

    @pytest.mark.parametrize("is_too_late", [False, True])
    def test_one_that_is_cancelled_by_anothers_claim_in_its_row_is_stopped(
        self, world: World, *, is_too_late: bool
    ) -> None:
        """A message of another generation has the row, whose executor has died with it."""
        timers = Ordered()
        world.executor = Router(replace(world.executor_ports, timers=timers))
        other = world.claim_for_another("b")

        def cancel(call: Call) -> Ended:
            world.cancel(other, after=LOOK_SECONDS)
            timers.acts.pop()()
            assert call.stopped.is_set()
            return Success("done") if is_too_late else BUSY

        world.answer(b=cancel)
        world.handle_chunk(world.order())
        row = world.row("b")
        assert row is not None
        assert (row.status, world.ends()["b"]) == (RunStatus.CANCELLED, ALONE)
        assert world.sent() == [("b", 1)], "its own message tells of it"

    def test_one_whose_row_is_anothers_ends_with_its_chunk(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        world.claim_for_another("b")
        world.handle_chunk(world.order())
        assert world.ends() == {"a": ALONE, "b": OK, "c": ALONE}
        run = world.run("b")
        assert run is not None
        assert (run.status, run.claim_id) == (RunStatus.SUCCEEDED, world.chunk().claim_id)

    @pytest.mark.parametrize("step", ["queue.send", "admission_rows.get"])
    def test_what_a_process_has_not_begun_before_it_stalled_goes_alone(
        self, world: World, step: str
    ) -> None:
        """Seed 9034 with chunks: others had taken the chunk over, and run it."""
        ports = replace(world.executor_ports, quotas=quotas_of(concurrent_runs=5))
        world.executor = Router(ports)
        world.pause(world.by_name["b"])
        port, method = step.split(".")
        with preceded(getattr(world, port), method, lambda: world.clock.advance(60)):
            world.handle_chunk(world.order(), 600)
        assert world.called() == []
        assert world.ends() == {"a": ALONE, "b": ALONE, "c": ALONE}
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]

    def test_what_finds_no_room_goes_alone_and_no_attempt_counts(self, world: World) -> None:
        ports = replace(world.executor_ports, room=lambda target: nullcontext(False))
        world.executor = Router(ports)
        world.handle_chunk(world.order("a"))
        assert world.called() == []
        assert world.ends() == {"a": ALONE}
        assert world.sent() == [("a", 1)]
        assert world.row("a") is None

    def test_its_room_is_free_before_its_end_is_recorded(self, world: World) -> None:
        """The store may take its time, and others wait for the room."""
        held: list[int] = []

        @contextmanager
        def room(target: Deliverable) -> Iterator[bool]:
            held.append(1)
            yield True
            held.pop()

        seen: list[int] = []
        world.executor = Router(replace(world.executor_ports, room=room))
        with preceded(world.chunks, "finish", lambda: seen.append(len(held))):
            world.handle_chunk(world.order("a"))
        assert seen == [0]
        assert world.called() == [("a", 1)]

    @pytest.mark.parametrize(("more", "called"), [(1, []), (2, [("a", 1)])])
    def test_what_no_longer_fits_into_its_process_goes_alone(
        self, world: World, more: int, called: list[tuple[str, int]]
    ) -> None:
        """There was time when jobs were read; then calls waited for a thread."""

        def two_seconds_later(calls: Sequence[Callable[[], Any]]) -> list[Any]:
            world.clock.advance(2)
            return [call() for call in calls]

        job = world.by_name["a"]
        limit_seconds = job.time_limit_seconds(world.executor_ports.longest_timeout_seconds)
        world.executor = Router(replace(world.executor_ports, side_by_side=two_seconds_later))
        world.handle_chunk(world.order("a"), limit_seconds + FINISH_RESERVE.total_seconds() + more)
        assert world.called() == called
        assert world.sent() == ([] if called else [("a", 1)])

    def test_what_does_not_fit_from_the_start_goes_alone_by_one_request(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        send, sent = world.queue.send, list[int]()

        def counted(orders: Sequence[Any], delays: Sequence[float]) -> None:
            sent.append(len(orders))
            send(orders, delays)

        monkeypatch.setattr(world.queue, "send", counted)
        world.handle_chunk(world.order(), FINISH_RESERVE.total_seconds())
        assert sent == [3]
        assert world.sent() == [("a", 1), ("b", 1), ("c", 1)]

    @pytest.mark.parametrize("has_row", [True, False])
    def test_a_permit_is_given_back_behind_the_end(
        self, world: World, timers: LastingAtOnce, has_row: bool
    ) -> None:
        """Seed 149: others were at the permits until the process had ended, and a success was
        called again."""
        ports = replace(world.executor_ports, timers=timers, quotas=quotas_of(concurrent_runs=5))
        world.executor = Router(ports)
        ends: list[Any] = []

        def look() -> None:
            run = world.run("a")
            ends.append((world.ends()["a"], run and run.status))

        with preceded(world.admission_rows, "put", look, number=2), ExitStack() as stack:
            if not has_row:
                stack.enter_context(world.failing(world.runs, "claim"))
            world.handle_chunk(world.order("a"))
        assert ends == [(ALONE if has_row else OK, RunStatus.SUCCEEDED)]
        permits = world.admission_rows.get(OWNER, PERMITS_ROW)
        assert permits is not None
        assert permits.holders == ()

    def test_the_end_of_one_gives_back_no_others_permit(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        """Or its owner has more runs than may last at once: those of a chunk have one claim."""
        during: list[int] = []

        def busy() -> Ended:
            permits = world.admission_rows.get(OWNER, PERMITS_ROW)
            during.append(len(permits.holders) if permits else 0)
            return BUSY

        run_b_during_a(world, timers, concurrent_runs=5, then=busy)
        world.handle_chunk(world.order("a", "b"))
        assert world.called() == [("a", 1), ("b", 1)]
        assert during == [1]
        permits = world.admission_rows.get(OWNER, PERMITS_ROW)
        assert permits is not None
        assert permits.holders == ()

    def test_what_finds_no_permit_goes_alone(self, world: World, timers: LastingAtOnce) -> None:
        run_b_during_a(world, timers, concurrent_runs=1, then=lambda: Success(None))
        world.handle_chunk(world.order("a", "b"))
        assert (world.called(), world.sent()) == ([("a", 1)], [("b", 1)])
        assert world.ends() == {"a": ALONE, "b": ALONE}

    def test_one_that_is_cancelled_is_the_cancellers(
        self, world: World, timers: LastingAtOnce
    ) -> None:
        def cancel(call: Call) -> Ended:
            row = world.row("b")
            assert row is not None
            ended = replace(row, status=RunStatus.DEAD, token=row.token + 1, reason="cancelled")
            assert world.runs.claim(ended, row)
            for look in timers.looks:
                look()
            assert call.stopped.is_set()
            return BUSY

        world.answer(b=cancel)
        world.handle_chunk(world.order())
        assert world.sent() == [("b", 1)], "its own message does what follows"
        world.execute()
        row = world.row("b")
        assert row is not None
        assert (row.status, row.reason) == (RunStatus.DEAD, "cancelled")
        assert len(world.called()) == 3

    def test_a_failure_whose_row_is_anothers_goes_on_by_its_own_message(self, world: World) -> None:
        world.answer(b=BUSY)
        other = world.claim_for_another("b")
        order = world.order("a", "c", "b")
        world.handle_chunk(order)
        assert world.row("b") == other
        assert world.ends() == {"a": OK, "c": OK, "b": DIED}
        assert world.sent() == [("chunk", 1)], "alone its attempt would not count"
        with pytest.raises(HeldError):
            world.handle_chunk(order)
        assert world.runs.discard_claim(other)
        world.handle_chunk(order)
        assert world.sent() == [("b", 1), ("chunk", 1)]

    def test_its_row_begins_with_its_call(self, world: World, timers: LastingAtOnce) -> None:
        starts: list[Any] = []

        def last(call: Call) -> Ended:
            row = world.row(call.job_name)
            starts.append(row and row.attempt_started_at)
            world.clock.advance(0.5)
            return Success(None)

        world.answer(a=last, b=last)
        world.handle_chunk(world.order("a", "b"))
        assert starts == [DUE_AT, DUE_AT + 0.5 * SECOND]

    def test_its_lease_outlasts_its_process(self, world: World, timers: LastingAtOnce) -> None:
        def look(call: Call) -> Ended:
            row = world.row("b")
            assert row is not None
            assert row.lease_until == world.chunk().lease_until
            assert row.lease_until == DUE_AT + (FUNCTION_SECONDS + 1) * SECOND
            return Success(None)

        world.answer(b=look)
        world.handle_chunk(world.order())

    def test_slow_attempts_count_as_those_of_any_run(self, world: World) -> None:
        def take_long(call: Call) -> Ended:
            world.clock.advance(3)
            return Success(None)

        world.answer(c=take_long)
        world.handle_chunk(world.order())
        job_id = world.by_name["c"].job_id
        row = world.admission_rows.get(OWNER, job_admission(job_id))
        assert row is not None
        assert len(row.slow_at) == 1

    def test_a_job_whose_host_hangs_is_left_to_lane_slow(self) -> None:
        """Five calls of a host time out; the next chunk sends such jobs alone."""
        world = World()
        for name in "abcdef":
            world.make(name, target=WebhookTarget(url=f"https://hangs.example/{name}"))

        def time_out(call: Call) -> Ended:
            world.clock.advance(3)
            return Failure(RunError("timeout", "stopped at its limit"), timed_out=True)

        world.targets.behave = time_out
        for bucket, name in enumerate("abcde", start=2):
            order = world.order(name)
            world.handle_chunk(replace(order, key=replace(order.key, bucket=bucket)))
        assert len(world.called()) == 5
        world.drain()
        order = world.order("f")
        world.handle_chunk(replace(order, key=replace(order.key, bucket=1)))
        assert len(world.called()) == 5
        (sent,) = world.queue.kept()
        assert sent.message == world.alone("f")
