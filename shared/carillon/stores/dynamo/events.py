"""Lifecycle events on an EventBridge bus."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from carillon.clock import Clock, Entropy
from carillon.domain.events import Event
from carillon.stores.dynamo.backoff import pause

BATCH_SIZE = 10
BATCH_LIMIT_BYTES = 256 * 1024
"""All entries of a request together, and so also of one entry."""
ATTEMPTS = 3
"""Times that an entry refused singly is put before it counts as not taken."""
_TIME_BYTES = 14
"""What EventBridge counts for an entry's time."""

Entry = dict[str, Any]


class EventsClient(Protocol):
    """What is needed of boto3's client for EventBridge."""

    def put_events(self, *, Entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]: ...


class EventBridgeEvents:
    """EventSink on a bus: each event's detail is the CloudEvent, its detail type the event's type.

    The client is made by the first event: most deployments' jobs have none.
    """

    def __init__(
        self, make_client: Callable[[], EventsClient], bus: str, clock: Clock, entropy: Entropy
    ) -> None:
        self._make_client = make_client
        self._client: EventsClient | None = None
        self._lock = Lock()
        self._bus = bus
        self._clock = clock
        self._entropy = entropy

    def emit(self, events: Sequence[Event]) -> int:
        entries = [entry for event in events if (entry := self._entry(event)) is not None]
        refused = sum(self._put(batch) for batch in _batches(entries))
        return len(events) - len(entries) + refused

    def _entry(self, event: Event) -> Entry | None:
        """The entry of an event; None for one that no bus can take."""
        form = event.as_cloud_event()
        try:
            detail = json.dumps(form, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
            entry = {
                "Time": event.occurred_at,
                "Source": form["source"],
                "DetailType": event.type.value,
                "Detail": detail,
                "EventBusName": self._bus,
            }
            return entry if _size(entry) <= BATCH_LIMIT_BYTES else None
        except (TypeError, ValueError):
            return None

    def _put(self, batch: Sequence[Entry]) -> int:
        """Put the entries, those that are refused singly again; how many were not taken."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answers = self._connected().put_events(Entries=batch).get("Entries", ())
            except (BotoCoreError, ClientError):
                return len(batch)  # botocore has repeated the request already
            taken = [bool(answer.get("EventId")) for answer in answers]
            taken += [False] * (len(batch) - len(taken))
            batch = [entry for entry, done in zip(batch, taken, strict=True) if not done]
            if not batch:
                return 0
            if attempt < ATTEMPTS:
                pause(attempt, self._clock, self._entropy)
        return len(batch)

    def _connected(self) -> EventsClient:
        with self._lock:  # clients are safe to use from several threads, their making is not
            if self._client is None:
                self._client = self._make_client()
            return self._client


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Requests within EventBridge's limits of number and size."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        length = _size(entry)
        if batch and (len(batch) == BATCH_SIZE or size + length > BATCH_LIMIT_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


def _size(entry: Entry) -> int:
    """Bytes, as EventBridge counts them (User Guide, "Calculating PutEvents event entry size")."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"])
    return _TIME_BYTES + sum(len(text.encode()) for text in texts)
