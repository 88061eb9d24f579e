"""What AWS's answers mean for a run, and what AWS is told of one."""

import base64
import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import pytest
from botocore import exceptions
from botocore.response import StreamingBody

from carillon.domain.run import RunError
from carillon.domain.targets import (
    EventBridgeTarget,
    LambdaTarget,
    SnsTarget,
    SqsTarget,
    StepFunctionsTarget,
)
from carillon.executor.targets import aws_client as aws
from carillon.executor.targets import aws_services
from carillon.executor.targets.aws_client import AwsCaller, AwsClients, coded, no_answer, refusal
from carillon.executor.targets.call import (
    Call,
    Failure,
    Outcome,
    ReportTo,
    Success,
    body_of,
    call_id,
    facts,
    message_attributes,
    order,
    short_id,
)

QUEUE = SqsTarget(queue_arn="arn:aws:sqs:us-east-1:000000000000:q")
FUNCTION = LambdaTarget(function_arn="arn:aws:lambda:us-east-1:000000000000:function:f")
MACHINE = StepFunctionsTarget(
    state_machine_arn="arn:aws:states:us-east-1:000000000000:stateMachine:m"
)
CALL = Call(
    run_id="abc_20260301T120017Z_scheduled_0",
    job_id="abc",
    job_name="name",
    owner="owner",
    attempt=2,
    fire_at=datetime(2026, 3, 1, 12, 0, 17, tzinfo=UTC),
    payload='{"a":1}',
    timeout_seconds=5,
)


def client_error(code: str, message: str = "words", **metadata: Any) -> exceptions.ClientError:
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata}
    return exceptions.ClientError(response, "Call")


@pytest.mark.parametrize(
    ("code", "kind", "permanent"),
    [
        ("TooManyRequestsException", "throttled", False),
        ("ThrottlingException", "throttled", False),
        ("EC2ThrottledException", "throttled", False),
        ("KMSThrottling", "throttled", False),
        ("KmsThrottlingException", "throttled", False),
        ("AccessDeniedException", "access_denied", True),
        ("KMS.AccessDeniedException", "access_denied", True),
        ("KMSAccessDenied", "access_denied", True),
        ("KmsAccessDenied", "access_denied", True),
        ("AuthorizationError", "access_denied", True),
        ("ResourceNotFoundException", "not_found", True),
        ("QueueDoesNotExist", "not_found", True),
        ("StateMachineDoesNotExist", "not_found", True),
        ("RequestTooLargeException", "payload_too_large", True),
        ("SerializedRequestEntityTooLargeException", "payload_too_large", True),
        ("NotAuthorizedForDetailTypeException", "access_denied", True),
        ("BadRequestException", "invalid_request", True),
        ("InvalidArgument", "invalid_request", True),
        ("ParameterValueInvalid", "invalid_request", True),
        ("ValidationException", "invalid_request", True),
        ("ServiceException", "ServiceException", False),
        ("ResourceConflictException", "ResourceConflictException", False),
        ("", "aws_error", False),
    ],
)
def test_what_refusals_mean(code: str, kind: str, permanent: bool) -> None:
    outcome = refusal(client_error(code).response)
    assert (outcome.error.kind, outcome.error.permanent) == (kind, permanent)
    assert not outcome.timed_out


def test_a_refusal_tells_its_code_and_words_but_no_roles() -> None:
    assert coded("ServiceException", "one\nline").error.message == "ServiceException: one line"
    role = "User: arn:aws:sts::1:assumed-role/executor is not authorized"
    for code in ("AccessDeniedException", "AuthorizationError", "KMS.AccessDeniedException"):
        denied = coded(code, role).error.message
        assert denied == f"{code}: this deployment is not allowed to call it"


def test_a_retry_after_of_aws_is_honoured() -> None:
    error = client_error(
        "TooManyRequestsException", HTTPStatusCode=429, HTTPHeaders={"retry-after": "7"}
    )
    assert refusal(error.response).retry_after_seconds == 7
    error = client_error("Slow", HTTPStatusCode=429, HTTPHeaders={"retry-after": "soon"})
    assert refusal(error.response) == Failure(RunError("throttled", "Slow: words"))


