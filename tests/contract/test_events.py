"""EventSink: on a scripted EventBridge, and on the emulators' with a queue behind the bus."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.events import Event, EventType
from carillon.stores.dynamo import open_stores
from carillon.stores.dynamo.messaging import EVENT_ATTEMPTS, EVENTS_LIMIT_BYTES, EventBridgeEvents
from carillon.stores.memory import MemoryEvents, NoEvents
from tests.contract.conftest import MINISTACK
from tests.contract.kit import Kit
from tests.contract.samples import NOW

Entries = Sequence[Mapping[str, Any]]
Answer = dict[str, Any]
Script = Callable[[int, Entries], Answer]


def an_event(number: int = 0, **data: Any) -> Event:
    run_id = f"job_20261120T123517Z_scheduled_{number}"
    what = EventType.RUN_DEAD
    return Event(f"{run_id}/1/{what.value}", what, run_id, NOW + timedelta(seconds=number), data)


def _taken(entry: Mapping[str, Any]) -> Answer:
    return {"EventId": str(uuid.uuid4())}


def _refused(entry: Mapping[str, Any]) -> Answer:
    return {"ErrorCode": "InternalFailure", "ErrorMessage": "try again"}


class ScriptedBus:
    """Answers request number n (from 0) by `script(n, entries)` and keeps what was put."""

    def __init__(
        self, script: Script = lambda number, entries: {"Entries": list(map(_taken, entries))}
    ) -> None:
        self.requests: list[Entries] = []
        self.made = 0
        self._script = script

    def make(self) -> "ScriptedBus":
        self.made += 1
        return self

    def put_events(self, *, Entries: Entries) -> Answer:
        self.requests.append(Entries)
        return self._script(len(self.requests) - 1, Entries)

    def ids(self, request: int) -> list[str]:
        return [json.loads(entry["Detail"])["id"] for entry in self.requests[request]]


def _sink(bus: ScriptedBus, clock: ManualClock | None = None) -> EventBridgeEvents:
    return EventBridgeEvents(bus.make, "the-bus", clock or ManualClock(NOW), SeededEntropy(1))


def test_an_event_goes_as_a_cloud_event() -> None:
    bus, event = ScriptedBus(), an_event(result="ü", tags={"a": "b"})
    assert _sink(bus).emit([event]) == 0
    ((entry,),) = bus.requests
    assert json.loads(entry["Detail"]) == event.as_cloud_event()
    assert {name: entry[name] for name in entry if name != "Detail"} == {
        "Time": NOW,
        "Source": "carillon",
        "DetailType": "run.dead",
        "EventBusName": "the-bus",
    }


def test_the_client_is_made_once_and_not_before_the_first_event() -> None:
    bus = ScriptedBus()
    sink = _sink(bus)
    assert sink.emit([]) == 0
    assert (bus.made, bus.requests) == (0, [])
    for number in range(2):
        sink.emit([an_event(number)])
    assert bus.made == 1


def test_requests_are_full_and_in_order() -> None:
    bus, events = ScriptedBus(), [an_event(number) for number in range(23)]
    assert _sink(bus).emit(events) == 0
    assert [len(entries) for entries in bus.requests] == [10, 10, 3]
    ids = [event_id for number in range(3) for event_id in bus.ids(number)]
    assert ids == [event.event_id for event in events]


def test_a_request_never_exceeds_the_size_limit() -> None:
    bus = ScriptedBus()
    # Two bytes each in UTF-8, and it is bytes that count.
    events = [an_event(number, text="ü" * 50_000) for number in range(5)]
    assert _sink(bus).emit(events) == 0
    assert [len(entries) for entries in bus.requests] == [2, 2, 1]
    for entries in bus.requests:
        texts = [entry[name] for entry in entries for name in ("Source", "DetailType", "Detail")]
        total = sum(len(text.encode()) for text in texts) + 14 * len(entries)
        assert total <= EVENTS_LIMIT_BYTES


@pytest.mark.parametrize(
    "data",
    [
        {"text": "x" * EVENTS_LIMIT_BYTES},
        {"text": object()},
        {"text": "\ud800"},
        {"n": float("nan")},
    ],
    ids=["too large", "no JSON", "no text", "no number of JSON"],
)
def test_an_event_that_no_bus_takes_is_counted_and_the_others_go(data: dict[str, Any]) -> None:
    bus, good = ScriptedBus(), [an_event(1), an_event(3)]
    assert _sink(bus).emit([good[0], an_event(2, **data), good[1]]) == 1
    assert bus.ids(0) == [event.event_id for event in good]


def test_only_what_was_refused_is_repeated_with_pauses() -> None:
    def script(number: int, entries: Entries) -> Answer:
        last = number == EVENT_ATTEMPTS - 1
        return {
            "Entries": [
                _taken(entry) if last or place % 2 else _refused(entry)
                for place, entry in enumerate(entries)
            ]
        }

    bus, clock, events = ScriptedBus(script), ManualClock(NOW), [an_event(n) for n in range(4)]
    assert _sink(bus, clock).emit(events) == 0
    assert [bus.ids(n) for n in range(3)] == [
        [event.event_id for event in events],
        [events[0].event_id, events[2].event_id],
        [events[0].event_id],
    ]
    assert timedelta() < clock.now() - NOW <= timedelta(seconds=0.15)


def test_what_is_refused_each_time_is_counted() -> None:
    def script(number: int, entries: Entries) -> Answer:
        return {"Entries": [_refused(entry) for entry in entries]}

    bus = ScriptedBus(script)
    assert _sink(bus).emit([an_event(n) for n in range(12)]) == 12
    assert [len(entries) for entries in bus.requests] == [10] * EVENT_ATTEMPTS + [
        2
    ] * EVENT_ATTEMPTS


def test_what_is_not_acknowledged_is_not_taken() -> None:
    bus = ScriptedBus(lambda number, entries: {})
    assert _sink(bus).emit([an_event()]) == 1


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "PutEvents"),
        ReadTimeoutError(endpoint_url="https://events.test"),
    ],
)
def test_a_failed_request_raises_nothing_and_does_not_stop_the_others(error: Exception) -> None:
    def script(number: int, entries: Entries) -> Answer:
        if number == 0:
            raise error
        return {"Entries": list(map(_taken, entries))}

    bus = ScriptedBus(script)
    assert _sink(bus).emit([an_event(n) for n in range(13)]) == 10
    assert [len(entries) for entries in bus.requests] == [10, 3]  # botocore has repeated it already


def test_all_that_is_taken_is_told_by_nothing_left(kit: Kit) -> None:
    assert kit.events.emit([]) == 0
    assert kit.events.emit([an_event(number, text="ü" * number) for number in range(23)]) == 0


def test_memory_keeps_what_it_is_given_and_no_bus_drops_it() -> None:
    memory, events = MemoryEvents(), [an_event(1), an_event(2)]
    assert memory.emit(events[:1]) == memory.emit(events[1:]) == 0
    assert memory.emitted == events
    assert NoEvents().emit(events) == 0


def test_a_deployment_without_a_bus_drops_its_events(aws_kit: Kit) -> None:
    assert aws_kit.settings is not None
    assert isinstance(open_stores(aws_kit.settings, ManualClock(NOW)).events, NoEvents)


def test_a_bus_that_is_not_there_raises_nothing(
    aws_kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aws_kit.settings is not None
    settings = replace(aws_kit.settings, event_bus="the-bus")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("botocore.endpoint.time", ManualClock(NOW))
    assert open_stores(settings, ManualClock(NOW)).events.emit([an_event()]) == 1


@pytest.mark.parametrize("aws_kit", [MINISTACK], indirect=True)  # moto lacks a library for it
def test_a_subscriber_of_the_bus_gets_the_cloud_event(aws_kit: Kit) -> None:
    assert aws_kit.settings is not None
    name = f"contract-{uuid.uuid4().hex[:8]}"
    sqs, events = boto3.client("sqs"), boto3.client("events")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    events.create_event_bus(Name=name)
    pattern = json.dumps({"source": ["carillon"], "detail-type": ["run.dead"]})
    events.put_rule(Name=name, EventBusName=name, EventPattern=pattern)
    targets = [{"Id": "queue", "Arn": arn["QueueArn"]}]
    events.put_targets(Rule=name, EventBusName=name, Targets=targets)
    sink = open_stores(replace(aws_kit.settings, event_bus=name), ManualClock(NOW)).events
    wanted = an_event(result="ü", tags={"a": "b"})
    assert sink.emit([replace(wanted, type=EventType.RUN_STARTED), wanted]) == 0
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2)
    (message,) = received["Messages"]
    body = json.loads(message["Body"])
    assert body["detail-type"] == "run.dead"
    assert body["detail"] == wanted.as_cloud_event()
