"""Webhooks over real sockets on loopback."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from carillon.clock import SystemClock
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.call import Failure, ReportTo, Success
from carillon.executor.targets.webhook import DeploymentKey, SigningKeyError, WebhookCaller
from tests.integration.executor.endpoints import (
    CERTIFIED_NAME,
    HOST,
    endpoint,
    raw_endpoint,
    self_signed,
)
from tests.integration.executor.sending import (
    KEY,
    LOOPBACK,
    PAYLOAD,
    RUN_ID,
    Connections,
    call,
    caller,
    owner_secrets,
    refusal,
    target,
)


def test_a_delivery_is_signed_and_tells_its_run() -> None:
    with endpoint() as hook:
        assert caller().deliver(target(hook.port), call()) == Success("200 thanks")
        (received,) = hook.received
    assert received.body == PAYLOAD.encode()
    assert Webhook(KEY).verify(received.body, received.headers) == json.loads(PAYLOAD)
    with pytest.raises(WebhookVerificationError):
        Webhook(KEY).verify(received.body + b" ", received.headers)
    expected = {
        "content-type": "application/json",
        "host": f"{HOST}:{hook.port}",
        "webhook-id": RUN_ID,
        "idempotency-key": RUN_ID,
        "carillon-job-id": "abc",
        "carillon-attempt": "2",
        "carillon-fire-at": "2026-03-01T12:00:17Z",
        "user-agent": "Carillon",
    }
    assert received.headers.items() >= expected.items()


def test_a_receiver_is_told_where_to_report_and_cannot_show_its_token() -> None:
    told = ReportTo("https://api.example.com/completions/abc", "owner.secret-of-the-attempt")

    with endpoint() as hook:
        hook.status, hook.answer = 202, told.token.encode()
        outcome = caller().deliver(target(hook.port), replace(call(), report_to=told))
        (received,) = hook.received
    assert received.headers["carillon-completion-url"] == told.url
    assert received.headers["carillon-completion-token"] == told.token
    assert outcome == Success("202 [hidden]", is_accepted=True)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("", "/"),
        ("/a%20b?x=1&y=%C3%BC", "/a%20b?x=1&y=%C3%BC"),
        ("/a b/ü?q=[ü]", "/a%20b/%C3%BC?q=[%C3%BC]"),
        ("?only=query", "/?only=query"),
    ],
)
def test_the_path_is_sent_as_given_in_ascii(path: str, sent: str) -> None:
    with endpoint() as hook:
        caller().deliver(target(hook.port, path=path), call())
        assert [received.path for received in hook.received] == [sent]


def test_an_ipv6_host_keeps_its_brackets() -> None:
    with endpoint() as hook:
        outcome = caller([ip_network("::1/128")], connector=Connections(HOST)).deliver(
            target(hook.port, host="[::1]"), call()
        )
        assert outcome == Success("200 thanks")
        assert hook.received[0].headers["host"] == f"[::1]:{hook.port}"


def test_failures_of_the_endpoint() -> None:
    with endpoint() as hook:
        hook.status, hook.answer = 503, b"busy"
        outcome = caller().deliver(target(hook.port), call())
        assert isinstance(outcome, Failure)
        assert outcome.error.kind == "http_503"
        assert not outcome.error.permanent
        hook.status, hook.answer = 404, b""
        outcome = caller().deliver(target(hook.port), call())
        assert isinstance(outcome, Failure)
        assert (outcome.error.kind, outcome.error.permanent) == ("http_404", True)


def pour(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")
    while not stop.is_set():
        connection.sendall(b"x" * 65536)


def test_an_endless_answer_is_not_read_to_its_end() -> None:
    with raw_endpoint(pour) as port:
        outcome = caller().deliver(target(port), call())
    assert isinstance(outcome, Success)
    assert (outcome.result or "").startswith("200 xxx")


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with endpoint() as hook:
        assert caller().deliver(target(hook.port), call()) == Success("200 thanks")


# -- TLS


def test_tls_is_verified_for_the_name_though_the_address_is_given(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path)
    asked: list[str | None] = []
    server.sni_callback = lambda connection, name, context: asked.append(name)
    with endpoint(server) as hook:
        network: dict[str, Any] = {"resolver": lambda host, port: [HOST], "tls": client}
        outcome = caller(**network).deliver(target(hook.port, CERTIFIED_NAME, "https"), call())
        assert outcome == Success("200 thanks")
        assert asked == [CERTIFIED_NAME]
        assert hook.received[0].headers["host"] == f"{CERTIFIED_NAME}:{hook.port}"

        outcome = caller(**network).deliver(target(hook.port, "other.example", "https"), call())
        assert refusal(outcome) == ("tls_error", False)
        assert len(hook.received) == 1


def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    server, _ = self_signed(tmp_path)
    with endpoint(server) as hook:
        outcome = caller(resolver=lambda host, port: [HOST]).deliver(
            target(hook.port, CERTIFIED_NAME, "https"), call()
        )
        assert hook.received == []
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "tls_error"
    assert "certificate verify failed" in outcome.error.message


# -- the deadline


def drip_body(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while not stop.wait(0.05):
        connection.sendall(b"x")


def drip_headers(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
    while not stop.wait(0.05):
        connection.sendall(b"x")


def go_on_and_on(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)
    while not stop.wait(0.05):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def say_nothing(connection: socket.socket, stop: threading.Event) -> None:
    stop.wait(30)


Talk = Callable[[socket.socket, threading.Event], None]


@pytest.mark.parametrize("talk", [drip_body, drip_headers, go_on_and_on, say_nothing])
def test_a_slow_answer_is_cut_at_the_deadline(talk: Talk) -> None:
    assert_times_out(talk, "http", PAYLOAD)


def test_a_silent_handshake_is_cut_at_the_deadline() -> None:
    assert_times_out(say_nothing, "https", PAYLOAD)


def test_an_endpoint_that_does_not_read_is_left_at_the_deadline() -> None:
    assert_times_out(say_nothing, "http", json.dumps("y" * 20_000_000))


def test_a_reader_that_drips_over_tls_is_left_at_the_deadline(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path)

    def read_slowly(connection: socket.socket, stop: threading.Event) -> None:
        with server.wrap_socket(connection, server_side=True) as secured:
            while not stop.wait(0.05):
                secured.recv(4096)

    payload = json.dumps("y" * 20_000_000)
    assert_times_out(read_slowly, "https", payload, tls=client, resolver=lambda host, port: [HOST])


def assert_times_out(talk: Talk, scheme: str, payload: str, **network: Any) -> None:
    sender = caller(**network)
    with raw_endpoint(talk) as port:
        began = time.monotonic()
        host = CERTIFIED_NAME if network else HOST
        outcome = sender.deliver(target(port, host, scheme), call(payload, 0.6))
        took_seconds = time.monotonic() - began
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.timed_out) == ("timeout", True)
    assert not outcome.error.permanent
    assert 0.6 <= took_seconds < 3


def test_a_lookup_that_hangs_is_left_at_the_deadline() -> None:
    release = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        release.wait(30)
        return [HOST]

    outcome = caller(resolver=hang).deliver(target(80), call(timeout_seconds=0.2))
    release.set()
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.timed_out) == ("timeout", True)


# -- no connection


def test_nobody_listens() -> None:
    with socket.socket() as closed:
        closed.bind((HOST, 0))
        outcome = caller().deliver(target(closed.getsockname()[1]), call())
    assert refusal(outcome) == ("connect_error", False)


def test_a_name_that_old_rules_change_is_looked_up_by_none() -> None:
    """`faß.de` is `fass.de` by the rules of 2003, and by those of today somebody else's."""
    asked: list[str] = []

    def look_up(host: str, port: int) -> list[str]:
        asked.append(host)
        return [HOST]

    outcome = caller(resolver=look_up).deliver(target(80, "faß.de"), call())

    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "protocol_error"
    assert "must be written as xn--" in outcome.error.message
    assert asked == []


