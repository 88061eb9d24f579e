"""The work of the steps that hand jobs over to another owner: some are chosen, and then moved."""

from collections.abc import Iterator
from datetime import datetime

from carillon.domain.calendar import Calendar
from carillon.domain.changes.handing_over import (
    begun,
    ended,
    is_begun,
    is_in_hand,
    is_taken_over,
    refusal_by,
    refusal_of,
    settled,
    taken_back,
)
from carillon.domain.execution.next_run import needed_until
from carillon.domain.execution.resuming import is_over, resumed_after
from carillon.domain.execution.successors import predecessor_id
from carillon.domain.job import Generation, Job, JobState
from carillon.domain.operation import Operation, OperationState, Progress
from carillon.domain.quotas import Load, QuotaExceededError
from carillon.domain.spec.names import job_id_of
from carillon.errors import UnreadableRowError
from carillon.executor.ports import ExecutorPorts
from carillon.stores.ports import JobFilter

_PAGE = 50
"""Jobs that are chosen at once."""
_SOON_SECONDS, _LATER_SECONDS = 1, 10
"""Until the next step; later where a job could not be moved, or no time was left for one."""
_ROUNDS = 6
"""A job takes three: to end, to begin, to be settled."""
_ALL_CHOSEN = "all"
"""The cursor once no page is left: cursors of lists are longer."""
_HANDED_OVER = ""
_UNREADABLE = "a row of its name, its calendar or the quota cannot be read"


