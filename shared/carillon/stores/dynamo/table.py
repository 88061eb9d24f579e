"""The calls that the stores make on a table; lost conditions and failures are distinguished."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_
from typing import Any, TypeVar

from botocore.exceptions import ClientError
from pynamodb.attributes import Attribute
from pynamodb.connection import Connection
from pynamodb.connection.base import MetaTable
from pynamodb.exceptions import DeleteError, PutError, PynamoDBException
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path, Value
from pynamodb.models import Model

from carillon.clock import Clock, Entropy
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.stores.dynamo.attributes import RawItem

ATTEMPTS = 8
"""Times that a part refused by a batch is sent before the store or queue counts as unavailable."""
_BASE_SECONDS = 0.05
_CAP_SECONDS = 2.0


def pause(attempt: int, clock: Clock, entropy: Entropy) -> None:
    """Sleep after the refused attempt number `attempt` (from 1): full jitter, at most 2 s."""
    ceiling = min(_CAP_SECONDS, _BASE_SECONDS * 2 ** (attempt - 1))
    clock.sleep(ceiling * (1 - entropy.fraction()))


Row = TypeVar("Row")

_CONDITION_FAILED = "ConditionalCheckFailedException"
_REFUSED = "ValidationException"
"""DynamoDB never takes such a request, however often it is repeated: a key that is empty or too
long."""
_BATCH_SIZE = 25
_READ_BATCH_SIZE = 100

MOST_REQUESTS = 10
"""Requests for one page: where a filter leaves hardly any items, the page ends after this many,
each of up to 1 MB."""

_MOST_COUNTED = 10_000
"""More items than a megabyte has: a request for so many is one without a limit."""

Keys = tuple[str, str]
"""Partition and sort key of an item."""

Span = tuple[str, str]
"""First and last sort key of a part of a partition."""


Key = Attribute[Any]


def keys_of(model: type[Model]) -> tuple[Key, Key]:
    """The partition and sort key attributes of a model."""
    attributes = model.get_attributes().values()
    hash_key = next(attribute for attribute in attributes if attribute.is_hash_key)
    range_key = next(attribute for attribute in attributes if attribute.is_range_key)
    return hash_key, range_key


class Partitions:
    """The items of a table, or of an index of it, by partition and in the order of sort keys.

    Raises StoreUnavailableError for what botocore's retries did not mend, and of these
    UnreadableRowError for a request that is refused for good.
    """

    def __init__(
        self, connection: Connection, name: str, hash_key: Key, range_key: Key, index: str = ""
    ) -> None:
        self._connection = connection
        self._name = name
        self._index = index or None
        self._range_key = range_key
        self._hash_name, self._range_name = hash_key.attr_name, range_key.attr_name

    def query(
        self,
        hash_key: str,
        after: str | None,
        limit: int | None = None,
        only: Condition | None = None,
        consistent: bool = False,
        span: Span | None = None,
        backwards: bool = False,
    ) -> tuple[list[RawItem], str | None]:
        """One request: items with greater sort keys than `after`, and where the next one begins.

        `span` is a part of the partition; nothing outside it is read. `limit` counts items before
        the filter `only`. `backwards`: in falling order of the keys, those less than `after`, which
        lies in the span. The second value is None at the end.
        """
        begin = self._key(hash_key, after) if backwards and after is not None else None
        with _failures_mapped():
            answer = self._connection.query(
                self._name,
                hash_key,
                range_key_condition=self._behind(None if backwards else after, span),
                filter_condition=only,
                consistent_read=consistent,
                limit=limit,
                exclusive_start_key=begin,
                scan_index_forward=False if backwards else None,
                index_name=self._index,
            )
        last = answer.get("LastEvaluatedKey")
        return answer["Items"], last[self._range_name]["S"] if last else None

    def count(self, hash_key: str, most: int) -> int:
        """The number of the partition's items, counted until it is `most` or more."""
        found: int = 0
        after: Any = None
        while True:
            with _failures_mapped():
                answer = self._connection.query(
                    self._name,
                    hash_key,
                    limit=most - found,
                    exclusive_start_key=after,
                    index_name=self._index,
                    select="COUNT",
                )
            found, after = found + int(answer["Count"]), answer.get("LastEvaluatedKey")
            if not after or found >= most:
                return found

    def page(
        self,
        hash_key: str,
        after: str | None,
        limit: int,
        only: Condition | None = None,
        span: Span | None = None,
        backwards: bool = False,
        consistent: bool = False,
    ) -> tuple[list[RawItem], str | None]:
        """At most `limit` items that pass `only`, and the sort key behind which the next page
        continues, None at the end.

        After MOST_REQUESTS the cursor is behind the last item read: such a page is short, or empty.
        """
        if span is not None and (span[0] > span[1] or (after or "") >= span[1]):
            return [], None  # BETWEEN would refuse the one; a forged cursor leads to the other
        found, read, more = list[RawItem](), 0, limit + 1
        for _ in range(MOST_REQUESTS):
            most = more if more < _MOST_COUNTED else None
            items, after = self.query(hash_key, after, most, only, consistent, span, backwards)
            found, read = found + items, read + more
            if after is None or len(found) > limit:
                break
            # Twice what it takes if further items pass as those before: few requests, and no
            # megabyte for the one that a full page lacks.
            more = 2 * (limit + 1 - len(found)) * read // max(1, len(found))
        if len(found) > limit:
            after = found[limit - 1][self._range_name]["S"]
        return found[:limit], after

    def _behind(self, after: str | None, span: Span | None) -> Condition | None:
        """Sort keys greater than `after`, inside of `span`: one comparison is all there may be."""
        if span is None:
            return None if after is None else self._range_key > after
        first, last = span
        if after is not None:
            # No key lies between a text and the same text with a NUL behind it.
            first = max(first, after + "\0")
        between: Condition = self._range_key.between(first, last)
        return between

    def keys_of(self, item: RawItem) -> Keys:
        return item[self._hash_name]["S"], item[self._range_name]["S"]

    def _key(self, hash_key: str, range_key: str) -> RawItem:
        return {self._hash_name: {"S": hash_key}, self._range_name: {"S": range_key}}


