"""What runs that end by a report keep, and for how long: permits, the row of their job, and what
their messages stand for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.execution.next_run import completed_until
from carillon.domain.job import Job
from carillon.domain.message import Message, Missed, encode
from carillon.domain.policies import CatchUp, Concurrency, RetryPolicy
from carillon.domain.run import DeadReason, RunKind, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.domain.wheel.entry import message_of
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.executor.batch import Handled
from carillon.executor.runs.completions import Completions
from carillon.services.indexer import Indexer
from carillon.stores.memory import MemoryJobStore
from tests.simulation.stories.runs.test_completions import DUE, RETRY, Story, target
from tests.simulation.stories.story import MINUTE, NOON, SECOND
from tests.support.world import OWNER


@pytest.mark.parametrize("failure", [True, False])
def test_one_that_could_not_be_announced_waits_behind_no_permit_of_its_own(
    monkeypatch: pytest.MonkeyPatch, failure: bool
) -> None:
    story = Story(concurrency=Concurrency("db", 1))
    announce = Completions.announce

    def once(self: Completions, *args: Any) -> None:
        monkeypatch.setattr(Completions, "announce", announce)
        if failure:
            raise StoreUnavailableError("down")

    monkeypatch.setattr(Completions, "announce", once)
    story.until(DUE + 15 * SECOND)
    row = story.world.admission_rows.get(OWNER, "key/db")
    assert row is not None
    assert len(row.holders) == (1 if failure else 0)
    assert story.run.is_open is failure, "it came again, and nobody was in its way"


def test_one_that_is_buried_as_unreadable_keeps_no_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(target=target(within=14 * 86_400), concurrency=Concurrency("db", 1))
    story.until(DUE + SECOND)
    (check,) = story.world.queue.kept()
    story.world.clock.advance(25 * 3600)

    def unreadable(self: MemoryJobStore, owner: str, job_id: str) -> Job | None:
        raise UnreadableRowError("job")

    monkeypatch.setattr(MemoryJobStore, "get", unreadable)
    waiting = replace(check.message, unreadable_since=DUE)
    story.world.executor.lane(encode(waiting), story.world.clock.now() + MINUTE)

    row = story.world.admission_rows.get(OWNER, "key/db")
    assert row is not None
    assert (story.run.reason, row.holders) == (DeadReason.UNREADABLE, ())


def test_a_completed_job_is_there_for_as_long_as_its_runs_may_be_open() -> None:
    fortnight = timedelta(days=14)
    story = Story(target=target(within=14 * 86_400))
    kept_until = completed_until(story.job, NOON, timedelta(days=30))
    assert kept_until is not None
    assert kept_until - NOON >= timedelta(days=30) + RETRY.max_attempts * fortnight


def test_nor_does_it_go_before_a_callback_that_may_be_open() -> None:
    job = Story(target=TaskTarget(name="echo"), on_failure=target(within=14 * 86_400)).job
    kept_until = completed_until(job, NOON, timedelta(days=30))
    assert kept_until is not None
    assert kept_until - NOON >= timedelta(days=30) + RETRY.max_attempts * timedelta(days=14)


def test_one_that_has_timed_out_is_told_though_what_follows_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever repeats what follows tells nobody of the end."""
    story = Story(retry=RetryPolicy(max_attempts=1), on_failure=TaskTarget(name="tell"))
    story.until(DUE + SECOND)
    (check,) = story.world.queue.kept()
    story.world.clock.set(check.message.starts_at)

    def down(self: Indexer, message: Message) -> None:
        raise StoreUnavailableError("down")

    monkeypatch.setattr(Indexer, "schedule_message", down)
    report = story.world.executor.lane(encode(check.message), check.message.starts_at + MINUTE)
    died, waits = report.whole
    assert (died.handled, waits.handled) == (Handled.RAN, Handled.DEFERRED)
    assert died.run == story.run
    assert story.run.status is RunStatus.TIMED_OUT


def test_what_stands_for_others_records_them_though_it_ends_an_attempt() -> None:
    """An executor ran the latest occurrence that was due; the tick's message for it comes later, by
    the pace of the catch-up, when the run is silent, and before its check."""
    story = Story()
    world = story.world
    story.until(DUE)
    world.clock.set(DUE + 21 * SECOND)
    missed = Missed(NOON - timedelta(days=2), CatchUp.LATEST, story.job.schedule)
    standing = replace(message_of(story.job, DUE), missed=missed, in_time=False)
    world.executor.lane(encode(standing), world.clock.now() + MINUTE)
    run, row = sorted(world.history(story.job), key=lambda each: each.key.kind is RunKind.MISSED)
    assert run.status is RunStatus.RETRYING
    assert (row.covers_count, row.key.fire_at) == (2, DUE - timedelta(days=1))
