"""Spans of what executors have handled, and their way out: nothing of it may cost a run."""

import io
import itertools
import json
import time
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from carillon.domain.chunks.message import Order, encode
from carillon.domain.policies import RetryPolicy
from carillon.domain.run import RunError, RunKey, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import LambdaTarget, SqsTarget, TaskTarget, WebhookTarget
from carillon.domain.tracing import Step, TraceContext, is_sampled, span_id, trace_id
from carillon.errors import QueueUnavailableError
from carillon.executor.batch import Handled, PartlyHandledError, Received, Report
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.executor.tracing import spans
from carillon.executor.tracing.tracer import PAUSE, Tracer
from carillon.telemetry import Action, Telemetry
from tests.unit.executor import chunk_kit
from tests.unit.executor.kit import World

_NUMBERS = itertools.count()
HOOK = WebhookTarget(url="https://example.com:8443/hook?token=hidden")


class Kept:
    """A collector that keeps what it is sent, or fails."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.error: Exception | None = None
        self.seconds = 0.0

    def post(self, body: bytes, limit_seconds: float) -> None:
        time.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        self.requests.append(json.loads(body))

    @property
    def spans(self) -> list[dict[str, Any]]:
        """Of all requests, in order."""
        return [
            span
            for request in self.requests
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def of(self, key: RunKey, step: Step, attempt: int = 0) -> dict[str, Any]:
        """The only span of a step."""
        wanted = span_id(key.run_id, step, attempt)
        (found,) = [span for span in self.spans if span["spanId"] == wanted]
        return found


class Traced:
    """A world whose executor is watched."""

    def __init__(self, percent: int = 100, world: World | None = None) -> None:
        self.world = world or World()
        self.kept = Kept()
        self.tracer = Tracer(self.kept, self.world.clock, percent, "Carillon")
        self.log = io.StringIO()
        service = f"traced-{next(_NUMBERS)}"  # a logger keeps its first stream
        logger = Logger(service=service, stream=self.log)
        self.telemetry = Telemetry(logger, Metrics("Carillon", service), traced=True)

    def handle(self, *messages: Order, seconds: float = 60) -> list[Report]:
        """One batch of a lane."""
        ends_at = self.world.ends_at(seconds)

        def lane(record: Received, alone: bool) -> Report:
            return self.world.executor.lane(record.body, ends_at, alone=alone)

        handle = self.tracer.watched(lane)
        reports = [handle(Received("m", encode(message), 1), True) for message in messages]
        self.tracer.export(ends_at, self.telemetry)
        return reports

    def answers(self, outcome: Outcome, after_seconds: float = 0.25) -> None:
        """Each call takes so long."""

        def behave(call: Call) -> Outcome:
            self.world.clock.advance(after_seconds)
            return outcome

        self.world.targets.behave = behave

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@pytest.fixture
def traced() -> Traced:
    return Traced()


def attributes(form: dict[str, Any]) -> dict[str, Any]:
    """Those of a span, as their only values."""
    return {each["key"]: next(iter(each["value"].values())) for each in form["attributes"]}


def nanoseconds(at: Any) -> str:
    return f"{int(at.timestamp() * 1000)}000000"


def test_a_run_is_a_trace_from_its_instant_to_its_end(traced: Traced) -> None:
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=HOOK))
    world.clock.advance(0.5)
    received_at = world.clock.now()
    traced.answers(Success("200 thanks"))
    assert [each.handled for each in traced.handle(message)] == [Handled.RAN]

    key, due_at = message.key, message.due_at
    assert {span["traceId"] for span in traced.kept.spans} == {trace_id(key.run_id)}
    run = traced.kept.of(key, Step.RUN)
    steps = (Step.WAIT, Step.ATTEMPT, Step.CALL, Step.FOLLOW_UP)
    wait, attempt, call, after = (traced.kept.of(key, step, 1) for step in steps)
    assert len(traced.kept.spans) == 5
    assert "parentSpanId" not in run
    assert wait["parentSpanId"] == attempt["parentSpanId"] == run["spanId"]
    assert call["parentSpanId"] == after["parentSpanId"] == attempt["spanId"]
    ended_at = received_at + timedelta(seconds=0.25)
    assert [(span["startTimeUnixNano"], span["endTimeUnixNano"]) for span in (run, wait, call)] == [
        (nanoseconds(due_at), nanoseconds(ended_at)),
        (nanoseconds(due_at), nanoseconds(received_at)),
        (nanoseconds(received_at), nanoseconds(ended_at)),
    ]
    assert (run["name"], call["name"], run["kind"], call["kind"]) == ("job", "POST", 1, 3)
    assert "status" not in run


def test_the_target_is_told_the_span_of_its_call(traced: Traced) -> None:
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=HOOK))
    traced.handle(message)
    told = TraceContext.of_call(message.key.run_id, 1, 100)
    assert traced.kept.of(message.key, Step.CALL, 1)["spanId"] == told.span_id


def test_each_run_of_a_chunk_is_a_trace() -> None:
    """Until the whole chunk is done, as far as the executor is concerned."""
    world = chunk_kit.World("quick", "failing", "gone")
    traced = Traced(world=world)
    world.answer(failing=chunk_kit.BUSY)
    order = world.order()
    gone = world.by_name["gone"]
    assert world.jobs.replace(gone.paused(world.clock.now()), gone.revision)
    assert [each.handled for each in traced.handle(order)] == [Handled.CHUNK]

    quick, failing = (world.alone(name).key for name in ("quick", "failing"))
    assert {span["traceId"] for span in traced.kept.spans} == {
        trace_id(quick.run_id),
        trace_id(failing.run_id),
    }
    run = traced.kept.of(quick, Step.RUN)
    attempt, call = (traced.kept.of(quick, step, 1) for step in (Step.ATTEMPT, Step.CALL))
    assert (attempt["parentSpanId"], call["parentSpanId"]) == (run["spanId"], attempt["spanId"])
    assert attempt["endTimeUnixNano"] == nanoseconds(world.clock.now())
    assert traced.kept.of(failing, Step.CALL, 1)["status"]["message"] == "later"


def test_a_request_is_otlp_in_json(traced: Traced) -> None:
    """Its mapping (the specification of opentelemetry-proto): ids in hexadecimal, 64-bit numbers
    as text, enums as numbers, names in lowerCamelCase; an attribute has one value."""
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=HOOK, retry=RetryPolicy(1)))
    traced.answers(Failure(RunError("http_503", "the endpoint answered 503")))
    traced.handle(message)
    (request,) = traced.kept.requests
    (resource,) = request["resourceSpans"]
    assert resource["resource"]["attributes"][0] == {
        "key": "service.name",
        "value": {"stringValue": "Carillon"},
    }
    for span in traced.kept.spans:
        assert span.keys() <= {
            "traceId",
            "spanId",
            "parentSpanId",
            "name",
            "kind",
            "startTimeUnixNano",
            "endTimeUnixNano",
            "attributes",
            "links",
            "status",
        }
        assert len(bytes.fromhex(span["traceId"])) == 16
        assert len(bytes.fromhex(span["spanId"])) == 8
        start, end = span["startTimeUnixNano"], span["endTimeUnixNano"]
        assert isinstance(start, str)
        assert isinstance(end, str)
        assert int(start) <= int(end)
        assert span["kind"] in range(1, 6)
        for each in span["attributes"]:
            ((kind, value),) = each["value"].items()
            assert isinstance(value, str)
            assert kind in ("stringValue", "intValue")
    call = traced.kept.of(message.key, Step.CALL, 1)
    assert call["status"] == {"code": 2, "message": "the endpoint answered 503"}
    assert {"key": "http.response.status_code", "value": {"intValue": "503"}} in call["attributes"]


def test_attributes_follow_the_conventions_and_hold_no_path_of_a_url(traced: Traced) -> None:
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=HOOK))
    traced.answers(Success("200 thanks"))
    traced.handle(message)
    call = attributes(traced.kept.of(message.key, Step.CALL, 1))
    assert call == {
        "http.request.method": "POST",
        "url.scheme": "https",
        "server.address": "example.com",
        "server.port": "8443",
        "http.response.status_code": "200",
    }
    assert "hidden" not in json.dumps(traced.kept.requests)
    run = attributes(traced.kept.of(message.key, Step.RUN))
    attempt = attributes(traced.kept.of(message.key, Step.ATTEMPT, 1))
    key = message.key
    ids = {
        "carillon.run.id": key.run_id,
        "carillon.job.id": key.job_id,
        "carillon.owner": key.owner,
    }
    assert ids.items() <= run.items()
    assert ids.items() <= attempt.items()
    assert (run["carillon.run.status"], run["carillon.run.attempts"]) == ("succeeded", "1")


@pytest.mark.parametrize(
    ("target", "name", "kind", "told"),
    [
        (TaskTarget(name="clean"), "task clean", 1, {"code.function.name": "clean"}),
        (
            LambdaTarget(function_arn="arn:aws:lambda:eu-west-1:123456789012:function:bill:live"),
            "Lambda.Invoke",
            3,
            {"faas.invoked_name": "bill", "faas.invoked_region": "eu-west-1"},
        ),
        (
            SqsTarget(queue_arn="arn:aws:sqs:eu-west-1:123456789012:orders"),
            "SQS.SendMessage",
            4,
            {"messaging.system": "aws_sqs", "messaging.destination.name": "orders"},
        ),
    ],
)
def test_calls_of_other_targets(
    traced: Traced, target: Any, name: str, kind: int, told: dict[str, str]
) -> None:
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=target))
    traced.handle(message)
    call = traced.kept.of(message.key, Step.CALL, 1)
    assert (call["name"], call["kind"]) == (name, kind)
    assert told.items() <= attributes(call).items()


def test_retries_are_in_one_trace_and_the_run_ends_it(traced: Traced) -> None:
    world = traced.world
    message = world.due(world.create("job", "* * * * *", target=HOOK, retry=RetryPolicy(2)))
    traced.answers(Failure(RunError("http_503", "no")))
    traced.handle(message)
    assert len(traced.kept.spans) == 3, "no wait, and the run goes on"
    (again,) = world.drain()
    world.clock.set(again.due_at)
    traced.answers(Success("200 thanks"))
    traced.handle(again)
    calls = [traced.kept.of(message.key, Step.CALL, attempt) for attempt in (1, 2)]
    assert [call.get("status", {}).get("code") for call in calls] == [2, None]
    run = traced.kept.of(message.key, Step.RUN)
    assert run["startTimeUnixNano"] == nanoseconds(message.due_at)
    assert {span["traceId"] for span in traced.kept.spans} == {run["traceId"]}


def test_a_repetition_tells_nothing_and_a_skip_only_its_run(traced: Traced) -> None:
    world = traced.world
    job = world.create("job", "* * * * *")
    message, later = world.due(job), world.due(job, 2)
    traced.handle(message, message)
    assert len({span["spanId"] for span in traced.kept.spans}) == len(traced.kept.spans)
    traced.kept.requests.clear()
    world.pause(job)
    traced.handle(later)
    assert [span["name"] for span in traced.kept.spans] in ([], ["job"])


def test_what_an_executor_died_on_has_no_call_of_its_own(traced: Traced) -> None:
    """The attempt that died has told nothing; who finds the run dead has not called."""
    world = traced.world
    job = world.create("job", "* * * * *", target=HOOK, retry=RetryPolicy(1))
    message = world.due(job)
    with world.dying(world.runs, "finish"):
        traced.handle(message)
    world.clock.advance(200)
    traced.handle(message)
    (run,) = traced.kept.spans
    assert run["status"]["code"] == 2


def test_a_run_is_told_whose_end_is_recorded_though_what_follows_fails(traced: Traced) -> None:
    """The message comes again, and is told as a repetition, which has no spans."""
    world = traced.world
    calls = {"target": HOOK, "retry": RetryPolicy(1), "on_failure": TaskTarget(name="tell")}
    message = world.due(world.create("job", "* * * * *", **calls))
    traced.answers(Failure(RunError("busy", "later")))
    down = QueueUnavailableError(1, "down")
    with world.failing(world.queue, "send", down), pytest.raises(PartlyHandledError):
        traced.handle(message)
    traced.handle(message)
    assert traced.kept.of(message.key, Step.RUN)["status"]["code"] == 2
    assert traced.kept.of(message.key, Step.ATTEMPT, 1)["status"]["code"] == 2


def test_a_run_that_ends_by_a_report_is_told_in_two_parts(traced: Traced) -> None:
    world = traced.world
    target = SqsTarget(
        queue_arn="arn:aws:sqs:eu-west-1:123456789012:orders",
        completion=CompletionSpec.model_validate({"within": "10m"}),
    )
    message = world.due(world.create("job", "* * * * *", target=target))
    (opened,) = traced.handle(message)
    assert opened.handled is Handled.OPENED
    assert [span["name"] for span in traced.kept.spans] == [
        "attempt",
        "SQS.SendMessage",
        "follow up",
    ]
    (check,) = world.drain()
    world.clock.set(check.starts_at)
    traced.kept.requests.clear()
    (ended,) = traced.handle(check)
    assert (ended.handled, ended.run and ended.run.status) == (Handled.RAN, RunStatus.RETRYING)
    assert traced.kept.spans == [], "who looked on found it silent, and called nobody"


def test_a_callback_is_linked_to_its_run(traced: Traced) -> None:
    world = traced.world
    job = world.create("job", "* * * * *", on_success=HOOK)
    message = world.due(job)
    traced.handle(message)
    (callback,) = world.drain()
    traced.handle(callback)
    run = traced.kept.of(callback.key, Step.RUN)
    cause = message.key.run_id
    assert run["links"] == [{"traceId": trace_id(cause), "spanId": span_id(cause, Step.RUN)}]
    assert run["traceId"] != trace_id(cause)


def test_only_the_traces_that_are_kept_are_sent() -> None:
    traced = Traced(percent=40)
    world = traced.world
    jobs = [world.create(f"job-{number}", "* * * * *") for number in range(20)]
    messages = [world.due(job) for job in jobs]
    traced.handle(*messages)
    kept = {trace_id(m.key.run_id) for m in messages if is_sampled(trace_id(m.key.run_id), 40)}
    assert {span["traceId"] for span in traced.kept.spans} == kept
    assert 0 < len(kept) < 20


def test_a_failing_collector_costs_one_line_a_minute_and_no_run(traced: Traced) -> None:
    world = traced.world
    traced.kept.error = ConnectionError("refused")
    job = world.create("job", "* * * * *")
    for minute in (1, 2, 3, 4):
        (report,) = traced.handle(world.due(job, minute))
        assert report.handled is Handled.RAN
    told = [(line["action"], line["level"], line["count"]) for line in traced.lines]
    assert told == [("spans.lost", "WARNING", 4)] * 4
    assert "ConnectionError: refused" in traced.lines[0]["reason"]


def test_spans_that_cannot_be_made_cost_a_line_and_no_run(
    traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("pigeon")

    monkeypatch.setattr(spans, "call_of", fail)
    (report,) = traced.handle(traced.world.due(traced.world.create("job", "* * * * *")))
    assert report.handled is Handled.RAN
    assert [line["reason"] for line in traced.lines] == ["KeyError: 'pigeon'"]


def test_after_a_failure_nothing_is_sent_for_a_minute(traced: Traced) -> None:
    world = traced.world
    traced.kept.error = ConnectionError("refused")
    jobs = [world.create(f"job-{number}", "* * * * *") for number in range(3)]
    messages = [world.due(job) for job in jobs]
    traced.handle(messages[0])
    traced.kept.error = None
    world.clock.advance(PAUSE.total_seconds() - 1)
    traced.handle(messages[1])
    assert traced.kept.requests == []
    world.clock.advance(1)
    traced.handle(messages[2])
    assert {span["traceId"] for span in traced.kept.spans} == {trace_id(messages[2].key.run_id)}


def test_a_hanging_collector_costs_a_batch_a_second_at_most(traced: Traced) -> None:
    world = traced.world
    traced.kept.seconds = 5
    message = world.due(world.create("job", "* * * * *"))
    began = time.monotonic()
    traced.handle(message)
    assert 0.9 < time.monotonic() - began < 2
    assert "TimeoutError" in traced.lines[0]["reason"]


def test_a_process_that_ends_soon_sends_nothing(traced: Traced) -> None:
    """Stopped in the middle, it could not answer for its batch: all messages would come again."""
    world = traced.world
    message = world.due(world.create("job", "* * * * *", timeout_seconds=1))
    traced.answers(Success("done"), after_seconds=9.6)
    traced.handle(message, seconds=10)
    assert world.run_of(message).is_final
    assert traced.kept.requests == []


def test_lines_of_runs_have_the_trace(traced: Traced) -> None:
    run_id = "job_20261201T120000Z_scheduled_0"
    traced.telemetry.record(Action.RUN_DEAD, run_id=run_id)
    traced.telemetry.failure(Action.MESSAGE_FAILED, ValueError(), run_id=run_id)
    traced.telemetry.record(Action.BATCH_FINISHED)
    assert [line.get("trace_id") for line in traced.lines] == [trace_id(run_id)] * 2 + [None]
