"""A run from its claim to its end, as values (docs/architecture.md#the-run-protocol)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from carillon.clock import ceil_second, seconds_after
from carillon.domain.decisions import Claim, Defer, Drop, Leave, Repeat, SkipReason, Wait
from carillon.domain.job import Job
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.policies import LONGEST_RETRY_DELAY_SECONDS
from carillon.domain.run import AttemptRecord, DeadReason, Run, RunError, RunStatus, cut

EARLY = timedelta(seconds=2)
"""A message earlier than this is deferred; otherwise the executor waits."""
_AT_ONCE = timedelta(milliseconds=1)
"""From the claim to the call of a target: less than any gate takes."""
_EARLIER_WAIT = "a later message comes for the run"

EXECUTOR_DIED = RunError("executor_died", "the executor stopped before it recorded a result")
NEVER_STARTED = RunError("never_started", "no executor could begin it")


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """The terms of a claim: unique id, lease, and the row's expiry."""

    claim_id: str
    lease_until: datetime
    expires_at: datetime


def decide_claim(
    seen: Run | None, message: Message, now: datetime, terms: ClaimTerms
) -> Claim | Defer | Leave | Repeat | Drop:
    """The decision about a message, by the run row that was read.

    A run can be claimed when it is absent (first attempt), scheduled, retrying with this
    attempt's time come, or running under a lapsed lease: a takeover, which counts as an attempt. A
    process that is past its own end claims nothing: its lease would have lapsed already.

    Duplicates die out, however many there are. Of the messages of one generation only that of the
    current wait claims a run that waits: it was sent before its wait was recorded, so that the
    others are of no use. And a duplicate that meets a live lease stays with the queue as it is: a
    copy of it could be doubled again at every check.
    """
    decision = _decide_claim(seen, message, now, terms)
    if isinstance(decision, Claim) and terms.lease_until <= now:
        return Defer(now, "this process is past its end")
    return decision


def _decide_claim(
    seen: Run | None, message: Message, now: datetime, terms: ClaimTerms
) -> Claim | Defer | Leave | Repeat | Drop:
    if seen is None:
        if message.attempt > 1:
            return Drop("the run of this retry has expired")
        return Claim(_claimed(None, message, 1, now, terms), None)
    if seen.status is RunStatus.SCHEDULED:
        if _is_of_an_earlier_wait(message, seen):
            return Drop(_EARLIER_WAIT)
        return Claim(_claimed(seen, message, seen.attempt + 1, now, terms), seen)
    if seen.status is RunStatus.RUNNING:
        if seen.lease_until is not None and now < seen.lease_until:
            return _meets_live_lease(seen, seen.lease_until, message, now)
        attempt = message.attempt if message.attempt > seen.attempt else seen.attempt + 1
        return Claim(_claimed(_died(seen, now), message, attempt, now, terms), seen)
    if seen.status is RunStatus.RETRYING and message.attempt > seen.attempt:
        if message.attempt > seen.attempt + 1:
            return Drop("its attempt does not follow the run's")
        if _is_of_an_earlier_wait(message, seen):
            return Drop(_EARLIER_WAIT)
        if seen.next_attempt_at is not None and now < seen.next_attempt_at:
            return Defer(seen.next_attempt_at, "before the retry's time")
        return Claim(_claimed(seen, message, message.attempt, now, terms), seen)
    return Repeat(seen)


def _is_of_an_earlier_wait(message: Message, seen: Run) -> bool:
    """True if a later message of the same generation comes for the run that waits."""
    return message.generation_id == seen.generation_id and message.waits < seen.waits


def _meets_live_lease(
    seen: Run, lease_until: datetime, message: Message, now: datetime
) -> Leave | Defer:
    """The decision about a message for a run that another executor holds."""
    is_ahead = (message.attempt, message.waits) > (seen.attempt, seen.waits)
    if message.generation_id == seen.generation_id and not is_ahead:
        return Leave("another executor holds the lease")
    # The row is about to be put back for it, or the claim of another generation may be given up at
    # once. It goes by the message's lateness, too: the row may be claimed again and again.
    since = min(message.starts_at, seen.attempt_started_at or now)
    reason, lease = "another executor holds the lease", lease_until - now
    return Defer.twice_as_late(since, now, reason, longest=lease)


def begun(run: Run, now: datetime) -> Run:
    """The claimed run when its target is about to be called: gates may have taken their time."""
    claimed_at = run.attempt_started_at
    if claimed_at is not None and now - claimed_at < _AT_ONCE:
        return run
    started_at = now if run.started_at == claimed_at else run.started_at
    return replace(run, attempt_started_at=now, started_at=started_at)


def succeeded(run: Run, result: str | None, now: datetime) -> Run:
    return _ended(run, RunStatus.SUCCEEDED, now, result=result)


def skipped(run: Run, reason: SkipReason, now: datetime, note: str | None = None) -> Run:
    """The run ends without its target being called; a first attempt never started."""
    ended = replace(_ended(run, RunStatus.SKIPPED, now), reason=reason, note=note or run.note)
    return _without_attempt(ended)


def _without_attempt(run: Run) -> Run:
    """The run, whose attempt was claimed and never begun."""
    started_at = None if run.attempt <= 1 else run.started_at
    return replace(run, started_at=started_at, attempt_started_at=None)


def failed(
    run: Run,
    job: Job | None,
    error: RunError,
    timed_out: bool,
    now: datetime,
    fraction: float,
    retry_after_seconds: float | None = None,
    *,
    is_final: bool = False,
) -> Run:
    """The run after a failed attempt: retrying while attempts are left and can help.

    `retry_after_seconds` is what the target asked for: it takes the place of the backoff. One that
    `is_final` is not retried, whatever the policy says; nor is one whose job is gone.
    """
    ended = _ended(run, RunStatus.TIMED_OUT if timed_out else RunStatus.DEAD, now, error=error)
    if is_final or job is None or not job.spec.retry.retries(error):
        return replace(ended, reason=DeadReason.REFUSED)
    if run.attempt >= job.spec.retry.max_attempts:
        return replace(ended, reason=DeadReason.EXHAUSTED)
    if retry_after_seconds is None:
        delay_seconds: float = job.spec.retry.backoff.delay_seconds(run.attempt, fraction)
    else:
        delay_seconds = min(max(retry_after_seconds, 1), LONGEST_RETRY_DELAY_SECONDS)
    next_attempt_at = seconds_after(now, delay_seconds)
    if delay_seconds > LONGEST_DELAY_SECONDS:  # a tick sends it, and does so for whole seconds
        next_attempt_at = ceil_second(next_attempt_at)
    return replace(
        run,
        status=RunStatus.RETRYING,
        waits=0,
        lease_until=None,
        updated_at=now,
        expires_at=run.expires_at + (next_attempt_at - now),
        error=error,
        next_attempt_at=next_attempt_at,
        attempts=(*run.attempts, _record(run, error, now)),
    )


def undelivered(run: Run, over: Run | None, most_attempts: int, now: datetime) -> Run:
    """The run is dead without another attempt: executors died on it, fewer are allowed now, or it
    could not be begun for too long."""
    if over is not None and over.status is RunStatus.RUNNING:
        return _dead(run, DeadReason.EXECUTOR_DIED, EXECUTOR_DIED, now)
    error = None if over is None else over.error
    reason, otherwise = DeadReason.EXHAUSTED, EXECUTOR_DIED
    if run.attempt <= most_attempts:
        reason, otherwise = DeadReason.NEVER_STARTED, NEVER_STARTED
    return _without_attempt(_dead(run, reason, error or otherwise, now))


def unreadable(run: Run, reason: str, now: datetime) -> Run:
    """The claimed run is dead, since a row that it needs could not be read for too long."""
    error = RunError("unreadable", cut(reason))
    return _without_attempt(_dead(run, DeadReason.UNREADABLE, error, now))


