"""The starts that a rate's gate counts, limit by limit, and the slots that it grants.

All starts of a key are counted under each limit that its jobs have: each limit is kept by itself,
and who is the first to ask under a new one finds what was started under the others. Of larger
limits the starts are counted in sums that end together, so that the row stays small.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carillon.clock import ceil_second
from carillon.domain.admission.state import AdmissionRow, Line, Starts
from carillon.domain.policies import Rate

RECHECK = timedelta(hours=1)
"""A run that waits for a slot checks this often whether its job still has the same rate."""
_SUMS = 20
"""Into how many parts a window is cut, where the limit is larger than that."""
_MOST_LINES = 8
"""A gate remembers this many limits; runs that wait under another one ask anew at their next
check."""


def reserve(gate: AdmissionRow, rate: Rate, claim_id: str, now: datetime) -> AdmissionRow:
    """The gate once it has granted the next slot, its `started_at`, which is not before `now`.

    In the order of the asking: never before a slot that was granted earlier under the same limit. A
    slot that is yet to come is in whole seconds, as waiting is. `claim_id` makes the row the
    asker's own. The line that granted it is the first one.
    """
    own = line_of(gate, rate) or _new_line(gate, rate, claim_id, now)
    slot = _next_slot(own, now)
    counted = [each for each in own.starts if each.until > slot]
    counted.append(Starts(1, _counts_until(slot, rate)))
    granting = replace(own, last_at=slot, starts=_summed(counted, rate.limit))
    others = (_with_start(each, slot, now) for each in gate.lines if each != own)
    alive = [each for each in others if each.starts]
    lines = (granting, *alive[: _MOST_LINES - 1])
    granted = replace(gate, lines=lines, started_at=slot, started=claim_id)
    return granted.lasting(max(line.starts[-1].until for line in lines))


def line_of(gate: AdmissionRow, rate: Rate) -> Line | None:
    """The line of this limit."""
    alike = (each for each in gate.lines if _rate_of(each) == replace(rate, key=""))
    return next(alike, None)


def starts_taken(gate: AdmissionRow, rate: Rate, now: datetime) -> int:
    """The starts that this limit has granted for the last of its periods."""
    line = line_of(gate, rate)
    if line is None:
        return 0
    return sum(each.count for each in _granted(line, now, now - _per(line), now, line.limit))


def forget(gate: AdmissionRow, line_id: str, claim_id: str, now: datetime) -> AdmissionRow:
    """The gate without the slots that were reserved in a line for later than the next check.

    Runs that hold one of them ask anew at that check; slots until then stay granted.
    """
    until = now + RECHECK
    lines = tuple(
        replace(
            each,
            line_id=claim_id,
            last_at=until,
            starts=_summed(_granted(each, now, until - _per(each), until, each.limit), each.limit),
        )
        if each.line_id == line_id and each.last_at > until
        else each
        for each in gate.lines
    )
    return replace(gate, lines=lines)


def _new_line(gate: AdmissionRow, rate: Rate, claim_id: str, now: datetime) -> Line:
    """A line that counts what another has counted: of those that look back as far the finest."""
    made = Line(rate.limit, rate.per, claim_id, now, ())
    if not gate.lines:
        return made

    def distance(line: Line) -> tuple[bool, int]:
        further = line.per_seconds - rate.per
        return further < 0, abs(further)

    known = min(gate.lines, key=distance)
    granted = _granted(known, now, now - _per(made), now + _per(made), rate.limit)
    starts = (Starts(each.count, _counts_until(each.until - _per(known), rate)) for each in granted)
    return replace(made, starts=_summed(starts, rate.limit))


def _next_slot(line: Line, now: datetime) -> datetime:
    slot = max(now, line.last_at)
    counted = [each for each in line.starts if each.until > slot]
    taken = sum(each.count for each in counted)
    while counted and taken >= line.limit:
        ended = counted.pop(0)
        taken, slot = taken - ended.count, ended.until
    return ceil_second(slot) if slot > now else slot


def _with_start(line: Line, slot: datetime, now: datetime) -> Line:
    """The line once it counts a start that another one has granted; not one later than its own
    period from now: nobody is in another's debt."""
    starts = [each for each in line.starts if each.until > now]
    if slot <= now + _per(line):
        starts.append(Starts(1, _counts_until(slot, _rate_of(line))))
    return replace(line, starts=_summed(starts, line.limit))


def _granted(
    line: Line, now: datetime, after: datetime, until: datetime, most: int
) -> Iterator[Starts]:
    """The starts that the line has granted for instants in (after, until], `most` of each sum.

    A line whose slots reach beyond now knows the last of them. Each that is yet to come has waited
    for one a period earlier. Where it knows fewer than its limit the others have just ceased to
    count, for its last slot.
    """
    per = _per(line)
    if line.last_at <= now:
        yield from (each for each in line.starts if after < each.until - per <= until)
        return
    others = line.limit - sum(each.count for each in line.starts)
    ceased = [Starts(others, line.last_at)] if others > 0 else []
    for each in (*line.starts, *ceased):
        at, counted = each.until - per, 0
        at -= max(timedelta(), per * -((until - at) // per))
        while at > after and counted < most:
            yield Starts(each.count, at + per)
            if at <= now:
                break
            at, counted = at - per, counted + each.count


def _summed(starts: Iterator[Starts] | list[Starts], limit: int) -> tuple[Starts, ...]:
    """The starts in order of time: as many of the last as the limit asks for."""
    sums: Counter[datetime] = Counter()
    for each in starts:
        sums[each.until] += each.count
    kept: list[Starts] = []
    taken = 0
    for until, count in sorted(sums.items(), reverse=True):
        if taken >= limit:
            break
        kept.append(Starts(count, until))
        taken += count
    return tuple(reversed(kept))


def _counts_until(slot: datetime, rate: Rate) -> datetime:
    """The instant from which a start at `slot` no longer counts; for a large limit, with others of
    its part."""
    if rate.limit <= _SUMS:
        return slot + timedelta(seconds=rate.per)
    step = rate.per * 1000 // _SUMS
    end = math.ceil(slot.timestamp() * 1000) + rate.per * 1000
    return datetime.fromtimestamp(math.ceil(end / step) * step / 1000, UTC)


def _per(line: Line) -> timedelta:
    return timedelta(seconds=line.per_seconds)


def _rate_of(line: Line) -> Rate:
    return Rate(line.limit, line.per_seconds)