@pytest.mark.parametrize(
    ("error", "kind", "timed_out"),
    [
        (exceptions.EndpointConnectionError(endpoint_url="x"), "connect_error", False),
        (exceptions.ConnectTimeoutError(endpoint_url="x"), "connect_error", False),
        (exceptions.ReadTimeoutError(endpoint_url="x"), "timeout", True),
        (exceptions.ConnectionClosedError(endpoint_url="x"), "network_error", False),
        (exceptions.NoCredentialsError(), "no_credentials", False),
        (
            exceptions.UnknownServiceError(service_name="x", known_service_names="y"),
            "UnknownServiceError",
            False,
        ),
    ],
)
def test_what_it_means_that_aws_did_not_answer(error: Any, kind: str, timed_out: bool) -> None:
    outcome = no_answer(error)
    assert (outcome.error.kind, outcome.timed_out) == (kind, timed_out)
    assert not outcome.error.permanent


class FakeClients(AwsClients):
    def __init__(self, seconds: float = 0) -> None:
        super().__init__("none")
        self.seconds = seconds
        self.asked: list[tuple[str | None, float]] = []

    def get(self, region: str | None, limit_seconds: float) -> Any:
        self.asked.append((region, limit_seconds))
        time.sleep(self.seconds)
        return object()


def deliver(send: aws.Send, clients: AwsClients, timeout_seconds: float = 5) -> Outcome:
    caller = AwsCaller("none", send)
    caller._clients = clients
    return caller.deliver(QUEUE, dataclasses.replace(CALL, timeout_seconds=timeout_seconds))


def test_a_call_that_hangs_ends_at_its_limit() -> None:
    release = threading.Event()

    def hang(client: Any, target: Any, call: Call) -> Outcome:
        release.wait(30)
        return Success(None)

    began = time.monotonic()
    outcome = deliver(hang, FakeClients(), 0.1)
    release.set()
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.timed_out) == ("timeout", True)
    assert time.monotonic() - began < 2


def test_nothing_is_called_after_the_limit() -> None:
    called = threading.Event()

    def send(client: Any, target: Any, call: Call) -> Outcome:
        called.set()
        return Success(None)

    outcome = deliver(send, FakeClients(seconds=0.3), 0.05)
    assert isinstance(outcome, Failure)
    assert not called.wait(0.6)


def test_errors_of_the_sdk_are_outcomes() -> None:
    def refuse(client: Any, target: Any, call: Call) -> Outcome:
        raise client_error("ResourceNotFoundException")

    def lose(client: Any, target: Any, call: Call) -> Outcome:
        raise exceptions.ConnectionClosedError(endpoint_url="x")

    clients = FakeClients()
    for send, kind in ((refuse, "not_found"), (lose, "network_error")):
        outcome = deliver(send, clients)
        assert isinstance(outcome, Failure)
        assert outcome.error.kind == kind
    assert clients.asked == [("us-east-1", 5), ("us-east-1", 5)]


def test_clients_repeat_nothing_and_wait_as_long_as_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    clients = AwsClients("sqs")
    client = clients.get("eu-west-1", 9)
    assert client.meta.region_name == "eu-west-1"
    assert client.meta.config.read_timeout == 16
    assert client.meta.config.connect_timeout == 5
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert clients.get("eu-west-1", 16) is client
    assert clients.get("eu-west-1", 16.5) is not client
    assert clients.get("eu-west-1", 0.5).meta.config.read_timeout == 1


def test_clients_are_few_whatever_regions_jobs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws, "MOST_CLIENTS", 2)
    clients = AwsClients("sqs")
    monkeypatch.setattr(clients, "_create", lambda region, read_seconds: object())
    first, second = clients.get("xx-y-1", 5), clients.get("xx-y-2", 5)
    assert clients.get("xx-y-1", 5) is first
    clients.get("xx-y-3", 5)
    assert clients.get("xx-y-1", 5) is first
    assert clients.get("xx-y-2", 5) is not second


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """An SNS on this machine: the number of requests of each of its connections. The third has no
    answer, as on one that the network has forgotten."""

    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.number = len(requests)
            requests.append(0)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            requests[self.number] += 1
            if requests[self.number] > 2:
                release.wait(10)
                self.close_connection = True
                return
            body = b"<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult>"
            body += b"</PublishResponse>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    requests: list[int] = []
    release = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SNS", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield requests
    release.set()
    server.shutdown()
    server.server_close()


