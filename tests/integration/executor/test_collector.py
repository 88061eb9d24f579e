"""The way of spans to a collector on loopback, and the signature that X-Ray asks for."""

import re
import socket
import time
from dataclasses import replace
from threading import Event
from typing import Any

import boto3
import httpcore2
import pytest

from carillon.clock import SystemClock
from carillon.domain.targets import WebhookTarget
from carillon.domain.tracing import TraceContext
from carillon.executor.targets import Call, Outcome, Success, Targets
from carillon.executor.targets.call import Caller
from carillon.executor.tracing import create_tracer
from carillon.executor.tracing.collector import CollectorError, collector_of, signature_of
from carillon.settings import Settings
from tests.integration.executor.endpoints import endpoint, raw_endpoint
from tests.integration.executor.sending import call, caller, target
from tests.integration.executor.test_targets import CALL, ENVIRONMENT

XRAY = "https://xray.eu-west-1.amazonaws.com/v1/traces"
BODY = b'{"resourceSpans":[]}'


def test_a_collector_gets_json_over_one_connection() -> None:
    with endpoint() as hook:
        collector = collector_of(f"http://127.0.0.1:{hook.port}/v1/traces")
        for _ in range(3):
            collector.post(BODY, 1)
    assert [(each.path, each.body) for each in hook.received] == [("/v1/traces", BODY)] * 3
    assert hook.received[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "answer"),
    [(503, b"overloaded"), (400, b"no"), (200, b'{"partialSuccess":{"rejectedSpans":"2"}}')],
)
def test_what_is_not_taken_as_a_whole_is_told(status: int, answer: bytes) -> None:
    with endpoint() as hook:
        hook.status, hook.answer = status, answer
        with pytest.raises(CollectorError, match=str(status)):
            collector_of(hook.url).post(BODY, 1)


def test_a_full_success_may_say_so() -> None:
    with endpoint() as hook:
        hook.answer = b'{"partialSuccess":{}}'
        collector_of(hook.url).post(BODY, 1)


def test_a_collector_that_does_not_answer_ends_in_time() -> None:
    def hang(connection: socket.socket, stop: Event) -> None:
        stop.wait(5)

    with raw_endpoint(hang) as port:
        began = time.monotonic()
        with pytest.raises(httpcore2.ReadTimeout):
            collector_of(f"http://127.0.0.1:{port}/").post(BODY, 0.3)
        assert time.monotonic() - began < 1


def test_x_ray_gets_signed_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the credentials of the moment: those of a Lambda function change."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    sign = signature_of(boto3.Session())
    headers = {name.lower(): value for name, value in sign(XRAY, BODY).items()}
    scope = r"AKIDEXAMPLE/\d{8}/eu-west-1/xray/aws4_request"
    assert re.match(f"AWS4-HMAC-SHA256 Credential={scope}, ", headers["authorization"])
    signed = re.search("SignedHeaders=([a-z0-9;-]+),", headers["authorization"])
    assert signed is not None
    assert {"content-type", "host", "x-amz-date", "x-amz-security-token"} <= {*signed[1].split(";")}
    assert headers["x-amz-security-token"] == "token"
    assert headers["content-type"] == "application/json"
    other = {name.lower(): value for name, value in sign(XRAY, b"{}").items()}
    assert other["authorization"] != headers["authorization"], "the body is signed"


def test_an_executor_without_credentials_begins_and_tells_with_its_spans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda session: None)
    collector = collector_of("xray")
    with pytest.raises(CollectorError, match="no credentials"):
        collector.post(BODY, 1)


@pytest.mark.parametrize("place", ["", "logs"])
def test_without_a_collector_nothing_is_watched(place: str) -> None:
    settings = Settings.from_environment({**ENVIRONMENT, "TRACING": place})
    assert create_tracer(settings, SystemClock()) is None


@pytest.mark.parametrize("tracing", ["", "logs"])
def test_targets_are_told_of_the_trace_where_tracing_is_on(tracing: str) -> None:
    settings = Settings.from_environment({**ENVIRONMENT, "TRACING": tracing})
    told: list[Call] = []

    class Told(Caller):
        def deliver(self, target: Any, call: Call) -> Outcome:
            told.append(call)
            return Success(None)

    with Targets(settings, SystemClock()) as targets:
        targets._callers["webhook"] = Told()
        targets.deliver(WebhookTarget(url="https://example.com/"), CALL)
    trace = TraceContext.of_call(CALL.run_id, CALL.attempt, 100)
    assert [each.trace for each in told] == [trace if tracing else None]


def test_a_webhook_is_told_by_a_header_and_nothing_without_tracing() -> None:
    trace = TraceContext.of_call(CALL.run_id, CALL.attempt, 100)
    with endpoint() as hook:
        caller().deliver(target(hook.port), call())
        caller().deliver(target(hook.port), replace(call(), trace=trace))
    headers = [each.headers.get("traceparent") for each in hook.received]
    assert headers == [None, trace.traceparent]
