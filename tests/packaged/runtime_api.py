"""Lambda's Runtime API on loopback: it hands events to one runtime, and takes its answers.

The protocol is that of AWS's "Using the Lambda runtime API for custom runtimes" (2018-06-01).
"""

import json
import queue
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

_TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0;Lineage=1:abcdef12:0"


class RuntimeFailed(Exception):
    """The function could not be loaded, or an invocation raised; the message has its words."""


class RuntimeApi:
    """Serves one runtime; a context manager. `address` is for AWS_LAMBDA_RUNTIME_API."""

    def __init__(self, function_arn: str, timeout_seconds: int) -> None:
        self._arn = function_arn
        self._timeout_seconds = timeout_seconds
        self._events: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self._answers: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._asked = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "RuntimeApi":
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()

    def wait_until_loaded(self, limit_seconds: float) -> None:
        """Wait until the runtime asks for its first event. Raises RuntimeFailed."""
        if not self._asked.wait(limit_seconds):
            raise RuntimeFailed(f"not loaded after {limit_seconds:.0f} s")
        if not self._answers.empty():
            raise RuntimeFailed(self._answers.get()[1].decode())

    def invoke(self, event: object) -> Any:
        """The function's answer to an event. Raises RuntimeFailed."""
        self._events.put((str(uuid.uuid4()), json.dumps(event).encode()))
        try:
            kind, body = self._answers.get(timeout=self._timeout_seconds)
        except queue.Empty:
            raise RuntimeFailed(f"no answer within {self._timeout_seconds} s") from None
        if kind == "error":
            raise RuntimeFailed(body.decode())
        return json.loads(body)

    def next_event(self) -> tuple[dict[str, str], bytes] | None:
        """Headers and body of the next event; None at the end."""
        self._asked.set()
        event = self._events.get()
        if event is None:
            return None
        request_id, body = event
        headers = {
            "Lambda-Runtime-Aws-Request-Id": request_id,
            "Lambda-Runtime-Deadline-Ms": str(int((time.time() + self._timeout_seconds) * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": self._arn,
            "Lambda-Runtime-Trace-Id": _TRACE,
            "Content-Type": "application/json",
        }
        return headers, body

    def take(self, kind: str, body: bytes) -> None:
        """An answer: `response` or `error`, also of loading."""
        self._answers.put((kind, body))
        self._asked.set()


def _handler_of(api: RuntimeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            event = api.next_event()
            if event is None:  # the runtime has been ended meanwhile
                self.close_connection = True
            else:
                self._answer(200, *event)

        def do_POST(self) -> None:
            api.take(self.path.rpartition("/")[2], self._body())
            self._answer(202, {}, b'{"status":"OK"}')

        def _body(self) -> bytes:
            if "Content-Length" in self.headers:
                return self.rfile.read(int(self.headers["Content-Length"]))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: the function has its own log."""

    return Handler
