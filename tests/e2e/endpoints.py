"""An HTTP endpoint for webhooks whose answers a test chooses."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import time

Answer = tuple[int, dict[str, str]]
"""Status and headers."""


@dataclass
class Endpoint:
    """Answers the first requests with `answers`, all others with 200; keeps what came, and when."""

    url: str = ""
    answers: list[Answer] = field(default_factory=list)
    requests: list[tuple[float, dict[str, str], bytes]] = field(default_factory=list)

    def answer(self, headers: dict[str, str], body: bytes) -> Answer:
        self.requests.append((time(), headers, body))
        return self.answers.pop(0) if self.answers else (200, {})


@contextmanager
def endpoint(*answers: Answer) -> Iterator[Endpoint]:
    """An endpoint on a free port of the loopback interface."""
    state = Endpoint(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, extra = state.answer(headers, body)
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield state
        server.shutdown()
        thread.join()
