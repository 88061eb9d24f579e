"""The looks at chunks in which a run of a changed job may have run before."""

from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.chunks.chunk import Outcome, dead_attempt
from carillon.domain.chunks.looking import looks_of
from carillon.domain.decisions import Defer, Drop, Proceed, Start, YieldToLatest
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.executor.ports import ExecutorPorts
from carillon.services.history import chunk_by

_BETWEEN_LOOKS = timedelta(seconds=1)
"""A chunk is under way for some tenths of a second, or for as long as its slowest call, 2 s at
most."""


class ChunkLooks:
    """A job that was not changed within an hour of the occurrence costs no read."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def before(
        self,
        start: Proceed | YieldToLatest,
        job: Job,
        message: Message,
        over: Run | None,
        now: datetime,
    ) -> Start:
        """`start`, unless a chunk has run the occurrence, or may be about to; with the attempt that
        died in one, if that does not count by the row `over`.

        Made under the claim of the run's row, by strong reads. Raises StoreUnavailableError.
        """
        chunks = self._ports.chunks
        for look in looks_of(job, message):
            chunk = chunk_by(chunks, look)
            if chunk is None:
                continue
            if chunk.ends is None:
                return Defer(now + _BETWEEN_LOOKS, "a chunk that has it is under way")
            outcome = chunk.ends[look.ref].outcome
            if outcome is Outcome.OK:
                return Drop("it has succeeded in a chunk, under the generation before")
            is_counted = over is not None and over.was_claimed_for(look.generation_id)
            if outcome is Outcome.DIED and not is_counted:
                go = start.go if isinstance(start, YieldToLatest) else start
                made_for = replace(message, generation_id=look.generation_id)
                start = replace(go, died=dead_attempt(chunk, made_for, (), now))
        return start
