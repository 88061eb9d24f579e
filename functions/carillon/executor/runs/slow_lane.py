"""Lane slow: jobs whose attempts keep lasting long, and hosts that hang."""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock

from carillon.domain.admission import slowness
from carillon.domain.admission.slowness import TimeOuts, host_of, mark_by_host, with_time_out
from carillon.domain.admission.state import AdmissionRow, job_admission
from carillon.domain.decisions import Redirect
from carillon.domain.job import Job, Lane, Slow
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKind
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.admission import change_admission

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


_KNOWN_FOR = timedelta(minutes=10)
"""A job is taken for a slow one for so long after a message of it was redirected to lane slow, half
of it at least: many were mostly redirected at once."""
_MOST_KNOWN = 10_000
"""Slow jobs that a process remembers."""
_ROUNDS = 4
"""An owner may change the job's row under its mark this often: the next slow attempt sets it."""


class SlowLane:
    """A job whose attempts are quick costs no read and no write here."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._hosts = Hosts()
        self._known_until: dict[str, datetime] = {}

    @property
    def knows_any(self) -> bool:
        return bool(self._known_until)

    def note(self, sent: Message) -> None:
        """Remember the job of a message that goes to another lane."""
        if len(self._known_until) >= _MOST_KNOWN:
            self._known_until.clear()
        if sent.lane is Lane.SLOW:
            known_for = _KNOWN_FOR * (1 + self._ports.entropy.fraction()) / 2
            self._known_until[sent.key.job_id] = self._ports.clock.now() + known_for

    def forwarded(self, message: Message) -> Redirect | None:
        """The message for lane slow, if it comes from a tick by another one, and its job is known
        to be served there: its claim would only be given up.

        What comes back from there, since its job is slow no more, is no tick's message any more.
        """
        known_until = self._known_until.get(message.key.job_id)
        is_ticks = bool(message.slot_key) and message.key.kind is RunKind.SCHEDULED
        if known_until is None or self._ports.clock.now() > known_until:
            return None
        if not is_ticks or message.lane is Lane.SLOW or message.attempt > 1:
            return None
        return Redirect(replace(message, lane=Lane.SLOW), "its job is served in lane slow")

    def by_host(self, job: Job) -> Job:
        """The job as it is served from now on: marked without a call if its host is known to hang.

        Where the mark cannot be set the job is called as before. So its row is not read anew: once
        the run has read a pause or a deletion there it must not start.
        """
        mark = self._mark_by_host(job)
        if mark is not None:
            moved = replace(job, slow=mark)
            with suppress(StoreUnavailableError):
                if self._ports.jobs.replace(moved, job.revision):
                    self._ports.lifecycle.job_slowed(moved, mark)
                    return moved
        return job

    def hangs(self, job: Job) -> bool:
        """True if the job's host is known to hang, so that its next run alone is to mark it."""
        return self._mark_by_host(job) is not None

    def _mark_by_host(self, job: Job) -> Slow | None:
        is_settled = job.lane is Lane.SLOW or job.is_tombstone
        return None if is_settled else self._hosts.mark(job, self._ports.clock.now())

    def judge(self, run: Run, job: Job) -> None:
        """Count the attempt of `run` that has just ended, and move its job where it belongs now.

        A store that fails costs a count, never the run.
        """
        weight = slowness.weight_of(run, self._ports.slow_after_seconds)
        if run.key.kind is not RunKind.CALLBACK:  # that calls another target than its job's
            self._hosts.note(job, run.updated_at, timed_out=weight > 1)
        with suppress(StoreUnavailableError):
            if weight:
                self._count(run, job, weight)
            elif slowness.may_have_behaved(run, job):
                gate = self._ports.admission_rows.get(job.owner, job_admission(job.job_id))
                if slowness.has_behaved(gate, run):
                    self._move(job, None, run.updated_at)

    def _count(self, run: Run, job: Job, weight: int) -> None:
        slow: Slow | None = None

        def change(gate: AdmissionRow) -> AdmissionRow:
            nonlocal slow
            counted = slowness.with_slow_attempt(gate, run, job, weight)
            slow = slowness.mark(counted, run, self._ports.slow_after_seconds)
            return counted

        won = change_admission(
            self._ports.admission_rows, job.owner, job_admission(job.job_id), change
        )
        if won and slow is not None and job.slow is None:
            self._move(job, slow, run.updated_at)

    def _move(self, job: Job, slow: Slow | None, at: datetime) -> None:
        """Put or take the mark, under the revision that the owner sees: any change of his wins."""
        for _ in range(_ROUNDS):
            current = self._ports.jobs.get(job.owner, job.job_id)
            if current is None or current.is_tombstone:
                return
            if (current.slow is None) is (slow is None):
                return  # another run was quicker
            moved = replace(current, slow=slow)
            if self._ports.jobs.replace(moved, current.revision):
                if slow is None:
                    self._ports.lifecycle.job_recovered(moved, at)
                else:
                    self._ports.lifecycle.job_slowed(moved, slow)
                return
