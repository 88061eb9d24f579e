"""What the senders do with real connections."""

import os
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from carillon.client import Client


class Api(BaseHTTPRequestHandler):
    """Answers the number of each connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'{"port": %d}' % self.client_address[1]
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_processes_share_no_connection_after_a_fork(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that did would read each other's answers."""
    with Client(url, "token") as client, closing(client._driver._http):
        before = client.request("GET", "/a")
        assert client.request("GET", "/b") == before

        parent, child = os.getpid(), os.getpid() + 1
        monkeypatch.setattr(os, "getpid", lambda: child)
        after = client.request("GET", "/c")
        monkeypatch.setattr(os, "getpid", lambda: parent)

    assert after != before
