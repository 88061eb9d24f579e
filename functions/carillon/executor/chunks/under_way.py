"""A claimed chunk until it is finished."""

from datetime import timedelta
from threading import Lock

from carillon.domain.chunks.chunk import Chunk, Ended, Outcome, finished, ref_of_member, success_of
from carillon.domain.chunks.message import ChunkMessage, Member
from carillon.domain.execution.stopping import LOOK_SECONDS
from carillon.domain.run import Run
from carillon.executor.ports import ExecutorPorts

_LONGEST_WAIT = timedelta(seconds=LOOK_SECONDS)
"""From the read of the jobs to a call, which may wait for room; and a process may stand still."""


class UnderWay:
    """The ends of a chunk's occurrences; several threads may share it.

    It begins before the jobs are read. The last one that settles finishes the chunk. `successes`
    are the runs that have succeeded; None where the finish was refused. `errors` have stopped an
    occurrence, or the finish.
    """

    def __init__(self, ports: ExecutorPorts, chunk: Chunk, message: ChunkMessage) -> None:
        self.chunk = chunk
        self.message = message
        self.successes: list[Run] | None = None
        self.errors: list[Exception] = []
        self._ports = ports
        self._began_at = ports.clock.now()
        self._ends: dict[bytes, Ended] = {}
        self._is_finishing = False
        self._lock = Lock()

    def is_late(self) -> bool:
        """True if nothing is to be called any more: a job may have been paused since it was read,
        the call might outlast the lease, or another executor has taken the chunk over."""
        return self._ports.clock.now() - self._began_at > _LONGEST_WAIT

    def settle(self, member: Member, end: Ended) -> None:
        """Note the end of an occurrence; its first one counts."""
        with self._lock:
            self._ends.setdefault(ref_of_member(member), end)
            is_last = len(self._ends) == len(self.chunk.refs)
            if not is_last or self._is_finishing:
                return
            self._is_finishing = True
        try:
            self._finish()
        except Exception as error:  # raised when all calls have ended
            self.errors.append(error)

    def _finish(self) -> None:
        final = finished(self.chunk, dict(self._ends))
        if self._ports.chunks.finish(final):
            self.successes = successes_of(final, self.message)


def successes_of(chunk: Chunk, message: ChunkMessage) -> list[Run]:
    """The message's occurrences that have succeeded in the final chunk."""
    ends = ((message.alone(member), chunk.end_of(member)) for member in message.members)
    return [success_of(chunk, each, end) for each, end in ends if end and end.outcome is Outcome.OK]
