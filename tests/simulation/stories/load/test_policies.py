"""Overlap and spacing in virtual time: what starts when, and what the history says of the rest."""

from dataclasses import replace
from datetime import datetime

import pytest

from carillon.domain.admission.state import AdmissionRow, PermitHolder, key_admission
from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.policies import Concurrency, Overlap, Rate
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.simulation.stories.story import MINUTE, NOON, SECOND, run_of
from tests.support.world import OWNER, World


class Slow:
    """A target whose calls last: the world goes on meanwhile. Notes how many were active."""

    def __init__(self, world: World, seconds: int) -> None:
        self._world = world
        self.lasts = seconds * SECOND
        self.active = 0
        self.most_active = 0
        self.starts: list[tuple[datetime, datetime]] = []
        """Fire time and start of each call."""
        world.targets.behave = self

    def __call__(self, call: Call) -> Outcome:
        now = self._world.clock.now()
        self.starts.append((call.fire_at, now))
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        self._world.run_until(now + self.lasts - SECOND)
        self.active -= 1
        return Success(None)


@pytest.fixture
def world() -> World:
    return World(NOON)


def after_noon(*seconds: int) -> list[datetime]:
    return [NOON + each * SECOND for each in seconds]


def skipped(world: World, job: Job, reason: SkipReason) -> list[Run]:
    return [run for run in world.history(job) if run.reason == reason]


class TestSkip:
    def test_what_is_due_while_a_run_is_active_is_skipped_and_the_note_names_it(
        self, world: World
    ) -> None:
        slow = Slow(world, 25)
        job = world.create("job", "every 10s", overlap=Overlap.SKIP)
        world.run_until(NOON + 99 * SECOND)
        assert [start for _, start in slow.starts] == after_noon(10, 40, 70)
        assert slow.most_active == 1
        skips = skipped(world, job, SkipReason.OVERLAP)
        assert [run.key.fire_at for run in skips] == after_noon(20, 30, 50, 60, 80, 90)
        first = world.history(job)[0]
        assert {run.note for run in skips[:2]} == {f"{first.key.run_id} was active"}

    def test_a_run_that_waits_for_its_retry_is_active(self, world: World) -> None:
        def first_fails(call: Call) -> Outcome:
            failed = call.fire_at == NOON + 10 * SECOND and call.attempt == 1
            return (
                Failure(RunError("busy", "later"), retry_after_seconds=25)
                if failed
                else Success(None)
            )

        world.targets.behave = first_fails
        job = world.create("job", "every 10s", overlap=Overlap.SKIP)
        world.run_until(NOON + 45 * SECOND)
        statuses = [run.status for run in world.history(job)]
        S, X = RunStatus.SUCCEEDED, RunStatus.SKIPPED
        assert statuses == [S, X, X, S], "the retry came at second 35"


class TestQueueOne:
    def test_one_waits_and_begins_as_the_active_one_ends(self, world: World) -> None:
        slow = Slow(world, 15)
        job = world.create("job", "every 10s", overlap=Overlap.QUEUE_ONE)
        world.run_until(NOON + 54 * SECOND)
        assert slow.starts[:4] == [
            (NOON + due * SECOND, NOON + start * SECOND)
            for due, start in ((10, 10), (20, 25), (30, 40), (50, 55))
        ]
        assert slow.most_active == 1
        skips = skipped(world, job, SkipReason.OVERLAP)
        assert skips[0].key.fire_at == NOON + 40 * SECOND, "one waited already"

    def test_a_pause_ends_the_wait(self, world: World) -> None:
        job = world.create("job", "every 20s", overlap=Overlap.QUEUE_ONE)

        def pause(call: Call) -> Outcome:
            world.run_until(NOON + 45 * SECOND)
            world.pause(job)
            return Success(None)

        world.targets.behave = pause
        world.run_until(NOON + 70 * SECOND)
        first, waiting, *_ = world.history(job)
        assert first.status is RunStatus.SUCCEEDED
        assert (waiting.status, waiting.reason) == (RunStatus.SKIPPED, "paused")
        assert len(world.targets.calls) == 1
        assert [kept for kept in world.queue.kept() if kept.message.waits] == []