def test_a_name_that_is_not_found_is_tried_again() -> None:
    def not_found(host: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    outcome = caller(resolver=not_found).deliver(target(80, "nowhere.example"), call())
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("dns_error", False)
    assert "nowhere.example" in outcome.error.message


def hang_up(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)


def talk_nonsense(connection: socket.socket, stop: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"220 mail.example ESMTP\r\n")


@pytest.mark.parametrize("talk", [hang_up, talk_nonsense])
def test_an_answer_that_is_not_http(talk: Talk) -> None:
    with raw_endpoint(talk) as port:
        outcome = caller().deliver(target(port), call())
    assert isinstance(outcome, Failure)
    # Whether its answer or the reset behind it is read first is the network's affair.
    assert outcome.error.kind in ("protocol_error", "network_error")


def test_without_a_key_nothing_is_sent() -> None:
    def no_key(deadline: Deadline, within: timedelta) -> str:
        raise SigningKeyError("denied")

    with endpoint() as hook:
        sender = WebhookCaller(SystemClock(), no_key, LOOPBACK, owner_secrets({}))
        outcome = sender.deliver(target(hook.port), call())
        assert hook.received == []
    assert refusal(outcome) == ("signing_key_error", False)


def test_a_key_that_comes_too_late_is_no_time_out_of_the_endpoint() -> None:
    """Its owner's jobs would be taken for ones whose host hangs."""

    def read() -> str:
        time.sleep(1)
        return "key"

    late = DeploymentKey(read, SystemClock())
    sender = WebhookCaller(SystemClock(), late.get, LOOPBACK, owner_secrets({}))

    outcome = sender.deliver(target(80), call(timeout_seconds=0.2))

    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.timed_out) == ("signing_key_error", False)
    assert outcome.error.message == "the webhook secret was not read in time"


def test_the_context_of_a_deployment_verifies_certificates() -> None:
    tls = caller()._tls
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname
