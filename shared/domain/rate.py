"""Rates: at most `limit` starts in any `per_seconds`, with slots reserved for those that wait.

The promise: any `limit` + 1 slots that a gate grants in a row lie at least `per_seconds` apart, so
that no window of that length holds more than `limit` of them. A run starts at its slot, or later by
the lag of its queue: starts that are late together may come closer. After a pause `limit` may start
at once. Of larger limits the starts are counted in sums that end together, so that the row stays
small: each counts up to a twentieth of the window longer, and a flood gets 95 % of the rate.

(The generic cell rate algorithm keeps one instant only; with a burst of `limit` it would let pass
almost twice the limit in one window.)
"""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shared.domain.decisions import Go
from shared.domain.gate import Gate, Starts
from shared.domain.message import Message
from shared.domain.passage import Passage
from shared.domain.policies import Rate
from shared.domain.run import Run, RunStatus
from shared.domain.running import ceil_second
from shared.domain.waiting import wait_until

_SUMS = 20
"""Into how many parts a window is cut, where the limit is larger than that."""


def take_slot(
    gate: Gate, rate: Rate, message: Message, claim_id: str, now: datetime, from_at: datetime
) -> Passage:
    """Start now if a slot is free; otherwise wait for the one that is reserved by the same write.

    No slot is taken before `from_at`: the one that another rate has granted.
    """
    reserved = reserve(gate, rate, claim_id, now, from_at)
    slot = reserved.started_at
    if slot is None or slot <= now:
        return Passage(Go(), reserved)
    reason = f"{rate.limit} starts in {rate.per_seconds} s are reached"
    return Passage(wait_until(message, slot, reason, rate_slot=True), reserved)


def reserve(gate: Gate, rate: Rate, claim_id: str, now: datetime, from_at: datetime) -> Gate:
    """The gate once it has granted the next slot, its `started_at`, which is not before `from_at`.

    In the order of the asking: never before a slot that was granted earlier. A slot that is yet to
    come is in whole seconds, as waiting is. `claim_id` makes the row the asker's own.
    """
    slot = from_at if gate.started_at is None else max(from_at, gate.started_at)
    counted = sorted(
        (starts for starts in gate.starts if starts.until > slot), key=lambda starts: starts.until
    )
    taken = sum(starts.count for starts in counted)
    while counted and taken >= rate.limit:
        ended = counted.pop(0)
        taken, slot = taken - ended.count, ended.until
    if slot > now:
        slot = ceil_second(slot)
    until = _counts_until(slot, rate)
    sums = {starts.until: starts.count for starts in counted if starts.until > slot}
    sums[until] = sums.get(until, 0) + 1
    starts = tuple(Starts(count, until) for until, count in sorted(sums.items()))
    return replace(gate, starts=starts, started_at=slot, started=claim_id)


def has_slot(message: Message, over: Run | None) -> bool:
    """Whether the slot that was reserved for a message is still its own.

    Not where an executor has died on the run since it waited: that attempt may have used it. The
    lease of a run that was held back has ended when its wait began.
    """
    if not message.has_rate_slot or over is None or over.status is not RunStatus.RUNNING:
        return message.has_rate_slot
    if message.wait_until is None or over.lease_until is None:
        return False
    return over.lease_until <= message.wait_until


def _counts_until(slot: datetime, rate: Rate) -> datetime:
    """When a start at `slot` counts no more; of a large limit, with others of its part."""
    if rate.limit <= _SUMS:
        return slot + timedelta(seconds=rate.per_seconds)
    step = rate.per_seconds * 1000 // _SUMS
    end = math.ceil(slot.timestamp() * 1000) + rate.per_seconds * 1000
    return datetime.fromtimestamp(math.ceil(end / step) * step / 1000, UTC)
