"""Concurrency keys: at most `limit` runs at once of all jobs of an owner that name the key."""

from dataclasses import replace
from datetime import datetime

from shared.domain.decisions import Go, Wait
from shared.domain.gate import Gate, Holder
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.passage import Passage
from shared.domain.policies import Concurrency
from shared.domain.run import Run, RunKind
from shared.domain.waiting import poll


def needed_place(job: Job, run: Run) -> Concurrency | None:
    """The key that the run must hold; a callback holds none, it tells of a past run."""
    return None if run.key.kind is RunKind.CALLBACK else job.concurrency


def wait_for_place(
    gate: Gate, concurrency: Concurrency, message: Message, now: datetime, fraction: float
) -> Wait | None:
    """Look again later if no place is free, with the jitter `fraction`; None if one is."""
    held = places_taken(gate, now)
    if held < concurrency.limit:
        return None
    reason = f"{held} runs hold the concurrency key {concurrency.key!r}"
    return poll(message, now, reason, fraction)


def enter(
    gate: Gate, concurrency: Concurrency, run: Run, message: Message, now: datetime, fraction: float
) -> Passage:
    """Take a place for the claimed run, or wait for one.

    A place is the run's until it leaves, or until the lease of its claim ends: an executor that
    dies frees it so.
    """
    wait = wait_for_place(gate, concurrency, message, now, fraction)
    if wait is not None:
        return Passage(wait)
    return Passage(Go(), with_place(gate, run, now))


def places_taken(gate: Gate, now: datetime) -> int:
    """How many places runs hold that neither left nor died."""
    return sum(now < holder.until for holder in gate.holders)


def with_place(gate: Gate, run: Run, now: datetime) -> Gate:
    """The gate with a place for the claimed run, whether one is free or not."""
    live = tuple(holder for holder in gate.holders if now < holder.until)
    until = run.lease_until or now
    return replace(gate, holders=(*live, Holder(run.claim_id, until))).lasting(until)


def leave(gate: Gate, run: Run) -> Gate | None:
    """The gate without the run's claim; None if that holds no place."""
    others = tuple(holder for holder in gate.holders if holder.claim_id != run.claim_id)
    return None if len(others) == len(gate.holders) else replace(gate, holders=others)
