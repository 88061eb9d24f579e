"""Answers of DynamoDB are what botocore's own parser makes of them, without its work."""

import json
from base64 import b64encode
from typing import Any

import boto3
import pytest
from botocore import parsers, xform_name
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from carillon.stores.dynamo import answers

_ENCODED = b64encode(b"\0\xff").decode()
PLAIN = {
    "pk": {"S": "ein Schlüssel 🔑"},
    "n": {"N": "17.50"},
    "yes": {"BOOL": True},
    "none": {"NULL": True},
    "some": {"L": [{"S": ""}, {"M": {"deep": {"L": [{"N": "1"}]}}}]},
    "texts": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "b": {"S": '{"B": 1}'},
}
BINARY = {"pk": {"S": "x"}, "b": {"B": _ENCODED}}
DEEP_BINARY = {"pk": {"S": "x"}, "m": {"M": {"in": {"L": [{"BS": [_ENCODED]}]}}}}
NAMED_B = {"pk": {"S": "B"}, "B": {"N": "1"}}
KEY = {"pk": {"S": "x"}}
ASKED: dict[str, dict[str, Any]] = {
    "Query": {"TableName": "table", "KeyConditionExpression": "pk = x"},
    "Scan": {"TableName": "table"},
    "GetItem": {"TableName": "table", "Key": KEY},
    "BatchGetItem": {"RequestItems": {"table": {"Keys": [KEY]}}},
    "PutItem": {"TableName": "table", "Item": KEY},
}
REFUSED = {"__type": "com.amazonaws.dynamodb.v20120810#ValidationException", "message": "no"}
READ: list[tuple[str, Any]] = [
    ("Query", {"Items": [PLAIN, PLAIN], "Count": 2, "ScannedCount": 5, "LastEvaluatedKey": KEY}),
    ("Query", {"Items": [], "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": None}),
    ("Scan", {"Items": [PLAIN], "Count": 1, "ScannedCount": 1}),
    ("GetItem", {}),
    ("GetItem", {"Item": PLAIN, "ConsumedCapacity": {"TableName": "t", "CapacityUnits": 0.5}}),
    ("BatchGetItem", {"Responses": {"table": [PLAIN]}, "UnprocessedKeys": {}}),
    ("BatchGetItem", {"Responses": {}, "UnprocessedKeys": {"table": {"Keys": [KEY]}}}),
]
LEFT: list[tuple[str, Any]] = [
    ("Query", {"Items": [PLAIN, BINARY], "Count": 2, "ScannedCount": 2}),
    ("GetItem", {"Item": BINARY}),
    ("GetItem", {"Item": DEEP_BINARY}),
    ("GetItem", {"Item": NAMED_B}),
    ("PutItem", {"Attributes": PLAIN}),
]
BROKEN = [(200, b""), (200, b"{"), (400, json.dumps(REFUSED).encode()), (400, b"{")]
BROKEN += [(500, b"<html>gone</html>"), (503, b"")]


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shapes that botocore's parser walks."""
    seen: list[str] = []
    original = parsers.JSONParser._parse_shape  # type: ignore[attr-defined]

    def walk(parser: Any, shape: Any, node: Any) -> Any:
        seen.append(shape.name)
        return original(parser, shape, node)

    monkeypatch.setattr(parsers.JSONParser, "_parse_shape", walk)
    return seen


def _answered(operation: str, status: int, body: bytes, *, by_botocore: bool) -> Any:
    """The answer of a client that gets this one, or the members of the error that it raises."""
    client = boto3.client(
        "dynamodb",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(retries={"total_max_attempts": 1}),
    )
    events: Any = client.meta.events
    headers: Any = {"x-amzn-RequestId": "request-1", "Date": "Thu, 26 Nov 2026 04:00:00 GMT"}

    class Raw:
        def stream(self) -> list[bytes]:
            return [body]

    def send(**_: object) -> AWSResponse:
        return AWSResponse("https://127.0.0.1", status, headers, Raw())

    events.register("before-send.dynamodb", send)
    if not by_botocore:
        answers.register(events)
    try:
        return getattr(client, xform_name(operation))(**ASKED[operation])
    except ClientError as error:
        return error.response


def _both(operation: str, status: int, body: bytes) -> tuple[Any, Any]:
    ours = _answered(operation, status, body, by_botocore=False)
    return ours, _answered(operation, status, body, by_botocore=True)


@pytest.mark.parametrize(("operation", "answer"), READ)
def test_a_read_is_taken_as_it_is(operation: str, answer: Any, walked: list[str]) -> None:
    ours = _answered(operation, 200, json.dumps(answer).encode(), by_botocore=False)
    assert walked == [f"{operation}Output"]  # of an empty body
    assert ours == _answered(operation, 200, json.dumps(answer).encode(), by_botocore=True)
    assert ours["ResponseMetadata"]["RequestId"] == "request-1"
    assert ours["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert ours["ResponseMetadata"]["HTTPHeaders"]["date"] == "Thu, 26 Nov 2026 04:00:00 GMT"


@pytest.mark.parametrize(("operation", "answer"), LEFT)
def test_binaries_and_writes_are_left_to_botocore(operation: str, answer: Any) -> None:
    ours, botocores = _both(operation, 200, json.dumps(answer).encode())
    assert ours == botocores


def test_a_binary_is_bytes() -> None:
    ours = _answered("GetItem", 200, json.dumps({"Item": BINARY}).encode(), by_botocore=False)
    assert ours["Item"]["b"] == {"B": b"\0\xff"}


@pytest.mark.parametrize(("status", "body"), BROKEN)
def test_errors_are_left_to_botocore(status: int, body: bytes) -> None:
    ours, botocores = _both("Query", status, body)
    assert ours == botocores


def test_an_error_has_its_code_and_message() -> None:
    ours = _answered("Query", 400, json.dumps(REFUSED).encode(), by_botocore=False)
    assert ours["Error"] == {"Code": "ValidationException", "Message": "no"}
