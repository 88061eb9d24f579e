"""One visit of a tick to one segment, under its lease."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from carillon.clock import ceil_second
from carillon.domain.calendar import Resolved, shifts_back
from carillon.domain.chunks.message import Order
from carillon.domain.message import Message
from carillon.domain.wheel.delaying import Alignment
from carillon.domain.wheel.due import continues_sequence, messages_of, waits_for_a_start
from carillon.domain.wheel.entry import (
    Entry,
    NextEntry,
    Slot,
    minute_start,
    slots_of_minute,
)
from carillon.domain.wheel.segment import (
    Control,
    Cursor,
    placed,
    shared_out,
    with_backlog_cursor,
    with_backlog_minute_done,
    with_cursor,
    with_minute_done,
)
from carillon.domain.wheel.zone_upgrade import marked, migrated, owed_messages, zone_has_changed
from carillon.errors import (
    QueueUnavailableError,
    StoreUnavailableError,
    UnreadableRowError,
    reason_of,
)
from carillon.schedules import SlotKind
from carillon.services.calendar_reader import CalendarReader
from carillon.stores.cursors import pages
from carillon.tick.chunking import Gathered, Planned, may_be_chunked
from carillon.tick.counting import SegmentOutcome, SegmentReport, count_late
from carillon.tick.lease import Lease, LeaseLostError
from carillon.tick.outbox import Outbox
from carillon.tick.ports import TickPorts
from carillon.tick.sharing import Weight

_T = TypeVar("_T")

_COUNTING = timedelta(seconds=10)
"""Of a visit to a backlog, at most: less than the time after which a lease is renewed."""
_SENDING = timedelta(seconds=3)
"""A visit may still send this long beyond its deadline: it does not wait for a slow queue until the
process is ended."""


class _OutOfTimeError(Exception):
    """The deadline has come."""


class Visit:
    """Dispatches the live minutes of one segment, or (`backlog`) those that an outage left behind;
    counts what it did.

    `_control` is the segment as it is decided so far. The recorded progress is never ahead of the
    sent messages: the outbox decides.
    """

    def __init__(
        self,
        ports: TickPorts,
        calendars: CalendarReader,
        lease: Lease,
        deadline: datetime,
        alignment: Alignment | None,
        *,
        backlog: bool,
    ) -> None:
        """`alignment`: all messages of an ordinary minute are sent just before a whole second."""
        control = lease.stored
        self._ports = ports
        self._calendars = calendars
        self._lease = lease
        self._control = control
        self._deadline = deadline
        self._alignment = alignment
        self._backlog = backlog
        self._outbox = Outbox(
            ports.indexer, (control, control.backlog_cursor if backlog else control.cursor)
        )
        self._planned = Planned(ports, control.segment)
        self._gathered = self._nothing_gathered(-1)
        self._late_until = control.backlog[-1].until if backlog and control.backlog else -1
        self._minutes = self._migrated = 0
        self._resume_at = [each for each in (control.cursor, control.backlog_cursor) if each]
        self._was_idle = control.idle
        self.is_waiting = False
        """True from the wait for the end of a second on: then all that is due is known."""

    def weight(self, seconds: float) -> Weight:
        """As far as it is known, so many seconds after the beginning."""
        messages = self._outbox.sent + len(self._outbox.held) + len(self._gathered)
        return Weight(messages, seconds, has_backlog=bool(self._lease.stored.backlog))

    def run(self) -> SegmentReport:
        """Dispatch, record the progress, free the lease."""
        outcome, reason = SegmentOutcome.DISPATCHED, ""
        try:
            if self._backlog:
                self._backlog_minutes()
            else:
                self._live_minutes()
        except LeaseLostError:
            return self._report(SegmentOutcome.LOST)
        except _OutOfTimeError:
            outcome = SegmentOutcome.OUT_OF_TIME
        except Exception as error:  # of this segment only
            outcome, reason = SegmentOutcome.FAILED, reason_of(error)
        try:
            progress = self._progress()
            self._lease.free(progress, idle=self._is_idle(outcome, progress))
        except LeaseLostError:
            return self._report(SegmentOutcome.LOST)
        except Exception as error:  # the lease lapses; the next tick continues
            return self._report(SegmentOutcome.FAILED, reason_of(error))
        return self._report(outcome, reason)

    def _live_minutes(self) -> None:
        for minute in range(self._control.watermark + 1, self._control.horizon + 1):
            self._gather(minute)
            if minute == self._control.horizon and not self._outbox.sent:
                self._wait_for_second()
            self._flush()
            self._done(with_minute_done(self._control, minute))

    def _backlog_minutes(self) -> None:
        while self._control.backlog:
            minute = self._control.backlog[0].done + 1
            self._share_out(minute)
            self._gather(minute)
            self._flush()
            self._done(with_backlog_minute_done(self._control, minute))

    def _done(self, control: Control) -> None:
        """Everything of a minute has been sent."""
        self._control = control
        self._outbox.mark((control, None))
        self._minutes += 1

    def _wait_for_second(self) -> None:
        """Wait where the executors would otherwise: nothing is sent or recorded meanwhile."""
        if self._alignment is not None:
            clock = self._ports.clock
            seconds = self._alignment.wait_seconds(self._outbox.held, clock.now())
            self.is_waiting = seconds > 0
            clock.sleep(seconds)

    def _share_out(self, minute: int) -> None:
        """Count what is late from a minute on, by owner, unless that is done: starts are reserved
        only once it is known which owners need them."""
        share, control, clock = self._ports.catch_up_share, self._control, self._ports.clock
        if share is None or (control.shares is not None and minute <= control.shares.until):
            return
        deadline = min(self._deadline, clock.now() + _COUNTING)
        counts, until = count_late(self._ports.wheel, control, self._late_of, clock, deadline)
        self._control = shared_out(control, counts, until, clock.now(), share)

    def _late_of(self, entry: Entry, minute: int) -> list[Message]:
        messages, _, _ = self._decide(entry, minute, self._under_calendar(entry))
        late = filter(self._is_late, messages)
        return self._planned.alone(entry, late, self._control)

    def _is_late(self, message: Message) -> bool:
        return waits_for_a_start(message, self._late_until)

    def _gather(self, minute: int) -> None:
        """Decide everything that is due in one minute; messages that are not sent yet are in the
        outbox."""
        cursor = next((each for each in self._resume_at if each.minute == minute), None)
        self._gathered = self._nothing_gathered(minute)
        self._keep_lease(cursor)
        slots, after_key = list(slots_of_minute(minute)), None
        if cursor is not None:
            slots = slots[[slot.key for slot in slots].index(cursor.slot_key) :]
            after_key = cursor.entry_key
        for slot in slots:
            self._slot(slot, after_key, minute)
            after_key = None
        self._place_gathered()

    def _nothing_gathered(self, minute: int) -> Gathered:
        segment, salt = self._control.segment, self._lease.stored.lease_owner
        return Gathered(self._ports, segment, minute, salt, is_late=self._backlog)

    def _place_gathered(self) -> None:
        for order in self._gathered.taken():
            self._send(order)

    def _slot(self, slot: Slot, after_key: str | None, minute: int) -> None:
        segment = self._control.segment
        for page in pages(partial(self._ports.wheel.query, segment, slot), after_key):
            for key, reason in page.unreadable.items():
                self._ports.on_bad_entry(segment, slot.key, key, reason)
            for entry in page.items:
                self._entry(entry, minute)
                self._keep_lease(Cursor(minute, slot.key, entry.key))

    def _entry(self, entry: Entry, minute: int) -> None:
        """Decide all of it first, then act: one bad entry must not stop the others' minute, but
        what a store or the queue did not take must."""
        resolved = self._resolved(entry)
        decided = self._decided(entry, lambda: self._decide(entry, minute, resolved))
        if decided is None:
            return
        messages, link, has_moved = decided
        goes_on: bool | None = False
        if link is not None or has_moved:
            goes_on = self._goes_on(entry, link and link[0])
            if goes_on is None:
                return
        for message in messages:
            if may_be_chunked(entry, message, self._control):
                self._gathered.add(entry, message)
            else:
                self._send(message)
        if goes_on and link is not None:
            self._put_next_entry(link[1])
        elif goes_on:
            self._migrate(entry, minute, resolved)

    def _decide(
        self, entry: Entry, minute: int, resolved: Resolved | None
    ) -> tuple[list[Message], NextEntry | None, bool]:
        """The messages to send, the next entry to put, and whether the generation's zone has
        changed."""
        control = self._control
        rules_since = minute_start(control.tzdata_from) if control.tzdata_from else None
        due = messages_of(entry, minute, control.horizon, control.backlog, resolved, rules_since)
        messages = [marked(entry, each) for each in due]
        if entry.slot.kind is SlotKind.DATED:
            return messages, entry.beyond(control.horizon), False
        return messages, None, zone_has_changed(entry)

    def _decided(self, entry: Entry, decide: Callable[[], _T]) -> _T | None:
        """The result of `decide`; None, and the entry is set aside, if it raises. It must not act:
        a failure of a store or the queue would be swallowed, and the watermark move over it."""
        try:
            return decide()
        except Exception as error:
            self._set_aside(entry, error)
            return None

    def _send(self, order: Order) -> None:
        """Send a message; one for a run of a backlog first waits for its reserved start, so that
        the catch-up stays throttled; but no occurrence of a link that is due in a live minute."""
        share = self._ports.catch_up_share
        if share is not None and isinstance(order, Message) and self._is_late(order):
            now, owner = self._ports.clock.now(), order.key.owner
            self._control, place = placed(self._control, owner, now, share)
            order = order if place <= now else replace(order, wait_until=ceil_second(place))
        self._outbox.add(order)
        if self._outbox.is_full:
            self._flush()

    def _flush(self) -> None:
        """Send all that is held, and keep the lease meanwhile; raises _OutOfTimeError where the
        queue is too slow for that."""
        until = self._deadline + _SENDING
        while self._outbox.held:
            if self._ports.clock.now() >= until:
                raise _OutOfTimeError
            try:
                self._outbox.send_part(until)
            except QueueUnavailableError as error:
                if self._ports.clock.now() >= until:
                    raise _OutOfTimeError from error
                raise
            if self._lease.renewal_due():
                self._lease.checkpoint(self._progress())

    def _resolved(self, entry: Entry) -> Resolved | None:
        """The entry's schedule under its calendar, where that makes a difference to what is sent.

        Under a calendar that cannot be read the nominal occurrences are sent: the executor, which
        reads it too, holds them until it can.
        """
        if not shifts_back(entry.calendar) and not self._control.backlog:
            return None
        try:
            return self._under_calendar(entry)
        except Exception as error:
            is_row = isinstance(error, UnreadableRowError)
            if isinstance(error, StoreUnavailableError) and not is_row:
                raise
            self._set_aside(entry, error)
            return None

    def _under_calendar(self, entry: Entry) -> Resolved | None:
        if entry.schedule is None or entry.calendar is None:
            return None
        return self._calendars.resolved(entry.owner, entry.schedule, entry.calendar)

    def _put_next_entry(self, link: Entry) -> None:
        self._ports.indexer.put_entry(link)

    def _migrate(self, entry: Entry, minute: int, resolved: Resolved | None) -> None:
        """Bring a generation to the slots of its zone's new rules, and send what it missed there.

        The entries are put before the horizon is read, as whenever a job is indexed: either
        another tick's query sees them, or its announcement is seen here. The entry itself is put
        last: a tick that dies before leaves all of it to be done again.
        """
        self._flush()
        ports, stored = self._ports, self._lease.stored
        control = self._control = with_backlog_cursor(with_cursor(self._control, None), None)
        self._outbox.mark((control, None))
        # A minute that was begun may have passed by where the new entries come.
        self._resume_at.clear()
        if stored.cursor is not None or stored.backlog_cursor is not None:
            self._lease.checkpoint(control)
        decided = self._decided(entry, lambda: migrated(entry, control.horizon))
        if decided is None:
            return
        own, others, link = decided
        if others:
            ports.wheel.put_entries(others)
        if link is not None and self._goes_on(entry, link[0]):
            self._put_next_entry(link[1])
        horizon = max(control.horizon, ports.indexer.control(entry.segment).horizon)
        owed = self._decided(
            entry, lambda: list(owed_messages(entry, minute, control, horizon, resolved))
        )
        if owed is None:
            return
        for message in owed:
            self._send(message)
        self._flush()
        ports.wheel.put_entries([own])
        self._migrated += 1

    def _goes_on(self, entry: Entry, following: datetime | None = None) -> bool | None:
        """True if the entry's generation counts, for the occurrence `following`, by a strong read
        of the job; None if that cannot be decided: the entry is set aside."""
        try:
            job = self._ports.jobs.get(entry.owner, entry.job_id)
        except StoreUnavailableError as error:
            # Neither may one row stop its segment, nor may the chain end: a link is harmless.
            self._set_aside(entry, error)
            return True
        now = self._ports.clock.now()
        return self._decided(entry, lambda: continues_sequence(entry, job, now, following))

    def _set_aside(self, entry: Entry, error: Exception) -> None:
        self._ports.on_bad_entry(entry.segment, entry.slot.key, entry.key, reason_of(error))

    def _keep_lease(self, cursor: Cursor | None) -> None:
        """Renew the lease when it is due, and stop when time is over; the minute has got to
        `cursor`."""
        is_out_of_time = self._ports.clock.now() >= self._deadline
        if self._gathered.is_ready or (is_out_of_time and self._gathered):  # or it never ends
            self._place_gathered()
        if not self._gathered:  # or what is gathered would not be gathered again
            self._outbox.mark((self._control, cursor))
        if is_out_of_time or self._lease.renewal_due():
            self._flush()
            if is_out_of_time:
                raise _OutOfTimeError
            self._lease.checkpoint(self._progress())

    def _progress(self) -> Control:
        """The progress that may be recorded: the segment up to the last message sent."""
        control, cursor = self._outbox.reached
        return (with_backlog_cursor if self._backlog else with_cursor)(control, cursor)

    def _is_idle(self, outcome: SegmentOutcome, progress: Control) -> bool:
        """True if nothing is due; as before when the visit did not come to its end."""
        if self._outbox.is_busy or progress.backlog:
            return False
        return self._was_idle or outcome is SegmentOutcome.DISPATCHED

    def _report(self, outcome: SegmentOutcome, reason: str = "") -> SegmentReport:
        control = self._lease.stored
        return SegmentReport(
            segment=control.segment,
            outcome=outcome,
            messages=self._outbox.sent,
            occurrences=self._outbox.occurrences,
            minutes=self._minutes,
            lag_minutes=control.lag_minutes(self._ports.clock.now()),
            backlog=bool(control.backlog),
            reason=reason,
            migrated=self._migrated,
            was_idle=self._was_idle,
            idle=control.idle,
        )
