"""What an endpoint's answer, or its absence, means for the run."""

import httpcore
import pytest

from functions.executor.targets.call import Failure, Success
from functions.executor.targets.network import TlsError
from functions.executor.targets.webhook import judge, kind_of_error
from shared.domain.run import RESULT_LIMIT_BYTES


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_success(status: int) -> None:
    assert judge(status, [], b"") == Success(str(status))


def test_the_result_is_one_line_with_the_beginning_of_the_body() -> None:
    outcome = judge(200, [], b"first\nsecond \x1b[31m" + b"x" * 5000)
    assert isinstance(outcome, Success)
    assert outcome.result is not None
    assert outcome.result.startswith("200 first second  [31mxxx")
    assert len(outcome.result) == RESULT_LIMIT_BYTES
    assert outcome.result.endswith("bytes)")


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (100, False),
        (301, True),
        (302, True),
        (304, True),
        (308, True),
        (400, True),
        (401, True),
        (404, True),
        (408, False),
        (410, True),
        (422, True),
        (425, False),
        (429, False),
        (499, True),
        (500, False),
        (502, False),
        (503, False),
        (599, False),
    ],
)
def test_which_failures_are_for_good(status: int, permanent: bool) -> None:
    outcome = judge(status, [], b"why")
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == f"http_{status}"
    assert outcome.error.permanent is permanent
    assert not outcome.timed_out


def test_a_failure_tells_the_beginning_of_the_body() -> None:
    outcome = judge(503, [], "später \ud83d".encode("utf-8", "surrogatepass"))
    assert isinstance(outcome, Failure)
    assert outcome.error.message.startswith("the endpoint answered 503: später")
    outcome.error.message.encode()  # what no store could encode is gone


def test_a_redirect_tells_where_it_pointed() -> None:
    outcome = judge(302, [(b"Location", b"http://169.254.169.254/latest")], b"")
    assert isinstance(outcome, Failure)
    assert "to http://169.254.169.254/latest; redirects are not followed" in outcome.error.message


def httpcore_errors() -> list[type[Exception]]:
    exported = [getattr(httpcore, name) for name in httpcore.__all__]
    errors = [item for item in exported if isinstance(item, type) and issubclass(item, Exception)]
    assert len(errors) > 10
    return errors


@pytest.mark.parametrize("error", httpcore_errors(), ids=lambda error: error.__name__)
def test_every_error_of_httpcore_has_a_kind(error: type[Exception]) -> None:
    if issubclass(error, httpcore.TimeoutException):
        return
    if error is httpcore.ConnectionNotAvailable:
        return  # used between a pool and its connections only
    assert kind_of_error(error("x")).endswith("_error")


def test_the_kinds_of_connection_errors_are_told_apart() -> None:
    assert kind_of_error(TlsError("x")) == "tls_error"
    assert kind_of_error(httpcore.ConnectError("x")) == "connect_error"
    assert kind_of_error(httpcore.ReadError("x")) == "network_error"
    assert kind_of_error(httpcore.RemoteProtocolError("x")) == "protocol_error"
