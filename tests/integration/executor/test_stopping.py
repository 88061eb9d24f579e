"""Calls that are stopped while they last: processes are killed, connections closed."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from carillon.domain.execution.stopping import STOPPED
from carillon.executor.targets.call import Failure, Success
from tests.integration.executor.endpoints import CERTIFIED_NAME, HOST, raw_endpoint, self_signed
from tests.integration.executor.processes import is_running, tasks, written_pids
from tests.integration.executor.sending import call, caller, target

AT_ONCE_SECONDS = 2
"""Far less than the limits of these calls, on a busy machine, too."""


def test_a_stopped_task_is_killed_with_what_it_started(tmp_path: Path) -> None:
    path, stopped = tmp_path / "pids", threading.Event()
    began: list[float] = []

    def stop() -> None:
        written_pids(path)
        began.append(time.monotonic())
        stopped.set()

    with tasks() as caller:
        caller.run("nothing")
        threading.Thread(target=stop).start()
        payload = json.dumps(str(path))
        assert caller.run("spin_with_sessions", payload, stopped=stopped) == Failure(STOPPED)
        assert time.monotonic() - began[0] < AT_ONCE_SECONDS
        pids = written_pids(path)
        assert len(pids) == 3
        assert [pid for pid in pids if is_running(pid)] == []
        assert caller.run("echo", "1") == Success("1")


@pytest.mark.parametrize("part", ["answer", "body", "request"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_the_connection_of_a_stopped_webhook_is_closed(
    tmp_path: Path, secure: bool, part: str
) -> None:
    """While it waits for the answer, in the middle of its body, and while it cannot send."""
    server, client = self_signed(tmp_path)
    stopped, gone = threading.Event(), threading.Event()

    def accept(connection: socket.socket, stop: threading.Event) -> None:
        if secure:
            with server.wrap_socket(connection, server_side=True) as secured:
                talk(secured)
        else:
            talk(connection)

    def talk(connection: socket.socket) -> None:
        connection.recv(1)
        if part == "body":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        threading.Timer(0.5, stopped.set).start()
        if part == "request":
            assert stopped.wait(10)
        connection.settimeout(10)
        with suppress(OSError):  # a reset, where something was left unread
            while connection.recv(65536):
                pass
        gone.set()

    payload = json.dumps("x" * 30_000_000) if part == "request" else "{}"
    with raw_endpoint(accept) as port:
        began = time.monotonic()
        host, scheme = (CERTIFIED_NAME, "https") if secure else (HOST, "http")
        hooks = caller(tls=client, resolver=lambda host, port: [HOST])
        outcome = hooks.deliver(
            target(port, host, scheme), call(payload, timeout_seconds=30, stopped=stopped)
        )
        took_seconds = time.monotonic() - began
        assert outcome == Failure(STOPPED)
        assert took_seconds < 0.5 + AT_ONCE_SECONDS
        assert gone.wait(AT_ONCE_SECONDS)


def test_a_lookup_that_lasts_is_left_when_the_call_is_stopped() -> None:
    release, stopped = threading.Event(), threading.Event()

    def hang(host: str, port: int) -> list[str]:
        stopped.set()
        release.wait(30)
        return [HOST]

    outcome = caller(resolver=hang).deliver(target(80), call(timeout_seconds=30, stopped=stopped))
    release.set()
    assert outcome == Failure(STOPPED)
