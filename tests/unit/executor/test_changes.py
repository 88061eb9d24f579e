"""Changes that Carillon makes by itself are told from its owner's."""

from dataclasses import replace

from carillon.domain.changes.change import Subject
from carillon.domain.events import EventType
from carillon.domain.execution.resuming import resume_message
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import RunError
from carillon.executor.batch import Handled
from carillon.executor.router import Router
from carillon.executor.targets import Failure
from carillon.services.indexer import Indexer
from carillon.stores.recording import ChangeEvents, RecordedJobs
from tests.unit.executor.kit import MINUTE, NOON, World

ONCE = RetryPolicy(max_attempts=1)


def recording_world() -> World:
    """One whose every writer of jobs has the store that records, as deployments have it."""
    world = World()
    jobs = RecordedJobs(world.jobs, world.changes, ChangeEvents(world.events))
    world.indexer = Indexer(jobs, world.wheel, world.queue, world.clock, world.calendars)
    world.executor_ports = replace(world.executor_ports, jobs=jobs, indexer=world.indexer)
    world.executor = Router(world.executor_ports)
    return world


def told(world: World, job_id: str, owner: str) -> list[tuple[str, str, str]]:
    page = world.changes.of_subject(owner, Subject.JOB, job_id, 10)
    return [(each.action, each.author.kind, each.note) for each in page.items]


def test_an_automatic_pause_says_why() -> None:
    world = recording_world()
    job = world.create(
        "a", "every 5m", retry=ONCE, pause_after_failures=1, events=(EventType.JOB_CHANGED,)
    )
    world.targets.behave = lambda call: Failure(RunError("http_500", "no"))

    world.handle(world.due(job, 5))

    newest, _ = told(world, job.job_id, job.owner)
    event = world.events.emitted[-1]
    assert event.type is EventType.JOB_CHANGED
    assert (event.data["action"], event.data["by"]["kind"]) == ("pause", "system")
    assert event.data["via"] == "system"
    assert newest[:2] == ("pause", "system")
    assert "failed" in newest[2]


def test_a_timed_resumption_says_so() -> None:
    world = recording_world()
    job = world.create("a", "every 5m")
    paused = job.paused(world.clock.now(), resume_at=NOON + 10 * MINUTE)
    jobs = RecordedJobs(world.jobs, world.changes, ChangeEvents(world.events))
    assert jobs.replace(paused, job.revision)
    world.clock.set(NOON + 10 * MINUTE)

    assert world.handle(resume_message(paused)).handled is Handled.RESUMED

    newest, *_ = told(world, job.job_id, job.owner)
    assert newest == ("resume", "system", "its pause was to end then")
