"""Limits: rates, concurrency keys, an owner's concurrent runs, failures in a row."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.clock import seconds_after
from carillon.domain.admission.rate_line import RECHECK, forget, reserve
from carillon.domain.admission.state import (
    PATIENCE,
    AdmissionRow,
    PermitHolder,
    QueuedRun,
    Verdict,
    poll,
    poll_behind_others,
    wait_until,
    waiting_until,
)
from carillon.domain.decisions import Claim, Defer, Proceed, Wait
from carillon.domain.job import Job
from carillon.domain.message import Message, RateSlot
from carillon.domain.policies import Concurrency, Rate
from carillon.domain.run import Run, RunKind, RunStatus

Change = Callable[[AdmissionRow], AdmissionRow | None]
"""Makes a changed row of one; None where nothing is to change."""

KEPT = timedelta(seconds=10)
"""The lateness up to which a first slot may be used; each further one may be twice as late."""
_KEPT_LONGEST = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Taken:
    """The slot of a run, once `put`, if it is another than the gate, has been put over that."""

    slot: RateSlot
    put: AdmissionRow | None = None


def needed_slot(job: Job, run: Run) -> Rate | None:
    """The rate of the job that the run's start counts in; a callback has its owner's only."""
    return None if run.key.kind is RunKind.CALLBACK else job.spec.rate


def take_slot(
    gate: AdmissionRow, rate: Rate, held: RateSlot | None, claim_id: str, now: datetime
) -> Taken:
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
    """True if a slot has come and may be used: it stays granted, whatever the rate is by now.

    Of two, the earlier one has waited for the later.
    """
    due_at = max(each.at for each in (held, message.rate_slot, message.owner_slot) if each)
    kept = min(_KEPT_LONGEST, KEPT * (1 << min(held.asked - 1, 10)))
    return held.at <= now <= due_at + kept


def wait_for(message: Message, slot: RateSlot, at: datetime, now: datetime) -> Wait:
    """Wait until `at` because of a slot that is yet to come, or until the next check."""
    rate = slot.rate
    reason = f"{rate.limit} starts in {rate.per} s are reached, it may start at"
    return wait_until(message, min(at, now + RECHECK), f"{reason} {slot.at:%Y-%m-%dT%H:%M:%SZ}")


def with_slots_left(message: Message, over: Run | None) -> Message:
    """The message with those reserved slots that are still its own: none where an executor has died
    on the run since it waited, that attempt may have used them."""
    if over is None or over.status is not RunStatus.RUNNING:
        return message
    if message.rate_slot is None and message.owner_slot is None:
        return message
    return replace(message, rate_slot=None, owner_slot=None)


def _reserved(gate: AdmissionRow, rate: Rate, asked: int, claim_id: str, now: datetime) -> Taken:
    granted = reserve(gate, rate, claim_id, now)
    slot_at = now if granted.started_at is None else granted.started_at
    return Taken(RateSlot(slot_at, rate, granted.lines[0].line_id, asked), granted)


KEPT_FOR_A_SLOT = timedelta(seconds=90)
"""A run that has its place waits in it for a start that is granted within this."""
_MOST_TURNS = 3
"""At most this many runs are queued for a key, and no more than the key has permits: of all runs
that checked, those that were due first."""
_NEXT_POLL_SECONDS = 2
"""Between two checks of a queued run: at most this long a permit stays unused for its sake."""
_TURN_KEPT = timedelta(seconds=60)
"""After its last check. A queued run that was cancelled, for instance, loses its turn then."""
_TURN_RENEWED = timedelta(seconds=30)
_MOST_BEHIND_ITS_ROW = timedelta(minutes=15)
"""A row may say that its run checks next so long ago, before the run checks in full."""
_SHARE_SECONDS = 32
"""Until a run checks again whether its owner's share is taken, half of it at least."""
_LONGEST_FOR_A_SHARE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Places:
    """The number of permits, and `what` they are, in words. Runs that wait for an owner's share
    check more rarely, since an owner above the share has many of them."""

    limit: int
    what: str
    is_share: bool = False


def needed_permit(job: Job, run: Run) -> Concurrency | None:
    """The key whose permit the run must hold; a callback needs none, as it reports a past run."""
    return None if run.key.kind is RunKind.CALLBACK else job.spec.concurrency


