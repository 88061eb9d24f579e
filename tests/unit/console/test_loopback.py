"""The console's server on this machine: who is let in, and what is passed on."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

import carillon.console
from carillon.console import Site
from carillon.console.bundle import bundled
from carillon.console.loopback import ADDRESS, LONGEST_BODY, Loopback
from carillon.errors import ConfigurationError

KEY = "the-key"
TOKEN = "the-token"


class Api(BaseHTTPRequestHandler):
    """Answers with what it was sent."""

    seen: ClassVar[list[dict[str, Any]]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Api.seen.append(
            {"method": self.command, "path": self.path, "body": body, "headers": dict(self.headers)}
        )
        content = b'{"title": "gone"}'
        self.send_response(410)
        self.send_header("ETag", '"7"')
        self.send_header("Set-Cookie", "a=b")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/stage"
    server.shutdown()
    server.server_close()


@pytest.fixture
def loopback(api: str) -> Iterator[Loopback]:
    Api.seen.clear()
    with Loopback(api, TOKEN, KEY) as loopback:
        yield loopback


def ask(
    loopback: Loopback,
    method: str = "GET",
    path: str = "/api/jobs",
    body: str | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    """Headers are named with `_` for `-`; `Carillon_Console=""` leaves the key out."""
    named = {"Carillon-Console": KEY} | {k.replace("_", "-"): v for k, v in headers.items()}
    connection = http.client.HTTPConnection(loopback.origin.removeprefix("http://"), timeout=10)
    connection.request(method, path, body, {k: v for k, v in named.items() if v})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.headers), content


def test_a_request_is_passed_on_with_the_token_and_few_headers(loopback: Loopback) -> None:
    own = {"If_Match": '"3"', "Content_Type": "application/json", "Cookie": "c=d", "X_Other": "e"}
    status, headers, content = ask(loopback, "PATCH", "/api/jobs/a?x=%20y", '{"a": 1}', **own)
    assert (status, json.loads(content), headers["ETag"]) == (410, {"title": "gone"}, '"7"')
    assert "Set-Cookie" not in headers
    (sent,) = Api.seen
    assert (sent["method"], sent["path"]) == ("PATCH", "/stage/jobs/a?x=%20y")
    assert json.loads(sent["body"]) == {"a": 1}
    assert sent["headers"]["Authorization"] == f"Bearer {TOKEN}"
    assert sent["headers"]["If-Match"] == '"3"'
    assert sent["headers"]["User-Agent"] == "carillon-console"
    assert not {"Cookie", "X-Other", "Carillon-Console"} & sent["headers"].keys()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Carillon_Console": ""}, 403),
        ({"Carillon_Console": "another"}, 403),
        ({"Host": "attacker.example"}, 421),
        ({"Host": "localhost:{port}"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_others_are_refused(loopback: Loopback, headers: dict[str, str], status: int) -> None:
    port = loopback.origin.rpartition(":")[2]
    named = {name: value.replace("{port}", port) for name, value in headers.items()}
    assert ask(loopback, **named)[0] == status
    assert Api.seen == []


def test_pages_are_refused_under_another_host_too(loopback: Loopback) -> None:
    assert ask(loopback, path="/", Host="attacker.example")[0] == 421


def test_only_files_of_the_console_are_served(loopback: Loopback) -> None:
    digest = Site(api="/api", sign_in="key").digest
    assert ask(loopback, path="/", Carillon_Console="")[0] == 200
    assert ask(loopback, path=f"/{digest}/app.js", Carillon_Console="")[0] == 200
    for path in (
        "__init__.py",
        "loopback.py",
        "types.d.ts",
        "../pyproject.toml",
        "%2e%2e/__init__.py",
    ):
        assert ask(loopback, path=f"/{digest}/{path}")[0] == 404, path
    assert ask(loopback, path="/app.js")[0] == 404
    assert ask(loopback, "POST", "/", "{}")[0] == 403


def test_reading_only_passes_nothing_else_on(api: str) -> None:
    Api.seen.clear()
    with Loopback(api, TOKEN, KEY, read_only=True) as loopback:
        assert ask(loopback)[0] == 410
        assert ask(loopback, "POST", "/api/schedules/preview", "{}")[0] == 410
        for method, path in [("POST", "/api/jobs"), ("DELETE", "/api/jobs/a"), ("PUT", "/api/x")]:
            assert ask(loopback, method, path)[0] == 403
    assert [sent["method"] for sent in Api.seen] == ["GET", "POST"]


def test_bodies_are_bounded_and_json(loopback: Loopback) -> None:
    assert ask(loopback, "POST", body="no json")[0] == 400
    length = str(LONGEST_BODY + 1)
    assert ask(loopback, "POST", Content_Length=length)[0] == 413
    assert Api.seen == []


@pytest.mark.parametrize("path", ["/api/../../admin", "/api/%2e%2e/admin", "/api/./jobs?x=.."])
def test_no_path_leads_out_of_the_api(loopback: Loopback, path: str) -> None:
    assert ask(loopback, path=path)[0] == 400
    assert Api.seen == []


def test_a_file_of_tokens_that_is_gone_is_told_in_words(
    api: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def token() -> str:
        raise ConfigurationError("CARILLON_TOKEN_FILE", "/token cannot be read")

    Api.seen.clear()
    with Loopback(api, token, KEY) as loopback:
        status, _, content = ask(loopback)
    assert (status, Api.seen, capfd.readouterr().err) == (400, [], "")
    assert json.loads(content)["detail"] == "CARILLON_TOKEN_FILE: /token cannot be read"


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        (b"POST /api/jobs", b"[" * 200_000, b"400"),
        (b"POST /api/jobs", b"NaN", b"400"),
        (b"POST /api/jobs", b'"\\ud800"', b"400"),
        (b"GET /api/jobs HTTP/1.1\r\nIf-Match: \xe9", b"", b"400"),
        (b"POST /api/jobs HTTP/1.1\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n", b"413"),
        (b"GET http://[", b"", b"404"),
    ],
)
def test_what_cannot_be_passed_on_is_refused_in_words(
    loopback: Loopback, capfd: pytest.CaptureFixture[str], head: bytes, body: bytes, status: bytes
) -> None:
    host = loopback.origin.removeprefix("http://")
    first = head if b" HTTP/1.1" in head else head + b" HTTP/1.1"
    more = f"\r\nHost: {host}\r\nCarillon-Console: {KEY}\r\nConnection: close\r\n"
    if b"chunked" not in head:
        more += f"Content-Length: {len(body)}\r\n"
    with socket.create_connection((ADDRESS, int(host.rpartition(":")[2]))) as connection:
        connection.sendall(first + more.encode() + b"\r\n" + body)
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1") == 1
    assert (Api.seen, capfd.readouterr().err) == ([], "")


def test_a_browser_may_close_early(loopback: Loopback, capfd: pytest.CaptureFixture[str]) -> None:
    port = int(loopback.origin.rpartition(":")[2])
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as early:
            early.sendall(f"GET /api/jobs HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            early.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert ask(loopback)[0] == 410
    assert capfd.readouterr().err == ""


def test_an_api_that_is_away_is_a_problem_in_its_own_form() -> None:
    with Loopback("http://127.0.0.1:9", TOKEN, KEY) as loopback:
        status, _, content = ask(loopback)
    assert (status, json.loads(content)["title"]) == (502, "The API cannot be reached")


def test_the_page_may_run_its_own_files_only() -> None:
    answer = Site(api="..", sign_in="oidc", connect_to=("https://sign.in",)).answer("")
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy == [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self' https://sign.in",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    assert answer.headers["Cache-Control"] == "no-store"
    assert b"{" not in answer.body


def test_our_modules_are_one_which_imports_what_is_there() -> None:
    files = carillon.console.assets()
    assert {"app.css", "app.js", "icon.svg", "vendor/preact.js"} <= files.keys()
    assert not [name for name in files if name.endswith(".d.ts")]
    text = files["app.js"].decode()
    imported = set(re.findall(r'^import .* from "\./(.*)";$', text, re.MULTILINE))
    assert imported == {name for name in files if name.startswith("vendor/")}
    assert not re.findall(r"^export |import\(", text, re.MULTILINE)


def test_modules_are_bundled_behind_what_they_import() -> None:
    """Each form of import and export that modules use; the vendors' files stay as they are."""
    modules = {
        "app.js": 'import run, { a as b } from "./lib/one.js";\n',
        "lib/one.js": 'export { h } from "../vendor/v.js";\nexport const a = 1;\n',
        "vendor/v.js": "export{h};",
    }
    with pytest.raises(ValueError, match=r"app.js: import run, \{ a as b \}"):
        bundled(modules)
    modules["app.js"] = 'import { a as b, h } from "./lib/one.js";\nimport("./lib/one.js");\n'
    assert bundled(modules) == (
        'import * as m0 from "./vendor/v.js";\n'
        "const m1 = (() => {\n"
        "const a = 1;\n"
        "return { h: m0.h, a };\n"
        "})();\n"
        "const { a: b, h } = m1;\n"
        "Promise.resolve(m1);\n"
    )
