"""What a client's requests to AWS cost: counted at botocore, by the sizes of what goes over."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, get_ident
from time import thread_time
from typing import Any

import boto3
import pytest
from botocore import handlers

from carillon.domain.chunks.message import CHUNK_BEGINS
from carillon.schedules.insight.cost import (
    Line,
    Usage,
    carried,
    queue_units,
    read_units,
    write_units,
)
from carillon.stores.dynamo.attributes import item_size
from tests.support.tables import MODELS

Row = tuple[str, str, str]
"""Kind of table, partition key, sort key."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a queue has taken."""

    queue_url: str
    body: str
    delay_seconds: int


class ClientMeter:
    """Counts requests and what they are billed as; usable from several threads.

    Lambda's own receives and deletes are no client's. `rows` are the bytes of every row that was
    put, `kinds` the write units by table (rows of control apart), `longest_chain` the most requests
    that one thread made one after the other.
    """

    def __init__(self) -> None:
        self.rows: dict[Row, int] = {}
        self._indexed: dict[Row, Any] = {}
        self.clear()
        self._lock = Lock()

    def clear(self) -> None:
        """Begin to count anew."""
        self.requests: Counter[str] = Counter()
        self.amounts: defaultdict[Line, float] = defaultdict(float)
        self.writes: Counter[str] = Counter()
        self.reads: defaultdict[str, float] = defaultdict(float)
        self.gets: Counter[str] = Counter()
        self.sent: list[Sent] = []
        self.own_cpu_seconds = 0.0
        self._chains: Counter[int] = Counter()

    @property
    def usage(self) -> Usage:
        return Usage(dict(self.amounts))

    @property
    def longest_chain(self) -> tuple[int, int]:
        """The most requests of one thread, and how many threads made any."""
        return max(self._chains.values(), default=0), len(self._chains)

    def attach(self, patch: pytest.MonkeyPatch) -> None:
        """Count every client that is made from now on."""
        hooks: list[tuple[str, Callable[..., None]]] = [
            ("before-call.*.*", self._before),
            ("after-call.*.*", self._after),
        ]
        # The default session keeps the handlers it was made with.
        patch.setattr(boto3, "DEFAULT_SESSION", None)
        patch.setattr(handlers, "BUILTIN_HANDLERS", [*handlers.BUILTIN_HANDLERS, *hooks])

    def _before(self, params: dict[str, Any], model: Any, **_: object) -> None:
        began = thread_time()
        with self._lock:
            self.requests[model.name] += 1
            self._chains[get_ident()] += 1
            service = model.service_model.service_name
            if service in ("dynamodb", "sqs"):
                body = json.loads(params["body"])
                (self._dynamodb if service == "dynamodb" else self._sqs)(model.name, body)
                params["context"]["counted"] = body
            self.own_cpu_seconds += thread_time() - began

    def _after(self, parsed: dict[str, Any], model: Any, context: Any = None, **_: object) -> None:
        if model.name not in ("GetItem", "Query", "Scan", "BatchGetItem"):
            return
        began = thread_time()
        body = context["counted"]
        if model.name == "BatchGetItem":
            with self._lock:
                for table, asked in body["RequestItems"].items():
                    self._batch_read(_kind(table), asked, parsed["Responses"].get(table, []))
                self.own_cpu_seconds += thread_time() - began
            return
        items = [parsed.get("Item", {})] if model.name == "GetItem" else parsed["Items"]
        units = read_units(sum(map(item_size, items))) * (1 if body.get("ConsistentRead") else 0.5)
        with self._lock:
            kind = _kind(body["TableName"])
            self.reads[kind] += units
            self.gets[kind] += model.name == "GetItem"
            self.amounts[Line.READS] += units
            self.own_cpu_seconds += thread_time() - began

    def _batch_read(
        self, kind: str, asked: Mapping[str, Any], items: Sequence[Mapping[str, Any]]
    ) -> None:
        """Each item is rounded by itself, and one that is not there is a unit, too."""
        missing = len(asked["Keys"]) - len(items)
        rounded = missing + sum(read_units(item_size(item)) for item in items)
        units = rounded * (1 if asked.get("ConsistentRead") else 0.5)
        self.reads[kind] += units
        self.amounts[Line.READS] += units

    def _dynamodb(self, operation: str, body: Mapping[str, Any]) -> None:
        match operation:
            case "PutItem":
                self._put(_kind(body["TableName"]), body["Item"])
            case "DeleteItem":
                self._delete(_kind(body["TableName"]), body["Key"])
            case "BatchWriteItem":
                for table, requests in body["RequestItems"].items():
                    for request in requests:
                        if "PutRequest" in request:
                            self._put(_kind(table), request["PutRequest"]["Item"])
                        else:
                            self._delete(_kind(table), request["DeleteRequest"]["Key"])
            case "GetItem" | "Query" | "Scan" | "BatchGetItem":
                pass  # priced by what is answered
            case "CreateTable" | "DescribeTable":
                pass  # of the test that sets the stage
            case _:
                raise AssertionError(f"no rule for {operation}")

    def _put(self, kind: str, item: Mapping[str, Any]) -> None:
        row, size = _row(kind, item), item_size(item)
        units = write_units(max(size, self.rows.get(row, 0)))
        # What needs attention stands in an index, too, enters it and leaves it.
        indexed = item.get("attention_owner")
        units += write_units(size) if indexed else 0
        units += self._indexed.get(row) not in (None, indexed)
        self._indexed[row] = indexed
        self.rows[row] = size
        self._write(kind if "#control" not in json.dumps(item) else "control", units)

    def _delete(self, kind: str, key: Mapping[str, Any]) -> None:
        self._write(kind, write_units(self.rows.pop(_row(kind, key), 0)))

    def _write(self, kind: str, units: int) -> None:
        self.writes[kind] += units
        self.amounts[Line.WRITES] += units

    def _sqs(self, operation: str, body: Mapping[str, Any]) -> None:
        if operation not in ("SendMessage", "SendMessageBatch"):
            return  # a poller's
        entries = body.get("Entries", [body])
        # A chunk has runs of several owners.
        single = [each for each in entries if not each["MessageBody"].startswith(CHUNK_BEGINS)]
        assert all(entry.get("MessageGroupId") for entry in single)
        units = queue_units(sum(len(entry["MessageBody"].encode()) for entry in entries))
        for line, amount in carried(units).amounts.items():
            self.amounts[line] += amount
        for entry in entries:
            delay_seconds = int(entry.get("DelaySeconds", 0))
            self.sent.append(Sent(body["QueueUrl"], entry["MessageBody"], delay_seconds))


def _kind(table: str) -> str:
    return table.rsplit("-", 1)[-1]


def _row(kind: str, item: Mapping[str, Any]) -> Row:
    schema = MODELS[kind]._get_schema()["key_schema"]
    names = {key["KeyType"]: key["AttributeName"] for key in schema}
    return kind, item[names["HASH"]]["S"], item[names["RANGE"]]["S"]
