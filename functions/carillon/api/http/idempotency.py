"""Answers to repeated requests under an idempotency key."""

from carillon.api.http.problems import ContendedError
from carillon.domain.idempotency import IdempotencyRecord
from carillon.stores.ports import VersionedRows


def first_record(
    records: VersionedRows[IdempotencyRecord], record: IdempotencyRecord
) -> IdempotencyRecord:
    """The record under the key: this one, unless an earlier request has put its own.

    Raises ContendedError, StoreUnavailableError.
    """
    for _ in range(2):
        if records.put(record, None):
            return record
        stored = records.get(record.owner, record.key)
        if stored is not None:
            return stored
    raise ContendedError(record.answer, "idempotency record")
