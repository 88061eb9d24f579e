"""Concurrency keys: at most `limit` runs at once of all jobs of an owner that name the key. An
owner's places in lane slow, and the permits of those that have waited, are given out alike.

A run that has waited for half a minute, and was due before all that have a turn, gets the next one:
a place that becomes free is kept for it. So whoever is the first of those that wait starts next,
however many come after it. The others look again ever less often: after half of their wait, or,
where they wait for an owner's share, after five minutes at most.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.domain.admission.passage import Passage
from carillon.domain.admission.state import Gate, Holder, Turn
from carillon.domain.admission.waiting import LONGEST_POLL_SECONDS, poll, wait_for_share, wait_until
from carillon.domain.decisions import Claim, Go
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Concurrency
from carillon.domain.run import Run, RunKind

KEPT_FOR_A_SLOT = timedelta(seconds=90)
"""A run that has its place waits in it for a start that is granted within this."""
_PATIENCE = timedelta(seconds=30)
_MOST_TURNS = 3
"""So many have a turn at once, and not more than the key has places: those that were due first of
all that looked."""
_NEXT_POLL_SECONDS = 2
"""Between two looks of a run that has a turn: so long a place is kept for it in vain."""
_TURN_KEPT = timedelta(seconds=60)
"""After its last look; of those whose job was deleted, say, the turn ends so."""
_TURN_RENEWED = timedelta(seconds=30)
_LONGEST_PAUSE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Places:
    """So many may hold them at once; `what` they are, in words. Of an owner's share those that wait
    look again more rarely: whoever overloads it has many that look."""

    limit: int
    what: str
    is_share: bool = False


def needed_place(job: Job, run: Run) -> Concurrency | None:
    """The key that the run must hold; a callback holds none, it tells of a past run."""
    return None if run.key.kind is RunKind.CALLBACK else job.concurrency


def enter(
    gate: Gate,
    places: Places,
    claim: Claim,
    message: Message,
    until: datetime,
    now: datetime,
    fraction: float,
) -> Passage:
    """Take a place for the claimed run until `until` at most, or keep the one it has; else look
    again later, with the jitter `fraction`.

    A place is the run's until it leaves: an executor that dies frees it by that instant. What the
    run had by the claim that it comes back from is its own.
    """
    own = {each.claim_id for each in (claim.run, claim.over) if each is not None}
    live = tuple(holder for holder in gate.holders if now < holder.until)
    others = tuple(holder for holder in live if holder.claim_id not in own)
    run_id = claim.run.key.run_id
    turns = tuple(turn for turn in gate.turns if now < turn.until and turn.run_id != run_id)
    ahead = sum((turn.due_at, turn.run_id) < (message.due_at, run_id) for turn in turns)
    free = places.limit - len(others)
    if free > 0 and (len(others) < len(live) or ahead < free):
        holders = (*others, Holder(claim.run.claim_id, until))
        return Passage(Go(), replace(gate, holders=holders, turns=turns).lasting(until))
    held = f"held by {_runs(len(others))}" if free <= 0 else f"behind {_runs(ahead)}"
    reason = f"waits for {places.what}, {held}"
    waited, most_turns = now - message.due_at, min(places.limit, _MOST_TURNS)
    if waited < _PATIENCE or ahead >= most_turns:
        if places.is_share:
            return Passage(wait_for_share(message, now, reason, fraction))
        if waited < _PATIENCE:
            return Passage(poll(message, now, reason, fraction))
        return Passage(wait_until(message, now + _long_pause(waited, fraction), reason))
    waits = poll(message, now, reason, fraction, _NEXT_POLL_SECONDS)
    renewed_at = now + _TURN_RENEWED
    if any(turn.run_id == run_id and turn.until > renewed_at for turn in gate.turns):
        return Passage(waits)
    with_own = (*turns, Turn(run_id, message.due_at, now + _TURN_KEPT))
    first = sorted(with_own, key=lambda turn: (turn.due_at, turn.run_id))[:most_turns]
    return Passage(waits, replace(gate, turns=tuple(first)).lasting(now + _TURN_KEPT))


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


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _long_pause(waited: timedelta, fraction: float) -> timedelta:
    """Until the next look of a run that others are before: half of what it has waited at most,
    so that looks become no more as more runs wait."""
    longest = min(max(waited / 2, timedelta(seconds=LONGEST_POLL_SECONDS)), _LONGEST_PAUSE)
    return longest * (1 + fraction) / 2
