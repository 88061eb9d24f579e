"""Actions after an attempt: the retry, or events, callback, next run and completion. Idempotent.

A crash before they are done is repaired by the next reception, which repeats them.
"""

from dataclasses import replace
from datetime import datetime

from carillon.domain.admission.overlap import misfire
from carillon.domain.admission.state import job_admission
from carillon.domain.changes.handing_over import is_in_hand, owner_of_now
from carillon.domain.decisions import Defer, Drop, Start
from carillon.domain.execution import completing, next_run
from carillon.domain.execution.callbacks import callback_message, callback_target
from carillon.domain.execution.successors import messages_after
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.policies import OnComplete, Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.executor.batch import Handled, PartlyHandledError, Report, defer
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.failures import Failures
from carillon.schedules import Delay
from carillon.services.calendar_reader import CalendarReader

_ROUNDS = 4
"""The job's row may change under its completion this often before the message is repeated."""
_ROWS_READ = 50
"""Rows of the history that are searched for the last run of a fixed delay."""


class FollowUp:
    """Raises StoreUnavailableError and QueueUnavailableError: the message is to be repeated then.

    Its methods return True if they have put the job's tombstone.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports
        self._failures = Failures(ports)

    def after(self, run: Run, context: RunContext) -> bool:
        """Report the end of an attempt; for a final run, do all that follows from it."""
        if run.is_final and context.message.after_finish:
            # The sequence must not continue over a pause that came while the run was under way.
            job = self._ports.job_of(context.message)
            if job is None:
                return False
            context = replace(context, job=job, calendars=CalendarReader(self._ports.calendars))
        return self._after(run, context, repeated=False)

    def told(self, run: Run, context: RunContext) -> Report:
        """The report of an attempt whose end was just recorded, after what follows from it. Where
        that fails PartlyHandledError has the report: whoever repeats it tells nothing."""
        skipped = run.status is RunStatus.SKIPPED
        handled, reason = (Handled.SKIPPED, run.reason or "") if skipped else (Handled.RAN, "")
        report = Report(handled, context.message, run, reason, job=context.job)
        try:
            return replace(report, completes=self.after(run, context))
        except (StoreUnavailableError, QueueUnavailableError) as error:
            raise PartlyHandledError(report) from error

    def told_again(self, run: Run, message: Message, context: RunContext | None) -> Report:
        """The report of a message whose run has ended an attempt before, after what follows from
        that. Without `context` its job is gone."""
        if context is None:
            self._ports.lifecycle.buried(run)
        completes = context is not None and self.again(run, context)
        if isinstance(completes, Defer):
            return defer(self._ports, message, completes.at, completes.reason)
        reason = f"the run is {run.status.value}"
        is_news = completing.is_of_a_report(message, run)
        handled = Handled.RAN if is_news else Handled.REPEATED
        job = None if context is None else context.job
        return Report(handled, message, run, reason, completes, job=job)

    def dropped(self, report: Report, start: Start, context: RunContext | None) -> Report:
        """The report of a message that was dropped. A run that has succeeded in a chunk completes
        its job where it was the last one: the chunk read the job when it had others to come."""
        ended = start.ended if isinstance(start, Drop) else None
        if ended is None or context is None:
            return report
        return replace(report, completes=self._complete(context.job, ended, context))

    def again(self, run: Run, context: RunContext) -> Defer | bool:
        """Actions after an attempt: the retry, or events, callback and completion. Idempotent.

        Whether that message is a duplicate, or its executor died before it sent the next one of a
        fixed delay, only the next run shows: until it must have begun the message waits. For a run
        that was cancelled, or has ended by a report, nobody else has sent the next.
        """
        if not context.message.after_finish or not run.is_final:
            return self._after(run, context, repeated=True)
        job, following = self._consequences(run, context, repeated=True)
        if following is None:
            return self._complete(job, run, context)
        read_at = next_run.check_again_at(following, self._ports.clock.now())
        if read_at is not None and not _is_ended_by_api(run, context.message):
            return Defer(read_at, "the run has ended, and the next one has yet to begin")
        begun = self._ports.runs.get(following.key)
        if begun is None or begun.generation_id != following.generation_id:
            # A row of another generation was left by a change and does not continue this sequence.
            self._ports.indexer.schedule_message(following)
        return False

    def _after(self, run: Run, context: RunContext, *, repeated: bool) -> bool:
        if not run.is_final:
            # An orphaned message of another generation knows nothing of its attempts.
            if run.generation_id == context.message.generation_id:
                self._ports.lifecycle.ended(run, context.job)
            return False
        job, following = self._consequences(run, context, repeated=repeated)
        if following is None:
            return self._complete(job, run, context)
        self._ports.indexer.schedule_message(following)
        return False

    def _consequences(
        self, run: Run, context: RunContext, *, repeated: bool
    ) -> tuple[Job | None, Message | None]:
        """Do what follows from a final run; answers the job as it is then, and the next occurrence
        of a fixed delay, which is for the caller to send."""
        job = context.job
        self._ports.lifecycle.ended(run, job)
        if callback_target(job, run) is not None:
            self._ports.indexer.schedule_message(callback_message(run, context.message))
        self._ports.indexer.schedule_messages(list(messages_after(run, job)))
        if not repeated or _is_ended_by_api(run, context.message):
            self._wake_queued_run(run, job)
        current = self._failures.count(run, job, repeated=repeated)
        if current is None or not context.message.after_finish:
            return current, None
        closed = context.calendars.closed_days(current.owner, current.spec.calendar)
        return current, next_run.next_after_finish(current, run, context.message, closed)

    def _wake_queued_run(self, run: Run, job: Job) -> None:
        """Wake the run that waits for the end of this one, so that it need not check by itself.

        Where the executor died before, it checks within half a minute all the same, or within half
        of its wait where the run was open. So it does once its job is deleted: it is only to be
        skipped.
        """
        if job.spec.overlap is Overlap.ALLOW or job.state is JobState.DELETED:
            return
        if run.key.kind is RunKind.CALLBACK:
            return
        gate = self._ports.admission_rows.get(job.owner, job_admission(job.job_id))
        if gate is None or gate.active != run.key.run_id or not gate.waiting:
            return
        key = RunKey.from_run_id(job.owner, gate.waiting)
        is_own = gate.waiting_generation == job.generation.generation_id
        if not is_own and key.kind is not RunKind.AFTER:
            return  # its own message knows more of it
        waiting = self._ports.runs.get(key)
        if waiting is None or waiting.status is not RunStatus.SCHEDULED:
            return
        message = next_run.queued_run_message(waiting, job)
        late = misfire(job, replace(waiting, attempt=1), message, self._ports.clock.now())
        if late is None:  # or its own message knows whether it was in time once
            self._ports.indexer.schedule_message(message)

    def _complete(self, job: Job | None, run: Run, context: RunContext) -> bool:
        """Complete the job if nothing follows the final run; one to be kept stays as it is.

        With `overlap: allow` the end of the last occurrence's run is that of the job: a run that
        began before it may still be under way, as may a manual one. Otherwise the job is complete
        when no run is active or queued. One that was renamed or handed over during its last run is
        complete at the end of that.
        """
        for _ in range(_ROUNDS):
            if job is None:
                return False
            if job.state is JobState.RENAMED:
                self._complete(self._renamed(job, run), run, context)
                return False
            if job.state is JobState.COMPLETED:
                self._ports.lifecycle.job_completed(job, job.updated_at)
                return False
            if not self._is_complete(job, run, context):
                return False
            if job.spec.on_complete is OnComplete.DELETE:
                now = self._ports.clock.now()
                completed = job.completed(
                    now, next_run.completed_until(job, now, self._ports.run_lifetime)
                )
                if self._ports.jobs.replace(completed, job.revision):
                    self._ports.indexer.remove_ended_entries(job, completed)
                    self._ports.lifecycle.job_completed(completed, now)
                    return True
            seen, job = job, self._ports.jobs.get(job.owner, job.job_id)
            is_kept = seen.spec.on_complete is OnComplete.KEEP
            if is_kept and job is not None and job.revision == seen.revision:
                self._ports.lifecycle.job_completed(job, run.finished_at or run.updated_at)
                return False
        raise StoreUnavailableError(f"the row of job {run.key.job_id} changed at every step")

    def _renamed(self, former: Job, run: Run) -> Job | None:
        """The job under the name, or with the owner, that it has now, where the run was of the last
        occurrence of all: no run of its own ends it then. While it is between two owners neither
        has one that could be completed: raises StoreUnavailableError, for the message to come
        again."""
        is_chain = isinstance(former.schedule, Delay)
        since = former.generation.from_at if is_chain else run.key.fire_at
        if not run.key.is_occurrence or former.schedule.next(since) is not None:
            return None
        if is_in_hand(former):
            raise StoreUnavailableError(f"job {former.job_id} is between two owners")
        job = self._ports.jobs.get(owner_of_now(former), former.renamed_to)
        return job if job is not None and job.renamed_from == former.job_id else None

    def _is_complete(self, job: Job, run: Run, context: RunContext) -> bool:
        if not next_run.may_complete(job, run):
            return False
        closed = context.calendars.closed_days(job.owner, job.spec.calendar)
        now = self._ports.clock.now()
        is_over = next_run.is_over(job, run, context.message, closed, now)
        if not is_over and not self._has_chain_ended(job, run, now):
            return False
        # Of two runs that end at once one sees the end of the other at least: a row is final before
        # what follows from it is done.
        last = next_run.last_of(job, run, context.message, closed, now)
        if last is not None and not self._has_ended(last, absent=False):
            return False
        if job.spec.overlap is Overlap.ALLOW:
            # Where a resumption has left no occurrence, runs on request are to come one by one.
            return last is not None or run.key.kind is RunKind.SCHEDULED
        gate = self._ports.admission_rows.get(job.owner, job_admission(job.job_id))
        named = () if gate is None else (gate.active, gate.waiting)
        keys = {RunKey.from_run_id(job.owner, run_id) for run_id in named if run_id}
        return all(self._has_ended(key, absent=True) for key in keys - {run.key})

    def _has_chain_ended(self, job: Job, run: Run, now: datetime) -> bool:
        """True if the run is none of a fixed delay's chain, whose last one has ended: that knows
        when the next one comes, and has left its job to the run. Where runs overlap it does not."""
        is_own = run.key.is_occurrence and run.generation_id == job.generation.generation_id
        is_left_to_it = not is_own and job.spec.overlap is not Overlap.ALLOW
        if not (is_left_to_it and isinstance(job.schedule, Delay) and job.schedule.end_at):
            return False
        page = self._ports.history.page(job.owner, job.job_id, _ROWS_READ, consistent=True)
        return next_run.has_chain_ended(job, page.items, now)

    def _has_ended(self, key: RunKey, *, absent: bool) -> bool:
        """True if the run has; `absent` is the answer for one without a row."""
        row = self._ports.runs.get(key)
        return absent if row is None else row.is_final


def _is_ended_by_api(run: Run, message: Message) -> bool:
    """True if no executor may have done what follows from the run's end: `message` is to do it."""
    return run.status is RunStatus.CANCELLED or completing.is_of_a_report(message, run)
