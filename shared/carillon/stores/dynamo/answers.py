"""DynamoDB's answers, taken as JSON has them instead of being rebuilt by botocore's model."""

import json
from typing import Any

_READS = ("BatchGetItem", "GetItem", "Query", "Scan")
_BINARY = (b'"B"', b'"BS"')
"""The types whose values are base64 in JSON."""


def register(events: Any) -> None:
    """Have a client of DynamoDB take the answers of reads as they are; `events` is its
    `meta.events`.

    botocore's parser walks the shape of each attribute's value, ten members of it, to copy what
    JSON has given already: more than half of a tick's CPU. Its event `before-parse` hands out the
    answer before that, and takes members of the parsed one. Errors, answers with binary values,
    and what is no JSON object are left to botocore; so is all metadata.
    """
    for operation in _READS:
        events.register(f"before-parse.dynamodb.{operation}", _take)


def _take(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    """The handler of the event: botocore gets an empty body to parse, and adds the members."""
    body = response_dict["body"]
    if response_dict["status_code"] != 200 or any(each in body for each in _BINARY):
        return
    try:
        members = json.loads(body)
    except ValueError:
        return
    if isinstance(members, dict):
        # Members that are null are absent, as botocore has it.
        customized_response_dict |= {n: value for n, value in members.items() if value is not None}
        response_dict["body"] = b""
