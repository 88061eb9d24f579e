"""What requests under an idempotency key were answered, so that their repetitions are, too.

Receipts are rows of the runs table, in partitions that no job id can name.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from carillon.api.http.problems import ContendedError
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.stores.ports import RunStore

_NEVER = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Receipt:
    """`answer` is the id that the first request was given; `fingerprint` a digest of what that one
    asked for, where requests under one key can differ."""

    answer: str
    fingerprint: str = ""


class Receipts:
    """One key each: `receipt_key`. Raises StoreUnavailableError."""

    def __init__(self, runs: RunStore, lifetime: timedelta) -> None:
        self._runs = runs
        self._lifetime = lifetime

    def get(self, key: RunKey) -> Receipt | None:
        """The receipt under the key, if there is one."""
        row = self._runs.get(key)
        return None if row is None else Receipt(str(row.result), row.claim_id)

    def first(self, key: RunKey, receipt: Receipt, now: datetime) -> Receipt:
        """The receipt under the key: this one, unless there was one before.

        Raises ContendedError.
        """
        row = Run(
            key=key,
            status=RunStatus.SUCCEEDED,
            attempt=0,
            token=0,
            claim_id=receipt.fingerprint or receipt.answer,
            filing_id=receipt.answer,
            updated_at=now,
            expires_at=now + self._lifetime,
            result=receipt.answer,
        )
        for _ in range(2):
            if self._runs.claim(row, None):
                return receipt
            stored = self.get(key)
            if stored is not None:
                return stored
        raise ContendedError(receipt.answer, "receipt")


def receipt_key(owner: str, shelf: str, kind: RunKind, request_id: str) -> RunKey:
    """Where a receipt stands; `shelf` is its partition, which has a `~` in its name."""
    return RunKey(owner, shelf, kind, _NEVER, request_id)
