"""The gateway as a WSGI application, so that tools which speak HTTP can drive an Api."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, make_server

from carillon.api.app import Api
from tests.unit.api.conftest import World
from tests.unit.api.gateway import CONTEXT, Json, event

StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Gateway:
    """Passes every request on as that of `claims`, which may be changed between two."""

    def __init__(self, api: Api, claims: Json) -> None:
        self._api = api
        self.claims = claims

    def __call__(self, environ: Json, start_response: StartResponse) -> Iterable[bytes]:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else b""
        made = event(
            environ["REQUEST_METHOD"],
            # WSGI hands bytes on as if they were Latin-1.
            environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace"),
            body=body.decode("utf-8", "surrogateescape") or None,
            query=_query(environ.get("QUERY_STRING", "")),
            headers=_headers(environ),
            claims=self.claims,
        )
        answer = self._api.answer(made, CONTEXT)
        status = HTTPStatus(answer["statusCode"])
        headers = [(str(name), str(value)) for name, value in answer["headers"].items()]
        start_response(f"{status.value} {status.phrase}", headers)
        return [(answer["body"] or "").encode()]


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving(world: World, subject: str = "owner-1") -> Iterator[str]:
    """The address of a server for the world's API; all requests are of one owner."""
    gateway = Gateway(world.api(), {"sub": subject})
    server = make_server("127.0.0.1", 0, gateway, handler_class=_Quiet)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _query(text: str) -> dict[str, str]:
    """Repeated parameters are joined by commas."""
    joined: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _headers(environ: Json) -> dict[str, str]:
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        headers["content-type"] = environ["CONTENT_TYPE"]
    return headers
