"""What the stage measures with: a clock, what is printed, processor time beside its own."""

import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import boto3
from botocore.awsrequest import AWSRequest
from botocore.httpsession import URLLib3Session

from carillon.schedules.insight.cost import BARE_REQUEST_CPU_SECONDS

_CHILD = b"carillon.executor.task_process.child"
_TRIES = 300
_RECEIVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
numbers = count()
class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        size = int(self.path[1:] or 0)
        self.send_response(200 if size else 204)
        if size:
            self.send_header("content-length", size)
        self.end_headers()
        if size:
            self.wfile.write(b"%0*d" % (size, next(numbers)))
    def log_message(self, *_): pass
class Server(ThreadingHTTPServer):
    request_queue_size = 1000  # or many at once are refused, and come again after a second
server = Server(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""


class StandingClock:
    """Time stands still until someone sleeps; those who sleep at once sleep together."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._lock = threading.Lock()
        self._seen = threading.local()

    def now(self) -> datetime:
        with self._lock:
            self._seen.at = self._now
            return self._now

    def sleep(self, seconds: float) -> None:
        """From the instant that this thread last saw: another may have slept since."""
        self.reach(self._seen.at + timedelta(seconds=max(seconds, 0)))

    def reach(self, instant: datetime) -> None:
        with self._lock:
            self._now = max(self._now, instant)

    def set(self, instant: datetime) -> None:
        """Also back: what sleeps in one invocation, no other one has slept."""
        self._now = instant


class Output(io.TextIOBase):
    """Takes what functions print, as their log groups would: this process by writing here, its
    children by their standard error, which goes to `errors`."""

    def __init__(self, errors: IO[bytes]) -> None:
        self._errors = errors
        self.lines: list[str] = []
        self._begun = ""
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        with self._lock:
            *lines, self._begun = (self._begun + text).split("\n")
            self.lines += [line for line in lines if line]
        return len(text)

    def take(self) -> list[str]:
        with self._lock:
            lines, self.lines = self.lines, []
        return [*lines, *self._errors.read().decode().splitlines()]


@contextmanager
def errors() -> Iterator[IO[bytes]]:
    """What is written to standard error meanwhile, by children too, to be read from here."""
    kept = os.dup(2)
    with tempfile.NamedTemporaryFile() as written, Path(written.name).open("rb") as read:
        os.dup2(os.open(written.name, os.O_WRONLY | os.O_APPEND), 2)
        try:
            yield read
        finally:
            os.dup2(kept, 2)


@contextmanager
def receiver() -> Iterator[str]:
    """A receiver in a process of its own, whose work is nobody's here. It answers with as many
    bytes as the path says, other ones each time; with 204 and none where that is empty."""
    command = [sys.executable, "-c", _RECEIVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class Processor:
    """What this machine takes for a request: `wire_seconds` of it for its way over a socket that
    stays open, which moto leaves out, and `bare_seconds` for the whole as botocore makes it."""

    wire_seconds: float
    bare_seconds: float

    @property
    def speed(self) -> float:
        """Times of the model's machine over times of this one."""
        return BARE_REQUEST_CPU_SECONDS / self.bare_seconds

    @classmethod
    def measured(cls, url: str) -> "Processor":
        """By requests that `url` answers with nothing."""
        session, body = URLLib3Session(), b"x" * 600
        client = boto3.client("dynamodb", endpoint_url=url)
        item = {"pk": {"S": "x"}, "text": {"S": "y" * 100}, "number": {"N": "12345"}}
        return cls(
            _cpu_seconds(lambda: session.send(AWSRequest("POST", url, data=body).prepare())),
            _cpu_seconds(lambda: client.put_item(TableName="table", Item=item)),
        )


def _cpu_seconds(request: Callable[[], object]) -> float:
    """Of one request among many: the least of three rounds."""
    taken: list[float] = []
    for _ in range(3):
        began = time.process_time()
        for _ in range(_TRIES):
            request()
        taken.append((time.process_time() - began) / _TRIES)
    return min(taken)


def children_cpu_seconds() -> float:
    """Of the processes that run tasks for the executor, until now."""
    nanoseconds = 0
    for thread in Path("/proc/self/task").iterdir():
        # Threads and processes end while one looks at them.
        with suppress(FileNotFoundError):
            for child in (thread / "children").read_text().split():
                process = Path("/proc") / child
                if _CHILD in (process / "cmdline").read_bytes():
                    nanoseconds += int((process / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9
