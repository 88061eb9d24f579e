"""What an executor does with a message: decisions as values, each with its reason (DESIGN 4.3)."""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice

from shared.clock import id_created_at
from shared.domain.job import CatchUp, Job, JobState
from shared.domain.message import Message
from shared.domain.run import AttemptRecord, Run, RunError, RunKey, RunKind, RunStatus
from shared.domain.wheel import YOUNG_ENTRY

EARLY = timedelta(seconds=2)
"""A message earlier than this is sent on; otherwise the executor waits."""
YOUNG_MESSAGE = timedelta(seconds=60)
"""The row of an unknown filing this young may not be committed yet."""
YOUNG_DELAY_SECONDS = 2
SHORTEST_WAIT = timedelta(seconds=1)
"""Between two looks at a run that another executor holds; doubled as its claim grows older."""
COUNT_LIMIT = 10_000
"""Occurrences that one skip row counts; beyond, it gives the span without the number."""

EXECUTOR_DIED = RunError("executor_died", "the executor stopped before it recorded a result")


class SkipReason(StrEnum):
    """The closed list of reasons why an occurrence did not run."""

    PAUSED = "paused"
    DELETED = "deleted"
    CHANGED = "changed"
    """The schedule was changed between the occurrence's dispatch and its start."""
    CATCH_UP = "catch_up"
    """An outage passed over it, and the job's catch-up policy does not run it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Write `run` over `over` (None: there is no row), then go on under it."""

    run: Run
    over: Run | None


@dataclass(frozen=True, slots=True)
class SendOn:
    """Send a copy of the message that becomes visible at `at`, and acknowledge."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The run is retrying or final: repeat what follows from it, and acknowledge."""

    run: Run


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing is to be done or recorded; acknowledge."""

    reason: str


@dataclass(frozen=True, slots=True)
class Go:
    """Deliver the run to its target."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that the occurrence does not run."""

    reason: SkipReason


Start = Go | Skip | SendOn | Drop
"""What `decide_start` answers."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a claim is made under: unique id, lease, and the row's expiry."""

    claim_id: str
    lease_until: datetime
    expires_at: datetime


def decide_claim(
    seen: Run | None, message: Message, now: datetime, terms: Terms
) -> Claim | SendOn | Repeat | Drop:
    """What a message is allowed to do to the run row that was seen.

    A run can be claimed when it is absent (first attempt), scheduled, retrying with this
    attempt's time come, or running under a lapsed lease: a takeover, which counts as an attempt.
    """
    if seen is None:
        if message.attempt > 1:
            return Drop("the run of this retry has expired")
        return Claim(_claimed(None, message, 1, now, terms), None)
    if seen.status is RunStatus.SCHEDULED:
        return Claim(_claimed(seen, message, seen.attempt + 1, now, terms), seen)
    if seen.status is RunStatus.RUNNING:
        if seen.lease_until is not None and now < seen.lease_until:
            # It may end long before its lease does, or be given back at once: look again soon,
            # then ever less often.
            age = now - (seen.attempt_started_at or now)
            at = min(seen.lease_until, now + max(age, SHORTEST_WAIT))
            return SendOn(at, "another executor holds the lease")
        attempt = message.attempt if message.attempt > seen.attempt else seen.attempt + 1
        return Claim(_claimed(_died(seen, now), message, attempt, now, terms), seen)
    if seen.status is RunStatus.RETRYING and message.attempt > seen.attempt:
        if message.attempt > seen.attempt + 1:
            return Drop("its attempt does not follow the run's")
        if seen.next_attempt_at is not None and now < seen.next_attempt_at:
            return SendOn(seen.next_attempt_at, "before the retry's time")
        return Claim(_claimed(seen, message, message.attempt, now, terms), seen)
    return Repeat(seen)


def decide_start(job: Job | None, message: Message, now: datetime) -> Start:
    """Whether a claimed run may start, by the job row as read after the claim."""
    key = message.key
    by_schedule = key.kind is RunKind.SCHEDULED and message.attempt == 1 and key.redrive == 0
    if job is None:
        if by_schedule and _young(message.filing_id, now):
            return _wait_for_commit(now)
        return Drop("there is no such job")
    if job.state is JobState.DELETED:
        return Skip(SkipReason.DELETED)
    newer = message.filing_id > job.filing.filing_id
    if job.state is JobState.PAUSED and key.kind is not RunKind.MANUAL:
        if by_schedule and newer and _young(message.filing_id, now):
            return _wait_for_commit(now)  # a resume that has yet to commit
        return Skip(SkipReason.PAUSED)
    if not by_schedule or message.filing_id == job.filing.filing_id:
        return Go()
    if key.fire_at > job.filing.from_at and yields(job, key.fire_at):
        return Go()
    return _decide_other_filing(job, message, now)


def _decide_other_filing(job: Job, message: Message, now: datetime) -> Start:
    """An occurrence that the job's current filing does not contain."""
    previous = job.previous
    fire_at = message.key.fire_at
    if previous is not None and message.filing_id == previous.filing_id:
        if previous.covers(message.filing_id, fire_at):
            return Go()
        in_pause = previous.until_at < fire_at <= job.filing.from_at
        return Skip(SkipReason.PAUSED if in_pause else SkipReason.CHANGED)
    if message.filing_id > job.filing.filing_id and _young(message.filing_id, now):
        return _wait_for_commit(now)
    if previous is not None and fire_at <= previous.from_at:
        return Skip(SkipReason.CHANGED)
    # Noise of a change that never committed. Recording a skip here could take the place of the
    # outcome of a real occurrence of the same instant.
    return Drop("its filing does not count")


