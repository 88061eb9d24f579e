"""Lanes in SQS, and lifecycle events on an EventBridge bus."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from carillon.clock import Clock, Entropy
from carillon.domain.chunks.message import Order, encode
from carillon.domain.events import Event
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.domain.wheel.delaying import check_delays, whole_delay
from carillon.errors import QueueUnavailableError
from carillon.stores.dynamo.table import ATTEMPTS, pause

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


_T = TypeVar("_T")

BATCH_SIZE = 10
BATCH_LIMIT_BYTES = 1024 * 1024
"""All bodies of a request together."""
PARALLEL_REQUESTS = 8
_TOO_SLOW = "the queue took too long"


@dataclass(frozen=True, slots=True)
class _Letter:
    lane: Lane
    tenant: dict[str, str]
    body: str
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The messages that one request left unsent: refused singly (worth repeating), or the request
    as a whole."""

    refused: Sequence[_Letter] = ()
    reason: str = ""
    failed: Sequence[_Letter] = ()
    error: Exception | None = None


class SqsLaneQueue:
    """LaneQueue on one SQS standard queue per lane; `client` is used from several threads."""

    def __init__(
        self, client: SQSClient, queue_urls: Mapping[Lane, str], clock: Clock, entropy: Entropy
    ) -> None:
        self._client = client
        self._queue_urls = queue_urls
        self._clock = clock
        self._entropy = entropy
        self._threads = ThreadPoolExecutor(PARALLEL_REQUESTS, thread_name_prefix="send")

    def send(
        self,
        messages: Sequence[Order],
        delays: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        check_delays(messages, delays)
        pending = [
            _Letter(message.lane, _tenant_of(message), encode(message), delay)
            for message, delay in zip(messages, delays, strict=True)
        ]
        began_at = self._clock.now()
        failed: list[_Letter] = []
        reason, error = "", None
        for attempt in range(1, ATTEMPTS + 1):
            outcomes = self._send_batches(list(_by_lane(pending)), began_at, until)
            pending = [letter for outcome in outcomes for letter in outcome.refused]
            for outcome in outcomes:
                # botocore has repeated the request already: only the rest of the round continues.
                failed += outcome.failed
                reason, error = outcome.reason or reason, outcome.error or error
            if not pending:
                break
            if until is not None and self._clock.now() >= until:
                break
            if attempt < ATTEMPTS:
                pause(attempt, self._clock, self._entropy)
        if pending or failed:
            raise QueueUnavailableError(len(pending) + len(failed), reason) from error

    def _send_batches(
        self, batches: Sequence[Sequence[_Letter]], began_at: datetime, until: datetime | None
    ) -> list[_Outcome]:
        """Side by side; what has no answer at `until` counts as failed, and may yet be sent."""
        if until is None and len(batches) == 1:
            return [self._send_batch(batches[0], began_at)]
        requests = [self._threads.submit(self._send_batch, batch, began_at) for batch in batches]
        left = None if until is None else max(0.0, (until - self._clock.now()).total_seconds())
        answered, late = wait(requests, timeout=left)
        for request in late:
            request.cancel()
        return [
            request.result() if request in answered else _Outcome(failed=batch, reason=_TOO_SLOW)
            for request, batch in zip(requests, batches, strict=True)
        ]

    def _send_batch(self, batch: Sequence[_Letter], began_at: datetime) -> _Outcome:
        """One request for letters of one lane; those that are not acknowledged by name are unsent.

        Their delays count from `began_at`, and are rounded now.
        """
        gone_seconds = max(0.0, (self._clock.now() - began_at).total_seconds())
        try:
            answer = self._client.send_message_batch(
                QueueUrl=self._queue_urls[batch[0].lane],
                Entries=[
                    {
                        "Id": str(number),
                        "MessageBody": letter.body,
                        "DelaySeconds": whole_delay(max(0.0, letter.delay_seconds - gone_seconds)),
                        **letter.tenant,  # type: ignore[typeddict-item]
                    }
                    for number, letter in enumerate(batch)
                ],
            )
        except (BotoCoreError, ClientError) as error:
            return _Outcome(failed=batch, reason=str(error), error=error)
        sent = {entry["Id"] for entry in answer.get("Successful", [])}
        codes = sorted({entry["Code"] for entry in answer.get("Failed", [])})
        refused = [letter for number, letter in enumerate(batch) if str(number) not in sent]
        return _Outcome(refused=refused, reason=", ".join(codes))


def tenant_of(owner: str) -> str:
    """The owner as SQS's fair queues know him, who deliver quiet tenants' messages before those of
    a busy one. A group id has up to 128 characters of ASCII; on a standard queue it orders nothing.
    """
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()


def _tenant_of(order: Order) -> dict[str, str]:
    """The member of a request that names the owner; a chunk, which has several, has none."""
    return {"MessageGroupId": tenant_of(order.key.owner)} if isinstance(order, Message) else {}


def _by_lane(letters: Sequence[_Letter]) -> Iterator[list[_Letter]]:
    """Requests of one lane each."""
    for lane in Lane:
        of_lane = [letter for letter in letters if letter.lane is lane]
        yield from in_requests(of_lane, lambda each: len(each.body.encode()), BATCH_LIMIT_BYTES)


def in_requests(
    items: Iterable[_T], size_of: Callable[[_T], int], limit_bytes: int
) -> Iterator[list[_T]]:
    """The items in requests of BATCH_SIZE items and `limit_bytes` at most."""
    batch: list[_T] = []
    size = 0
    for item in items:
        length = size_of(item)
        if batch and (len(batch) == BATCH_SIZE or size + length > limit_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield batch


EVENTS_LIMIT_BYTES = 256 * 1024
"""All entries of a request together, and so also of one entry."""
EVENT_ATTEMPTS = 3
"""Times that an entry refused singly is put before it counts as not taken."""
_TIME_BYTES = 14
"""The bytes that EventBridge counts for an entry's time."""

Entry = dict[str, Any]


class EventsClient(Protocol):
    """The part of boto3's EventBridge client that is needed here."""

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
        refused = sum(
            self._put(batch) for batch in in_requests(entries, _event_size, EVENTS_LIMIT_BYTES)
        )
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
            return entry if _event_size(entry) <= EVENTS_LIMIT_BYTES else None
        except (TypeError, ValueError):
            return None

    def _put(self, batch: Sequence[Entry]) -> int:
        """Put the entries, those that are refused singly again; how many were not taken."""
        for attempt in range(1, EVENT_ATTEMPTS + 1):
            try:
                answers = self._connected().put_events(Entries=batch).get("Entries", ())
            except (BotoCoreError, ClientError):
                return len(batch)  # botocore has repeated the request already
            taken = [bool(answer.get("EventId")) for answer in answers]
            taken += [False] * (len(batch) - len(taken))
            batch = [entry for entry, done in zip(batch, taken, strict=True) if not done]
            if not batch:
                return 0
            if attempt < EVENT_ATTEMPTS:
                pause(attempt, self._clock, self._entropy)
        return len(batch)

    def _connected(self) -> EventsClient:
        with self._lock:  # clients are safe to use from several threads, their making is not
            if self._client is None:
                self._client = self._make_client()
            return self._client


def _event_size(entry: Entry) -> int:
    """Bytes, as EventBridge counts them (User Guide, "Calculating PutEvents event entry size")."""
    texts = (entry["Source"], entry["DetailType"], entry["Detail"])
    return _TIME_BYTES + sum(len(text.encode()) for text in texts)
