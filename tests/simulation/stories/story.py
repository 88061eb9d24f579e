"""The words in which the tests of this folder tell their stories: what a target does, what strikes,
and what has come of it."""

from datetime import UTC, datetime, timedelta

from carillon.domain.admission.state import AdmissionRow, job_admission
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunError, RunKey, RunKind, RunStatus
from carillon.executor.batch import Report
from carillon.executor.targets import Failure
from tests.support.world import FUNCTION_SECONDS, World

MIDNIGHT = datetime(2026, 12, 1, tzinfo=UTC)
NOON = MIDNIGHT.replace(hour=12)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
REFUSED = Failure(RunError("http_400", "no", permanent=True))


class Killed(BaseException):
    """The process dies here: nothing after it runs, not even an except clause."""


def row_of(world: World, job: Job) -> Job:
    """The job as it is stored now."""
    stored = world.jobs.get(job.owner, job.job_id)
    assert stored is not None
    return stored


def run_of(world: World, key: RunKey) -> Run:
    run = world.runs.get(key)
    assert run is not None
    return run


def gate_of(world: World, job: Job) -> AdmissionRow:
    """The admission row of the job itself."""
    gate = world.admission_rows.get(job.owner, job_admission(job.job_id))
    assert gate is not None
    return gate


def runs_of_kind(world: World, job: Job, kind: RunKind) -> list[Run]:
    return [run for run in world.history(job) if run.key.kind is kind]


def succeeded(world: World, job: Job) -> list[datetime]:
    """The fire times of its successes, oldest first."""
    history = world.history(job)
    return [run.key.fire_at for run in history if run.status is RunStatus.SUCCEEDED]


def empty_queue(world: World) -> None:
    for kept in world.queue.kept():
        world.queue.delete(kept.receipt)


def handle(world: World, message: Message) -> Report:
    """An executor takes this message now."""
    ends_at = world.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
    return world.executor.handle(message, ends_at)


def without_executors(world: World, until: datetime) -> None:
    """Let time pass with ticks alone."""
    while world.clock.now() < until:
        if world.clock.now().second == 0:
            world.tick()
        world.clock.advance(1)


def die(*terms: object) -> None:
    """What happens in a call in which the process dies."""
    raise Killed
