"""SqsLaneQueue against an SQS that answers by script: what the emulators never do."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Lock
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from carillon.clock import ManualClock, SeededEntropy, SystemClock
from carillon.domain.job import Lane
from carillon.domain.message import Message, decode, encode
from carillon.errors import QueueUnavailableError
from carillon.stores.dynamo.messaging import BATCH_LIMIT_BYTES, SqsLaneQueue
from carillon.stores.dynamo.table import ATTEMPTS
from tests.contract.samples import NOW, a_key, a_message

Answer = dict[str, Any]
Script = Callable[[int, list[Answer]], Answer]
URLS = {lane: f"https://queue.test/{lane.value}" for lane in Lane}


def _accept(entries: list[Answer]) -> Answer:
    return {"Successful": [{"Id": entry["Id"]} for entry in entries]}


def _refuse(entries: list[Answer], sender_fault: bool = False, code: str = "Busy") -> Answer:
    return {
        "Failed": [
            {"Id": entry["Id"], "SenderFault": sender_fault, "Code": code} for entry in entries
        ]
    }


class ScriptedSqs:
    """Answers request number n (from 0) by `script(n, entries)` and keeps what was sent."""

    def __init__(self, script: Script = lambda number, entries: _accept(entries)) -> None:
        self.requests: list[tuple[str, list[Answer]]] = []
        self._script = script
        self._lock = Lock()

    def send_message_batch(self, *, QueueUrl: str, Entries: list[Answer]) -> Answer:
        with self._lock:
            number = len(self.requests)
            self.requests.append((QueueUrl, Entries))
        return self._script(number, Entries)

    def bodies(self, request: int) -> list[Message]:
        return [decode(entry["MessageBody"]) for entry in self.requests[request][1]]


def _queue(sqs: ScriptedSqs, clock: ManualClock | None = None) -> SqsLaneQueue:
    return SqsLaneQueue(cast(Any, sqs), URLS, clock or ManualClock(NOW), SeededEntropy(1))


def _messages(count: int, lane: Lane = Lane.NORMAL, owner: str = "owner") -> list[Message]:
    return [a_message(owner, lane, key=a_key(owner, redrive=number)) for number in range(count)]


def test_requests_are_full_and_of_one_lane() -> None:
    sqs = ScriptedSqs()
    high, low = _messages(12, Lane.HIGH), _messages(11, Lane.LOW)
    mixed = [m for pair in zip(high, low, strict=False) for m in pair] + [high[-1]]
    _queue(sqs).send(mixed, [0] * 23)
    sizes = sorted((url, len(entries)) for url, entries in sqs.requests)
    assert sizes == [
        (URLS[Lane.HIGH], 2),
        (URLS[Lane.HIGH], 10),
        (URLS[Lane.LOW], 1),
        (URLS[Lane.LOW], 10),
    ]
    sent = [m for number in range(4) for m in sqs.bodies(number)]
    assert sorted(map(encode, sent)) == sorted(map(encode, mixed))


def test_ids_are_unique_within_a_request() -> None:
    sqs = ScriptedSqs()
    _queue(sqs).send(_messages(10), [0] * 10)
    assert len({entry["Id"] for entry in sqs.requests[0][1]}) == 10


def test_a_request_never_exceeds_the_size_limit() -> None:
    sqs = ScriptedSqs()
    big = _messages(7, owner="x" * 300_000)
    _queue(sqs).send(big, [0] * 7)
    totals = [sum(len(entry["MessageBody"]) for entry in entries) for _, entries in sqs.requests]
    assert sorted(len(entries) for _, entries in sqs.requests) == [1, 3, 3]
    assert max(totals) <= BATCH_LIMIT_BYTES


def test_only_what_was_refused_is_repeated() -> None:
    def script(number: int, entries: list[Answer]) -> Answer:
        if number == 0:
            return _accept(entries[:1]) | _refuse(entries[1:])
        return _accept(entries)

    sqs, clock, messages = ScriptedSqs(script), ManualClock(NOW), _messages(3)
    _queue(sqs, clock).send(messages, [0, 1, 2])
    assert sqs.bodies(1) == messages[1:]
    assert clock.now() > NOW, "there is a pause between the two"


def test_what_is_not_acknowledged_by_name_is_repeated() -> None:
    def script(number: int, entries: list[Answer]) -> Answer:
        return _accept(entries[1:] if number == 0 else entries)

    sqs, messages = ScriptedSqs(script), _messages(3)
    _queue(sqs).send(messages, [0] * 3)
    assert sqs.bodies(1) == messages[:1]


def test_a_delay_counts_from_the_call_and_is_rounded_when_a_request_leaves() -> None:
    clock = ManualClock(NOW)

    def script(number: int, entries: list[Answer]) -> Answer:
        if number == 0:
            clock.advance(2.5)
            return _refuse(entries)
        return _accept(entries)

    sqs = ScriptedSqs(script)
    _queue(sqs, clock).send(_messages(3), [1, 9.95, 10.1])
    assert [entry["DelaySeconds"] for entry in sqs.requests[0][1]] == [1, 10, 10]
    assert [entry["DelaySeconds"] for entry in sqs.requests[1][1]] == [0, 7, 7]


def test_a_queue_that_does_not_answer_is_waited_for_until_then() -> None:
    """The part that was answered is not the caller's business: he repeats all of it."""
    hangs, queue_answers = Event(), ScriptedSqs()

    def script(number: int, entries: list[Answer]) -> Answer:
        assert hangs.wait(60)
        return _accept(entries)

    began = time.monotonic()
    until = datetime.now(UTC) + timedelta(seconds=0.3)
    hanging = SqsLaneQueue(cast(Any, ScriptedSqs(script)), URLS, SystemClock(), SeededEntropy(1))
    try:
        with pytest.raises(QueueUnavailableError, match="too long") as unavailable:
            hanging.send(_messages(25), [0] * 25, until)
        assert unavailable.value.unsent == 25
        assert time.monotonic() - began < 10
    finally:
        hangs.set()
    prompt = SqsLaneQueue(cast(Any, queue_answers), URLS, SystemClock(), SeededEntropy(1))
    prompt.send(_messages(25), [0] * 25, datetime.now(UTC) + timedelta(seconds=60))
    assert sorted(len(entries) for _, entries in queue_answers.requests) == [5, 10, 10]


