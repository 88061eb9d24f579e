"""The one way onto the wheel: no occurrence is lost between the indexer and the tick.

Order replaces transactions (docs/architecture.md#indexing-a-job): entries first, then the read of
the horizon and the messages up to it, then the job row, which is the commit. Both the indexer and
the tick may send an occurrence; the claim of its run absorbs the duplicate.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from carillon.clock import Clock, id_created_at
from carillon.domain.calendar import Calendar, Resolved, resolve, shifts_back
from carillon.domain.chunks.message import Order
from carillon.domain.execution.resuming import resume_message
from carillon.domain.execution.start_decision import YOUNG_MESSAGE
from carillon.domain.job import Job
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.wheel.announced import announced_messages, begins_late
from carillon.domain.wheel.entry import (
    COMMITTED_WITHIN,
    Entry,
    entries_of,
    entry_of_message,
    minute_end,
    watch_entries_of,
)
from carillon.domain.wheel.segment import Control, first_control
from carillon.domain.wheel.stale import Ended, ended_entries, ended_entry, removable
from carillon.errors import StoreUnavailableError
from carillon.schedules import SlotKind
from carillon.services.calendar_reader import CalendarReader
from carillon.stores.ports import JobStore, LaneQueue, Stores, VersionedRows, WheelStore

UNCOMMITTED_DELAY_SECONDS = 5
"""Messages sent before the job row is committed stay hidden at least this long."""
_AT_ONCE = YOUNG_MESSAGE / 2
"""Until then none of its messages has been dropped, whatever the clock of an executor that met it
before its commit."""


class Indexer:
    """Indexes jobs, next entries and late retries, and removes the entries of generations that have
    ended; used by the api, the tick and the executor."""

    def __init__(
        self,
        jobs: JobStore,
        wheel: WheelStore,
        queue: LaneQueue,
        clock: Clock,
        calendars: VersionedRows[Calendar],
        longest_delay_seconds: int = LONGEST_DELAY_SECONDS,
    ) -> None:
        """Messages due later than `longest_delay_seconds` come by the wheel, not by the queue."""
        self._jobs = jobs
        self._wheel = wheel
        self._queue = queue
        self._clock = clock
        self._calendars = calendars
        self._longest_delay_seconds = longest_delay_seconds

    @classmethod
    def of(
        cls, stores: Stores, clock: Clock, longest_delay_seconds: int = LONGEST_DELAY_SECONDS
    ) -> "Indexer":
        ports = stores.jobs, stores.wheel, stores.queue, clock, stores.calendars
        return cls(*ports, longest_delay_seconds)

    def index_job(self, job: Job, revision: int | None) -> bool:
        """Put a job with a new generation on the wheel; the job row is the commit.

        1. put the entries; 2. read the horizon and send what is announced, hidden for a while;
        3. commit the row (absent if `revision` is None, else over that revision);
        4. send again, undelayed, what is due before the hidden messages appear; after a commit that
           took long, all of 1 and 2.

        Returns False if another writer won, or if this took too long. What was written is orphaned;
        executors drop it by its generation id.
        """
        announced = self._put(job, self._clock.now())
        if self._is_after(job, COMMITTED_WITHIN):
            return False
        if revision is None:
            committed = self._jobs.create(job)
        else:
            committed = self._jobs.replace(job, revision)
        if committed:
            self._send_due(announced)
            self.index_again(job)
        return committed

    def index_again(self, job: Job) -> None:
        """Do 1 and 2 for a job that has been committed, where that took longer than others wait for
        it; or may have, since this comes long after its generation was made."""
        if self._is_after(job, _AT_ONCE):
            # What has come due since may have run: catch-up would call it missed.
            made_at = id_created_at(job.generation.generation_id)
            self._send_due(self._put(job, made_at))

    def commit_paused(self, job: Job, revision: int | None) -> bool:
        """Commit the row of a paused job; False if another writer won.

        What resumes it is sent before, so that no crash leaves it paused for good; and again where
        it may have come before the row.
        """
        message = None if job.resume_at is None else resume_message(job)
        if message is not None:
            self.schedule_messages([message], at_least=UNCOMMITTED_DELAY_SECONDS)
        if revision is None:
            committed = self._jobs.create(job)
        else:
            committed = self._jobs.replace(job, revision)
        if committed and message is not None and message.starts_at <= self._clock.now():
            self._send([message])
        return committed

    def put_entry(self, entry: Entry) -> None:
        """Put a dated entry, and send its messages if its minute is announced already."""
        self._wheel.put_entries([entry])
        horizon = self.control(entry.segment).horizon
        if entry.slot.number > horizon:
            return
        if entry.message is not None:
            self._send([entry.message])
            return
        fire_times = entry.chain(minute_end(horizon))
        self._send([entry.message_at(fire_at) for fire_at in fire_times])
        self._put_next_entry(entry, horizon)

    def remove_ended_entries(self, before: Job, after: Job) -> None:
        """Remove the entries of the generation that a change of the job's row has ended, those that
        owe nothing any more.

        To be called after the commit, and only when that is known to have won. `remove_stale_entry`
        removes the rest: entries that are still needed, those in other slots by other rules of
        their zone, those that a tick puts anew meanwhile. Raises nothing: so is what a store that
        fails leaves.
        """
        with suppress(StoreUnavailableError):
            self._remove(before.segment, ended_entries(before, after, self._clock.now()))

    def remove_stale_entry(self, job: Job | None, message: Message) -> None:
        """Remove the standing entry that sent this message, once it can be of no use any more.

        `job` is the row as it is. Raises StoreUnavailableError.
        """
        self._remove(message.segment, ended_entry(job, message, self._clock.now()))

    def schedule_message(self, message: Message) -> None:
        """Schedule a message for the time when it may start: by its queue, or later by the
        wheel."""
        self.schedule_messages([message])

    def schedule_messages(
        self, orders: Sequence[Order], until: datetime | None = None, at_least: int = 0
    ) -> None:
        """The same of many. Those for the wheel are put together; then the horizons are read.
        Chunks, which no tick makes before their minute is announced, go by the queue.

        With `until` a queue that takes longer has failed. What goes by the queue is hidden for
        `at_least` so many seconds.
        """
        latest = self._clock.now() + timedelta(seconds=self._longest_delay_seconds)
        soon, entries = list[Order](), list[Entry]()
        for order in orders:
            if isinstance(order, Message) and order.starts_at > latest:
                entries.append(entry_of_message(order))
            else:
                soon.append(order)
        self._send(soon, at_least, until)
        if not entries:
            return
        self._wheel.put_entries(entries)
        segments = {entry.segment for entry in entries}
        horizons = {segment: self.control(segment).horizon for segment in segments}
        self._send(
            [e.message for e in entries if e.message and e.slot.number <= horizons[e.segment]],
            until=until,
        )

    def control(self, segment: int) -> Control:
        """The segment's control item, created at its first use."""
        for _ in range(3):
            control = self._wheel.get_control(segment)
            if control is not None:
                return control
            first = first_control(segment, self._clock.now())
            if self._wheel.put_control(first, over=None):
                return first
        raise StoreUnavailableError(f"control item of segment {segment} neither read nor created")

    def _put(self, job: Job, now: datetime) -> list[Message]:
        """Put the entries of a job's generation, and send what is announced, hidden for a while.

        Catch-up decides about what is late at `now`.
        """
        resolved = self._resolved(job, now)
        entries = [*entries_of(job, resolved.sent), *watch_entries_of(job)]
        self._wheel.put_entries(entries)
        horizon = self.control(job.segment).horizon
        announced = announced_messages(job, resolved, minute_end(horizon), now)
        self._send(announced, at_least=UNCOMMITTED_DELAY_SECONDS)
        for entry in entries:
            if entry.slot.kind is SlotKind.DATED and entry.slot.number <= horizon:
                # The tick may have passed a first link before it was put: never rely on its visit.
                self._put_next_entry(entry, horizon)
        return announced

    def _is_after(self, job: Job, limit: timedelta) -> bool:
        """True if this process has stood still since it made the job's generation."""
        return self._clock.now() - id_created_at(job.generation.generation_id) > limit

    def _remove(self, segment: int, ended: Sequence[Ended]) -> None:
        """Remove those that owe nothing any more, by a read that follows what has ended them."""
        control = self._wheel.get_control(segment) if ended else None
        keys = removable(ended, control)
        if keys:
            self._wheel.remove_entries(segment, keys)

    def _put_next_entry(self, link: Entry, horizon: int) -> None:
        """Put the first entry of a sequence for occurrences beyond `horizon`, if there are any."""
        following = link.beyond(horizon)
        if following is not None:
            self.put_entry(following[1])

    def _resolved(self, job: Job, now: datetime) -> Resolved:
        """A job's schedule under its calendar as it is now, where that decides what is sent."""
        use = job.spec.calendar
        if shifts_back(use) or begins_late(job, now):
            return CalendarReader(self._calendars).resolved(job.owner, job.schedule, use)
        return resolve(job.schedule, use, None)

    def _send_due(self, announced: Sequence[Message]) -> None:
        """Send undelayed what is due before the hidden messages appear."""
        now = self._clock.now()
        self._send([m for m in announced if m.delay_seconds(now) < UNCOMMITTED_DELAY_SECONDS])

    def _send(
        self, messages: Sequence[Order], at_least: int = 0, until: datetime | None = None
    ) -> None:
        if not messages:
            return
        now = self._clock.now()
        self._queue.send(messages, [max(at_least, m.delay_seconds(now)) for m in messages], until)
