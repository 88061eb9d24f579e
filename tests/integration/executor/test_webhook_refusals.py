"""Server-side request forgery: what webhooks must not reach."""

from pathlib import Path

import pytest

from functions.executor.targets.call import Failure, Success
from functions.executor.targets.network import look_up
from tests.integration.executor.endpoints import CERTIFIED_NAME, HOST, endpoint, self_signed
from tests.integration.executor.sending import Connections, call, caller, target


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
    ],
)
def test_no_notation_of_an_inner_address_gets_through(host: str, scheme: str) -> None:
    connections = Connections()
    sender = caller((), resolver=look_up, connector=connections)
    outcome = sender.deliver(target(8080, host, scheme), call())
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("address_refused", True)
    assert host.strip("[]") in outcome.error.message
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


def test_a_name_that_rebinds_is_connected_where_it_was_judged(tmp_path: Path) -> None:
    server, client = self_signed(tmp_path)
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    connections = Connections(instead=HOST)
    with endpoint(server) as hook:
        outcome = caller(
            (), resolver=lambda host, port: next(answers), connector=connections, tls=client
        ).deliver(target(hook.port, CERTIFIED_NAME, "https"), call())
    assert outcome == Success("200 thanks")
    assert connections.addresses == ["93.184.216.34"]
    assert next(answers) == ["127.0.0.1"]  # the second answer was never asked for


def test_plain_http_to_a_public_address_is_refused() -> None:
    connections = Connections()
    sender = caller(resolver=lambda host, port: ["93.184.216.34"], connector=connections)
    outcome = sender.deliver(target(80, "hooks.example"), call())
    assert isinstance(outcome, Failure)
    assert (outcome.error.kind, outcome.error.permanent) == ("plain_http_refused", True)
    assert connections.addresses == []
