"""Rates: at most `limit` starts in any `per_seconds`, with slots reserved for those that wait.

The promise: of one limit, any `limit` + 1 slots that a gate grants in a row lie at least
`per_seconds` apart, so that no window of that length holds more than `limit` of them. Where jobs of
a key have several limits, or one is changed, each start is judged by its own over all starts of the
key that were granted for instants up to its slot; a slot that another limit grants for later than
the own period from now does not count against it. After a pause `limit` may start at once. Of
larger limits each start counts up to a twentieth of the window longer, and a flood gets 95 % of the
rate.

A run starts at its slot, or up to 10 s late; one that comes later asks anew, or all that an outage
has held back would start at once. Twice as late will do then, and so on: a queue that lags holds
nobody for ever.

(The generic cell rate algorithm keeps one instant only; with a burst of `limit` it would let pass
almost twice the limit in one window.)
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.admission.rate_line import LOOK, forget, reserve
from carillon.domain.admission.state import Gate
from carillon.domain.admission.waiting import wait_until
from carillon.domain.decisions import Wait
from carillon.domain.job import Job
from carillon.domain.message import Message, RateSlot
from carillon.domain.policies import Rate
from carillon.domain.run import Run, RunKind, RunStatus

_KEPT = timedelta(seconds=10)
"""How late a first slot may be used; the next ones twice as late each."""
_KEPT_LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Taken:
    """The slot of a run, once `put`, if it is another than the gate, has been put over that."""

    slot: RateSlot
    put: Gate | None = None


def needed_slot(job: Job, run: Run) -> Rate | None:
    """The rate of the job that the run's start counts in; a callback has its owner's only."""
    return None if run.key.kind is RunKind.CALLBACK else job.rate


def take_slot(gate: Gate, rate: Rate, held: RateSlot | None, claim_id: str, now: datetime) -> Taken:
    """The slot that is `held` already, if it is yet to come and the same rate still grants it.

    Else the next one is reserved. Of one that is yet to come under another rate, so are all that
    were reserved with it given up: the job has that rate no more.
    """
    if held is None:
        return _reserved(gate, rate, 1, claim_id, now)
    if held.at <= now:
        return _reserved(gate, rate, held.asked + 1, claim_id, now)
    if held.rate == rate and any(line.line_id == held.line_id for line in gate.lines):
        return Taken(held)
    if held.rate != rate:
        gate = forget(gate, held.line_id, claim_id, now)
    return _reserved(gate, rate, held.asked, claim_id, now)


def is_in_time(message: Message, held: RateSlot, now: datetime) -> bool:
    """Whether a slot has come and may be used: it stays granted, whatever the rate is by now.

    Of two, the earlier one has waited for the later.
    """
    due_at = max(each.at for each in (held, message.rate_slot, message.owner_slot) if each)
    kept = min(_KEPT_LONGEST, _KEPT * (1 << min(held.asked - 1, 10)))
    return held.at <= now <= due_at + kept


def wait_for(message: Message, slot: RateSlot, at: datetime, now: datetime) -> Wait:
    """Wait until `at` because of a slot that is yet to come, or until the next look."""
    rate = slot.rate
    reason = f"{rate.limit} starts in {rate.per_seconds} s are reached, it may start at"
    return wait_until(message, min(at, now + LOOK), f"{reason} {slot.at:%Y-%m-%dT%H:%M:%SZ}")


def with_slots_left(message: Message, over: Run | None) -> Message:
    """The message with those reserved slots that are still its own: none where an executor has died
    on the run since it waited, that attempt may have used them."""
    if over is None or over.status is not RunStatus.RUNNING:
        return message
    if message.rate_slot is None and message.owner_slot is None:
        return message
    return replace(message, rate_slot=None, owner_slot=None)


def _reserved(gate: Gate, rate: Rate, asked: int, claim_id: str, now: datetime) -> Taken:
    granted = reserve(gate, rate, claim_id, now)
    slot_at = now if granted.started_at is None else granted.started_at
    return Taken(RateSlot(slot_at, rate, granted.lines[0].line_id, asked), granted)
