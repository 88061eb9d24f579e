"""What a catch-up passes over: one row of the history for many occurrences."""

from datetime import datetime, timedelta
from itertools import islice

from shared.domain.calendar import CalendarUse
from shared.domain.decisions import SkipReason
from shared.domain.job import CatchUp
from shared.domain.message import Message
from shared.domain.resolving import resolve, rolls
from shared.domain.run import Run, RunKey, RunKind, RunStatus
from shared.recurrence import ClosedDays, Recurrence

COUNT_LIMIT = 10_000
"""Occurrences that one skip row counts; beyond, it gives the span without the number."""


def skips_itself(message: Message) -> bool:
    """Whether catch-up passes over the message's own occurrence too."""
    return message.missed is not None and message.missed.catch_up is CatchUp.SKIP


def missed_row(
    message: Message, now: datetime, expires_at: datetime, closed: ClosedDays | None = None
) -> Run | None:
    """The row that covers what a catch-up passed over before the message's occurrence.

    An occurrence in its span that has a row of its own counts by that row. Two filings may cover
    spans with the same end, so the filing is part of the key. Closed days are covered with the
    others, and the note tells how many: nobody else records them. `closed` are those of the
    calendar that the message names.
    """
    if message.missed is None:
        return None
    key, use = message.key, message.missed.calendar
    resolved = resolve(message.missed.schedule, use, closed)
    until = key.fire_at - timedelta(seconds=1)
    covered = islice(resolved.sent.between(message.missed.since, until), COUNT_LIMIT + 1)
    first = next(covered, None)
    last = resolved.sent.previous(key.fire_at)
    if first is None or last is None:
        return None
    count = 1 + sum(1 for _ in covered)
    exact = count <= COUNT_LIMIT
    return Run(
        key=RunKey(key.owner, key.job_id, RunKind.MISSED, last, message.filing_id),
        status=RunStatus.SKIPPED,
        attempt=0,
        token=0,
        claim_id="",
        filing_id=message.filing_id,
        updated_at=now,
        expires_at=expires_at,
        finished_at=now,
        reason=SkipReason.CATCH_UP,
        covers_from=first,
        covers_count=count if exact else None,
        note=_closed_among(resolved.open, use, first, last, count) if exact else None,
    )


def _closed_among(
    open_ones: Recurrence, use: CalendarUse | None, first: datetime, last: datetime, count: int
) -> str | None:
    if use is None or rolls(use):
        return None
    open_count = sum(1 for _ in open_ones.between(first - timedelta(seconds=1), last))
    if open_count == count:
        return None
    return f"{count - open_count} of them on days closed in calendar {use.name}"
