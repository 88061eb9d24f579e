"""What an endpoint's answer, or its absence, means for the run."""

import json
from datetime import UTC, datetime

import httpcore2
import pytest

from carillon.domain.run import RESULT_LIMIT_BYTES
from carillon.executor.targets.call import Failure, Success
from carillon.executor.targets.ssrf_guard import TlsError
from carillon.executor.targets.webhook import kind_of_error
from carillon.executor.targets.webhook_answers import Answer, judge, retry_after_seconds

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_2xx_is_success(status: int) -> None:
    assert judge(Answer(status), NOW) == Success(str(status))


def test_202_says_that_the_end_will_be_reported() -> None:
    assert judge(Answer(202), NOW) == Success("202", is_accepted=True)


def test_the_result_is_one_line_with_the_beginning_of_the_body() -> None:
    outcome = judge(Answer(200, [], b"first\nsecond \x1b[31m" + b"x" * 5000), NOW)
    assert isinstance(outcome, Success)
    assert outcome.result is not None
    assert outcome.result.startswith("200 first second  [31mxxx")
    assert len(outcome.result) == RESULT_LIMIT_BYTES
    assert outcome.result.endswith("bytes)")


def test_a_result_that_is_kept_whole_has_its_lines() -> None:
    body = b"first\nsecond" + b"x" * 5000
    outcome = judge(Answer(200, [], body), NOW, keeps_whole=True)
    assert outcome == Success(f"200 {body.decode()}")


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
    outcome = judge(Answer(status, [], b"why"), NOW)
    assert isinstance(outcome, Failure)
    assert outcome.error.kind == f"http_{status}"
    assert outcome.error.permanent is permanent
    assert not outcome.timed_out


def test_a_failure_tells_the_beginning_of_the_body() -> None:
    outcome = judge(Answer(503, [], "später \ud83d".encode("utf-8", "surrogatepass")), NOW)
    assert isinstance(outcome, Failure)
    assert outcome.error.message.startswith("the endpoint answered 503: später")
    outcome.error.message.encode()  # what no store could encode is gone


def test_a_redirect_tells_where_it_pointed() -> None:
    outcome = judge(Answer(302, [(b"Location", b"http://169.254.169.254/latest")], b""), NOW)
    assert isinstance(outcome, Failure)
    assert "to http://169.254.169.254/latest; redirects are not followed" in outcome.error.message


def httpcore2_errors() -> list[type[Exception]]:
    exported = [getattr(httpcore2, name) for name in httpcore2.__all__]
    errors = [item for item in exported if isinstance(item, type) and issubclass(item, Exception)]
    assert len(errors) > 10
    return errors


@pytest.mark.parametrize("error", httpcore2_errors(), ids=lambda error: error.__name__)
def test_every_error_of_httpcore2_has_a_kind(error: type[Exception]) -> None:
    if issubclass(error, httpcore2.TimeoutException):
        return
    if error is httpcore2.ConnectionNotAvailable:
        return  # used between a pool and its connections only
    assert kind_of_error(error("x")).endswith("_error")


def test_the_kinds_of_connection_errors_are_told_apart() -> None:
    assert kind_of_error(TlsError("x")) == "tls_error"
    assert kind_of_error(httpcore2.ConnectError("x")) == "connect_error"
    assert kind_of_error(httpcore2.ReadError("x")) == "network_error"
    assert kind_of_error(httpcore2.RemoteProtocolError("x")) == "protocol_error"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("0000000005", 5),
        ("0" * 5000 + "1", 1),
        ("99999999999999999999", 10**9),
        ("9" * 5000, 10**9),
        ("Sat, 21 Nov 2026 12:02:00 GMT", 120),
        ("Saturday, 21-Nov-26 12:02:00 GMT", 120),
        ("Sat Nov 21 12:02:00 2026", 120),
        ("Sat, 21 Nov 2026 14:02:00 +0200", 120),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("\u0663", None),
        ("", None),
        ("Sat, 21 Nov 2026 12:02:00 +99999999999999999999", None),
        ("Sat, 21 Nov 99999999999999999999 12:02:00 GMT", None),
    ],
)
def test_a_retry_after_in_all_its_forms(text: str, seconds: float | None) -> None:
    assert retry_after_seconds(text, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "honoured"), [(408, 1), (425, 1), (429, 1), (500, 1), (503, 1), (301, 0), (404, 0)]
)
def test_a_retry_after_counts_where_a_retry_can_help(status: int, honoured: int) -> None:
    outcome = judge(Answer(status, [(b"Retry-After", b"30")]), NOW)
    assert isinstance(outcome, Failure)
    assert outcome.retry_after_seconds == (30 if honoured else None)


def test_what_an_endpoint_repeats_of_a_secret_is_not_told() -> None:
    secrets = ["Bearer hunter2hunter2", "hunter2hunter2"]
    told = judge(
        Answer(200, body=b'{"a":"Bearer hunter2hunter2","b":"hunter2hunter2"}'), NOW, secrets
    )
    assert told == Success('200 {"a":"[hidden]","b":"[hidden]"}')
    at_the_cut = b"x" * 490 + b"hunter2hunter2" + b"y" * 100
    for answer in (
        Answer(500, body=at_the_cut),
        Answer(302, [(b"Location", b"https://e.example/?t=hunter2hunter2")]),
    ):
        outcome = judge(answer, NOW, secrets)
        assert isinstance(outcome, Failure)
        assert "hunter2" not in outcome.error.message


@pytest.mark.parametrize(
    ("secret", "repeated"),
    [
        ('pa"ss\\word-1234', json.dumps({"a": 'pa"ss\\word-1234'})),
        ("pä/ss-1234", json.dumps({"a": "pä/ss-1234"})),
        ("aGVsbG8/d29y+bGQ=", '{"a":"aGVsbG8\\/d29y+bGQ="}'),  # as PHP writes JSON
        ("aGVsbG8/d29y+bGQ=", '{"a":"aGVsbG8/d29y\\u002BbGQ="}'),  # as .NET does
        ('pa"ss\\word-1234', '{"a":"pa\\u0022ss\\\\word-1234"}'),
        ("aGVsbG8/d29y+bGQ=", '{"a":"aGVsbG8/d29y+bGQ\\u003d"}'),  # as Gson
        ("a&b<c>d='1234'", '{"a":"a\\u0026b\\u003cc\\u003ed=\'1234\'"}'),  # as Go
        ("aGVsbG8/d29y+bGQ=", "?a=aGVsbG8%2Fd29y%2BbGQ%3D"),
        ("aGVsbG8/d29y+bGQ=", "?a=aGVsbG8%2fd29y%2bbGQ%3d"),
        ("aGVsbG8/d29y+bGQ=", "/aGVsbG8/d29y%2BbGQ%3D"),
        ("two words", "a=two+words"),
        ("two words", "?a=two%20words"),
        ("it's(so)!", "?a=it's(so)!"),
        ("it's/so!", "?a=it's%2Fso!"),  # as JavaScript quotes
    ],
)
def test_nor_as_json_and_urls_spell_it(secret: str, repeated: str) -> None:
    outcome = judge(Answer(200, body=repeated.encode()), NOW, [secret])
    assert isinstance(outcome, Success)
    told = (outcome.result or "").removeprefix("200 ")
    assert told in (
        '{"a": "[hidden]"}',
        '{"a":"[hidden]"}',
        "?a=[hidden]",
        "a=[hidden]",
        "/[hidden]",
    )
