"""The quota of requests of each owner: a bucket of tokens, in this process.

One owner's flood is refused before any store is asked. Each process of the function counts by
itself: who is served by several at a time may get as many times the rate.
"""

import math
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

MOST_BUCKETS = 10_000
"""Above this many buckets the full ones are dropped: a full bucket equals none."""


@dataclass(frozen=True, slots=True)
class _Bucket:
    tokens: float
    at: datetime
    per_second: int


class Throttle:
    """After a pause up to `burst` requests of an owner are taken at once, and no fewer than its
    limit is."""

    def __init__(self, burst: int) -> None:
        self._burst = burst
        self._buckets: dict[str, _Bucket] = {}
        self._lock = Lock()

    def wait_seconds(self, owner: str, per_second: int, now: datetime) -> int:
        """0 for a request that is taken; else whole seconds until the next one can be. The owner's
        limit is `per_second`, 0 for none."""
        if not per_second:
            return 0
        with self._lock:
            tokens = self._tokens(owner, per_second, now)
            if tokens < 1:
                return math.ceil((1 - tokens) / per_second)
            if len(self._buckets) >= MOST_BUCKETS:
                self._drop_full(now)
            self._buckets[owner] = _Bucket(tokens - 1, now, per_second)
            return 0

    def use(self, owner: str, per_second: int, now: datetime) -> int:
        """As many of `per_second` as the last requests leave no room for."""
        with self._lock:
            left = self._tokens(owner, per_second, now)
        return max(0, per_second - math.floor(left))

    def _tokens(self, owner: str, per_second: int, now: datetime) -> float:
        burst, bucket = max(self._burst, per_second), self._buckets.get(owner)
        if bucket is None:
            return burst
        # A clock that was set back refills nothing.
        passed_seconds = max(0.0, (now - bucket.at).total_seconds())
        return min(burst, bucket.tokens + passed_seconds * per_second)

    def _drop_full(self, now: datetime) -> None:
        self._buckets = {
            owner: bucket
            for owner, bucket in self._buckets.items()
            if self._tokens(owner, bucket.per_second, now) < max(self._burst, bucket.per_second)
        }
