"""Throttling of a catch-up: the order of starts among the owners of a segment's late messages."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache

BUCKETS = 32
"""Owners are distinguished by this many digests, so that the control item stays small however many
there are."""


@lru_cache(maxsize=16_384)
def bucket_of(owner: str) -> int:
    """The share that an owner's late messages count on, stable for ever."""
    return hashlib.sha256(f"share\0{owner}".encode()).digest()[0] % BUCKETS


@dataclass(frozen=True, slots=True)
class Shares:
    """The places of all that is late in a segment, in turns: the first message of each bucket, then
    the second of each, and so on. Where one has no more, the others' come the sooner.

    What there is was counted before any place was given, in the minutes up to `until`: `counts`, by
    bucket. `placed` of these have their place. The first place is at `begins_at`.
    """

    until: int
    begins_at: datetime
    counts: tuple[int, ...]
    placed: tuple[int, ...]

    def has_share(self, bucket: int) -> bool:
        """True if a message of the bucket was counted that has no place yet."""
        return self.placed[bucket] < self.counts[bucket]

    def taken(
        self, bucket: int, now: datetime, spacing: timedelta
    ) -> "tuple[Shares, datetime, int]":
        """The shares after the next message of the bucket has taken its place, that place, and by
        how many places all that is left has moved: they are past, and nobody has used them.

        Places lie `spacing` apart; none is before `now`.
        """
        over = (now - self.begins_at) // spacing
        passed = over - sum(self.placed)
        if passed > 0 and self._all_past(now, spacing):
            shares, place, _ = self._moved(over * spacing).taken(bucket, now, spacing)
            return shares, place, passed
        turn = self.placed[bucket]
        while (place := self._place(bucket, turn, spacing)) + spacing <= now:
            turn += 1
        passed = turn - self.placed[bucket]
        counts, placed = list(self.counts), list(self.placed)
        counts[bucket] += passed
        placed[bucket] = turn + 1
        after = replace(self, counts=tuple(counts), placed=tuple(placed))
        return after, max(now, place), passed

    def _all_past(self, now: datetime, spacing: timedelta) -> bool:
        """True if no place that is given is yet to come, as after an outage of ticks."""
        given = (
            self._place(bucket, count - 1, spacing)
            for bucket, count in enumerate(self.placed)
            if count
        )
        return max(given, default=self.begins_at - spacing) + spacing <= now

    def _moved(self, by: timedelta) -> "Shares":
        """All that is left, in turns from so much later on.

        Were the turns that are past made up for by each bucket, those of every other would be put
        off by as many again.
        """
        left = (count - placed for count, placed in zip(self.counts, self.placed, strict=True))
        return Shares(self.until, self.begins_at + by, tuple(left), (0,) * len(self.counts))

    def _place(self, bucket: int, turn: int, spacing: timedelta) -> datetime:
        """Of the turn (from 0) of a bucket: all earlier turns come first, and of the same turn
        those of the buckets before it."""
        before = turn
        for other, count in enumerate(self.counts):
            if other != bucket:
                before += min(count, turn) + (other < bucket and count > turn)
        return self.begins_at + before * spacing