def yields(job: Job, fire_at: datetime) -> bool:
    """Whether the job's schedule has an occurrence at exactly this instant."""
    epoch_seconds = int(fire_at.timestamp())
    return epoch_seconds % 60 in job.schedule.seconds_of_minute(epoch_seconds // 60)


def stale_since(job: Job | None, message: Message, now: datetime) -> datetime | None:
    """Until when the message's entry was of use, if it is of none any more; else None.

    The entry may be removed once every minute up to that instant is dispatched.
    """
    if job is not None and message.filing_id == job.filing.filing_id:
        if job.state is JobState.PAUSED:
            return job.paused_at
        return job.updated_at if job.state is JobState.DELETED else None
    if job is not None and message.filing_id < job.filing.filing_id:
        return job.filing.from_at
    made_at = id_created_at(message.filing_id)
    return made_at if now - made_at > YOUNG_ENTRY else None


def missed_row(message: Message, now: datetime, expires_at: datetime) -> Run | None:
    """The row that covers what a catch-up passed over before the message's occurrence.

    An occurrence in its span that has a row of its own counts by that row. Two filings may cover
    spans with the same end, so the filing is part of the key.
    """
    if message.missed is None:
        return None
    key, schedule = message.key, message.missed.schedule
    until = key.fire_at - timedelta(seconds=1)
    covered = islice(schedule.between(message.missed.since, until), COUNT_LIMIT + 1)
    first = next(covered, None)
    last = schedule.previous(key.fire_at)
    if first is None or last is None:
        return None
    count = 1 + sum(1 for _ in covered)
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
        covers_count=count if count <= COUNT_LIMIT else None,
    )


def skips_itself(message: Message) -> bool:
    """Whether catch-up passes over the message's own occurrence too."""
    return message.missed is not None and message.missed.catch_up is CatchUp.SKIP


def succeeded(run: Run, result: str | None, now: datetime) -> Run:
    return _ended(run, RunStatus.SUCCEEDED, now, result=result)


def skipped(run: Run, reason: SkipReason, now: datetime) -> Run:
    """The run ends without its target being called; a first attempt never started."""
    never_started = run.attempt <= 1
    return replace(
        _ended(run, RunStatus.SKIPPED, now),
        reason=reason,
        started_at=None if never_started else run.started_at,
        attempt_started_at=None,
    )


def failed(
    run: Run, job: Job, error: RunError, timed_out: bool, now: datetime, fraction: float
) -> Run:
    """The run after a failed attempt: retrying while attempts are left and can help."""
    if error.permanent:
        return replace(_ended(run, RunStatus.DEAD, now, error=error), reason="refused for good")
    if run.attempt >= job.retry.max_attempts:
        status = RunStatus.TIMED_OUT if timed_out else RunStatus.DEAD
        return replace(_ended(run, status, now, error=error), reason="no attempts left")
    delay = timedelta(seconds=job.retry.backoff.delay_seconds(run.attempt, fraction))
    return replace(
        run,
        status=RunStatus.RETRYING,
        lease_until=None,
        updated_at=now,
        expires_at=run.expires_at + delay,
        error=error,
        next_attempt_at=_ceil_second(now + delay),
        attempts=(*run.attempts, _record(run, error, now)),
    )


def out_of_attempts(run: Run, over: Run | None, now: datetime) -> Run:
    """The run is dead without another attempt: executors died on it, or fewer are allowed now."""
    if over is None or over.status is not RunStatus.RETRYING or over.error is None:
        return died(run, now)
    return replace(_ended(run, RunStatus.DEAD, now, error=over.error), reason="no attempts left")


def died(run: Run, now: datetime) -> Run:
    """The run is dead because executors stopped on it."""
    reason = "the executor died on every attempt"
    return replace(_ended(run, RunStatus.DEAD, now, error=EXECUTOR_DIED), reason=reason)


def given_back(run: Run, over: Run, now: datetime) -> Run:
    """The row as it was before the claim, under the claim's token (for `finish`)."""
    lease_until = now if over.status is RunStatus.RUNNING else None
    return replace(
        over, token=run.token, claim_id=run.claim_id, lease_until=lease_until, updated_at=now
    )


def retry_message(run: Run, message: Message) -> Message:
    """The message for the attempt that follows a RETRYING run."""
    due_at = run.next_attempt_at or run.updated_at
    return replace(
        message,
        attempt=run.attempt + 1,
        due_at=due_at,
        slot_key="",
        missed=None,
    )


def _claimed(seen: Run | None, message: Message, attempt: int, now: datetime, terms: Terms) -> Run:
    fresh = Run(
        key=message.key,
        status=RunStatus.RUNNING,
        attempt=attempt,
        token=1 if seen is None else seen.token + 1,
        claim_id=terms.claim_id,
        filing_id=message.filing_id,
        updated_at=now,
        expires_at=terms.expires_at,
        lease_until=terms.lease_until,
        started_at=now,
        attempt_started_at=now,
    )
    if seen is None:
        return fresh
    return replace(fresh, started_at=seen.started_at or now, attempts=seen.attempts)


def _died(seen: Run, now: datetime) -> Run:
    return replace(seen, attempts=(*seen.attempts, _record(seen, EXECUTOR_DIED, now)))


def _record(run: Run, error: RunError, now: datetime) -> AttemptRecord:
    return AttemptRecord(run.attempt, run.attempt_started_at or run.updated_at, now, error)


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
    )


def _young(filing_id: str, now: datetime) -> bool:
    return now - id_created_at(filing_id) < YOUNG_MESSAGE


def _wait_for_commit(now: datetime) -> SendOn:
    at = now + timedelta(seconds=YOUNG_DELAY_SECONDS)
    return SendOn(at, "the filing may not be committed yet")


def _ceil_second(instant: datetime) -> datetime:
    return datetime.fromtimestamp(math.ceil(instant.timestamp()), UTC)
