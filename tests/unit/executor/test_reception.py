"""The reception of a record, and the handlers that make it of Lambda's events."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest

from carillon.domain.canary import CANARY_JOB_ID, CANARY_OWNER
from carillon.domain.message import Message, encode
from carillon.domain.run import DeadReason, Run, RunError, RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.errors import (
    HeldError,
    MalformedMessageError,
    QueueUnavailableError,
    StoreUnavailableError,
)
from carillon.executor.batch import Handled, Report
from carillon.executor.router import Router
from carillon.executor.targets import Failure, Targets
from carillon.tick.canary import CanaryKeeper
from tests.support.world import FUNCTION_SECONDS
from tests.unit.executor.kit import LEASE_SECONDS, NOON, World
from tests.unit.faults import dying

HANDLER = "carillon.executor.handler"


class Received:
    """A world whose clock stands at an occurrence, and how its message is received."""

    def __init__(self) -> None:
        self.world = World()
        self.job = self.world.create("job", "* * * * *")
        self.message = self.world.due(self.job)
        self.told: list[tuple[Message, StoreUnavailableError]] = []
        self.router = Router(
            self.world.executor_ports, lambda message, error: self.told.append((message, error))
        )

    @property
    def run(self) -> Run | None:
        return self.world.runs.get(self.message.key)

    def lane(self) -> Report:
        return self.router.lane(encode(self.message), self.world.ends_at())

    def dead(self) -> Report:
        return self.router.dead(encode(self.message), self.world.ends_at())

    def no_claims(self) -> AbstractContextManager[None]:
        return self.world.failing(self.world.runs, "claim")

    def no_queue(self) -> AbstractContextManager[None]:
        return self.world.failing(self.world.queue, "send", QueueUnavailableError(1, "gone"))


@pytest.fixture
def received() -> Received:
    return Received()


def test_a_record_of_a_lane_is_handled(received: Received) -> None:
    report = received.lane()
    assert (report.handled, report.message) == (Handled.RAN, received.message)
    assert received.run is not None
    assert received.run.status is RunStatus.SUCCEEDED
    assert received.told == []


def test_a_record_whose_store_fails_is_told_and_comes_again_in_ten_seconds(
    received: Received,
) -> None:
    with received.no_claims():
        report = received.lane()
    assert report.handled is Handled.DEFERRED
    ((message, error),) = received.told
    assert (message, str(error)) == (received.message, "throttled")
    (copy,) = received.world.queue.kept()
    assert copy.message == replace(received.message, store_waits=1)
    assert copy.visible_at == received.message.due_at + timedelta(seconds=10)


def test_a_record_stays_with_the_queue_when_not_even_the_queue_answers(received: Received) -> None:
    with received.no_claims(), received.no_queue(), pytest.raises(QueueUnavailableError):
        received.lane()


@pytest.mark.parametrize("kind", ["lane", "dead"])
def test_a_body_that_nobody_can_read_is_refused(received: Received, kind: str) -> None:
    with pytest.raises(MalformedMessageError):
        getattr(received.router, kind)('{"v":99,"runs":[]}', received.world.ends_at())
    assert received.told == []


def test_a_record_of_the_dead_letter_queue_is_settled_once_it_is_too_old(
    received: Received,
) -> None:
    assert received.dead().handled is Handled.SENT_BACK
    received.world.clock.advance(10 * 86_400 + 1)
    report = received.dead()
    assert report.run is not None
    assert (report.run.status, report.run.reason) == (RunStatus.DEAD, DeadReason.NEVER_STARTED)
    assert received.world.targets.calls == []


def test_a_record_whose_run_is_held_by_a_live_lease_stays_where_it_is(received: Received) -> None:
    hold(received)
    with pytest.raises(HeldError, match=received.message.key.run_id):
        received.dead()
    received.world.clock.advance(2 * FUNCTION_SECONDS)
    assert received.dead().handled is Handled.SENT_BACK


def test_a_record_stays_in_the_dead_letter_queue_when_it_cannot_be_sent_back(
    received: Received,
) -> None:
    with received.no_queue(), pytest.raises(QueueUnavailableError):
        received.dead()


def test_a_store_that_fails_leaves_a_dead_letter_where_it_is(received: Received) -> None:
    received.world.clock.advance(11 * 86_400)
    with received.no_claims(), pytest.raises(StoreUnavailableError, match="throttled"):
        received.dead()
    assert (received.told, received.world.queue.kept()) == ([], [])


def hold(received: Received) -> None:
    """Have an executor die in the midst of the call."""
    received.world.crash_in_call(received.message)
    received.world.targets.calls.clear()


class Context:
    """What the handlers ask of Lambda's context."""

    def get_remaining_time_in_millis(self) -> int:
        return FUNCTION_SECONDS * 1000