def unseen(message: Message, now: datetime, terms: ClaimTerms) -> Run:
    """The claimed run of a message whose row cannot be read."""
    return _claimed(None, message, message.attempt, now, terms)


def _dead(run: Run, reason: DeadReason, error: RunError, now: datetime) -> Run:
    return replace(_ended(run, RunStatus.DEAD, now, error=error), reason=reason)


def in_next_wait(wait: Wait, run: Run) -> Wait:
    """The claimed run as it waits, with the ordinal that makes its message the current one.

    A takeover is another attempt than its message's.
    """
    again = replace(wait.message, attempt=run.attempt, waits=run.waits + 1)
    return replace(wait, message=again)


def waiting(run: Run, over: Run | None, wait: Wait, now: datetime) -> Run:
    """The row of a claimed run that a policy holds back, under the claim's token (for `finish`).

    One that has yet to begin is SCHEDULED, one whose executor has died is to be tried again. Each
    has the reason, the instant, and the ordinal of the wait, which its message carries too. So long
    as the wait may last, the row lives longer.
    """
    starts_at = wait.message.starts_at
    expires_at = run.expires_at + max(timedelta(), starts_at - now)
    back = replace(
        run,
        updated_at=now,
        expires_at=expires_at,
        lease_until=None,
        next_attempt_at=starts_at,
        note=wait.reason,
        waits=wait.message.waits,
    )
    if over is None or over.status is RunStatus.SCHEDULED:
        status = RunStatus.SCHEDULED
        return replace(back, status=status, attempt=0, started_at=None, attempt_started_at=None)
    if over.status is RunStatus.RETRYING and over.error != EXECUTOR_DIED:
        again = released(run, over, wait.message, now)
        again = replace(again, expires_at=max(over.expires_at, expires_at), waits=back.waits)
        return replace(again, next_attempt_at=starts_at, note=wait.reason)
    return replace(
        back,
        status=RunStatus.RETRYING,
        attempt=run.attempt - 1,
        attempt_started_at=over.attempt_started_at,
        error=EXECUTOR_DIED,
    )


def released(run: Run, over: Run, message: Message, now: datetime) -> Run:
    """The row as it was before the claim for a message that comes again, under the claim's token
    (for `finish`). An attempt that died stays known by that one's generation, too."""
    back = replace(over, token=run.token, claim_id=run.claim_id, lease_until=None, updated_at=now)
    if over.status is not RunStatus.RUNNING:
        return back
    others = {*over.other_generations, message.generation_id} - {over.generation_id}
    return replace(back, lease_until=now, other_generations=tuple(sorted(others)))


def handed_over(run: Run, over: Run, message: Message, now: datetime) -> Run:
    """The same for a message that represents nothing: the row is left to the other generations."""
    others = tuple(each for each in over.other_generations if each != message.generation_id)
    back = replace(released(run, over, message, now), other_generations=others)
    if over.generation_id == message.generation_id and others:
        return replace(back, generation_id=others[-1], other_generations=others[:-1])
    return back


def adopted(run: Run, came: Message) -> Run:
    """The claimed run once the message that came for it is acknowledged (for `finish`)."""
    others = tuple(each for each in run.other_generations if each != came.generation_id)
    return replace(run, other_generations=others)


def being_adopted(run: Run, own: Message) -> Run:
    """The claimed run as one of the generation of `own`, the one that counts (for `finish`), while
    its executor is at it: if that dies, the message that came for it comes again to its row."""
    others = _other_generations(run, own)
    return replace(run, generation_id=own.generation_id, other_generations=others)


def after_death(claim: Claim, died: Run, now: datetime) -> Claim:
    """The claim as one over the attempt that died in a chunk, and counts now (for `finish`).

    Where attempts have ended by the row before, that one is among them, as in `decide_death`: a
    claim for it by then called nobody.
    """
    run = claim.run
    others = {*run.other_generations, died.generation_id} - {run.generation_id}
    run = replace(run, other_generations=tuple(sorted(others)))
    if run.attempts:
        return replace(claim, run=run)
    attempt, attempts = max(run.attempt, died.attempt + 1), _died(died, now).attempts
    started_at = died.started_at or run.started_at
    return Claim(replace(run, attempt=attempt, attempts=attempts, started_at=started_at), died)


