"""The output of tasks in CloudWatch Logs."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from carillon.errors import InvalidFieldError, StoreUnavailableError
from carillon.stores.task_logs import Lines

_MOST_REQUESTS = 3
"""For one page: a request may find nothing in the part that it has searched. CloudWatch answers few
of them in a second to all of an account."""


class LogsClient(Protocol):
    """The part of boto3's client that is used."""

    def filter_log_events(self, **asked: Any) -> Any: ...


class CloudWatchTaskLogs:
    """TaskLogs in log groups of CloudWatch, searched one after the other; the client is made when
    it is first asked for, since few requests need it."""

    def __init__(self, make_client: Callable[[], LogsClient], groups: Sequence[str]) -> None:
        self._make_client = make_client
        self._groups = groups

    @cached_property
    def _client(self) -> LogsClient:
        return self._make_client()

    def find(
        self, text: str, from_at: datetime, until_at: datetime, limit: int, position: str = ""
    ) -> Lines:
        # A quoted term: `{ $.run_id = ... }` would match every line on some emulators.
        pattern = json.dumps(text)
        group, token = _place_of(position)
        found: list[tuple[datetime, str]] = []
        for _ in range(_MOST_REQUESTS * max(1, len(self._groups))):
            if group >= len(self._groups) or len(found) >= limit:
                break
            try:
                answer = self._client.filter_log_events(
                    logGroupName=self._groups[group],
                    filterPattern=pattern,
                    startTime=int(from_at.timestamp() * 1000),
                    endTime=int(until_at.timestamp() * 1000) + 1,
                    limit=limit - len(found),
                    **({"nextToken": token} if token else {}),
                )
            except ClientError as error:
                code = error.response["Error"]["Code"]
                if token and code == "InvalidParameterException":
                    raise InvalidFieldError("cursor", "has expired: begin anew") from error
                if code != "ResourceNotFoundException":
                    raise StoreUnavailableError(str(error)) from error
                answer = {"events": []}
            except BotoCoreError as error:
                raise StoreUnavailableError(str(error)) from error
            for event in answer["events"]:
                at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
                found.append((at, event["message"]))
            token = answer.get("nextToken", "")
            group += not token
        is_end = group >= len(self._groups)
        return Lines(found, "" if is_end else json.dumps([group, token]))


def _place_of(position: str) -> tuple[int, str]:
    """The log group to go on with, and CloudWatch's token in it; raises InvalidFieldError."""
    try:
        group, token = json.loads(position) if position else (0, "")
    except (ValueError, TypeError):
        group, token = -1, ""
    if type(group) is not int or group < 0 or not isinstance(token, str):
        raise InvalidFieldError("cursor", "must be the next_cursor of the page before, unchanged")
    return group, token
