"""The looks at chunks in which a run of a changed job may have run before."""

from datetime import datetime, timedelta

from carillon.domain.chunks.chunk import Outcome
from carillon.domain.chunks.looking import looks_of
from carillon.domain.decisions import Defer, Drop, Proceed, Start, YieldToLatest
from carillon.domain.job import Job
from carillon.domain.message import Message
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
        self, start: Proceed | YieldToLatest, job: Job, message: Message, now: datetime
    ) -> Start:
        """`start`, unless a chunk has run the occurrence, or may be about to.

        Made under the claim of the run's row, by strong reads. Raises StoreUnavailableError.
        """
        chunks = self._ports.chunks
        for look in looks_of(job, message):
            chunk = chunk_by(chunks, look)
            if chunk is None:
                continue
            if chunk.ends is None:
                return Defer(now + _BETWEEN_LOOKS, "a chunk that has it is under way")
            if chunk.ends[look.ref].outcome is Outcome.OK:
                return Drop("it has succeeded in a chunk, under the generation before")
        return start
