"""Events as API Gateway and SQS hand them to a function."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

OWNER = "11111111-2222-3333-4444-555555555555"


def request(method: str, path: str, body: object = None) -> dict[str, Any]:
    """A request of OWNER's to the HTTP API, payload format 2.0."""
    return {
        "version": "2.0",
        "routeKey": "ANY /{proxy+}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "authorizer": {"jwt": {"claims": {"sub": OWNER, "client_id": "c"}, "scopes": None}},
            "domainName": "api.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "api",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "tests",
            },
            "requestId": "request",
            "routeKey": "ANY /{proxy+}",
            "stage": "$default",
            "time": "22/Nov/2026:12:00:00 +0000",
            "timeEpoch": 1795348800000,
        },
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


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