def test_nothing_is_repeated_after_that_instant() -> None:
    clock = ManualClock(NOW)
    sqs = ScriptedSqs(lambda number, entries: _refuse(entries))
    with pytest.raises(QueueUnavailableError):
        _queue(sqs, clock).send(_messages(1), [0], NOW)
    assert len(sqs.requests) <= 1


def test_each_message_names_its_owner_as_the_tenant_of_a_fair_queue() -> None:
    """By a digest: a group id has up to 128 characters of ASCII, an owner any."""
    sqs = ScriptedSqs(lambda number, entries: _accept(entries))
    owners = ["alice", "bob", "ö" * 200, "alice"]
    messages = [a_message(owner) for owner in owners]
    _queue(sqs).send(messages, [0] * 4)
    ((_, entries),) = sqs.requests
    groups = [entry["MessageGroupId"] for entry in entries]
    assert groups[0] == groups[3]
    assert len(set(groups)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{64}", group) for group in groups)


@pytest.mark.parametrize("sender_fault", [False, True])
def test_messages_refused_again_and_again_are_counted(sender_fault: bool) -> None:
    def script(number: int, entries: list[Answer]) -> Answer:
        return _accept(entries[2:]) | _refuse(entries[:2], sender_fault, "InternalError")

    sqs, clock = ScriptedSqs(script), ManualClock(NOW)
    with pytest.raises(QueueUnavailableError, match="InternalError") as unavailable:
        _queue(sqs, clock).send(_messages(5), [0] * 5)
    assert unavailable.value.unsent == 2
    assert [len(entries) for _, entries in sqs.requests] == [5] + [2] * (ATTEMPTS - 1)
    assert (clock.now() - NOW).total_seconds() < 15


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException"}}, "SendMessageBatch"),
        ReadTimeoutError(endpoint_url="https://queue.test"),
    ],
)
def test_a_failed_request_does_not_stop_the_others(error: Exception) -> None:
    def script(number: int, entries: list[Answer]) -> Answer:
        if len(entries) == 3:
            raise error
        return _accept(entries)

    sqs = ScriptedSqs(script)
    with pytest.raises(QueueUnavailableError) as unavailable:
        _queue(sqs).send([*_messages(10), *_messages(3, Lane.LOW)], [0] * 13)
    assert unavailable.value.unsent == 3
    assert unavailable.value.__cause__ is error
    # botocore has repeated it already.
    assert sorted(len(entries) for _, entries in sqs.requests) == [3, 10]