def was_made_by(over: Run, message: Message, *, or_others: bool = False) -> bool:
    """True if the row that was claimed over is there for the sake of this message alone: an earlier
    claim for it ended without a record, or a policy kept it waiting, and no other generation has
    claimed it (`or_others`: or any). Of an attempt that has ended, the next one's message comes."""
    is_shared = over.generation_id != message.generation_id or bool(over.other_generations)
    if is_shared and not or_others:
        return False
    ended = (each.attempt for each in over.attempts if each.error != EXECUTOR_DIED)
    if any(attempt >= message.attempt for attempt in ended):
        return False
    waits = over.status is RunStatus.SCHEDULED and over.next_attempt_at is not None
    return waits or over.status is RunStatus.RUNNING


def retry_message(run: Run, message: Message) -> Message:
    """The message for the attempt that follows a RETRYING run."""
    due_at = run.next_attempt_at or run.updated_at
    return replace(
        message,
        attempt=run.attempt + 1,
        due_at=due_at,
        slot_key="",
        missed=None,
        wait_until=None,
        waits=0,
        rate_slot=None,
        owner_slot=None,
        returns=0,
    )


def _claimed(
    seen: Run | None, message: Message, attempt: int, now: datetime, terms: ClaimTerms
) -> Run:
    started_at, effective_at = now, _effective_at(message)
    attempts: tuple[AttemptRecord, ...] = ()
    note = None
    if seen is not None and (seen.attempt or seen.next_attempt_at is not None):
        # Later attempts are due at times of their own, and so is one that was held back.
        effective_at = seen.effective_at
    if seen is not None and seen.attempt:
        started_at, attempts = seen.started_at or now, seen.attempts
        has_waited = seen.status is RunStatus.RETRYING and seen.waits > 0
        note = None if has_waited else seen.note
    return Run(
        key=message.key,
        status=RunStatus.RUNNING,
        attempt=attempt,
        token=1 if seen is None else seen.token + 1,
        claim_id=terms.claim_id,
        generation_id=message.generation_id,
        updated_at=now,
        expires_at=terms.expires_at,
        lease_until=terms.lease_until,
        started_at=started_at,
        attempt_started_at=now,
        effective_at=effective_at,
        note=note,
        waits=message.waits if seen is None else max(seen.waits, message.waits),
        attempts=attempts,
        other_generations=_other_generations(seen, message),
    )


def _other_generations(seen: Run | None, message: Message) -> tuple[str, ...]:
    """The generations that have claimed the run, but for the message's own, in order of time."""
    if seen is None:
        return ()
    return tuple(sorted({*seen.other_generations, seen.generation_id} - {message.generation_id}))


def _effective_at(message: Message) -> datetime | None:
    """The time at which a first attempt is due, if that is not its fire time."""
    return None if message.due_at == message.key.fire_at else message.due_at


def _died(seen: Run, now: datetime) -> Run:
    return replace(seen, attempts=(*seen.attempts, _record(seen, EXECUTOR_DIED, now)))


def _record(run: Run, error: RunError, now: datetime) -> AttemptRecord:
    began_at = run.attempt_started_at or run.updated_at
    token_hash = "" if run.completion is None else run.completion.token_hash
    return AttemptRecord(run.attempt, began_at, now, error, token_hash)


def _ended(
    run: Run,
    status: RunStatus,
    now: datetime,
    result: str | None = None,
    error: RunError | None = None,
) -> Run:
    return replace(
        run,
        status=status,
        lease_until=None,
        updated_at=now,
        finished_at=now,
        next_attempt_at=None,
        result=result,
        error=error,
        other_generations=(),
    )
