"""Server-side request forgery: what webhooks must not reach."""

from pathlib import Path

import pytest

from carillon.executor.targets.call import Failure, Success
from carillon.executor.targets.ssrf_guard import look_up
from tests.integration.executor.endpoints import CERTIFIED_NAME, HOST, endpoint, self_signed
from tests.integration.executor.sending import Connections, call, caller, refusal, target


@pytest.mark.parametrize("scheme", ["https", "http"])
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",  # 127.0.0.1 in decimal
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "2852039166",  # 169.254.169.254 in decimal
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "localhost",
        "[::1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[64:ff9b::169.254.169.254]",
        "[2002:7f00:1::]",
        "0x7f.0.0.0x1",
        "0x7F.0.0.1",
        "00177.0.0.01",
        "127.0.1",
        "3232235777",  # 192.168.1.1 in decimal
        "0xc0a80101",
        "10.1",
        "[0:0:0:0:0:ffff:7f00:0001]",
        "[0000::0001]",
        "[::ffff:0:127.0.0.1]",  # translated (SIIT)
        "[64:ff9b:1::7f00:1]",
        "[::ffff:10.0.0.1]",
        "[fe80::a9fe:a9fe]",
    ],
)
def test_no_notation_of_an_inner_address_gets_through(host: str, scheme: str) -> None:
    connections = Connections()
    sender = caller((), resolver=look_up, connector=connections)
    outcome = sender.deliver(target(8080, host, scheme), call())
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("address_refused", True)
    assert host.strip("[]").lower() in outcome.error.message
    assert connections.addresses == []


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1"])
def test_a_name_that_resolves_to_an_inner_address_is_refused(address: str) -> None:
    connections = Connections()
    sender = caller((), resolver=lambda host, port: [address], connector=connections)
    outcome = sender.deliver(target(443, "inside.example", "https"), call())
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "address_refused"
    assert "inside.example" in outcome.error.message
    assert connections.addresses == []


@pytest.mark.parametrize("host", ["127.0.0.1.", "0x7f000001.", "169.254.169.254."])
def test_an_address_as_an_absolute_name_is_none(host: str) -> None:
    connections = Connections()
    outcome = caller((), connector=connections).deliver(target(443, host, "https"), call())
    assert isinstance(outcome, Failure)
    assert outcome.error.kind in ("dns_error", "address_refused")  # as the resolver has it
    assert connections.addresses == []


@pytest.mark.parametrize(
    ("host", "real"),
    [
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1"),  # digits of full width
        ("\u2460\u2461\u2466.0.0.1", "127.0.0.1"),  # digits in circles
        ("127\u30020\u30020\u30021", "127.0.0.1"),  # ideographic full stops
        ("\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3", "127.0.0.1"),  # localhost
    ],
)
def test_letters_that_become_an_inner_address_are_judged_by_it(host: str, real: str) -> None:
    connections = Connections()
    outcome = caller((), connector=connections).deliver(target(443, host, "https"), call())
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "address_refused"
    assert real in outcome.error.message
    assert connections.addresses == []


def test_of_a_mixed_answer_only_the_public_address_is_reached(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path)
    answer = ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "93.184.216.34", "::1"]
    connections = Connections(instead=HOST)
    with endpoint(server) as hook:
        outcome = caller(
            (), resolver=lambda host, port: answer, connector=connections, tls=client
        ).deliver(target(hook.port, CERTIFIED_NAME, "https"), call())
    assert outcome == Success("200 thanks")
    assert connections.addresses == ["93.184.216.34"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_redirect_to_metadata_is_refused_and_not_followed(status: int, method: str) -> None:
    connections = Connections()
    with endpoint() as hook:
        hook.status = status
        hook.answer_headers = {"location": "http://169.254.169.254/latest/meta-data/"}
        outcome = caller(connector=connections).deliver(target(hook.port, method=method), call())
        assert len(hook.received) == 1
    assert refusal(outcome) == (f"http_{status}", True)
    assert connections.addresses == [HOST]


def test_each_attempt_is_judged_anew(tmp_path: Path) -> None:
    """A name that was good at the first attempt may point inside at the second."""
    server, client = self_signed(tmp_path)
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    connections = Connections(instead=HOST)
    with endpoint(server) as hook:
        sender = caller(
            (), resolver=lambda host, port: next(answers), connector=connections, tls=client
        )
        hooked = target(hook.port, CERTIFIED_NAME, "https")
        assert sender.deliver(hooked, call()) == Success("200 thanks")
        outcome = sender.deliver(hooked, call())
        assert len(hook.received) == 1
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "address_refused"
    assert connections.addresses == ["93.184.216.34"]


def test_no_secret_leaves_for_an_address_that_is_refused() -> None:
    connections = Connections()
    sender = caller(
        (), texts={"carillon/user/owner/token": "hunter2hunter2"}, connector=connections
    )
    hooked = target(443, "10.0.0.1", "https", headers={"Authorization": {"secret": "token"}})
    outcome = sender.deliver(hooked, call())
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == "address_refused"
    assert connections.addresses == []


def test_plain_http_to_a_public_address_is_refused() -> None:
    connections = Connections()
    sender = caller(resolver=lambda host, port: ["93.184.216.34"], connector=connections)
    outcome = sender.deliver(target(80, "hooks.example"), call())
    assert refusal(outcome) == ("plain_http_refused", True)
    assert connections.addresses == []
