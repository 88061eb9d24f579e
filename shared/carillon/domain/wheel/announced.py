"""The messages that an indexer sends itself: for what ticks have announced, or gone past, before
the generation's entries were there."""

from collections import deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

from carillon.domain.calendar import Resolved, shifts_back
from carillon.domain.chunks.looking import CLAIMED_WITHIN
from carillon.domain.job import Job
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp
from carillon.domain.wheel.catch_up import standing_in
from carillon.domain.wheel.entry import (
    message_of,
    messages_until,
    minute_end,
    minute_of,
    watch_message_of,
    watch_messages_until,
)
from carillon.schedules import Delay

MOST_LATE = 1_000
"""Occurrences of a generation that begins late, of which each is sent; those before them are passed
over, in one row."""
LATE_APART = timedelta(seconds=1)
"""Between the starts of two of them."""


def announced_messages(
    job: Job, resolved: Resolved, until: datetime, now: datetime
) -> list[Message]:
    """The messages for a generation's occurrences, and its missed-run checks, up to `until`.

    One that begins before the previous minute, as that of a job whose resumption was due in an
    outage, sends what is past as a tick sends a backlog: by catch-up. `resolved` is its schedule
    under its calendar.
    """
    if not begins_late(job, now):
        return [*_in_time(job, resolved, until), *watch_messages_until(job, until)]
    late = _Late.of(job, resolved, now)
    # Those of what is passed over would find no row of it yet.
    looked_at = until - timedelta(seconds=job.spread_seconds + (job.spec.expect_within or 0))
    checks = [watch_message_of(job, at) for at in late.fire_times if at <= looked_at]
    return [
        *late.messages(),
        *_in_time(_from(job, late.last), resolved, until),
        *(checks if job.spec.expect_within else ()),
        *watch_messages_until(_from(job, late.last), until),
    ]


def begins_late(job: Job, now: datetime) -> bool:
    """True if catch-up is to decide about a generation's first occurrences. A one-shot and a fixed
    delay have but one."""
    is_single = not job.schedule.is_recurring or isinstance(job.schedule, Delay)
    return not is_single and minute_of(job.generation.from_at) < minute_of(now) - 1


def _in_time(job: Job, resolved: Resolved, until: datetime) -> Iterator[Message]:
    """Those that are no matter of catch-up. More than an hour after the generation was made, second
    messages are of what ticks send in chunks by now: they come when none can be claimed any more,
    and look there, as what is caught up on."""
    for message in messages_until(job, resolved.sent, until):
        if job.is_chunked(message.due_at):
            claimed_by = message.due_at + CLAIMED_WITHIN
            message = replace(message, in_time=True, wait_until=claimed_by)
        yield message


@dataclass(frozen=True, slots=True)
class _Late:
    """The occurrences of a generation up to `last`, all of them late; instants are nominal.

    `singly` are those of which each is sent: all of them, or those within the job's grace.
    """

    job: Job
    resolved: Resolved
    now: datetime
    last: datetime
    in_time: datetime
    singly: tuple[datetime, ...]

    @classmethod
    def of(cls, job: Job, resolved: Resolved, now: datetime) -> "_Late":
        spread = timedelta(seconds=job.spread_seconds)
        last = minute_end(minute_of(now) - 1) - spread
        in_time = now - spread - timedelta(seconds=job.spec.grace or 0)
        since = job.generation.from_at
        if job.spec.catch_up is not CatchUp.ALL:
            since = max(since, in_time)
        fire_times = resolved.sent.between(since, last) if since < last else ()
        singly = tuple(deque(fire_times, MOST_LATE))
        return cls(job, resolved, now, last, in_time, singly)

    @property
    def fire_times(self) -> Iterator[datetime]:
        """Those that are sent."""
        return (message.key.fire_at for message in self.messages())

    def messages(self) -> Iterator[Message]:
        """One for each that is sent. The first represents those before, if it or a later one runs;
        else these are represented as without a grace."""
        since, catch_up = self.job.generation.from_at, self.job.spec.catch_up
        until = self.singly[0] - timedelta(seconds=1) if self.singly else self.last
        stands_in = [*standing_in(self.resolved, since, until, catch_up)]
        others = None
        if stands_in and self.resolved.first_to_run(until, self.last) is not None:
            others, stands_in = stands_in[0][1], []
        for fire_at, missed in [*stands_in, *self._moved_to(until, dict(stands_in))]:
            yield replace(message_of(self.job, fire_at), missed=missed, in_time=False)
        for number, fire_at in enumerate(self.singly):
            yield replace(
                message_of(self.job, fire_at),
                missed=others if number == 0 else None,
                in_time=fire_at > self.in_time,
                wait_until=self.now + number * LATE_APART if number else None,
            )

    def _moved_to(
        self, until: datetime, stands_in: Container[datetime]
    ) -> Iterator[tuple[datetime, Missed]]:
        """Of the first of those that are passed over, each to which a later day is moved: that is
        to find a row there, and not to run."""
        schedule, use = self.resolved.schedule, self.resolved.use
        if not shifts_back(use):
            return
        fire_times = self.resolved.open.between(self.job.generation.from_at, until)
        for fire_at in filter(self.resolved.is_moved_to, islice(fire_times, MOST_LATE)):
            if fire_at not in stands_in:
                yield fire_at, Missed(fire_at, CatchUp.SKIP, schedule, use)


def _from(job: Job, instant: datetime) -> Job:
    """The job, as if its generation began later."""
    from_at = max(job.generation.from_at, instant)
    return replace(job, generation=replace(job.generation, from_at=from_at))
