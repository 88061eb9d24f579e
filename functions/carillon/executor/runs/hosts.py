"""What an executor's process remembers of hosts whose attempts time out one after the other."""

from datetime import datetime
from threading import Lock

from carillon.domain.admission.slowness import TimeOuts, host_of, mark_by_host, with_time_out
from carillon.domain.job import Job, Slow

_LIMIT = 1_000
"""Hosts; the one that timed out longest ago goes first."""


class Hosts:
    """For several threads; costs no read and no write of a store."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], TimeOuts] = {}
        self._lock = Lock()

    def note(self, job: Job, at: datetime, *, timed_out: bool) -> None:
        """Remember how an attempt of the job ended; any other end takes back what was known."""
        host = host_of(job)
        if host is None:
            return
        with self._lock:
            seen = self._seen.pop(host, None)
            if timed_out:
                self._seen[host] = with_time_out(seen, at)
            if len(self._seen) > _LIMIT:
                del self._seen[next(iter(self._seen))]

    def mark(self, job: Job, now: datetime) -> Slow | None:
        """The mark of a job whose host is known to hang now."""
        host = host_of(job)
        if host is None:
            return None
        with self._lock:
            return mark_by_host(self._seen.get(host), host, now)
