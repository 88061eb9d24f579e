"""Records of requests: what the first one under an idempotency key was answered, and what a run was
asked for with."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from carillon.domain.run import OWN_PAYLOAD, RunKey


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """Written once, by the first request; repetitions are answered by it until `expires_at`.

    `key` is a `record_key`, `answer` the id that the request was given. `fingerprint` is a digest
    of what it asked for, where requests under one key can differ. `payload`, JSON text, is that of
    the run which it asked for, where it gave one, `note` its words about it.
    """

    owner: str
    key: str
    answer: str
    expires_at: datetime
    fingerprint: str = ""
    payload: str | None = None
    note: str = ""
    revision: int = 1


def record_key_of_run(key: RunKey) -> str:
    """The key of the record of the request for a manual run."""
    return record_key("run", key.job_id, key.request_id.removeprefix(OWN_PAYLOAD))


def record_key(*scope: str) -> str:
    """The key of a record: a digest of what its requests have in common, the header's text last."""
    return hashlib.sha256("\0".join(scope).encode()).hexdigest()[:26]
