"""The guard at the connection: what is looked up, judged and connected to."""

import socket
import threading
import time
from collections.abc import Sequence
from ipaddress import ip_network

import httpcore2
import pytest

from carillon.domain.addresses import Address, Network
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.ssrf_guard import (
    MOST_HANGING,
    DeadlineStream,
    GuardedBackend,
    LookupFailedError,
    Lookups,
    RefusedError,
    look_up,
)

OWNER = "team/billing"


class FakeNetwork:
    """A resolver with prepared answers, and a connector that remembers."""

    def __init__(self, *answers: Sequence[str], broken: Sequence[str] = ()) -> None:
        self._answers = list(answers)
        self._broken = broken
        self.lookups = 0
        self.connected: list[str] = []
        self.limits: list[float] = []
        self._peers: list[socket.socket] = []

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.lookups += 1
        return self._answers.pop(0)

    def connect(self, address: Address, port: int, limit_seconds: float) -> socket.socket:
        self.limits.append(limit_seconds)
        if str(address) in self._broken:
            raise ConnectionRefusedError("refused")
        self.connected.append(str(address))
        ours, theirs = socket.socketpair()
        self._peers.append(theirs)
        return ours

    def close(self) -> None:
        for peer in self._peers:
            peer.close()


def open_to(
    network: FakeNetwork,
    *,
    plain: bool = False,
    allowed: Sequence[Network] = (),
    seconds: float = 5,
) -> None:
    backend = GuardedBackend(
        OWNER,
        Deadline.after(seconds),
        allowed,
        plain=plain,
        lookups=Lookups(network.resolve),
        connector=network.connect,
    )
    try:
        backend.connect_tcp("hooks.example", 443).close()
    finally:
        network.close()


def test_the_address_that_was_judged_is_connected_to_after_a_single_lookup() -> None:
    rebinding = FakeNetwork(["93.184.216.34"], ["127.0.0.1"])
    open_to(rebinding)
    assert rebinding.connected == ["93.184.216.34"]
    assert rebinding.lookups == 1


def test_a_name_that_points_inside_is_refused_and_named() -> None:
    network = FakeNetwork(["10.1.2.3"])
    with pytest.raises(RefusedError, match=r"hooks\.example is 10\.1\.2\.3") as caught:
        open_to(network)
    assert caught.value.kind == "address_refused"
    assert network.connected == []


def test_only_the_public_addresses_of_a_mixed_answer_are_tried() -> None:
    network = FakeNetwork(["::1", "10.0.0.1", "8.8.8.8", "127.0.0.1"])
    open_to(network)
    assert network.connected == ["8.8.8.8"]


def test_a_mapped_address_is_connected_to_as_what_it_is() -> None:
    network = FakeNetwork(["::ffff:8.8.8.8"])
    open_to(network)
    assert network.connected == ["8.8.8.8"]


def test_an_allowed_network_may_be_reached_with_and_without_tls() -> None:
    allowed = [ip_network("10.1.0.0/16")]
    for plain in (False, True):
        network = FakeNetwork(["10.1.2.3"])
        open_to(network, plain=plain, allowed=allowed)
        assert network.connected == ["10.1.2.3"]


def test_plain_http_to_a_public_address_is_refused() -> None:
    network = FakeNetwork(["8.8.8.8"])
    with pytest.raises(RefusedError, match="use https") as caught:
        open_to(network, plain=True, allowed=[ip_network("10.1.0.0/16")])
    assert caught.value.kind == "plain_http_refused"
    assert network.connected == []


def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    network = FakeNetwork(["2606:4700::1", "8.8.8.8"], broken=["2606:4700::1"])
    open_to(network, seconds=5)
    assert network.connected == ["8.8.8.8"]
    assert network.limits[0] <= 2.5  # half of what is left


def test_no_address_answers() -> None:
    with pytest.raises(httpcore2.ConnectError, match="refused"):
        open_to(FakeNetwork(["8.8.8.8", "8.8.4.4"], broken=["8.8.8.8", "8.8.4.4"]))


@pytest.mark.parametrize("answer", [[], ["0177.0.0.1"], ["hooks.example"]])
def test_an_answer_without_a_usable_address(answer: list[str]) -> None:
    with pytest.raises(LookupFailedError, match=r"hooks\.example"):
        open_to(FakeNetwork(answer))


@pytest.mark.parametrize("host", ["a..b", "x" * 70 + ".example"])
def test_a_host_that_cannot_be_one(host: str) -> None:
    backend = GuardedBackend(OWNER, Deadline.after(5), (), plain=False, lookups=Lookups())
    with pytest.raises(LookupFailedError):
        backend.connect_tcp(host, 443)


def test_a_lookup_that_hangs_ends_at_the_deadline() -> None:
    release = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        release.wait(30)
        return ["8.8.8.8"]

    lookups = Lookups(hang)
    backend = GuardedBackend(OWNER, Deadline.after(0.1), (), plain=False, lookups=lookups)
    began = time.monotonic()
    with pytest.raises(httpcore2.ConnectTimeout):
        backend.connect_tcp("hooks.example", 443)
    assert time.monotonic() - began < 2
    release.set()


def test_lookups_that_never_end_leave_threads_to_other_owners() -> None:
    release = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        if host == "hangs.example":
            release.wait(30)
        return ["8.8.8.8"]

    lookups, threads = Lookups(hang), threading.active_count()
    for _ in range(MOST_HANGING):
        with pytest.raises(TimeoutError):
            lookups.addresses(OWNER, "hangs.example", 443, Deadline.after(0))
    for _ in range(MOST_HANGING):
        with pytest.raises(OSError, match="have yet to end"):
            lookups.addresses(OWNER, "hangs.example", 443, Deadline.after(5))
    assert threading.active_count() <= threads + MOST_HANGING
    assert lookups.addresses("user/ann", "hooks.example", 443, Deadline.after(5)) == ["8.8.8.8"]
    release.set()
    last = time.monotonic() + 10
    while time.monotonic() < last:
        try:
            lookups.addresses(OWNER, "hangs.example", 443, Deadline.after(5))
            return
        except OSError:
            time.sleep(0.01)
    pytest.fail("the owner gets no lookup, though all others have ended")


def test_look_up_answers_each_address_once() -> None:
    assert look_up("127.0.0.1", 443) == ["127.0.0.1"]
    assert look_up("2130706433", 443) == ["127.0.0.1"]


def test_operations_on_a_stream_end_together_at_the_deadline() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = DeadlineStream(ours, Deadline.after(0.2))
        theirs.send(b"a")
        assert stream.read(10) == b"a"
        began = time.monotonic()
        with pytest.raises(httpcore2.ReadTimeout):
            stream.read(10)
        with pytest.raises(httpcore2.WriteTimeout):
            stream.write(b"x")
        with pytest.raises(httpcore2.ReadTimeout):
            stream.read(10)
        assert time.monotonic() - began < 1
