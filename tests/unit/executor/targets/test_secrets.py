"""Owners' secrets: whose they are, how long they are kept, what is told when one is missing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carillon.clock import ManualClock
from carillon.domain.targets import ParameterReference, SecretReference
from carillon.executor.deadlines import Deadline
from carillon.executor.targets import secrets
from carillon.executor.targets.secrets import (
    DOUBTFUL_FOR,
    REFRESH_AFTER,
    RETRY_AFTER,
    AwsSecrets,
    KeptText,
    OwnerSecrets,
    SecretError,
    owner_path,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
TOKEN = SecretReference(secret="token")


class Source(AwsSecrets):
    """Texts by name; names of what was asked."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = texts
        self.problem: SecretError | None = None
        self.asked: list[str] = []

    def secret(self, secret_id: str) -> str:
        self.asked.append(secret_id)
        if self.problem is not None:
            raise self.problem
        return self.texts[secret_id.rpartition("/")[2]]

    def parameter(self, name: str) -> str:
        return self.secret(name)


def soon() -> Deadline:
    return Deadline.after(5)


def test_names_begin_with_prefix_and_owner() -> None:
    source = Source(token="t", tenant="blue")
    owners = OwnerSecrets(source, "carillon", ManualClock(START))
    assert owners.text("user/ann@example.com", TOKEN, soon()) == "t"
    assert owners.text("team/blue", ParameterReference(parameter="tenant"), soon()) == "blue"
    assert source.asked == ["carillon/user/ann_40example.com/token", "/carillon/team/blue/tenant"]


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_two_owners_share_a_path(one: str, other: str) -> None:
    try:
        one_path, other_path = owner_path(f"user/{one}"), owner_path(f"user/{other}")
    except UnicodeEncodeError:
        return  # a lone surrogate: no token carries one
    assert (one_path == other_path) == (one == other)
    assert one_path.count("/") == 1
    assert one_path.isascii()


def test_each_is_kept_for_a_while() -> None:
    clock, source = ManualClock(START), Source(token="first", other="o")
    owners = OwnerSecrets(source, "carillon", clock)
    for _ in range(3):
        owners.text("ann", TOKEN, soon())
    owners.text("bob", TOKEN, soon())
    owners.text("ann", SecretReference(secret="other"), soon())
    assert len(source.asked) == 3
    source.texts["token"] = " second\n"
    clock.advance(REFRESH_AFTER.total_seconds())
    assert owners.text("ann", TOKEN, soon()) == "second"


def test_an_old_text_serves_while_aws_is_not_there_but_not_when_it_was_removed() -> None:
    clock, source = ManualClock(START), Source(token="first")
    owners = OwnerSecrets(source, "carillon", clock)
    owners.text("ann", TOKEN, soon())
    source.problem = SecretError("secret_unavailable", "cannot be read (Throttling)")
    clock.advance(REFRESH_AFTER.total_seconds())
    assert owners.text("ann", TOKEN, soon()) == "first"
    source.problem = SecretError("secret_missing", "does not exist (ResourceNotFoundException)")
    clock.advance(REFRESH_AFTER.total_seconds())
    with pytest.raises(SecretError, match="the secret 'token' does not exist") as caught:
        owners.text("ann", TOKEN, soon())
    assert caught.value.kind == "secret_missing"


def test_a_missing_one_is_looked_for_no_more_often_than_every_ten_seconds() -> None:
    """Every attempt of every job that names it would read it, and throttle the reads of others."""
    clock, source = ManualClock(START), Source(token="t")
    source.problem = SecretError("secret_missing", "does not exist (ParameterNotFound)")
    owners, parameter = (
        OwnerSecrets(source, "carillon", clock),
        ParameterReference(parameter="token"),
    )
    for _ in range(3):
        with pytest.raises(SecretError, match="the parameter 'token' does not exist") as caught:
            owners.text("ann", parameter, soon())
        assert caught.value.kind == "secret_missing"
    assert len(source.asked) == 1
    source.problem = None
    assert owners.text("bob", parameter, soon()) == "t"  # another one's
    clock.advance(DOUBTFUL_FOR.total_seconds())
    assert owners.text("ann", parameter, soon()) == "t"