class TestSpacing:
    def test_a_start_too_soon_after_a_late_one_is_dropped(self, world: World) -> None:
        job = world.create("job", "every 1m", tolerance=10)
        world.tick()
        world.clock.set(NOON + 100 * SECOND)  # no executor had time for the run of 12:01
        world.run_until(NOON + 4 * MINUTE)
        late, dropped, third, fourth = world.history(job)
        assert late.started_at == NOON + 100 * SECOND
        assert (dropped.status, dropped.reason) == (RunStatus.SKIPPED, "spacing")
        assert dropped.note == f"20 s after the start of {late.key.run_id}; 50 s are due"
        assert [third.started_at, fourth.started_at] == [NOON + 3 * MINUTE, NOON + 4 * MINUTE]

    def test_nobody_is_dropped_for_one_that_waits_for_a_start_too(self, world: World) -> None:
        """Or the start that the rate has granted to it would be nobody's."""
        job = world.create("job", "every 1m", tolerance=10, rate=Rate(1, 150))
        world.run_until(NOON + 20 * MINUTE)
        starts = sorted(run.started_at for run in world.history(job) if run.started_at)
        assert starts == [NOON + MINUTE + 150 * n * SECOND for n in range(8)]

    def test_one_that_waits_is_dropped_once_another_has_started(self, world: World) -> None:
        job = world.create("job", "every 1m", tolerance=10, concurrency=Concurrency("db", 1))
        until = NOON + 290 * SECOND
        held = AdmissionRow(OWNER, key_admission("db"), 1, until)
        assert world.admission_rows.put(
            replace(held, holders=(PermitHolder("another", until),)), None
        )
        world.run_until(NOON + 7 * MINUTE)
        starts = sorted(run.started_at for run in world.history(job) if run.started_at)
        assert starts == [NOON + 291 * SECOND, NOON + 6 * MINUTE, NOON + 7 * MINUTE]
        assert len(skipped(world, job, SkipReason.SPACING)) == 4


def test_a_retry_that_the_target_asks_for_comes_on_its_second(world: World) -> None:
    """Twenty minutes: longer than a queue can delay, so it comes by the wheel."""
    world.targets.behave = lambda call: (
        Failure(RunError("http_503", "later"), retry_after_seconds=20 * 60)
        if call.attempt == 1
        else Success(None)
    )
    job = world.create("job", "at 2026-12-01T12:00:17")
    world.run_until(NOON + 30 * MINUTE)
    (run,) = world.history(job)
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 2)
    assert run.attempt_started_at == NOON + 17 * SECOND + 20 * MINUTE


IN_THE_EVENING = "at 2026-12-01T18:00:00Z"
SKIP_AND_QUEUE = pytest.mark.parametrize("overlap", [Overlap.SKIP, Overlap.QUEUE_ONE])


@SKIP_AND_QUEUE
def test_many_take_about_the_time_that_their_work_takes(world: World, overlap: Overlap) -> None:
    slow = Slow(world, 2)  # a second more, and lane slow would have them
    job = world.create("job", IN_THE_EVENING, overlap=overlap)
    keys = [world.ask(job) for _ in range(40)]
    world.run_until(NOON + 5 * MINUTE)
    done = [key for key in keys if run_of(world, key).status is RunStatus.SUCCEEDED]
    assert len(done) == 40, "80 seconds of work"
    assert slow.most_active == 1


@SKIP_AND_QUEUE
@pytest.mark.parametrize("seed", range(3))
def test_occurrences_take_nobodys_turn(overlap: Overlap, seed: int) -> None:
    """They are due every 10 s, and one takes somewhat longer: ends fall on no second of theirs."""
    world = World(NOON, segments=1, seed=seed)

    def last(call: Call) -> Outcome:
        world.run_until(world.clock.now() + 10 * SECOND)
        world.clock.advance(0.37)
        return Success(None)

    world.targets.behave = last
    job = world.create("job", "every 10s", overlap=overlap, timeout_seconds=20)
    world.run_until(NOON + 30 * SECOND)
    keys = [world.ask(job) for _ in range(3)]
    world.run_until(NOON + 8 * MINUTE)
    assert {run_of(world, key).status for key in keys} == {RunStatus.SUCCEEDED}
    kinds = [run.key.kind for run in world.history(job) if run.status is RunStatus.SUCCEEDED]
    assert kinds.count(RunKind.SCHEDULED) > 20, "occurrences run between them"


def test_the_place_of_one_that_was_cancelled_is_free(world: World) -> None:
    Slow(world, 50)
    job = world.create("job", IN_THE_EVENING, overlap=Overlap.QUEUE_ONE, timeout_seconds=55)
    keys = [world.ask(job) for _ in range(3)]

    world.run_until(NOON + 20 * SECOND)
    waiting = run_of(world, keys[1])
    changes = {"status": RunStatus.CANCELLED, "finished_at": world.clock.now()}
    assert world.runs.claim(replace(waiting, **changes), waiting)  # type: ignore[arg-type]
    world.run_until(NOON + 4 * MINUTE)
    assert [run_of(world, key).status for key in keys] == [
        RunStatus.SUCCEEDED,
        RunStatus.CANCELLED,
        RunStatus.SUCCEEDED,
    ]
