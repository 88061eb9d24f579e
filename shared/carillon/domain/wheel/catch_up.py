"""Catch-up after an outage: one row of the history for many occurrences."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice

from carillon.domain.calendar import Resolved, resolve, shifts_back
from carillon.domain.decisions import SkipReason
from carillon.domain.job import Job
from carillon.domain.message import Message, Missed
from carillon.domain.policies import CatchUp
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.schedules import CalendarRule, ClosedDays, OnOpenDays, Recurrence

COUNT_LIMIT = 10_000
"""Occurrences that one skip row counts; beyond, it gives the span without the number."""


def skips_itself(message: Message) -> bool:
    """True if catch-up skips the message's own occurrence too."""
    missed = message.missed
    return missed is not None and missed.catch_up is CatchUp.SKIP and not message.in_time


def within_its_generation(
    job: Job | None, message: Message, closed: ClosedDays | None = None
) -> list[Message]:
    """The messages to handle instead of one whose generation ended before its occurrence.

    The tick cannot know that: it sends one message for all that an outage left out. Here it comes
    to be one for the last occurrence that was the generation's, and one for the closed days after
    that, which stands for itself. As it is when its generation goes on, or is unknown; and if
    nothing is left, for its own occurrence only. `closed` are the days of the calendar that it
    names.
    """
    missed = message.missed
    ended_at = None if job is None else job.ended_at(message.generation_id)
    if missed is None or ended_at is None or message.key.fire_at <= ended_at:
        return [message]
    resolved = resolve(missed.schedule, missed.calendar, closed)
    found = [
        _instead(message, *one)
        for one in standing_in(resolved, missed.since, ended_at, missed.catch_up)
    ]
    return found or [replace(message, missed=replace(missed, since=message.key.fire_at))]


def standing_in(
    resolved: Resolved, since: datetime, until: datetime, catch_up: CatchUp
) -> Iterator[tuple[datetime, Missed]]:
    """The occurrences that represent all missed ones in (since, until]: the last of an open day, by
    the policy, and the last of the closed days after it, which runs if it is moved to a day yet to
    come."""
    schedule, calendar = resolved.schedule, resolved.use
    last_sent = resolved.missed.last_between(since, until)
    last_open = (
        last_sent if shifts_back(calendar) else _staying(resolved).last_between(since, until)
    )
    policy = catch_up
    for last in (last_open, last_sent):
        if last is not None and last > since:
            yield last, Missed(since, policy, schedule, calendar)
            since, policy = last, CatchUp.SKIP


def passed_over_row(
    message: Message, now: datetime, expires_at: datetime, closed: ClosedDays | None = None
) -> Run | None:
    """The row that covers the occurrences which a catch-up skipped before the message's own.

    An occurrence in its span that has a row of its own counts by that row. Two generations may
    cover spans with the same end, so the generation is part of the key. Closed days are covered
    with the others, and the note has their number: nobody else records them. `closed` are those of
    the calendar that the message names.
    """
    if message.missed is None:
        return None
    key, use = message.key, message.missed.calendar
    resolved = resolve(message.missed.schedule, use, closed)
    until = key.fire_at - timedelta(seconds=1)
    covered = islice(resolved.missed.between(message.missed.since, until), COUNT_LIMIT + 1)
    first = next(covered, None)
    last = resolved.missed.last_between(message.missed.since, until)
    if first is None or last is None:
        return None
    count = 1 + sum(1 for _ in covered)
    exact = count <= COUNT_LIMIT
    return Run(
        key=RunKey(key.owner, key.job_id, RunKind.MISSED, last, message.generation_id),
        status=RunStatus.SKIPPED,
        attempt=0,
        token=0,
        claim_id="",
        generation_id=message.generation_id,
        updated_at=now,
        expires_at=expires_at,
        finished_at=now,
        reason=SkipReason.CATCH_UP,
        covers_from=first,
        covers_count=count if exact else None,
        note=_closed_among(resolved, first, last, count) if exact else None,
    )


def _instead(message: Message, fire_at: datetime, missed: Missed) -> Message:
    """The message for another occurrence of its generation, an earlier one: no grace reached
    that."""
    key = replace(message.key, fire_at=fire_at)
    due_at = fire_at + (message.due_at - message.key.fire_at)
    return replace(message, key=key, due_at=due_at, missed=missed, in_time=False)


def _closed_among(resolved: Resolved, first: datetime, last: datetime, count: int) -> str | None:
    use = resolved.use
    if use is None or shifts_back(use):
        return None
    staying = _staying(resolved).between(first - timedelta(seconds=1), last)
    open_count = sum(1 for _ in staying)
    if open_count == count:
        return None
    return f"{count - open_count} of them on days closed in calendar {use.name}"


def _staying(resolved: Resolved) -> Recurrence:
    """Those of open days."""
    if resolved.use is None or resolved.closed is None:
        return resolved.schedule
    return OnOpenDays(resolved.schedule, resolved.closed, CalendarRule.SKIP)
