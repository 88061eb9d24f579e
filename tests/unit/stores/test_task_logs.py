"""CloudWatchTaskLogs: what it asks CloudWatch, and its pages, which no emulator has."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from carillon.errors import InvalidFieldError, StoreUnavailableError
from carillon.stores.dynamo.task_logs import CloudWatchTaskLogs

FROM = datetime(2026, 11, 20, 12, tzinfo=UTC)
UNTIL = FROM + timedelta(minutes=1)


class Client:
    """Answers what it is given, in turn, and remembers what was asked."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def events(*texts: str, token: str = "") -> dict[str, Any]:
    found = [{"timestamp": 1795176000000, "message": text} for text in texts]
    return {"events": found, **({"nextToken": token} if token else {})}


def error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "FilterLogEvents")


def logs(client: Client, *groups: str) -> CloudWatchTaskLogs:
    return CloudWatchTaskLogs(lambda: client, groups)


def test_each_group_is_searched_for_the_quoted_text_within_the_span() -> None:
    client = Client(events("a"), events("b"))
    found = logs(client, "high", "low").find('j_x"1', FROM, UNTIL, 9)

    assert ([text for _, text in found.items], found.position) == (["a", "b"], "")
    assert found.items[0][0] == FROM
    first, second = client.asked
    assert first == {
        "logGroupName": "high",
        "filterPattern": '"j_x\\"1"',
        "startTime": 1795176000000,
        "endTime": 1795176060001,
        "limit": 9,
    }
    assert (second["logGroupName"], second["limit"]) == ("low", 8)


def test_a_full_page_goes_on_where_it_ended() -> None:
    client = Client(events("a", token="more"), events("b"), events("c"))
    reader = logs(client, "high", "low")
    first = reader.find("x", FROM, UNTIL, 1)
    second = reader.find("x", FROM, UNTIL, 1, first.position)
    third = reader.find("x", FROM, UNTIL, 1, second.position)

    pages = [[text for _, text in page.items] for page in (first, second, third)]
    assert (pages, third.position) == ([["a"], ["b"], ["c"]], "")
    assert client.asked[1]["nextToken"] == "more"


def test_a_search_that_finds_nothing_ends_its_page() -> None:
    client = Client(*(events(token=str(n)) for n in range(3)))
    page = logs(client, "high").find("x", FROM, UNTIL, 9)
    assert (page.items, len(client.asked)) == ([], 3)
    assert page.position == '[0, "2"]'


def test_a_group_that_is_gone_has_no_lines() -> None:
    client = Client(error("ResourceNotFoundException"), events("b"))
    assert len(logs(client, "high", "low").find("x", FROM, UNTIL, 9).items) == 1


@pytest.mark.parametrize(
    "failure", [error("ThrottlingException"), ConnectionClosedError(endpoint_url="x")]
)
def test_other_failures_are_those_of_the_port(failure: Exception) -> None:
    with pytest.raises(StoreUnavailableError):
        logs(Client(failure), "high").find("x", FROM, UNTIL, 9)


@pytest.mark.parametrize("position", ["x", "[1]", '["a", ""]', "{}", '[-1, ""]', "[0, 7]", "null"])
def test_a_forged_position_is_the_callers_fault(position: str) -> None:
    with pytest.raises(InvalidFieldError):
        logs(Client(), "high").find("x", FROM, UNTIL, 9, position)


def test_a_position_that_has_expired_is_too() -> None:
    """CloudWatch forgets its tokens after a day: asking again would never help."""
    expired = Client(error("InvalidParameterException"))
    with pytest.raises(InvalidFieldError):
        logs(expired, "high").find("x", FROM, UNTIL, 9, '[0, "token"]')
    with pytest.raises(StoreUnavailableError):
        logs(Client(error("InvalidParameterException")), "high").find("x", FROM, UNTIL, 9)
