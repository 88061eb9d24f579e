"""The console on this machine: a server on 127.0.0.1 that passes `/api/*` on with the credentials
of the command line, so that the browser never sees a token.

Any page of the web can send requests here, and any name of the web can be pointed here. So nothing
is answered but under the server's own `Host`, and no request is passed on without the key, which
only the printed link has.
"""

import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import ClassVar
from urllib.parse import unquote

from carillon.client.clock import Clock
from carillon.client.drivers import Driver
from carillon.client.errors import ApiError
from carillon.client.session import Session, is_repeated
from carillon.client.steps import Answer as ApiAnswer
from carillon.client.steps import Lost, Request, Steps
from carillon.client.tokens import Token
from carillon.console import Answer, Site
from carillon.errors import ConfigurationError, InvalidFieldError

ADDRESS = "127.0.0.1"
KEY_HEADER = "Carillon-Console"
AGENT = "carillon-console"
PASSED_ON = ("Content-Type", "If-Match", "If-None-Match", "Idempotency-Key", "Carillon-Team")
PASSED_BACK = ("Content-Type", "ETag", "Location", "Retry-After")
LONGEST_BODY = 1_048_576
"""The API's own limit, in bytes."""
_MOST_LOSSES = 3
READING = frozenset({("POST", "/schedules/preview")})
"""Requests that write nothing, besides those of GET."""


class Forwarder:
    """Sends requests to the API with the owner's token."""

    def __init__(self, api_url: str, token: Token) -> None:
        """Raises InvalidFieldError for an address that no token may be sent to."""
        clock = Clock()
        self._session = Session.of(api_url, token, clock)
        self._driver = Driver.to(self._session.api_url, clock, agent=AGENT)
        self._lock = Lock()

    def close(self) -> None:
        self._driver.close()

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        """The API's answer, of whatever status; a problem (502) where there is none."""
        try:
            given = json.loads(body) if body else None
        except (ValueError, RecursionError):
            return problem(400, "The body is no JSON")
        try:
            with self._lock:  # A token is renewed once.
                token = self._driver.run(self._session.token())
            headers = {**headers, "Authorization": f"Bearer {token}"}
            request = Request(method, self._session.api_url + path, {}, given, headers)
            got = self._driver.run(_answered(request, (method, path) in READING))
        except ApiError as error:
            return problem(error.status or 502, str(error))
        # What no request can carry: NaN, half a character; or a file of tokens that is gone.
        except (InvalidFieldError, ConfigurationError) as error:
            return problem(400, str(error))
        if isinstance(got, Lost):
            return problem(502, f"{self._session.api_url} does not answer: {got.reason}")
        passed = {name: got.headers[name] for name in PASSED_BACK if name in got.headers}
        return Answer(got.status, got.content, {**passed, "Cache-Control": "no-store"})


def _answered(request: Request, only_reads: bool) -> Steps[ApiAnswer | Lost]:
    """The answer; what was lost on the way is sent again where that does no harm."""
    for _ in range(_MOST_LOSSES):
        got: ApiAnswer | Lost = yield request
        if isinstance(got, ApiAnswer) or not (only_reads or is_repeated(request, got)):
            break
    return got


def problem(status: int, detail: str) -> Answer:
    """A refusal of the console's own, in the API's form."""
    titles = {400: "Bad request", 403: "Not allowed", 413: "Too large", 421: "Another host"}
    told = {"title": titles.get(status, "The API cannot be reached"), "status": status}
    body = json.dumps({**told, "detail": detail}).encode()
    return Answer(status, body, {"Content-Type": "application/problem+json"})


class Loopback:
    """The server, from `with` to its end; `link` opens the console, and is as secret as `key`."""

    def __init__(
        self, api_url: str, token: Token, key: str, *, port: int = 0, read_only: bool = False
    ) -> None:
        """Port 0 is any that is free. Raises OSError where the port is taken, and as Forwarder."""
        self._forwarder = Forwarder(api_url, token)
        site = Site(api="/api", sign_in="key", read_only=read_only)

        class Handler(_Handler):
            gate = Gate(site, self._forwarder, key, read_only)

        self._server = _Server((ADDRESS, port), Handler)
        self.origin = f"http://{ADDRESS}:{self._server.server_port}"
        Handler.gate.origin = self.origin
        self.link = f"{self.origin}/#key={key}"

    def serve(self) -> None:
        """Answer until `close`, or an interruption."""
        self._server.serve_forever()

    def close(self) -> None:
        self._server.server_close()
        self._forwarder.close()

    def __enter__(self) -> "Loopback":
        Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self.close()


class Gate:
    """Decides on a request, and has it answered."""

    def __init__(self, site: Site, forwarder: Forwarder, key: str, read_only: bool) -> None:
        self._site = site
        self._forwarder = forwarder
        self._key = key.encode()
        self._read_only = read_only
        self.origin = ""

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """`headers` have lower-case names."""
        refusal = self._refusal(headers)
        if refusal is not None:
            return refusal
        place = target.partition("?")[0]
        if not target.startswith("/api/"):
            if method != "GET":
                return problem(403, "only GET")
            return self._site.answer(place.removeprefix("/"))
        if {".", ".."} & set(unquote(place).split("/")):
            return problem(400, "a path without `.` and `..`, which may lead out of the API")
        key = headers.get(KEY_HEADER.lower(), "").encode("latin-1", "replace")
        if not hmac.compare_digest(key, self._key):
            return problem(403, "open the link that `carillon console` has printed")
        path = target.removeprefix("/api")
        if self._read_only and method != "GET" and (method, path) not in READING:
            return problem(403, "this console is read-only")
        passed = {name: headers[name.lower()] for name in PASSED_ON if name.lower() in headers}
        return self._forwarder.answer(method, path, body, passed)

    def _refusal(self, headers: dict[str, str]) -> Answer | None:
        # A name that somebody points at this address is not this address (DNS rebinding).
        if f"http://{headers.get('host')}" != self.origin:
            return problem(421, f"this is {self.origin}")
        if headers.get("origin", self.origin) != self.origin:
            return problem(403, "only the console's own page may ask")
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    gate: ClassVar[Gate]

    def _answer(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers:  # No browser sends one; it would be read as more.
            length = "unknown"
        if not length.isdecimal() or int(length) > LONGEST_BODY:
            self.close_connection = True
            self._send(problem(413, f"at most {LONGEST_BODY} bytes, told by Content-Length"))
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(self.gate.answer(self.command, self.path, headers, body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:  # A browser that has closed early.
            self.close_connection = True

    def version_string(self) -> str:
        return "carillon"

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing: the terminal has the link."""