class HandingOver:
    """Raises StoreUnavailableError and QueueUnavailableError; then the step is done again.

    A step that chooses writes nothing but the operation, so what is begun is always known: each job
    is ended by one write, and begun by another, which whoever comes next repeats.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def step(self, operation: Operation, work_until: datetime) -> Progress:
        """Choose jobs if none is in hand; else move those."""
        return self._move(operation, work_until) if operation.in_hand else self._choose(operation)

    def _choose(self, operation: Operation) -> Progress:
        if operation.job_id:
            chosen: tuple[str, ...] = (operation.job_id,)
            return Progress(_ALL_CHOSEN, in_hand=chosen, pause_seconds=_SOON_SECONDS)
        only = _filter_of(operation)
        page = self._ports.jobs.list(operation.owner, _PAGE, operation.cursor or None, only)
        chosen = tuple(job.job_id for job in page.items)
        cursor = page.next_cursor or _ALL_CHOSEN
        is_end = not chosen and page.next_cursor is None
        return Progress(
            cursor,
            passed_over=len(page.unreadable),
            state=OperationState.SUCCEEDED if is_end else OperationState.RUNNING,
            pause_seconds=_SOON_SECONDS,
            in_hand=chosen,
            left=tuple(f"{job_id}: its row cannot be read" for job_id in page.unreadable),
        )

    def _move(self, operation: Operation, work_until: datetime) -> Progress:
        stay: list[str] = []
        kept: list[str] = []
        for place, job_id in enumerate(operation.in_hand):
            if self._ports.clock.now() >= work_until:
                kept += operation.in_hand[place:]
                break
            reason = self._moved(operation, job_id)
            if reason is None:
                kept.append(job_id)
            elif reason != _HANDED_OVER:
                stay.append(reason)
        is_end = not kept and operation.cursor == _ALL_CHOSEN
        return Progress(
            operation.cursor,
            done=len(operation.in_hand) - len(stay) - len(kept),
            passed_over=len(stay),
            state=OperationState.SUCCEEDED if is_end else OperationState.RUNNING,
            pause_seconds=_LATER_SECONDS if kept else _SOON_SECONDS,
            in_hand=tuple(kept),
            left=tuple(stay),
        )

    def _moved(self, operation: Operation, job_id: str) -> str | None:
        """Why the job stays, _HANDED_OVER where it does not; None if it changed at every try, or is
        between two owners and cannot be moved now: it holds up no other."""
        for _ in range(_ROUNDS):
            try:
                job = self._ports.jobs.get(operation.owner, job_id)
            except UnreadableRowError:
                return None  # the job may be between its owners: it stays in hand until then
            if job is None:
                return f"{job_id}: it is gone"
            if is_begun(job, operation):
                if not is_in_hand(job):
                    return _HANDED_OVER
                try:
                    self._go_on(job, operation)
                except UnreadableRowError:
                    return None  # its segment's control item: it is moved when that is mended
                continue
            # What resumes it may have come, and gone, while it was between its owners.
            is_awaited = _is_awaited(job, self._ports.clock.now())
            reason = "" if is_awaited else self._refusal(job, operation)
            if not reason and not self._is_held(operation):
                return None
            if is_awaited:
                reason = self._resumed(job)
            elif not reason:
                reason = self._end(job, operation)
            if reason:
                return f"{job.spec.name}: {reason}"
        return None

    def _is_held(self, operation: Operation) -> bool:
        """True while no other process has taken the step over, which may have moved a job that has
        come back since. To be asked between the read of a job's row and the write over it: whoever
        takes the step over later changes that row first, or meets what was written."""
        stored = self._ports.operations.get(operation.owner, operation.operation_id)
        return stored is not None and stored.is_held_as(operation)

    def _refusal(self, job: Job, operation: Operation) -> str:
        """Why the job stays with its owner; "" where nothing speaks against it."""
        if job.is_tombstone:
            return "it is gone"
        if not _filter_of(operation).chooses(job):
            return "it was changed, and is none of those that are handed over"
        try:
            reason = refusal_of(job, operation, is_followed=any(self._followers(job)))
        except UnreadableRowError as error:
            return f"{error}"
        try:
            return reason or self._refusal_by(job, operation, self._taken(job, operation))
        except UnreadableRowError:  # its text has parts of a row of the other owner's
            return _UNREADABLE

    def _refusal_by(self, job: Job, operation: Operation, taken: Job | None) -> str:
        if taken is not None and self._is_in_hand(taken, job):
            return f"{operation.to} is handing over a job {job.spec.name!r}"
        own, other = (self._calendar(job, owner) for owner in (operation.owner, operation.to))
        return refusal_by(taken, job.spec.name, operation.to, own, other)

    def _followers(self, job: Job) -> Iterator[bool]:
        for link in job.successors:
            if predecessor_id(self._ports.jobs.get(job.owner, link.job_id)) == job.job_id:
                yield True

    def _taken(self, job: Job, operation: Operation) -> Job | None:
        """The other owner's row of the job's name."""
        return self._ports.jobs.get(operation.to, job_id_of(operation.to, job.spec.name))

    def _is_in_hand(self, taken: Job, tombstone: Job) -> bool:
        """True if another operation has ended that job, which may yet come back, or has made it,
        and may yet look for that: its mark must stay."""
        mark = taken.handed_from
        if is_in_hand(taken) or mark is None:
            return is_in_hand(taken)
        came_from = self._ports.jobs.get(mark.owner, job_id_of(mark.owner, taken.spec.name))
        if came_from is None or came_from.job_id == tombstone.job_id:
            return False
        return is_in_hand(came_from) and is_taken_over(came_from, taken)

    def _calendar(self, job: Job, owner: str) -> Calendar | None:
        use = job.spec.calendar
        return None if use is None else self._ports.calendars.get(owner, use.name)

    def _resumed(self, job: Job) -> str:
        """Resume the job; answers why it cannot be."""
        try:
            self._resume(job)
        except UnreadableRowError as error:
            return f"{error}"
        return ""

    def _resume(self, job: Job) -> None:
        now = self._ports.clock.now()
        generation = Generation(self._new_id(job.generation, now), resumed_after(job, now))
        self._ports.indexer.index_job(job.in_new_generation(generation, now), job.revision)

    def _end(self, job: Job, operation: Operation) -> str:
        """End the job, once the quotas of its new owner have room for it; else why they have not.
        Where its pause has come to an end meanwhile it is to be resumed first: it could not be
        resumed from then on as another owner's, which begins later.

        Their row rises before the job comes. That of its first owner stays too high, as where a
        job completes: a count mends it where it matters.
        """
        load = Load.of(job)
        try:
            self._ports.job_quotas.add(operation.to, load)
        except QuotaExceededError as error:
            return f"{operation.to} has no room for it: {error.exceeded}"
        except UnreadableRowError:
            return _UNREADABLE
        now = self._ports.clock.now()
        generation = Generation(self._new_id(job.generation, now), now.replace(microsecond=0))
        until = needed_until(job, now, self._ports.run_lifetime)
        tombstone = ended(job, operation, generation, now, until)
        if not _is_awaited(job, now) and self._ports.jobs.replace(tombstone, job.revision):
            self._ports.indexer.remove_ended_entries(job, tombstone)
        else:
            self._ports.job_quotas.remove(operation.to, load)
        return ""

    def _go_on(self, tombstone: Job, operation: Operation) -> None:
        """Begin the job under its new owner, or note that it has begun. Where somebody has taken
        its name meanwhile, or its calendar away, it goes back to the first one."""
        now = self._ports.clock.now()
        try:
            taken = self._taken(tombstone, operation)
            if taken is not None and is_taken_over(tombstone, taken):
                # Its commit may have been the last deed of a process that had stood still.
                if taken.state is JobState.ACTIVE:
                    self._ports.indexer.index_again(taken)
                elif _is_awaited(taken, now):
                    self._resume(taken)
                self._ports.jobs.replace(settled(tombstone), tombstone.revision)
                return
            reason = self._refusal_by(tombstone, operation, taken)
        except UnreadableRowError:
            taken, reason = None, "a row cannot be read"
        before = None if taken is None else taken.generation
        job = begun(tombstone, operation, self._new_id(before, now), now, taken)
        if reason or job is None:
            new_id = self._new_id(tombstone.generation, now)
            self._put(taken_back(tombstone, operation, new_id, now), tombstone)
        else:
            self._put(job, taken)

    def _put(self, job: Job, before: Job | None) -> None:
        revision = None if before is None else before.revision
        if job.state is JobState.ACTIVE:
            self._ports.indexer.index_job(job, revision)
        else:
            self._ports.indexer.commit_paused(job, revision)

    def _new_id(self, before: Generation | None, now: datetime) -> str:
        return self._ports.entropy.new_id(now if before is None else before.next_id_at(now))


def _is_awaited(job: Job, now: datetime) -> bool:
    """True if its pause is over, and the message that resumes it may come any moment."""
    return job.state is JobState.PAUSED and is_over(job, now)


def _filter_of(operation: Operation) -> JobFilter:
    return JobFilter(operation.parent, operation.tags)
