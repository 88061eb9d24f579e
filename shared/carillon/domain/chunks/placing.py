"""The occurrences that go in chunks, and the chunk that each one belongs to."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from carillon.clock import id_created_at
from carillon.domain.events import EventType
from carillon.domain.policies import CatchUp, Lane, Overlap, ResultKept
from carillon.domain.spec.job_spec import JobSpec
from carillon.schedules import Delay, Schedule
from carillon.schedules.base import ENDLESS_FROM

SETTLED_AFTER = timedelta(hours=1)
"""From a generation's making until its occurrences go in chunks. By then its entries are put, and
all that its indexer has sent itself is over: what goes in a chunk can only become less."""
MEAN_SIZE = 24
"""Occurrences in a chunk: more cost hardly less, and an executor's death repeats more calls."""
MOST_IN_ONE = 32
FEWEST = 3
"""Fewer occurrences of one second go alone: a chunk of two costs as much as two rows."""

_EVENTS_OF_ALL = frozenset({EventType.RUN_STARTED, EventType.RUN_SUCCEEDED})


def is_plain(spec: JobSpec, schedule: Schedule) -> bool:
    """True if a quick success of the job is followed by nothing, and no policy decides about its
    start: such jobs go in chunks."""
    return (
        spec.after is None
        and spec.overlap is Overlap.ALLOW
        and spec.catch_up is not CatchUp.SKIP
        and spec.retry.max_attempts > 1  # an executor's death repeats the calls of a whole chunk
        and spec.result is not ResultKept.FULL
        and spec.target.completion is None
        and _EVENTS_OF_ALL.isdisjoint(spec.events)
        and all(getattr(spec, policy) is None for policy in _POLICIES)
        and not isinstance(schedule, Delay)
        and schedule.next(ENDLESS_FROM) is not None
    )


_POLICIES = (
    *("tolerance", "grace", "concurrency", "rate", "pause_after_failures", "calendar"),
    "on_success",
)


def chunked_from(generation_id: str) -> int:
    """The first epoch minute whose occurrences of a plain job's generation go in chunks."""
    seconds = (id_created_at(generation_id) + SETTLED_AFTER).timestamp()
    return -int(-seconds // 60)


Group = tuple[int, Lane]
"""The occurrences of a segment's minute that may share chunks: by the second of the minute at which
they are due, and lane."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of chunks of each group of a segment's minute; a group that has none goes alone.

    The first tick that dispatches the minute makes it, before it sends anything; all others obey.
    `salt` is drawn anew for each plan, so that nobody can choose ids which share a chunk.
    """

    segment: int
    minute: int
    salt: str
    expires_at: datetime
    chunks: Mapping[Group, int] = field(default_factory=dict, hash=False)

    def bucket_of(self, group: Group, job_id: str) -> int | None:
        """The chunk of a job among those of its group; None for one that goes alone."""
        count = self.chunks.get(group)
        if not count:
            return None
        digest = hashlib.blake2b(job_id.encode(), digest_size=8, key=self.salt.encode()).digest()
        return int.from_bytes(digest, "big") % count


def chunks_of(sizes: Mapping[Group, int]) -> dict[Group, int]:
    """The number of chunks for groups of these sizes, without those that go alone."""
    return {group: _count(size) for group, size in sizes.items() if size >= FEWEST}


def _count(size: int) -> int:
    return 1 if size <= MOST_IN_ONE else -(-size // MEAN_SIZE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the occurrences of a plain generation are to be looked for: in the groups of this lane,
    in this segment, this long after their nominal times."""

    segment: int
    lane: Lane
    spread_seconds: int
