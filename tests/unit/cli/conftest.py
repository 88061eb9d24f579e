"""A runner for the command, and an API on loopback that answers what a test tells it to."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
import typer.testing
from moto import mock_aws
from typer.testing import CliRunner, Result

from carillon.cli.client import ApiClient
from carillon.cli.output import is_wide
from carillon.cli.tree import app
from carillon.client.clock import Clock
from carillon.client.session import MOST_REPETITIONS
from carillon.settings import Settings

COMMAND = typer.main.get_command(app)
"""Made once: that takes ten times as long as most commands."""
SENT = MOST_REPETITIONS + 1
"""So often is a request sent that is answered by 503, and may be repeated."""


@dataclass(frozen=True)
class Request:
    """What the command sent; header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class FakeApi:
    """Canned answers by method and path."""

    url: str
    requests: list[Request] = field(default_factory=list)
    _answers: dict[tuple[str, str], list[tuple[int, bytes]]] = field(default_factory=dict)

    def answer(self, method: str, path: str, body: Any = None, status: int = 200) -> None:
        """The answer for a path from now on; bytes are sent as they are, None is no body."""
        self._answers[method, path] = []
        self.then(method, path, body, status)

    def then(self, method: str, path: str, body: Any = None, status: int = 200) -> None:
        """What follows once the answers given before were sent, each once; the last repeats."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        raw = b"" if body is None else content
        self._answers[method, path].append((status, raw))

    def take(self, request: Request) -> tuple[int, bytes]:
        answers = self._answers.get((request.method, request.path))
        _, is_lookup, name = request.path.partition("/jobs/named/")
        if is_lookup and not answers:
            # Every name is a job's, of the same id, so that most tests need not care.
            return 200, json.dumps({"job_id": unquote(name)}).encode()
        self.requests.append(request)
        if not answers:
            return 404, b'{"message": "Not Found"}'
        return answers.pop(0) if len(answers) > 1 else answers[0]


def _body(raw: bytes, content_type: str) -> Any:
    if content_type == "application/x-www-form-urlencoded":
        return dict(parse_qsl(raw.decode()))
    return json.loads(raw) if raw else None


class _Server(ThreadingHTTPServer):
    api: FakeApi


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=_body(raw, self.headers.get("Content-Type", "")),
        )
        status, content = self.server.api.take(request)
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the recorded requests are the log."""


@pytest.fixture
def api() -> Iterator[FakeApi]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.api = FakeApi(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before repetitions, which take no time, and have no jitter."""
    found: list[float] = []
    monkeypatch.setattr(Clock, "sleep", lambda clock, seconds: found.append(seconds))
    monkeypatch.setattr(Clock, "fraction", lambda clock: 0.0)
    return found


@pytest.fixture
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An AWS account in this process, and credentials for it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield


def name_deployment(patch: pytest.MonkeyPatch, settings: Settings, segments: int) -> None:
    """Have the environment name a deployment, as an operator's does."""
    patch.setenv("JOBS_TABLE", settings.jobs_table)
    patch.setenv("WHEEL_TABLE", settings.wheel_table)
    patch.setenv("RUNS_TABLE", settings.runs_table)
    urls = {lane.value: url for lane, url in settings.lane_queues.items()}
    patch.setenv("LANE_QUEUES", json.dumps(urls))
    patch.setenv("SEGMENTS", str(segments))


class Run(Protocol):
    """Runs the command in this process."""

    def __call__(self, *arguments: str, stdin: str | bytes | None = None) -> Result: ...


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    """The command, not signed in, with no setting of the machine's environment."""
    for name in (
        "API_URL",
        "TEAM",
        "TOKEN",
        "USERNAME",
        "PASSWORD",
        "CLIENT_ID",
        "CLIENT_SECRET",
        "CLIENT_SCOPE",
        "TOKEN_FILE",
        "COGNITO_ENDPOINT",
    ):
        monkeypatch.delenv(f"CARILLON_{name}", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(typer.testing, "_get_command", lambda app: COMMAND)

    def invoke(*arguments: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin, prog_name="carillon")

    yield invoke
    is_wide.set(False)


@pytest.fixture
def signed_in(run: Run, api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command with the fake API's address and a token in the environment."""
    monkeypatch.setenv("CARILLON_API_URL", api.url)
    monkeypatch.setenv("CARILLON_TOKEN", "secret-token")
    return run


@pytest.fixture
def client(api: FakeApi) -> Iterator[ApiClient]:
    """The commands' own client of the fake API."""
    opened = ApiClient(api.url, "t")
    yield opened
    opened.close()


@pytest.fixture
def credentials_file(tmp_path: Path) -> Path:
    """Where the command stores its sign-in in these tests."""
    return tmp_path / "config" / "carillon" / "credentials.json"
