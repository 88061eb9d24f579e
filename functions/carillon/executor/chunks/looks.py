"""The looks at chunks in which a run may have run before."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.chunks.chunk import Outcome, dead_attempt, success_of
from carillon.domain.chunks.looking import CLAIMED_WITHIN, Look, looks_of, was_just_changed
from carillon.domain.decisions import (
    LONGEST_BRIEF_WAIT,
    Defer,
    Drop,
    Proceed,
    Redirect,
    Skip,
    Start,
    YieldToLatest,
)
from carillon.domain.execution.lateness import LATE
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.executor.ports import ExecutorPorts
from carillon.services.packed import named_by

_LONGEST_WAIT = timedelta(minutes=2)
"""For a chunk that has been claimed for long."""


class ChunkLooks:
    """A message that comes in time, and no tick catches up on, of a job that was not changed within
    an hour of the occurrence, costs no read."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def before(
        self,
        start: Proceed | YieldToLatest | Skip | Redirect,
        job: Job,
        message: Message,
        over: Run | None,
        now: datetime,
    ) -> Start:
        """`start`, unless a chunk has run the occurrence, or may be about to; with the attempt that
        died in one, if that does not count by the row `over`, and the occurrence is to start.

        Made under the claim of the run's row, by strong reads. Raises StoreUnavailableError and
        UnreadableRowError.
        """
        claimed_by = message.due_at + CLAIMED_WITHIN
        for look in self._looks(job, message, over, now):
            key, chunk = named_by(self._ports.chunks, look)
            is_own = look.generation_id == job.generation.generation_id
            if chunk is None and key is not None and is_own and now < claimed_by:
                return Defer(claimed_by, "a chunk that may have it is to come")
            if chunk is None or look.ref not in chunk.refs:
                continue
            if chunk.ends is None:
                # For some tenths of a second, or as long as its slowest call takes: 2 s at most. Or
                # its executor has died: its message, which ends it, comes again after minutes, or
                # with this one, once executors are back.
                reason = "a chunk that has it is under way"
                longest = max(LONGEST_BRIEF_WAIT, min(now - chunk.claimed_at, _LONGEST_WAIT))
                return Defer.twice_as_late(message.starts_at, now, reason, longest=longest)
            end, made_for = chunk.ends[look.ref], replace(message, generation_id=look.generation_id)
            if end.outcome is Outcome.OK:
                return Drop("it has succeeded in a chunk", success_of(chunk, made_for, end))
            is_counted = over is not None and over.was_claimed_for(look.generation_id)
            is_lost = end.outcome is Outcome.DIED and not is_counted
            if is_lost and not isinstance(start, Skip | Redirect):
                go = start.go if isinstance(start, YieldToLatest) else start
                start = replace(go, died=dead_attempt(chunk, made_for, now))
        return start

    def _looks(self, job: Job, message: Message, over: Run | None, now: datetime) -> Iterable[Look]:
        """No row stops what may be a second message: a success in a chunk has none. Of a changed
        job the records alone know for certain in which chunk it was: in a pause the row's place
        changes. Nor is it known of what is gone on with in place of another generation's message
        how that was sent."""
        is_marked = message.is_second or message.in_time is not None
        is_late = is_marked or now - message.due_at > LATE
        is_own = message.generation_id == job.generation.generation_id
        is_shared = over is not None and bool(over.other_generations)
        is_second = is_late or is_shared or not is_own or was_just_changed(job, message.key.fire_at)
        return self._ports.packed.looks(job, message.key) if is_second else looks_of(job, message)
