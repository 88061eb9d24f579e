"""Endpoints on loopback that webhooks are sent to, good ones and bad ones."""

import datetime as dt
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
CERTIFIED_NAME = "hooks.example.test"


@dataclass(frozen=True)
class Received:
    """A request as it came, and when; header names in lower case."""

    at: float
    path: str
    headers: dict[str, str]
    body: bytes
    method: str = "POST"


@dataclass
class Endpoint:
    """What to answer, and what has come: `answers` first, each a status with headers, and then
    always the same."""

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    status: int = 200
    answer: bytes = b"thanks"
    answer_headers: dict[str, str] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/hook"

    def next_answer(self) -> tuple[int, dict[str, str]]:
        return self.answers.pop(0) if self.answers else (self.status, self.answer_headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__((HOST, 0), _Handler)
        self.endpoint = endpoint

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10.0

    def do_POST(self) -> None:
        endpoint = self.server.endpoint
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint.received.append(Received(time.time(), self.path, headers, body, self.command))
        status, answer_headers = endpoint.next_answer()
        self.send_response(status)
        for name, value in answer_headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(endpoint.answer)))
        self.end_headers()
        self.wfile.write(endpoint.answer)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@contextmanager
def endpoint(tls: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    """An endpoint that answers 200 until it is told otherwise."""
    state = Endpoint()
    server = _Server(state)
    if tls is not None:
        # The handshake happens in the thread of the request, not in the one that accepts.
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    state.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def raw_endpoint(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[int]:
    """The port of a server that lets `talk` do as it likes with its one connection.

    The event is set when it is to stop.
    """
    stop = threading.Event()
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                try:
                    talk(connection, stop)
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            stop.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The TLS of a server certified for CERTIFIED_NAME, and of clients that trust it alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CERTIFIED_NAME)])
    now = dt.datetime.now(dt.UTC)
    names = [x509.DNSName(CERTIFIED_NAME), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    certificate_file.write_bytes(certificate.public_bytes(pem))
    key_file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate_file, key_file)
    return server, ssl.create_default_context(cafile=str(certificate_file))