def enter(
    gate: AdmissionRow,
    places: Places,
    claim: Claim,
    message: Message,
    until: datetime,
    now: datetime,
    fraction: float,
) -> Verdict:
    """Take a permit for the claimed run until `until` at most, or keep the one it has; else check
    again later, with the jitter `fraction`.

    A place is the run's until it leaves: an executor that dies frees it by that instant. What the
    run had by the claim that it comes back from is its own.
    """
    own = {each.claim_id for each in (claim.run, claim.over) if each is not None}
    live = tuple(holder for holder in gate.holders if now < holder.until)
    others = tuple(holder for holder in live if holder.claim_id not in own)
    run_id = claim.run.key.run_id
    turns = tuple(turn for turn in gate.turns if now < turn.until and turn.run_id != run_id)
    ahead = _ahead(turns, message)
    free = places.limit - len(others)
    if free > 0 and (len(others) < len(live) or ahead < free):
        holders = (*others, PermitHolder(claim.run.claim_id, until))
        return Verdict(Proceed(), replace(gate, holders=holders, turns=turns).lasting(until))
    held = f"held by {_runs(len(others))}" if free <= 0 else f"behind {_runs(ahead)}"
    reason = f"waits for {places.what}, {held}"
    if not _has_a_turn(places.limit, ahead, message, now):
        if places.is_share:
            return Verdict(_wait_for_share(turns, message, now, reason, fraction))
        return Verdict(poll_behind_others(message, now, reason, fraction))
    waits = poll(message, now, reason, fraction, _NEXT_POLL_SECONDS)
    renewed_at = now + _TURN_RENEWED
    if any(turn.run_id == run_id and turn.until > renewed_at for turn in gate.turns):
        return Verdict(waits)
    with_own = (*turns, QueuedRun(run_id, message.due_at, now + _TURN_KEPT))
    most_turns = _most_turns(places.limit)
    first = sorted(with_own, key=lambda turn: (turn.due_at, turn.run_id))[:most_turns]
    return Verdict(waits, replace(gate, turns=tuple(first)).lasting(now + _TURN_KEPT))


def _ahead(turns: Iterable[QueuedRun], message: Message) -> int:
    own = (message.due_at, message.key.run_id)
    return sum((turn.due_at, turn.run_id) < own for turn in turns)


def _most_turns(limit: int) -> int:
    return min(limit, _MOST_TURNS)


def _has_a_turn(limit: int, ahead: int, message: Message, now: datetime) -> bool:
    return now - message.due_at >= PATIENCE and ahead < _most_turns(limit)


def hold_back(
    gate: AdmissionRow | None, places: Places, message: Message, now: datetime, fraction: float
) -> Defer | None:
    """The next check of a run that would only wait for its owner's share: no place is free, and its
    turn has yet to come. None where a check in full is due.

    One that waits in its row is held back while that is not too far behind. One that has no row yet
    is held back once, and not if it comes late: an executor may have died on it.
    """
    behind = now - message.starts_at
    if message.waits:
        is_due = behind > _MOST_BEHIND_ITS_ROW
    else:
        is_due = message.wait_until is not None or behind >= PATIENCE
    wait = None if is_due else wait_for_share(gate, places, message, now, fraction)
    if gate is None or wait is None:
        return None
    ahead = _ahead(_live(gate, now), message)
    if _has_a_turn(places.limit, ahead, message, now):
        return None
    return Defer(wait.message.starts_at, wait.reason)


def wait_for_share(
    gate: AdmissionRow | None, places: Places, message: Message, now: datetime, fraction: float
) -> Wait | None:
    """The next check of a run whose owner's share is taken; None if a place is free."""
    taken = 0 if gate is None else permits_taken(gate, now)
    if gate is None or taken < places.limit:
        return None
    reason = f"waits for {places.what}, held by {_runs(taken)}"
    return _wait_for_share(_live(gate, now), message, now, reason, fraction)