class Table(Partitions):
    """One table, behind a connection that is shared with the other tables."""

    def __init__(self, connection: Connection, model: type[Model], name: str) -> None:
        super().__init__(connection, name, *keys_of(model))
        connection.add_meta_table(_meta_table(name, model))

    def index(self, index: str, hash_key: Key, range_key: Key) -> Partitions:
        """Its items as an index of it orders them; those without the index's keys are not in it.

        An index is eventually consistent.
        """
        return Partitions(self._connection, self._name, hash_key, range_key, index)

    def get(self, hash_key: str, range_key: str) -> RawItem | None:
        """The item, by a strongly consistent read."""
        with _failures_mapped():
            answer = self._connection.get_item(
                self._name, hash_key, range_key, consistent_read=True
            )
        item: RawItem | None = answer.get("Item")
        return item

    def get_all(
        self, keys: Sequence[Keys], clock: Clock, entropy: Entropy, *, consistent: bool = True
    ) -> list[RawItem]:
        """The items of these keys that there are, in their order, by reads of 100; those that the
        store leaves unprocessed are read again."""
        found: dict[Keys, RawItem] = {}

        def get(pending: Sequence[RawItem]) -> list[RawItem]:
            items, left = self._get_batch(pending, consistent=consistent)
            found.update((self.keys_of(item), item) for item in items)
            return left

        _in_batches(get, [self._key(*each) for each in keys], clock, entropy, _READ_BATCH_SIZE)
        return [found[each] for each in keys if each in found]

    def get_at_once(self, keys: Sequence[Keys]) -> list[RawItem]:
        """The same, consistent, without those that the store leaves unprocessed: one that is
        throttled would hold up all others for seconds."""
        wanted = [self._key(*each) for each in keys]
        starts = range(0, len(wanted), _READ_BATCH_SIZE)
        batches = (wanted[start : start + _READ_BATCH_SIZE] for start in starts)
        return [item for each in batches for item in self._get_batch(each, consistent=True)[0]]

    def _get_batch(
        self, keys: Sequence[Any], *, consistent: bool
    ) -> tuple[list[RawItem], list[RawItem]]:
        """One request: the items that there are, and the keys that it left unprocessed."""
        with _failures_mapped():
            answer = self._connection.batch_get_item(self._name, keys, consistent_read=consistent)
        left = answer.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys")
        return answer["Responses"][self._name], left or []

    def scan(self, after: Keys | None, limit: int) -> tuple[list[RawItem], Keys | None]:
        """One request: at most `limit` items of all partitions, in no order, and the keys behind
        which the next one goes on, None at the end. Eventually consistent."""
        begin: Any = None if after is None else self._key(*after)
        with _failures_mapped():
            answer = self._connection.scan(self._name, limit=limit, exclusive_start_key=begin)
        last = answer.get("LastEvaluatedKey")
        if not last:
            return answer["Items"], None
        return answer["Items"], self.keys_of(last)

    def put(self, item: RawItem, condition: Condition | None = None) -> bool:
        """Put the item if the condition holds; True if the item is stored now.

        botocore repeats a put whose answer was lost, and the repetition fails on its own effect: so
        a failed condition is interpreted by reading back.
        """
        hash_key, range_key = self.keys_of(item)
        with _failures_mapped():
            try:
                self._connection.put_item(
                    self._name, hash_key, range_key, attributes=item, condition=condition
                )
            except PutError as error:
                if _code_of(error) != _CONDITION_FAILED:
                    raise
            else:
                return True
        return self.get(hash_key, range_key) == item

    def delete(self, hash_key: str, range_key: str, condition: Condition | None = None) -> bool:
        """Delete the item if the condition holds; whether it held."""
        with _failures_mapped():
            try:
                self._connection.delete_item(self._name, hash_key, range_key, condition=condition)
            except DeleteError as error:
                if _code_of(error) != _CONDITION_FAILED:
                    raise
                return False
        return True

    def put_all(self, items: Sequence[RawItem], clock: Clock, entropy: Entropy) -> None:
        """Put items of different keys, 25 a request; unprocessed ones are repeated."""
        _in_batches(self._put_batch, items, clock, entropy)

    def delete_all(self, keys: Sequence[tuple[str, str]], clock: Clock, entropy: Entropy) -> None:
        """Delete the items of different keys (partition and sort key), as `put_all` puts them."""
        items = [self._key(hash_key, range_key) for hash_key, range_key in keys]
        _in_batches(self._delete_batch, items, clock, entropy)

    def _put_batch(self, items: Sequence[RawItem]) -> list[RawItem]:
        """One request; answers what it left unprocessed."""
        with _failures_mapped():
            answer = self._connection.batch_write_item(self._name, put_items=items)
        return [request["PutRequest"]["Item"] for request in self._unprocessed(answer)]

    def _delete_batch(self, keys: Sequence[RawItem]) -> list[RawItem]:
        with _failures_mapped():
            answer = self._connection.batch_write_item(self._name, delete_items=keys)
        return [request["DeleteRequest"]["Key"] for request in self._unprocessed(answer)]

    def _unprocessed(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = answer.get("UnprocessedItems", {}).get(self._name, [])
        return found


def _in_batches(
    handle: Callable[[Sequence[RawItem]], list[RawItem]],
    items: Sequence[RawItem],
    clock: Clock,
    entropy: Entropy,
    size: int = _BATCH_SIZE,
) -> None:
    """Write or read all, `size` a request; what a request leaves unprocessed is repeated."""
    for start in range(0, len(items), size):
        pending = list(items[start : start + size])
        attempt = 0
        while pending := handle(pending):
            attempt += 1
            if attempt == ATTEMPTS:
                raise StoreUnavailableError(
                    f"{len(pending)} items left unprocessed {ATTEMPTS} times"
                )
            pause(attempt, clock, entropy)


def readable(
    items: Sequence[RawItem], read: Callable[[RawItem], Row], id_of: Callable[[RawItem], str]
) -> tuple[tuple[Row, ...], dict[str, str]]:
    """The rows of a page, and of those that cannot be read the reasons by their ids."""
    rows: list[Row] = []
    unreadable: dict[str, str] = {}
    for item in items:
        try:
            rows.append(read(item))
        except UnreadableRowError as error:
            unreadable[id_of(item)] = str(error)
    return tuple(rows), unreadable


def _words_of(error: PynamoDBException) -> str:
    """DynamoDB's message, without the names of tables, which are no owner's business."""
    cause = error.cause
    return str(cause.response["Error"].get("Message")) if isinstance(cause, ClientError) else ""


class _Raw(Value):
    """A value as DynamoDB writes it: {type: value}."""

    def __init__(self, typed: dict[str, Any]) -> None:
        (self.attr_type,) = typed
        super(Value, self).__init__(typed)


def unchanged(item: RawItem) -> Condition:
    """The stored item still has every attribute of `item` as it was read, whatever it means."""
    condition: Condition = reduce(and_, (Path([name]) == _Raw(item[name]) for name in item))
    return condition


def _code_of(error: PynamoDBException) -> str | None:
    """DynamoDB's word for it; None where it did not answer."""
    # PynamoDB's own `cause_response_code` fails with AttributeError on broken connections.
    cause = error.cause
    return cause.response["Error"]["Code"] if isinstance(cause, ClientError) else None


@contextmanager
def _failures_mapped() -> Iterator[None]:
    try:
        yield
    except PynamoDBException as error:
        if _code_of(error) == _REFUSED:
            raise UnreadableRowError(f"DynamoDB refuses it for good: {_words_of(error)}") from error
        raise StoreUnavailableError(str(error)) from error


def _meta_table(name: str, model: type[Model]) -> MetaTable:
    """The facts about a table and its indexes that PynamoDB needs to build requests."""
    schema = model._get_schema()
    indexes = [
        {"IndexName": index["index_name"], "KeySchema": index["key_schema"]}
        for index in schema["global_secondary_indexes"]
    ]
    return MetaTable(
        {
            "TableName": name,
            "KeySchema": schema["key_schema"],
            "AttributeDefinitions": schema["attribute_definitions"],
            "GlobalSecondaryIndexes": indexes,
        }
    )
