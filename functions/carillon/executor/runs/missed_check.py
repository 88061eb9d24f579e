"""The missed-run check: an occurrence must have succeeded in time."""

from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from carillon.domain.changes.handing_over import owner_of_now
from carillon.domain.execution import missed, store_waits
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import Run, RunKey
from carillon.errors import UnreadableRowError
from carillon.executor.batch import Handled, Report, defer, defer_early
from carillon.executor.ports import ExecutorPorts
from carillon.schedules import ClosedDays
from carillon.services.calendar_reader import CalendarReader

_ROWS_READ = 100
"""Rows that are searched for the next occurrence of a generation whose schedule is gone; where
there are more, nothing is left to that one."""
_ROWS_OF_AN_INSTANT = 100
"""Rows of one fire time that are searched for a success."""


class MissedRunCheck:
    """Handles messages of kind WATCH. It costs no write where all is well.

    Its method may raise StoreUnavailableError and QueueUnavailableError.
    """

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def check(self, message: Message) -> Report:
        """Check the occurrence when its time has come; put a row and publish it if it is missed."""
        deferred = defer_early(self._ports, message)
        if deferred is not None:
            return deferred
        job = self._ports.job_of(message)
        now = self._ports.clock.now()
        report = self._checked(job, message, now)
        self._ports.indexer.remove_stale_entry(job, message)
        return report

    def _checked(self, job: Job | None, message: Message, now: datetime) -> Report:
        use = None if job is None else job.spec.calendar
        closed = CalendarReader(self._ports.calendars).closed_days(message.key.owner, use)
        if job is None:
            return Report(Handled.CHECKED, message, reason="there is no job")
        if not missed.is_expected(job, message, closed):
            return self._without_alert(job, message, now, "no success is expected")
        run = missed.last_run(message.key, partial(self._ports.history.get, job=job))
        if run is None and now - message.key.fire_at >= self._ports.run_lifetime:
            return self._without_alert(job, message, now, "its run may have expired")
        note = missed.alert(run)
        if note is None or self._has_success(job, message):
            return self._without_alert(job, message, now, "nothing is amiss")
        if run is None and self._covering(message.key, now) is not None:
            return self._without_alert(
                job, message, now, "a catch-up passed it over for a later one"
            )
        again = self._check_again(job, message, closed, now) if run is None else None
        if again is not None:
            return defer(self._ports, again, again.starts_at, "its run may have yet to come")
        if run is not None and self._is_another_checked(job, message, run, closed, now):
            return self._without_alert(job, message, now, "a later occurrence is checked")
        row = missed.watch_row(job, message, note, now, now + self._ports.run_lifetime)
        if self._ports.runs.claim(row, None):
            self._ports.lifecycle.missed(row, job)
            return Report(Handled.RAN, message, row)
        stored = self._ports.runs.get(message.key)
        if stored is not None:
            self._ports.lifecycle.missed(stored, job)
        return Report(Handled.REPEATED, message, stored, "it was told before")

    def _check_again(
        self, job: Job, message: Message, closed: ClosedDays | None, now: datetime
    ) -> Message | None:
        control = None
        with suppress(UnreadableRowError):  # it is to be mended; the run is missed all the same
            control = self._ports.wheel.get_control(message.segment)
        due_at = message.key.fire_at + timedelta(seconds=job.spread_seconds)
        is_behind = control is not None and control.may_be_caught_up_on(due_at, now)
        return missed.check_again(job, message, closed, now, is_behind=is_behind)

    def _is_another_checked(
        self, job: Job, message: Message, run: Run, closed: ClosedDays | None, now: datetime
    ) -> bool:
        """By the run's row and the job's schedule; where that of the occurrence is gone, by its
        later rows."""
        if missed.gave_way(run):
            return True
        if not missed.came_late(run):
            return False

        def row_of(key: RunKey) -> Run | None:
            return self._ports.history.get(key, job) or self._covering(key, now)

        if missed.is_known_by_schedule(job, message.generation_id):
            return missed.another_is_checked(job, run, closed, row_of)
        key = message.key
        after = key.fire_at + timedelta(seconds=1)
        page = self._ports.history.page(
            key.owner,
            key.job_id,
            _ROWS_READ,
            from_at=after,
            until_at=max(after, job.paused_at or job.generation.from_at),
            consistent=True,
        )
        is_whole = page.next_cursor is None
        return is_whole and missed.is_followed(job, run, page.whole)

    def _covering(self, key: RunKey, now: datetime) -> Run | None:
        """The row of the catch-up that has passed over the occurrence; asked only before an alert:
        what stands for it is checked in its place."""
        return self._ports.history.covering(key.owner, key.job_id, key.fire_at, now)

    def _without_alert(self, job: Job, message: Message, now: datetime, reason: str) -> Report:
        """Nothing is to be published now; but it is if the message is redelivered for an executor
        that had put the row and did not publish it: it died, or the answer was lost. No message
        comes again for either sooner than store_waits.FIRST_WAIT; one that has looked before may
        have come again then."""
        may_be_again = message.waits or now - message.starts_at >= store_waits.FIRST_WAIT
        row = self._ports.runs.get(message.key) if may_be_again else None
        if row is None:
            return Report(Handled.CHECKED, message, reason=reason)
        self._ports.lifecycle.missed(row, job)
        return Report(Handled.REPEATED, message, row, "it was missed")

    def _has_success(self, job: Job, message: Message) -> bool:
        """True if another run of the occurrence has succeeded; asked only before an alert. After a
        change of its job's name or owner a backfill is of the job that it is now."""
        fire_at = message.key.fire_at
        scopes = [(message.key.owner, message.key.job_id)]
        if job.renamed_to:
            scopes.append((owner_of_now(job), job.renamed_to))
        return any(
            missed.has_success(
                fire_at,
                self._ports.history.page(
                    *scope, _ROWS_OF_AN_INSTANT, from_at=fire_at, until_at=fire_at, consistent=True
                ).whole,
            )
            for scope in scopes
        )