class TestHandlers:
    """The module as Lambda loads it; its executor is the world's."""

    @pytest.fixture
    def handlers(self, received: Received, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
        for name, value in {
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "JOBS_TABLE": "jobs",
            "WHEEL_TABLE": "wheel",
            "RUNS_TABLE": "runs",
            "LANE_QUEUES": '{"high":"http://h","normal":"http://n","low":"http://l","slow":"http://s"}',
            "SEGMENTS": "2",
            "POWERTOOLS_METRICS_NAMESPACE": "Carillon",
            "POWERTOOLS_SERVICE_NAME": "executor",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(Targets, "prepare", lambda self, task_count: None)
        sys.modules.pop(HANDLER, None)
        module = importlib.import_module(HANDLER)
        router = Router(received.world.executor_ports, module._on_store_failure)
        monkeypatch.setattr(module, "router", router)
        monkeypatch.setattr(module, "clock", received.world.clock)
        yield module
        sys.modules.pop(HANDLER, None)

    def event(self, *bodies: str) -> dict[str, Any]:
        attributes = {"ApproximateReceiveCount": "1"}
        return {
            "Records": [
                {"messageId": f"m{number}", "body": body, "attributes": attributes}
                for number, body in enumerate(bodies)
            ]
        }

    def actions(self, caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
        return [vars(record) for record in caplog.records if hasattr(record, "action")]

    def test_what_nobody_can_read_leaves_a_line_and_goes(
        self, handlers: ModuleType, received: Received, caplog: pytest.LogCaptureFixture
    ) -> None:
        event = self.event(encode(received.message), "{")
        answer = handlers.handler(event, Context())
        assert answer == {"batchItemFailures": []}
        assert received.run is not None
        assert received.run.status is RunStatus.SUCCEEDED
        malformed, finished = self.actions(caplog)
        assert (malformed["action"], malformed["body"]) == ("message.malformed", "'{'")
        assert (finished["action"], finished["ran"], finished["failed"]) == ("batch.finished", 1, 0)

    @pytest.mark.parametrize(("late_seconds", "told"), [(0, [0]), (119, [119]), (121, None)])
    def test_the_canary_tells_how_late_it_was_or_is_silent_when_it_is_too_late(
        self,
        handlers: ModuleType,
        received: Received,
        caplog: pytest.LogCaptureFixture,
        late_seconds: int,
        told: list[int] | None,
    ) -> None:
        world = received.world
        keeper = CanaryKeeper(world.jobs, world.indexer, world.clock, world.entropy, 2)
        assert keeper.keep()
        canary = world.jobs.get(CANARY_OWNER, CANARY_JOB_ID)
        assert canary is not None
        message = message_of(canary, NOON + timedelta(minutes=5))
        world.clock.set(message.due_at + timedelta(seconds=late_seconds))
        handlers.handler(self.event(encode(received.message), encode(message)), Context())
        finished = self.actions(caplog)[-1]
        assert finished["_aws"]["CloudWatchMetrics"]
        assert finished.get("CanaryLag") == told, "the other run of the batch has no say"

    @pytest.mark.parametrize("sink", ["events", "activity"])
    def test_what_ran_is_told_though_the_process_ends_while_a_bus_or_table_hangs(
        self,
        handlers: ModuleType,
        received: Received,
        caplog: pytest.LogCaptureFixture,
        sink: str,
    ) -> None:
        """Whoever repeats the messages publishes again, and tells nothing."""
        received.world.targets.behave = lambda call: Failure(RunError("busy", "later"))
        with dying(getattr(handlers, sink), "flush"):
            handlers.handler(self.event(encode(received.message)), Context())
        told = [line["action"] for line in self.actions(caplog)]
        assert told == ["run.retrying", "batch.finished"]

    @pytest.mark.parametrize("consumer", ["handler", "dead_letter_handler"])
    def test_a_run_whose_executors_all_died_is_measured_as_such_wherever_it_is_buried(
        self,
        handlers: ModuleType,
        received: Received,
        caplog: pytest.LogCaptureFixture,
        consumer: str,
    ) -> None:
        """Its lane does it as a rule: a message is received 20 times before it is a dead letter."""
        world, message = received.world, received.message
        for _ in range(received.job.spec.retry.max_attempts):
            world.crash_in_call(message)
            world.clock.advance(LEASE_SECONDS)
        getattr(handlers, consumer)(self.event(encode(message)), Context())
        dead, finished = self.actions(caplog)
        assert (dead["action"], dead["reason"]) == ("run.dead", "executor_died")
        assert (finished["RunsDead"], finished["ExecutorsDied"]) == ([1], [1])

    def test_a_failing_store_is_logged_with_the_run_and_the_record_is_acknowledged(
        self,
        handlers: ModuleType,
        received: Received,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        with received.no_claims():
            answer = handlers.handler(self.event(encode(received.message)), Context())
        assert answer == {"batchItemFailures": []}
        failed, finished = self.actions(caplog)
        assert failed["run_id"] == received.message.key.run_id
        assert (failed["action"], failed["levelname"]) == ("message.failed", "ERROR")
        assert finished["deferred"] == 1

    def test_a_dead_letter_that_nobody_can_read_leaves_a_line_and_goes(
        self, handlers: ModuleType, received: Received, caplog: pytest.LogCaptureFixture
    ) -> None:
        event = self.event("{", encode(received.message))
        assert handlers.dead_letter_handler(event, Context()) == {"batchItemFailures": []}
        told = {line["action"]: line for line in self.actions(caplog)}
        malformed = told["message.malformed"]
        assert (malformed["body"], malformed["levelname"]) == ("'{'", "ERROR")
        sent_back = told["message.sent_back"]
        assert sent_back["run_id"] == received.message.key.run_id
        assert (sent_back["returns"], sent_back["levelname"]) == (1, "WARNING")
        assert (told["batch.finished"]["sent_back"], told["batch.finished"]["failed"]) == (1, 0)

    def test_a_run_on_which_an_executor_died_is_run_when_the_others_are_done(
        self, handlers: ModuleType, received: Received
    ) -> None:
        hold(received)
        received.world.clock.advance(2 * FUNCTION_SECONDS)
        first, own = received.message, received.world.targets.calls
        other = message_of(received.job, NOON + timedelta(minutes=2))
        bodies = [encode(first), encode(other)]
        assert handlers.handler(self.event(*bodies), Context()) == {"batchItemFailures": []}
        assert [call.run_id for call in own] == [other.key.run_id, first.key.run_id]
