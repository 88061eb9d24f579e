"""Records of idempotency keys: what the first request under a key was answered."""

import hashlib
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """Written once, by the first request; repetitions are answered by it until `expires_at`.

    `key` is a `record_key`, `answer` the id that the request was given. `fingerprint` is a digest
    of what it asked for, where requests under one key can differ.
    """

    owner: str
    key: str
    answer: str
    expires_at: datetime
    fingerprint: str = ""
    revision: int = 1


def record_key(*scope: str) -> str:
    """The key of a record: a digest of what its requests have in common, the header's text last."""
    return hashlib.sha256("\0".join(scope).encode()).hexdigest()[:26]
