"""Runs whose job is gone, as one that could not be read and was removed: the message that comes for
such a run ends it, since nobody else does."""

from typing import Any

from carillon.domain.admission.limits import permits_taken
from carillon.domain.admission.state import key_admission
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Concurrency, Overlap
from carillon.domain.run import RunError, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import WebhookTarget
from carillon.executor.batch import Handled
from carillon.executor.targets import Failure, Success
from tests.support.world import OWNER
from tests.unit.executor.kit import MINUTE, NOON, World

BUSY = Failure(RunError("busy", "later"))


def gone(world: World, job: Job) -> None:
    world.jobs._rows.pop(job.job_id)


def begun(world: World, **settings: Any) -> tuple[Job, Message]:
    """A job, and what comes for its first run after the call."""
    job = world.create("job", "* * * * *", overlap=Overlap.SKIP, **settings)
    assert world.handle(world.due(job)).handled in (Handled.RAN, Handled.OPENED)
    (following,) = world.drain()
    return job, following


def runs_again(world: World) -> bool:
    """True if a job that is made anew under the same name runs."""
    anew = world.create("job", "* * * * *", overlap=Overlap.SKIP)
    minutes = (world.clock.now() - NOON) // MINUTE + 1
    return world.handle(world.due(anew, minutes)).handled is Handled.RAN


def test_a_retry_leaves_no_run_that_others_wait_for(world: World) -> None:
    world.targets.behave = lambda call: BUSY
    job, retry = begun(world)
    gone(world, job)
    world.clock.advance(60)
    assert world.handle(retry).handled is Handled.DROPPED
    run = world.run_of(retry)
    assert (run.status, run.reason, len(run.attempts)) == (RunStatus.SKIPPED, "deleted", 1)
    world.targets.behave = lambda call: Success(None)
    assert runs_again(world)


def test_the_check_of_an_open_run_leaves_no_permit_and_none_that_others_wait_for(
    world: World,
) -> None:
    terms = CompletionSpec(within="14d", heartbeat="1m")
    target = WebhookTarget(url="https://a.example/", completion=terms)
    world.targets.behave = lambda call: Success(None, is_accepted=True)
    job, check = begun(world, target=target, concurrency=Concurrency(key="db", limit=1))
    gone(world, job)
    world.clock.set(check.starts_at)
    assert world.handle(check).handled is Handled.RAN
    assert world.run_of(check).status is RunStatus.TIMED_OUT
    world.gathered.flush()
    (told,) = [result for record in world.activity.all() for result in record.results]
    assert (told.key, told.status) == (check.key, RunStatus.TIMED_OUT)
    gate = world.admission_rows.get(OWNER, key_admission("db"))
    assert gate is not None
    assert permits_taken(gate, world.clock.now()) == 0
    world.targets.behave = lambda call: Success(None)
    assert runs_again(world)
