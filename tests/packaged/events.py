"""Events as API Gateway and SQS hand them to a function."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.unit.api.gateway import event

OWNER = "11111111-2222-3333-4444-555555555555"


def request(method: str, path: str, body: object = None) -> dict[str, Any]:
    """A request of OWNER's to the HTTP API, payload format 2.0."""
    text = None if body is None else json.dumps(body)
    claims = {"sub": OWNER, "client_id": "c"}
    return event(
        method, path, body=text, headers={"content-type": "application/json"}, claims=claims
    )


def batch(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Received messages as a batch for an event source mapping's function."""
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": {
                    "ApproximateReceiveCount": message["Attributes"]["ApproximateReceiveCount"],
                    "SentTimestamp": message["Attributes"]["SentTimestamp"],
                    "SenderId": "sender",
                    "ApproximateFirstReceiveTimestamp": message["Attributes"]["SentTimestamp"],
                },
                "messageAttributes": {},
                "md5OfBody": "",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:lane",
                "awsRegion": "us-east-1",
            }
            for message in messages
        ]
    }
