"""Changes that Carillon makes by itself are told from its owner's."""

import json
from dataclasses import replace
from datetime import timedelta
from io import StringIO

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from carillon.domain.changes.change import Subject
from carillon.domain.events import EventType
from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import JobState
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import RunError
from carillon.executor.batch import Handled, tell
from carillon.executor.router import Router
from carillon.executor.targets import Failure
from carillon.services.indexer import Indexer
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from carillon.telemetry import Telemetry
from tests.unit.executor.kit import MINUTE, NOON, World

ONCE = RetryPolicy(max_attempts=1)


def recording_world() -> World:
    """One whose every writer of jobs has the store that records, as deployments have it."""
    world = World()
    jobs = RecordedJobs(
        world.jobs,
        world.changes,
        ChangeEvents(world.events),
        GenerationRecords(world.chunks, timedelta(days=30)),
    )
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


def test_a_run_of_a_job_that_tells_its_changes_costs_no_event() -> None:
    world = recording_world()
    job = world.create("a", "every 5m", events=(EventType.JOB_CHANGED,))
    before = list(world.events.emitted)

    assert world.handle(world.due(job, 5)).handled is Handled.RAN

    assert world.events.emitted == before


def test_a_timed_resumption_says_so() -> None:
    world = recording_world()
    job = world.create("a", "every 5m")
    paused = job.paused(world.clock.now(), resume_at=NOON + 10 * MINUTE)
    jobs = RecordedJobs(
        world.jobs,
        world.changes,
        ChangeEvents(world.events),
        GenerationRecords(world.chunks, timedelta(days=30)),
    )
    assert jobs.replace(paused, job.revision)
    world.clock.set(NOON + 10 * MINUTE)

    report = world.handle(resume_message(paused))
    assert report.handled is Handled.RESUMED

    newest, *_ = told(world, job.job_id, job.owner)
    assert newest == ("resume", "system", "its pause was to end then")
    stream = StringIO()
    logger = Logger(service="changes", stream=stream)
    tell(Telemetry(logger, Metrics(namespace="Carillon", service="changes")), [report], 0)
    line = json.loads(stream.getvalue().splitlines()[0])
    assert (line["action"], line["owner"], line["via"]) == ("job.resumed", job.owner, "system")
    assert line["by"]["kind"] == "system"


@pytest.mark.parametrize("limit", [None, 5])
def test_a_pause_is_told_though_its_limit_was_changed_before(limit: int | None) -> None:
    """Its executor had died before it told of it; the owner saw the job paused."""
    world = World()
    job = world.create(
        "a", "every 5m", retry=ONCE, pause_after_failures=1, events=(EventType.JOB_PAUSED,)
    )
    world.targets.behave = lambda call: Failure(RunError("http_500", "no"))
    message = world.due(job, 5)
    with world.dying(world.indexer, "remove_ended_entries"):
        world.handle(message)
    paused = world.change(world.stored(job), pause_after_failures=limit)
    assert (paused.state, world.events.emitted) == (JobState.PAUSED, [])

    world.clock.advance(6 * 60)
    world.handle(message)

    (event,) = world.events.emitted
    assert (event.type, event.subject) == (EventType.JOB_PAUSED, job.job_id)