def test_one_that_cannot_be_read_is_asked_for_again_at_once() -> None:
    """Also after it was missing: what holds no longer is not told in the place of the reason."""
    clock, source = ManualClock(START), Source(token="t")
    owners = OwnerSecrets(source, "carillon", clock)
    source.problem = SecretError("secret_missing", "does not exist (ParameterNotFound)")
    with pytest.raises(SecretError, match="does not exist"):
        owners.text("ann", TOKEN, soon())
    source.problem = SecretError("secret_unavailable", "cannot be read (ThrottlingException)")
    clock.advance(DOUBTFUL_FOR.total_seconds())
    for _ in range(2):
        with pytest.raises(SecretError, match="cannot be read") as caught:
            owners.text("ann", TOKEN, soon())
        assert caught.value.kind == "secret_unavailable"
    source.problem = None
    assert owners.text("ann", TOKEN, soon()) == "t"


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "MOST_KEPT", 2)
    source = Source(token="t")
    owners = OwnerSecrets(source, "carillon", ManualClock(START))
    for owner in ("ann", "bob", "ann", "cid", "ann", "bob"):
        owners.text(owner, TOKEN, soon())
    assert [name.split("/")[1] for name in source.asked] == ["ann", "bob", "cid", "bob"]


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A Secrets Manager on this machine: the number of requests of each of its connections. The
    second has no answer, as on one that the network has forgotten."""

    class Connection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            requests.append(0)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            requests[-1] += 1
            if requests[-1] > 1:
                over.wait(10)
                return
            body = f'{{"SecretString": "text {len(requests)}"}}'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    requests: list[int] = []
    over = Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Connection)
    Thread(target=server.serve_forever, daemon=True).start()
    for name, value in {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": f"http://127.0.0.1:{server.server_port}",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }.items():
        monkeypatch.setenv(name, value)
    yield requests
    over.set()
    server.shutdown()
    server.server_close()


def test_each_read_has_a_connection_of_its_own(manager: list[int]) -> None:
    """The last one was minutes ago: its connection is dead, and while a refresh hangs on it the old
    text would serve on."""
    clock, source = ManualClock(START), AwsSecrets()
    kept = KeptText(lambda: source.secret("token"), clock)
    assert kept.get(soon()) == "text 1"
    clock.advance(REFRESH_AFTER.total_seconds())
    assert kept.get(soon()) == "text 2"
    assert manager == [1, 1]


class Store:
    """One text, that is read only while `free` is set."""

    def __init__(self) -> None:
        self.text: str | None = "old"
        self.free = Event()
        self.free.set()
        self.reads = self.answers = 0

    def read(self) -> str:
        self.reads += 1
        self.free.wait(30)
        self.answers += 1
        if self.text is None:
            raise SecretError("secret_missing", "does not exist (ParameterNotFound)")
        return self.text


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.free.set()


def stale(store: Store) -> tuple[KeptText, ManualClock]:
    """A text that is to be refreshed now, which hangs."""
    clock = ManualClock(START)
    kept = KeptText(store.read, clock)
    assert kept.get(soon()) == "old"
    clock.advance(REFRESH_AFTER.total_seconds())
    store.free.clear()
    return kept, clock


def finished(until: Callable[[], bool]) -> None:
    ends_at = monotonic() + 5
    while not until() and monotonic() < ends_at:
        sleep(0.01)


def test_a_refresh_that_hangs_leaves_the_call_most_of_its_time(store: Store) -> None:
    kept, clock = stale(store)
    deadline = Deadline.after(1)
    assert kept.get(deadline) == "old"
    assert deadline.remaining() > 0.5
    assert kept.get(deadline) == "old"
    assert store.reads == 2  # not at each call
    clock.advance(RETRY_AFTER.total_seconds())
    deadline = Deadline.after(30)
    assert kept.get(deadline) == "old"
    assert deadline.remaining() > 28
    assert store.reads == 3


def test_a_first_read_that_hangs_is_no_time_out_of_the_target(store: Store) -> None:
    """Its host would be taken for one that hangs, though nothing was asked of it."""
    store.free.clear()
    kept = KeptText(store.read, ManualClock(START))
    for _ in range(2):
        with pytest.raises(SecretError, match="was not read in time") as caught:
            kept.get(Deadline.after(0.1))
        assert caught.value.kind == "secret_unavailable"


def test_a_batch_after_a_pause_has_the_text_of_now(store: Store) -> None:
    """A process stands still between its invocations: what it kept may be an hour old, and an
    endpoint that refuses it (401) ends a run for good."""
    kept, clock = stale(store)
    clock.advance(3600)
    store.text = "new"
    with ThreadPoolExecutor(10) as batch:
        asked = [batch.submit(kept.get, Deadline.after(30)) for _ in range(10)]
        finished(lambda: store.reads == 2)
        sleep(0.1)
        store.free.set()
    assert [each.result() for each in asked] == ["new"] * 10
    assert store.reads == 2


def test_a_text_that_is_in_doubt_is_read_again_no_more_often_than_every_ten_seconds(
    store: Store,
) -> None:
    clock = ManualClock(START)
    kept = KeptText(store.read, clock)
    assert kept.get(soon()) == "old"
    store.text = "new"
    clock.advance(DOUBTFUL_FOR.total_seconds() - 1)
    assert kept.get(soon(), DOUBTFUL_FOR) == "old"
    clock.advance(1)
    assert kept.get(soon()) == "old"
    assert kept.get(soon(), DOUBTFUL_FOR) == "new"
    assert kept.get(soon(), DOUBTFUL_FOR) == "new"
    assert store.reads == 2


def test_others_wait_no_longer_than_who_asks_a_store_that_hangs(store: Store) -> None:
    kept, _ = stale(store)
    began = monotonic()
    with ThreadPoolExecutor(10) as batch:
        asked = [batch.submit(kept.get, Deadline.after(30)) for _ in range(10)]
    assert [each.result() for each in asked] == ["old"] * 10
    assert monotonic() - began < 1.8
    assert store.reads == 2


def test_what_was_read_before_a_pause_is_kept_no_longer_for_it(store: Store) -> None:
    kept, clock = stale(store)
    assert kept.get(Deadline.after(0.2)) == "old"
    clock.advance(REFRESH_AFTER.total_seconds())
    store.free.set()  # its answer had come before
    finished(lambda: store.answers == 2)
    sleep(0.05)
    store.text = "new"
    assert kept.get(soon()) == "new"


def test_who_waits_for_a_read_takes_its_answer_that_there_is_none(store: Store) -> None:
    store.text = None
    store.free.clear()
    kept = KeptText(store.read, ManualClock(START))
    with ThreadPoolExecutor(10) as batch:
        asked = [batch.submit(kept.get, Deadline.after(30)) for _ in range(10)]
        finished(lambda: store.reads == 1)
        sleep(0.1)
        store.free.set()
    assert {str(each.exception()) for each in asked} == {"does not exist (ParameterNotFound)"}
    assert store.reads == 1


@pytest.mark.parametrize("new", ["new", None])
def test_what_a_refresh_says_too_late_holds_for_the_next_call(
    store: Store, new: str | None
) -> None:
    kept, _ = stale(store)
    store.text = new
    assert kept.get(Deadline.after(0.2)) == "old"
    store.free.set()
    finished(lambda: kept._text == new)
    if new is None:
        with pytest.raises(SecretError, match="does not exist"):
            kept.get(soon())
    else:
        assert kept.get(soon()) == new
    assert store.reads == 2
