"""A limit on the requests of one owner: a bucket of tokens each, in this process.

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


class Throttle:
    """`per_second` requests of each owner, after a pause up to `burst` at once; 0: no limit."""

    def __init__(self, per_second: int, burst: int) -> None:
        self._per_second = per_second
        self._burst = max(burst, per_second)
        self._buckets: dict[str, _Bucket] = {}
        self._lock = Lock()

    def wait_seconds(self, owner: str, now: datetime) -> int:
        """0 for a request that is taken; else whole seconds until the next one can be."""
        if not self._per_second:
            return 0
        with self._lock:
            tokens = self._tokens(owner, now)
            if tokens < 1:
                return math.ceil((1 - tokens) / self._per_second)
            if len(self._buckets) >= MOST_BUCKETS:
                self._drop_full(now)
            self._buckets[owner] = _Bucket(tokens - 1, now)
            return 0

    def _tokens(self, owner: str, now: datetime) -> float:
        bucket = self._buckets.get(owner)
        if bucket is None:
            return self._burst
        # A clock that was set back refills nothing.
        passed_seconds = max(0.0, (now - bucket.at).total_seconds())
        return min(self._burst, bucket.tokens + passed_seconds * self._per_second)

    def _drop_full(self, now: datetime) -> None:
        self._buckets = {
            owner: bucket
            for owner, bucket in self._buckets.items()
            if self._tokens(owner, now) < self._burst
        }
