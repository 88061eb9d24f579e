"""Concurrency keys: at most `limit` runs at once of all jobs of an owner that name the key."""

from dataclasses import replace
from datetime import datetime

from shared.domain.decisions import Go
from shared.domain.gate import Gate, Holder
from shared.domain.message import Message
from shared.domain.passage import Passage
from shared.domain.policies import Concurrency
from shared.domain.run import Run
from shared.domain.waiting import poll


def enter(
    gate: Gate, concurrency: Concurrency, run: Run, message: Message, now: datetime, fraction: float
) -> Passage:
    """Take a place for the claimed run, or look again later, with the jitter `fraction`.

    A place is the run's until it leaves, or until the lease of its claim ends: an executor that
    dies frees it so.
    """
    live = tuple(holder for holder in gate.holders if now < holder.until)
    if len(live) >= concurrency.limit:
        reason = f"{len(live)} runs hold the concurrency key {concurrency.key!r}"
        return Passage(poll(message, now, reason, fraction))
    held = Holder(run.key.run_id, run.claim_id, run.lease_until or now)
    return Passage(Go(), replace(gate, holders=(*live, held)))


def leave(gate: Gate, run: Run) -> Gate | None:
    """The gate without the run's claim; None if that holds no place."""
    others = tuple(holder for holder in gate.holders if holder.claim_id != run.claim_id)
    return None if len(others) == len(gate.holders) else replace(gate, holders=others)
