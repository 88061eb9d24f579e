"""The executor's part of catch-up: spans that an outage left out, and late occurrences."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from math import ceil

from carillon.domain.job import Job
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.run import Run
from carillon.domain.wheel.catch_up import passed_over_row, within_its_generation
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.context import RunContext
from carillon.schedules import ClosedDays
from carillon.services.calendar_reader import CalendarReader


class CatchingUp:
    """Raises StoreUnavailableError and QueueUnavailableError."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def within_its_generation(self, message: Message) -> tuple[Message, bool]:
        """The message, with its span cut off at the end of its generation; True where others were
        sent in its place. If its own occurrence has a row it goes on for that: it may have been
        claimed before the generation ended, and nobody else would come.
        """
        if message.missed is None:
            return message, False
        cut = self.cut_off(message, self._ports.job_of(message))
        return cut, cut.missed is None and self._ports.runs.get(message.key) is None

    def cut_off(self, message: Message, job: Job | None) -> Message:
        """The same by the job as it was read; where others were sent in its place the message has
        no span any more."""
        if message.missed is None:
            return message
        calendars = CalendarReader(self._ports.calendars)
        closed = calendars.closed_days(message.key.owner, message.missed.calendar)
        instead = within_its_generation(job, message, closed)
        if instead[0].key == message.key:
            return instead[0]
        now = self._ports.clock.now()
        self._ports.queue.send(instead, [each.delay_seconds(now) for each in instead])
        return replace(message, missed=None)

    def record(self, context: RunContext, now: datetime) -> None:
        """Put the row of the other occurrences that the message represents, and publish its event.

        The event of a row that is there already is published again: its writer may have died before
        that. Such a row may cover less, as that of a reindexing which is begun anew with an earlier
        instant: then another one covers what is before.
        """
        message = context.message
        if message.missed is None:
            return
        closed = context.calendars.closed_days(message.key.owner, message.missed.calendar)
        for row in self._rows(message, closed, now):
            self._ports.lifecycle.ended(row, context.job)

    def record_unread(self, message: Message, now: datetime) -> None:
        """Put the row of a message that is given up since its job or calendar cannot be read: as if
        every day were open, and without an event."""
        for _ in self._rows(message, None, now):
            pass

    def _rows(self, message: Message, closed: ClosedDays | None, now: datetime) -> Iterator[Run]:
        expires_at = now + self._ports.run_lifetime
        while (missed := passed_over_row(message, now, expires_at, closed)) is not None:
            is_there = not self._ports.runs.claim(missed, None)
            stored = self._ports.runs.get(missed.key) if is_there else missed
            if stored is None or stored.covers_from is None:
                return
            yield stored
            message = replace(message, key=replace(message.key, fire_at=stored.covers_from))

    def is_sent(self, latest: Message, ends_at: datetime) -> bool:
        """True if the run that represents late ones has a row; else its message is sent, for when
        this process, which is to claim it, has surely ended.

        A tick that was away may never send it: a later one could stand for it, too.
        """
        if self._ports.runs.get(latest.key) is not None:
            return True
        seconds = ceil((ends_at - self._ports.clock.now()).total_seconds()) + 2
        self._ports.queue.send([latest], [max(0, min(seconds, LONGEST_DELAY_SECONDS))])
        return False
