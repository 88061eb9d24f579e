"""Connections that are refused by the address they really go to.

The check is made where the connection is: a name is looked up once, each address of the answer is
judged, and the socket is connected to the very address that was judged. So neither a name that
points inside, nor a number in an odd notation, nor an answer that changes between check and
connection gets through. One deadline bounds everything: lookup, connection, TLS, each read.
"""

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import httpcore2

from carillon.domain.addresses import (
    Address,
    Network,
    is_public,
    lies_in,
    parse_address,
    reachable_address,
)
from carillon.executor.deadlines import Deadline, call_within

Resolver = Callable[[str, int], Sequence[str]]
"""Host and port to addresses as text, best first; raises OSError or UnicodeError."""
Connector = Callable[[Address, int, float], socket.socket]
"""Address, port and limit in seconds to a connected socket; raises OSError."""

MOST_HANGING = 50
"""Lookups of one owner that may go on though nobody waits for them any more."""
_ADDRESSES_TRIED = 4
_T = TypeVar("_T")


class RefusedError(Exception):
    """The address must not be reached; `kind` is `address_refused` or `plain_http_refused`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class LookupFailedError(Exception):
    """The host's name has no usable address now."""


class TlsError(httpcore2.ConnectError):
    """No secure connection: a certificate that does not verify, or no common protocol."""


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host by the system's resolver."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def connect(address: Address, port: int, limit_seconds: float) -> socket.socket:
    """A TCP connection to exactly this address."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(limit_seconds)
        connection.connect((str(address), port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


class Lookups:
    """The name lookups of a process, each in a thread of its own, which nothing can end: where the
    name servers of a host never answer, it goes on beyond its deadline. There are only so many
    threads for all owners, so one who has MOST_HANGING of these gets no other until some end."""

    def __init__(self, resolver: Resolver = look_up) -> None:
        self._resolver = resolver
        self._hanging: list[str] = []
        """The owner of each."""
        self._lock = Lock()

    def addresses(self, owner: str, host: str, port: int, deadline: Deadline) -> Sequence[str]:
        """Raises what the resolver raises, and TimeoutError."""
        has_ended = hangs = False

        def looked_up() -> Sequence[str]:
            nonlocal has_ended
            try:
                return self._resolver(host, port)
            finally:
                with self._lock:
                    has_ended = True
                    if hangs:
                        self._hanging.remove(owner)

        with self._lock:
            if self._hanging.count(owner) >= MOST_HANGING:
                raise OSError(f"{MOST_HANGING} lookups of its owner have yet to end")
        try:
            return call_within(deadline, looked_up)
        except TimeoutError:
            with self._lock:
                hangs = not has_ended
                self._hanging += [owner] * hangs
            raise


class GuardedBackend(httpcore2.NetworkBackend):
    """The network for one request of an owner. `plain`: without TLS."""

    def __init__(
        self,
        owner: str,
        deadline: Deadline,
        allowed_networks: Sequence[Network],
        *,
        plain: bool,
        lookups: Lookups,
        connector: Connector = connect,
    ) -> None:
        self._owner = owner
        self._deadline = deadline
        self._allowed_networks = allowed_networks
        self._plain = plain
        self._lookups = lookups
        self._connector = connector

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first address of the host that may be reached and answers.

        Raises RefusedError, LookupFailedError and httpcore2's connection errors.
        """
        refusals: list[RefusedError] = []
        permitted: list[Address] = []
        for address in self._addresses(host, port):
            refusal = self._refusal(host, address)
            if refusal is None:
                permitted.append(address)
            else:
                refusals.append(refusal)
        if not permitted:
            raise refusals[0]
        return DeadlineStream(self._connected(permitted[:_ADDRESSES_TRIED], port), self._deadline)

    def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            texts = self._lookups.addresses(self._owner, host, port, self._deadline)
            addresses = [reachable_address(parse_address(text)) for text in texts]
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} was not looked up in time") from error
        except (OSError, ValueError) as error:
            raise LookupFailedError(f"{host} cannot be looked up: {error}") from error
        if not addresses:
            raise LookupFailedError(f"{host} has no address")
        return addresses

    def _refusal(self, host: str, address: Address) -> RefusedError | None:
        if lies_in(address, self._allowed_networks):
            return None
        if not is_public(address):
            return RefusedError("address_refused", f"{host} is {address}: not a public address")
        if self._plain:
            message = f"{host} is {address}: plain http is refused, use https"
            return RefusedError("plain_http_refused", message)
        return None

    def _connected(self, addresses: Sequence[Address], port: int) -> socket.socket:
        problem: OSError | None = None
        for number, address in enumerate(addresses):
            left = self._deadline.remaining()
            if not left:
                break
            try:
                # A silent address must leave time for the next.
                return self._connector(address, port, left / (len(addresses) - number))
            except OSError as error:
                problem = error
        if self._deadline.passed:
            raise httpcore2.ConnectTimeout("not connected in time") from problem
        raise httpcore2.ConnectError(str(problem)) from problem


class DeadlineStream(httpcore2.NetworkStream):
    """A connected socket whose operations, all together, end at the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return self._within(lambda: self._connection.recv(max_bytes))
        except TimeoutError as error:
            raise httpcore2.ReadTimeout from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            # Not sendall: over TLS its limit is one for each record.
            unsent = memoryview(buffer)
            while unsent:
                unsent = unsent[self._within(partial(self._connection.send, unsent)) :]
        except TimeoutError as error:
            raise httpcore2.WriteTimeout from error
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    def close(self) -> None:
        self._connection.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        try:
            left = self._deadline.remaining()
            if not left:
                raise TimeoutError
            self._connection.settimeout(left)
            secured = ssl_context.wrap_socket(self._connection, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise httpcore2.ConnectTimeout from error
        except (OSError, ValueError) as error:  # ValueError: a name that cannot be one of a host
            self.close()
            raise TlsError(str(error)) from error
        return DeadlineStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return None

    def _within(self, operate: Callable[[], _T]) -> _T:
        """The result of an operation on the socket; TimeoutError when the deadline has passed."""
        while seconds := self._deadline.poll_seconds():
            self._connection.settimeout(seconds)
            with suppress(TimeoutError):
                return operate()
        raise TimeoutError
