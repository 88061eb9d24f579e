"""Redriving and discarding a dead letter: what a crash between any two calls leaves behind."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.job import Job
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import Resolution, Run, RunError, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.executor.targets import Failure, Success
from carillon.services.redrive import Redriver, Refusal
from tests.support.world import LIFETIME, OWNER
from tests.unit.executor.kit import NOON, World
from tests.unit.faults import Killed, preceded


def redriver(world: World) -> Redriver:
    return Redriver(world.runs, world.indexer, world.clock, world.entropy, LIFETIME)


@pytest.fixture
def job(world: World) -> Job:
    return world.create("job", "0 12 * * *", retry=RetryPolicy(max_attempts=1))


@pytest.fixture
def dead(world: World, job: Job) -> Run:
    """A dead letter of the job; by now its target has come back to life."""
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    world.leap_to(NOON + timedelta(hours=23, minutes=59))
    world.run_until(NOON + timedelta(days=1, seconds=2))
    world.targets.behave = lambda call: Success("done")
    (run,) = world.history(job)
    assert run.is_dead_letter
    return run


def now_of(world: World) -> datetime:
    return world.clock.now().replace(microsecond=0)


def settle_down(world: World) -> None:
    world.run_until(world.clock.now() + timedelta(minutes=2))


def test_a_dead_letter_runs_again_and_both_runs_are_history(
    world: World, job: Job, dead: Run
) -> None:
    made = redriver(world).redrive(dead, job, now_of(world))

    assert isinstance(made, Run)
    assert (made.key, made.status) == (dead.key.redriven, RunStatus.SCHEDULED)
    settle_down(world)
    first, second = sorted(world.history(job), key=lambda run: run.key.redrive)
    assert (first.status, first.settled) == (RunStatus.DEAD, Resolution.REDRIVEN)
    assert (second.status, second.result) == (RunStatus.SUCCEEDED, "done")
    assert second.key.fire_at == first.key.fire_at
    assert second.lag_seconds is not None
    assert second.lag_seconds < 3, "it counts from the redrive"
    assert world.runs.dead_letters(OWNER, 10).items == ()


def test_a_repetition_answers_the_same_run_and_sends_it_until_it_has_begun(
    world: World, job: Job, dead: Run
) -> None:
    first = redriver(world).redrive(dead, job, now_of(world))
    for kept in world.queue.kept():
        world.queue.delete(kept.receipt)

    assert redriver(world).redrive(_stored(world, dead), job, now_of(world)) == first
    settle_down(world)
    again = redriver(world).redrive(_stored(world, dead), job, now_of(world))
    assert isinstance(again, Run)
    assert (again.key, again.status) == (dead.key.redriven, RunStatus.SUCCEEDED)
    assert world.queue.kept() == []


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_crash_between_any_two_writes_is_repaired_by_a_repetition(
    world: World, job: Job, dead: Run, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    """The writes are: the new row, its message, the old row."""
    left = [survived]

    def dying(original: object) -> object:
        def call(*args: object, **named: object) -> object:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return original(*args, **named)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patch:
        patch.setattr(world.runs, "claim", dying(world.runs.claim))
        patch.setattr(world.queue, "send", dying(world.queue.send))
        with pytest.raises(Killed):
            redriver(world).redrive(dead, job, now_of(world))
    assert world.runs.get(dead.key) == dead, "it is still a dead letter"
    settle_down(world)
    redriver(world).redrive(dead, job, now_of(world))
    settle_down(world)

    first, second = sorted(world.history(job), key=lambda run: run.key.redrive)
    assert (first.settled, second.status) == (Resolution.REDRIVEN, RunStatus.SUCCEEDED)
    assert sum(call.run_id == second.key.run_id for call in world.targets.calls) == 1


def test_a_redriven_run_that_dies_is_a_dead_letter_of_its_own(
    world: World, job: Job, dead: Run
) -> None:
    world.targets.behave = lambda call: Failure(RunError("http_503", "down"))
    redriver(world).redrive(dead, job, now_of(world))
    settle_down(world)
    (again,) = world.runs.dead_letters(OWNER, 10).items
    assert again.key == dead.key.redriven

    redriver(world).redrive(again, job, now_of(world))
    settle_down(world)
    assert [run.key.redrive for run in world.runs.dead_letters(OWNER, 10).items] == [2]


def test_a_discarded_one_is_off_the_list_and_stays_in_the_history(
    world: World, job: Job, dead: Run
) -> None:
    discarded = redriver(world).discard(dead)

    assert isinstance(discarded, Run)
    assert world.runs.dead_letters(OWNER, 10).items == ()
    kept, never = sorted(world.history(job), key=lambda run: run.key.redrive)
    assert (kept.status, kept.settled) == (RunStatus.DEAD, Resolution.DISCARDED)
    assert (never.status, never.reason) == (RunStatus.CANCELLED, "its dead letter was discarded")
    assert redriver(world).discard(kept) == kept
    assert redriver(world).redrive(kept, job, now_of(world)) is Refusal.DISCARDED


@pytest.mark.parametrize("dies", [False, True])
def test_a_discard_cancels_what_a_redrive_has_left_half_done(
    world: World, job: Job, dead: Run, dies: bool
) -> None:
    """The owner was answered 503, and takes the dead letter off the list instead."""
    with world.dying(world.queue, "send"):
        redriver(world).redrive(dead, job, now_of(world))
    if dies:
        with world.dying(Redriver, "_settle"):
            redriver(world).discard(dead)
        assert redriver(world).redrive(dead, job, now_of(world)) is Refusal.DISCARDED
    else:
        assert isinstance(redriver(world).discard(dead), Run)

    assert redriver(world).redrive(_stored(world, dead), job, now_of(world)) is Refusal.DISCARDED
    settle_down(world)
    assert _stored(world, dead).settled is Resolution.DISCARDED
    (made,) = (run for run in world.history(job) if run.key.redrive)
    assert (made.status, made.reason) == (RunStatus.CANCELLED, "its dead letter was discarded")
    assert world.queue.kept() == []


@pytest.mark.parametrize("dies", [False, True])
def test_a_redrive_that_comes_while_a_letter_is_discarded_runs_nothing(
    world: World, job: Job, dead: Run, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """Found by the exhaustive exploration: the discard had seen no new run, settled the letter, and
    the redrive put its row and sent it. Here the redrive comes between the discard's two steps."""
    settle = Redriver._settle
    answers: list[Run | Refusal] = []

    def late(self: Redriver, letter: Run) -> Run:
        with monkeypatch.context() as patch, suppress(Killed):
            patch.setattr(Redriver, "_settle", settle)
            with world.failing(Redriver, "_settle", Killed(), times=None if dies else 0):
                answers.append(redriver(world).redrive(dead, job, now_of(world)))
        return settle(self, letter)

    with monkeypatch.context() as patch:
        patch.setattr(Redriver, "_settle", late)
        assert isinstance(redriver(world).discard(dead), Run)
    settle_down(world)
    assert answers == ([] if dies else [Refusal.DISCARDED])
    assert len(world.targets.calls) == 1
    assert _stored(world, dead).settled is Resolution.DISCARDED
    assert {run.status for run in world.history(job)} == {RunStatus.DEAD, RunStatus.CANCELLED}


