"""What AWS targets are told of the run besides its payload. Pure."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from carillon.clock import utc_text
from carillon.executor.targets.call import Call

_ID = re.compile(r"[A-Za-z0-9_-]+")


def facts(call: Call) -> dict[str, str]:
    """The run's id, by which targets deduplicate, its job, attempt and fire time."""
    return {
        "carillon-run-id": call.run_id,
        "carillon-job-id": call.job_id,
        "carillon-attempt": str(call.attempt),
        "carillon-fire-at": utc_text(call.fire_at),
    }


def message_attributes(call: Call) -> dict[str, Mapping[str, Any]]:
    """The same as message attributes of SQS and SNS."""
    return {
        name: {
            "DataType": "Number" if name == "carillon-attempt" else "String",
            "StringValue": value,
        }
        for name, value in facts(call).items()
    }


def order(arn: str, message_group_id: str | None, call: Call) -> dict[str, str]:
    """Group and deduplication id of a message.

    FIFO queues and topics need both; others take a group (a fair queue's tenant), if one is given.
    """
    if arn.endswith(".fifo"):
        return {
            "MessageGroupId": message_group_id or call.job_id,
            "MessageDeduplicationId": short_id(call.run_id, 128),
        }
    return {} if message_group_id is None else {"MessageGroupId": message_group_id}


def short_id(run_id: str, limit_characters: int) -> str:
    """The run's id for a service with a limit: itself, or its SHA-256 where it does not fit."""
    if len(run_id) <= limit_characters and _ID.fullmatch(run_id):
        return run_id
    return hashlib.sha256(run_id.encode()).hexdigest()