def _wait_for_share(
    turns: Iterable[QueuedRun], message: Message, now: datetime, reason: str, fraction: float
) -> Wait:
    """Check again after half a minute and as long as the first in turn has waited: so checks do not
    increase with the number of waiting runs. `fraction` in [0, 1) is the jitter."""
    first_due_at = min((turn.due_at for turn in turns), default=now)
    seconds = _SHARE_SECONDS * (1 + fraction) / 2 + (now - first_due_at).total_seconds()
    longest_seconds = _LONGEST_FOR_A_SHARE.total_seconds() * (1 + fraction) / 2
    at = seconds_after(now, min(seconds, longest_seconds))
    return Wait(waiting_until(message, at), reason)


def _live(gate: AdmissionRow, now: datetime) -> list[QueuedRun]:
    return [turn for turn in gate.turns if now < turn.until]


def permits_taken(gate: AdmissionRow, now: datetime) -> int:
    """The number of permits whose runs have neither left nor died."""
    return sum(now < holder.until for holder in gate.holders)


def with_permit(gate: AdmissionRow, run: Run, now: datetime) -> AdmissionRow:
    """The gate with a place for the claimed run, whether one is free or not."""
    live = tuple(holder for holder in gate.holders if now < holder.until)
    until = run.lease_until or now
    return replace(gate, holders=(*live, PermitHolder(run.claim_id, until))).lasting(until)


def leave(gate: AdmissionRow, run: Run) -> AdmissionRow | None:
    """The gate without the run's claim; None if that holds no place."""
    others = tuple(holder for holder in gate.holders if holder.claim_id != run.claim_id)
    return None if len(others) == len(gate.holders) else replace(gate, holders=others)


def given_up(gate: AdmissionRow, run: Run) -> AdmissionRow | None:
    """The gate without the place and the turn of a run that has waited and is not to start; None
    where it has neither."""
    turns = tuple(turn for turn in gate.turns if turn.run_id != run.key.run_id)
    without = replace(leave(gate, run) or gate, turns=turns)
    return None if without == gate else without


def kept(gate: AdmissionRow, run: Run) -> AdmissionRow:
    """The gate in which the run, which is to be open, keeps its permit until it ends."""
    assert run.completion is not None
    without, holder = released(gate, run) or gate, run.completion.holder
    others = (leave(without, run) or without).holders
    until = run.completion.until
    return replace(gate, holders=(*others, PermitHolder(holder, until))).lasting(until)


def released(gate: AdmissionRow, run: Run) -> AdmissionRow | None:
    """The gate without the permit of a run that was open; None if it holds none."""
    holder = "" if run.completion is None else run.completion.holder
    others = tuple(each for each in gate.holders if each.claim_id != holder)
    return None if len(others) == len(gate.holders) else replace(gate, holders=others)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def with_failure(gate: AdmissionRow, run: Run, job: Job, limit: int) -> AdmissionRow:
    """The job's gate with one more failed run: each counts once, and no more than matter.

    Another generation (a resume, a change of the schedule) begins the count anew; one that is
    replaced counts no more.
    """
    generation_id, run_id = job.generation.generation_id, run.key.run_id
    if gate.failed_generation > generation_id:
        return gate
    failed = gate.failed if gate.failed_generation == generation_id else ()
    if run_id not in failed:
        failed = (*failed, run_id)
    return replace(gate, failed=failed[-limit:], failed_generation=generation_id)


def is_past(run: Run, job: Job) -> bool:
    """True if the run ended before the job's generation began: a resume or a change starts
    afresh."""
    return (run.finished_at or run.updated_at) <= job.generation.from_at


def note_of(run: Run, limit: int) -> str:
    """The note in the row of a job that the failure of `run` has paused."""
    runs = "a run" if limit == 1 else f"{limit} runs in a row"
    return f"paused since {runs} failed, {_last(run)}"


def is_note_of(note: str, run: Run) -> bool:
    """True if the failure of `run` has paused the job that has this note, under whatever limit."""
    return note.startswith("paused since ") and note.endswith(f" failed, {_last(run)}")


def _last(run: Run) -> str:
    return f"last {run.key.run_id}"


SHORT_SECONDS = 2
"""A call that ends within this takes no permit."""
KNOWN_FOR = timedelta(seconds=10)
"""A read of an owner's permits is used for this long."""