def test_a_connection_that_was_idle_for_long_is_not_used_again(
    topics: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process stands still between its invocations: it hears of no end of a connection."""
    caller = AwsCaller("sns", aws_services.publish)
    topic = SnsTarget(topic_arn="arn:aws:sns:us-east-1:000000000000:t")
    call = dataclasses.replace(CALL, timeout_seconds=2)
    for _ in range(2):
        assert caller.deliver(topic, call) == Success("message m")
    assert topics == [2]  # one that is used again soon is kept

    later = time.monotonic() + aws.KEEP_SECONDS + 1
    monkeypatch.setattr(aws, "monotonic", lambda: later)
    assert caller.deliver(topic, call) == Success("message m")
    assert topics == [2, 1]


class FakeQueues:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_queue_url(self, QueueName: str, QueueOwnerAWSAccountId: str) -> Any:
        self.asked.append(QueueName)
        return {"QueueUrl": f"https://sqs/{QueueOwnerAWSAccountId}/{QueueName}"}

    def send_message(self, QueueUrl: str, **members: Any) -> Any:
        return {"MessageId": QueueUrl}


def test_a_queues_url_is_asked_for_once_while_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_services, "MOST_URLS", 2)
    queues, sender = FakeQueues(), aws_services.QueueSender()
    for name in ("a", "b", "a", "c", "a", "b"):
        queue = SqsTarget(queue_arn=f"arn:aws:sqs:us-east-1:000000000000:{name}")
        told = Success(f"message https://sqs/000000000000/{name}")
        assert sender.send(queues, queue, CALL) == told
    assert queues.asked == ["a", "b", "c", "b"]


def test_no_message_is_sent_where_its_queue_was_found_after_the_limit() -> None:
    """The attempt has timed out by then, and its retry sends a message of its own."""
    found, sent = threading.Event(), threading.Event()

    class SlowQueues(FakeQueues):
        def get_queue_url(self, QueueName: str, QueueOwnerAWSAccountId: str) -> Any:
            found.wait(10)
            return super().get_queue_url(QueueName, QueueOwnerAWSAccountId)

        def send_message(self, QueueUrl: str, **members: Any) -> Any:
            sent.set()
            return super().send_message(QueueUrl, **members)

    class Clients(AwsClients):
        def get(self, region: str | None, limit_seconds: float) -> Any:
            return SlowQueues()

    unread: Any = None
    caller = aws_services.create_sqs(unread, unread)
    caller._clients = Clients("sqs")
    outcome = caller.deliver(QUEUE, dataclasses.replace(CALL, timeout_seconds=0.1))
    assert isinstance(outcome, Failure)
    assert outcome.timed_out
    found.set()
    assert not sent.wait(0.3)


# -- what goes along


def test_the_facts_of_a_run() -> None:
    assert facts(CALL) == {
        "carillon-run-id": CALL.run_id,
        "carillon-job-id": "abc",
        "carillon-attempt": "2",
        "carillon-fire-at": "2026-03-01T12:00:17Z",
    }
    assert message_attributes(CALL)["carillon-attempt"] == {
        "DataType": "Number",
        "StringValue": "2",
    }


REPORTING = dataclasses.replace(CALL, report_to=ReportTo("https://api/completions/abc", "secret"))


def test_a_target_with_completion_is_told_where_to_report() -> None:
    attributes = message_attributes(REPORTING)
    assert attributes["carillon-completion-url"]["StringValue"] == "https://api/completions/abc"
    assert attributes["carillon-completion-token"]["StringValue"] == "secret"
    told = {"url": "https://api/completions/abc", "token": "secret"}
    assert json.loads(body_of(REPORTING)) == {"a": 1, "carillon_completion": told}
    listed = dataclasses.replace(REPORTING, payload="[1]")
    assert json.loads(body_of(listed)) == {"payload": [1], "carillon_completion": told}
    assert body_of(CALL) == CALL.payload


def test_with_completion_each_attempt_is_one_of_its_own() -> None:
    fifo = "arn:aws:sqs:us-east-1:000000000000:q.fifo"
    assert order(fifo, None, REPORTING)["MessageDeduplicationId"] == f"{CALL.run_id}_2"
    assert call_id(CALL) == CALL.run_id


def test_a_fifo_queue_gets_group_and_deduplication_id() -> None:
    fifo = "arn:aws:sqs:us-east-1:000000000000:q.fifo"
    run = {"MessageDeduplicationId": CALL.run_id}
    assert order(fifo, None, CALL) == {"MessageGroupId": "abc", **run}
    assert order(fifo, "shop", CALL) == {"MessageGroupId": "shop", **run}
    assert order(QUEUE.queue_arn, None, CALL) == {}
    assert order(QUEUE.queue_arn, "shop", CALL) == {"MessageGroupId": "shop"}


def test_an_id_that_does_not_fit_becomes_its_digest() -> None:
    assert short_id("a" * 80, 80) == "a" * 80
    long, other = short_id("a" * 81, 80), short_id("a" * 82, 80)
    assert len(long) == 64
    assert long != other
    assert len(short_id("a:b", 80)) == 64


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        ('{"a":1}', '{"a":1}'),
        ("[1]", '{"payload":[1]}'),
        ('"{"', '{"payload":"{"}'),
        ("null", '{"payload":null}'),
    ],
)
def test_an_events_detail_is_an_object(payload: str, detail: str) -> None:
    assert aws_services.detail(payload) == detail
    assert isinstance(json.loads(detail), dict)


class FakeLambda:
    def __init__(self, payload: bytes, error: str | None) -> None:
        self.answer: dict[str, Any] = {"Payload": StreamingBody(BytesIO(payload), len(payload))}
        if error:
            self.answer["FunctionError"] = error
        self.asked: dict[str, Any] = {}

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        self.asked = arguments
        return self.answer


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b'{"errorType":"ValueError","errorMessage":"no","stackTrace":[]}', "ValueError: no"),
        (b'{"errorMessage":"2026 Task timed out after 3.00 seconds"}', "Task timed out"),
        (b"", "the function failed"),
        (b"null", "null"),
        (b"[" * 60_000, "[[["),
    ],
    ids=["error", "timeout", "nothing", "null", "deep"],
)
def test_what_a_function_raised_is_told(payload: bytes, message: str) -> None:
    outcome = aws_services.invoke(FakeLambda(payload, "Unhandled"), FUNCTION, CALL)
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("function_error", False)
    assert message in outcome.error.message


def test_a_function_that_is_waited_for_is_told_of_the_run() -> None:
    client = FakeLambda(b"null", None)
    aws_services.invoke(client, FUNCTION, CALL)
    context = json.loads(base64.b64decode(client.asked.pop("ClientContext")))
    assert context == {"custom": facts(CALL)}
    asked = {"FunctionName": FUNCTION.function_arn, "Payload": CALL.payload}
    assert client.asked == {**asked, "InvocationType": "RequestResponse"}
    aws_services.invoke(client, FUNCTION.model_copy(update={"invocation": "event"}), CALL)
    assert client.asked == {**asked, "InvocationType": "Event"}


def test_what_a_function_returned_is_the_result() -> None:
    assert aws_services.invoke(FakeLambda(b'{"done":true}', None), FUNCTION, CALL) == Success(
        '{"done":true}'
    )


def test_a_bus_that_refuses_the_one_event_is_a_failure() -> None:
    class Refusing:
        def put_events(self, Entries: list[Any]) -> Any:
            assert [entry["Time"] for entry in Entries] == [CALL.fire_at]
            told = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
            return {"FailedEntryCount": 1, "Entries": [told]}

    bus = EventBridgeTarget(
        bus_arn="arn:aws:events:us-east-1:000000000000:event-bus/b", source="s", detail_type="d"
    )
    outcome = aws_services.put_event(Refusing(), bus, CALL)
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "throttled"


def test_an_execution_that_an_earlier_attempt_started_is_success() -> None:
    class Started:
        def start_execution(self, **arguments: Any) -> Any:
            raise client_error("ExecutionAlreadyExists")

    class Gone:
        def start_execution(self, **arguments: Any) -> Any:
            raise client_error("StateMachineDoesNotExist")

    outcome = aws_services.start_execution(Started(), MACHINE, CALL)
    assert outcome == Success(f"execution {CALL.run_id} (an earlier attempt started it)")
    with pytest.raises(exceptions.ClientError):
        aws_services.start_execution(Gone(), MACHINE, CALL)
