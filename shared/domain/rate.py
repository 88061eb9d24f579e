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

from shared.clock import ceil_second
from shared.domain.decisions import Go, Wait
from shared.domain.gate import Gate, Starts
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.passage import Passage
from shared.domain.policies import Rate
from shared.domain.run import Run, RunKind, RunStatus
from shared.domain.waiting import wait_until

_SUMS = 20
"""Into how many parts a window is cut, where the limit is larger than that."""


_SLOT_KEPT = timedelta(seconds=2)
"""How long a slot may be used late by a run that something else holds back."""


def needed_slot(job: Job, run: Run) -> Rate | None:
    """The rate of the job that the run's start counts in; a callback has its owner's only."""
    return None if run.key.kind is RunKind.CALLBACK else job.rate


def take_slot(gate: Gate, rate: Rate, message: Message, claim_id: str, now: datetime) -> Passage:
    """Start now if a slot is free; otherwise wait for the one that is reserved by the same write.

    `message` says already that it has the slot.
    """
    reserved = reserve(gate, rate, claim_id, now)
    slot = reserved.started_at
    if slot is None or slot <= now:
        return Passage(Go(), reserved)
    reason = f"{rate.limit} starts in {rate.per_seconds} s are reached"
    return Passage(wait_until(message, slot, reason), reserved)


def reserve(gate: Gate, rate: Rate, claim_id: str, now: datetime) -> Gate:
    """The gate once it has granted the next slot, its `started_at`, which is not before `now`.

    In the order of the asking: never before a slot that was granted earlier. A slot that is yet to
    come is in whole seconds, as waiting is. `claim_id` makes the row the asker's own.
    """
    slot = now if gate.started_at is None else max(now, gate.started_at)
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
    granted = replace(gate, starts=starts, started_at=slot, started=claim_id)
    return granted.lasting(starts[-1].until)


def with_slots_left(message: Message, over: Run | None) -> Message:
    """The message with those reserved slots that are still its own: none where an executor has died
    on the run since it waited, that attempt may have used them."""
    if over is None or over.status is not RunStatus.RUNNING:
        return message
    return without_slots(message)


def without_slots(message: Message) -> Message:
    """The message, which is to ask for every slot anew."""
    if not message.has_rate_slot and not message.has_owner_slot:
        return message
    return replace(message, has_rate_slot=False, has_owner_slot=False)


def with_fresh_slots(wait: Wait, slot_at: datetime) -> Wait:
    """What a run waits for that has a slot at `slot_at`: without that if it comes again too late
    for it, since those that come late together would be more than the rate allows."""
    if wait.message.starts_at - slot_at <= _SLOT_KEPT:
        return wait
    return replace(wait, message=without_slots(wait.message))


def _counts_until(slot: datetime, rate: Rate) -> datetime:
    """When a start at `slot` counts no more; of a large limit, with others of its part."""
    if rate.limit <= _SUMS:
        return slot + timedelta(seconds=rate.per_seconds)
    step = rate.per_seconds * 1000 // _SUMS
    end = math.ceil(slot.timestamp() * 1000) + rate.per_seconds * 1000
    return datetime.fromtimestamp(math.ceil(end / step) * step / 1000, UTC)