def test_one_whose_new_run_has_begun_is_not_discarded(world: World, job: Job, dead: Run) -> None:
    """A redrive that died before it settled the dead letter counts all the same."""
    with world.dying(Redriver, "_settle"):
        redriver(world).redrive(dead, job, now_of(world))
    settle_down(world)

    assert redriver(world).discard(dead) is Refusal.REDRIVEN
    assert redriver(world).discard(_stored(world, dead)) is Refusal.REDRIVEN
    assert _stored(world, dead).settled is Resolution.REDRIVEN


@pytest.mark.parametrize("write", ["send", "claim"])
def test_a_redrive_that_loses_its_run_to_a_discard_says_so(
    world: World, job: Job, dead: Run, write: str
) -> None:
    """The discard does all its work before the message of the redrive, or before it settles."""
    port, number = {"send": (world.queue, 1), "claim": (world.runs, 2)}[write]
    with preceded(port, write, lambda: redriver(world).discard(dead), number=number):
        assert redriver(world).redrive(dead, job, now_of(world)) is Refusal.DISCARDED
    settle_down(world)
    assert _stored(world, dead).settled is Resolution.DISCARDED
    assert {run.status for run in world.history(job)} == {RunStatus.DEAD, RunStatus.CANCELLED}
    assert len(world.targets.calls) == 1


def test_a_discard_whose_redrive_has_settled_meanwhile_stands_if_it_has_cancelled_the_run(
    world: World, job: Job, dead: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world.dying(world.queue, "send"):
        redriver(world).redrive(dead, job, now_of(world))
    claim = world.runs.claim

    def late(run: Run, over: Run | None) -> bool:
        if over == dead and run.settled is Resolution.DISCARDED:
            assert claim(replace(dead, settled=Resolution.REDRIVEN, token=9), dead)
        return claim(run, over)

    monkeypatch.setattr(world.runs, "claim", late)
    assert isinstance(redriver(world).discard(dead), Run)
    assert _stored(world, dead).settled is Resolution.DISCARDED


def test_a_redrive_overrules_a_discard_that_came_between(world: World, job: Job, dead: Run) -> None:
    discarded = replace(dead, settled=Resolution.DISCARDED, token=9)
    with preceded(world.queue, "send", lambda: world.runs.claim(discarded, dead)):
        assert isinstance(redriver(world).redrive(dead, job, now_of(world)), Run)

    assert _stored(world, dead).settled is Resolution.REDRIVEN


def test_what_cannot_be_settled_is_refused(world: World, job: Job, dead: Run) -> None:
    ok = replace(dead, status=RunStatus.SUCCEEDED)
    gone = job.deleted(world.clock.now(), world.clock.now() + LIFETIME)
    with_redriver = redriver(world)

    assert with_redriver.redrive(ok, job, now_of(world)) is Refusal.NOT_DEAD
    assert with_redriver.discard(ok) is Refusal.NOT_DEAD
    assert with_redriver.redrive(dead, gone, now_of(world)) is Refusal.JOB_GONE
    assert with_redriver.redrive(dead, None, now_of(world)) is Refusal.JOB_GONE
    lost = replace(dead, settled=Resolution.REDRIVEN)
    assert with_redriver.redrive(lost, job, now_of(world)) is Refusal.EXPIRED
    assert world.runs.get(dead.key.redriven) is None


def test_a_row_that_changes_at_every_step_is_given_up(
    world: World, dead: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.runs, "claim", lambda run, over: False)
    with pytest.raises(StoreUnavailableError):
        redriver(world).discard(dead)


def _stored(world: World, run: Run) -> Run:
    stored = world.runs.get(run.key)
    assert stored is not None
    return stored
