"""What is called, with which payload, and what is told before."""

import json
from dataclasses import replace

import pytest

from carillon.domain.events import EventType
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.policies import Concurrency, Overlap, Rate, RetryPolicy
from carillon.domain.run import Run, RunError, RunStatus
from carillon.domain.targets import TaskTarget
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.executor.targets import Call, Failure, Outcome, Success
from tests.unit.executor.kit import MINUTE, NOON, World


class NotingTargets:
    """Notes each target with its call."""

    def __init__(self) -> None:
        self.called: list[tuple[Deliverable, Call]] = []
        self.outcome: Outcome = Success("done")

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        self.called.append((target, call))
        return self.outcome


@pytest.fixture
def targets(world: World) -> NotingTargets:
    noting = NotingTargets()
    world.targets.behave = lambda call: noting.deliver(TaskTarget(name="echo"), call)
    deliver = noting.deliver
    world.targets.deliver = deliver  # type: ignore[method-assign]
    return noting


def test_a_template_is_filled_in_for_each_attempt(world: World, targets: NotingTargets) -> None:
    template = {"at": "{{fire_at}}", "n": "{{attempt}}", "of": "{{tags.team}}", "id": "{{run_id}}"}
    job = world.create("job", "* * * * *", template=True, tags={"team": 'a "b"'})
    world.change(job, payload=json.dumps(template))
    targets.outcome = Failure(RunError("busy", "later"))
    message = world.due(job)
    world.handle(message)
    world.handle(replace(message, attempt=2, due_at=world.clock.now() + 2 * MINUTE))
    world.clock.advance(120)
    world.handle(replace(message, attempt=2))
    payloads = [json.loads(call.payload) for _, call in targets.called]
    assert [payload["n"] for payload in payloads] == [1, 2]
    assert {payload["at"] for payload in payloads} == {"2026-12-01T12:01:00Z"}
    assert {payload["of"] for payload in payloads} == {'a "b"'}
    assert {payload["id"] for payload in payloads} == {message.key.run_id}


def test_a_payload_that_is_no_template_goes_as_it_is(world: World, targets: NotingTargets) -> None:
    job = world.create("job", "* * * * *")
    world.change(job, payload='"{{fire_at}}"')
    world.handle(world.due(job))
    ((_, call),) = targets.called
    assert call.payload == '"{{fire_at}}"'


class TestCallbacks:
    WON, LOST = TaskTarget(name="won"), TaskTarget(name="lost")

    def ended(self, world: World, status: RunStatus, **options: object) -> tuple[Job, Message]:
        """A job whose run has ended so, and the message that calls back about it."""
        job = world.create("job", "* * * * *", on_success=self.WON, on_failure=self.LOST, **options)
        message = world.due(job)
        now = world.clock.now()
        run = Run(message.key, status, 1, 1, "c", message.generation_id, now, now + MINUTE)
        assert world.runs.claim(replace(run, finished_at=now), None)
        return job, replace(message, key=message.key.callback)

    @pytest.mark.parametrize(
        ("status", "name"),
        [(RunStatus.SUCCEEDED, "won"), (RunStatus.DEAD, "lost"), (RunStatus.TIMED_OUT, "lost")],
    )
    def test_the_end_of_the_run_chooses_the_target(
        self, world: World, targets: NotingTargets, status: RunStatus, name: str
    ) -> None:
        _, callback = self.ended(world, status)
        assert world.handle(callback).handled is Handled.RAN
        ((target, call),) = targets.called
        assert target == TaskTarget(name=name)
        told = json.loads(call.payload)
        assert (told["run_id"], told["status"]) == (
            callback.key.called_back.run_id,
            status.value,
        )
        assert call.run_id == callback.key.run_id

    def test_they_are_retried_by_the_jobs_policy(
        self, world: World, targets: NotingTargets
    ) -> None:
        _, callback = self.ended(world, RunStatus.DEAD, retry=RetryPolicy(max_attempts=1))
        targets.outcome = Failure(RunError("busy", "later"))
        world.handle(callback)
        run = world.run_of(callback)
        assert (run.status, run.reason) == (RunStatus.DEAD, "exhausted")

    def test_they_pass_no_gate_of_their_job(self, world: World, targets: NotingTargets) -> None:
        job, callback = self.ended(
            world,
            RunStatus.DEAD,
            overlap=Overlap.SKIP,
            rate=Rate(1, 86_400),
            concurrency=Concurrency("db", 1),
        )
        assert world.handle(callback).handled is Handled.RAN
        assert world.handle(replace(message_of(job, NOON + 2 * MINUTE))).handled is not Handled.RAN
        world.clock.advance(60)
        assert world.handle(message_of(job, NOON + 2 * MINUTE)).handled is Handled.RAN

    def test_of_a_target_that_was_taken_away_nothing_is_called(
        self, world: World, targets: NotingTargets
    ) -> None:
        job, callback = self.ended(world, RunStatus.DEAD)
        world.change(job, on_failure=None)
        assert world.handle(callback).handled is Handled.SKIPPED
        run = world.run_of(callback)
        assert (run.reason, run.note) == ("changed", "its target was taken away")
        assert targets.called == []


def test_an_attempt_that_begins_is_told_before_its_target_is_called(world: World) -> None:
    job = world.create("job", "* * * * *", events=(EventType.RUN_STARTED,))
    told_before: list[EventType] = []

    def look(call: Call) -> Outcome:
        told_before.extend(event.type for event in world.events.emitted)
        return Success(None)

    world.targets.behave = look
    world.handle(world.due(job))
    assert told_before == [EventType.RUN_STARTED]
