"""A run that ends by a report: how it is opened, checked and reported about
(docs/architecture.md#runs-that-end-by-a-report)."""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum

from carillon.clock import ceil_second, utc_text
from carillon.domain.decisions import CheckLater, Defer, Drop, Lapse
from carillon.domain.execution import transitions as running
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.run import (
    TIMEOUT_KIND,
    Completion,
    Run,
    RunError,
    RunStatus,
    one_line,
)
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.schedules import Delay

REPORT_DELAY = timedelta(seconds=5)
"""A report's message is sent before its row is put, and comes this much later."""
_REPORT_TAKES = timedelta(seconds=60)
"""Twice as long as the API works on a report: a row that is not there by then never will be."""


_LONGEST_NAME = 512
"""Characters, more than those of any owner: what could be no key of the store is nobody's."""


def token_of(owner: str, secret: str) -> str:
    """The token of one attempt, which tells whose it is."""
    return f"{base64.urlsafe_b64encode(owner.encode()).decode().rstrip('=')}.{secret}"


def owner_of(token: str) -> str | None:
    """The owner that a token names; None for text that is no token."""
    name, dot, secret = token.partition(".")
    if not dot or not secret or not token.isascii() or len(name) > _LONGEST_NAME:
        return None
    try:
        return base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode() or None
    except (binascii.Error, ValueError):
        return None


def hash_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def announced(
    run: Run, spec: CompletionSpec, token: str, permits: tuple[str, ...], now: datetime
) -> Run:
    """The claimed run whose target is about to get the token (for `finish`): it may use it before
    its call has ended."""
    until = now + timedelta(seconds=spec.within)
    terms = Completion(hash_of(token), until, spec.silence_seconds, permits=permits)
    return replace(run, completion=terms)


def opened(run: Run, now: datetime) -> Run:
    """The run whose target has accepted the work (to be claimed over the row): its lease lasts
    until the next report is due, and no executor holds it. `waits` is the ordinal of its check.

    Its token grows: who takes over from a lapsed lease must not do so over this one. The row
    outlives the duplicates of its messages however late it ends.
    """
    assert run.completion is not None
    return replace(
        run,
        token=run.token + 1,
        lease_until=_lease_end(run.completion, now),
        updated_at=now,
        expires_at=run.expires_at + max(timedelta(), run.completion.until - now),
        waits=run.waits + 1,
        completion=replace(run.completion, is_open=True),
    )


def check_of(message: Message, run: Run) -> Message:
    """The message that comes for an open run at the end of its lease."""
    at = ceil_second(run.lease_until or run.updated_at)
    return replace(
        message,
        attempt=run.attempt,
        wait_until=at,
        waits=run.waits,
        slot_key="",
        missed=None,
        rate_slot=None,
        owner_slot=None,
        returns=0,
    )


def decide_open(seen: Run, message: Message, now: datetime) -> CheckLater | Lapse | Defer | Drop:
    """The decision about a message that meets an open run.

    Its current check alone is sent again, so that duplicates die out. One that is ahead of the row
    comes with a report, or a check, that is being written: it waits until that must be there. Those
    of other generations are of no use: the run goes on under its own.
    """
    if message.generation_id != seen.generation_id:
        return Drop("the run is open under another generation")
    if seen.lease_until is None or now >= seen.lease_until:
        return Lapse(seen)
    place, current = (message.attempt, message.waits), (seen.attempt, seen.waits)
    if place == current:
        again = replace(seen, token=seen.token + 1, updated_at=now, waits=seen.waits + 1)
        return CheckLater(again, seen)
    if place > current and now - message.starts_at < _REPORT_TAKES:
        reason = "a report about the open run may be under way"
        return Defer.twice_as_late(message.starts_at, now, reason, shortest=REPORT_DELAY)
    return Drop("another message comes for the open run")


def lapsed(over: Run, job: Job | None, now: datetime, fraction: float) -> Run:
    """The open run, about which nobody has reported for too long: its attempt has failed (to be
    claimed over the row)."""
    at = utc_text(over.lease_until or now)
    error = RunError(TIMEOUT_KIND, f"nobody had reported its end, or a heartbeat, by {at}")
    run = replace(over, token=over.token + 1)
    return running.failed(run, job, error, timed_out=True, now=now, fraction=fraction)


class Standing(Enum):
    """The standing of a token, by the run's row."""

    UNKNOWN = "unknown"
    CURRENT = "current"
    """Of the attempt that is under way."""
    ENDED = "ended"
    """Of the attempt that was the last, and has ended."""
    TAKEN_OVER = "taken over"
    """Of an attempt that others have followed."""


def standing_of(run: Run | None, token: str) -> Standing:
    """The standing of a token; it takes as long for a right one as for a wrong one."""
    token_hash = hash_of(token)
    current = "" if run is None or run.completion is None else run.completion.token_hash
    if hmac.compare_digest(current, token_hash):
        is_under_way = run is not None and run.status is RunStatus.RUNNING
        return Standing.CURRENT if is_under_way else Standing.ENDED
    before = () if run is None else run.attempts
    # Of all, not up to the first.
    known = [hmac.compare_digest(each.token_hash, token_hash) for each in before]
    return Standing.TAKEN_OVER if any(known) else Standing.UNKNOWN


def result_text(result: str) -> str | None:
    """A reported result, JSON text, as text: a string without its quotes; None for null."""
    value = json.loads(result)
    return None if value is None else value if isinstance(value, str) else result


def completed(seen: Run, now: datetime) -> Run:
    """The run with its result, reported complete (to be claimed over the row)."""
    return running.succeeded(replace(seen, token=seen.token + 1), seen.result, now)


def failed(seen: Run, job: Job, error: RunError, now: datetime, fraction: float) -> Run:
    """The run, reported failed (to be claimed over the row): retried as any failed attempt."""
    run = replace(seen, token=seen.token + 1)
    is_final = error.permanent
    return running.failed(run, job, error, False, now, fraction, is_final=is_final)


_REPORTED = frozenset({RunStatus.SUCCEEDED, RunStatus.RETRYING, RunStatus.DEAD})


def has_ended_so(run: Run, result: str | None, error: RunError | None) -> bool:
    """True if the attempt has ended as a report says (`error` None: complete, with `result`), so
    that this is the report's repetition."""
    if error is None:
        kept = None if result is None else one_line(result)
        return run.status is RunStatus.SUCCEEDED and run.result == kept
    return run.status in (RunStatus.RETRYING, RunStatus.DEAD) and run.error == error


def has_failed_so(run: Run, token: str, error: RunError | None) -> bool:
    """True if a report with this token has ended an attempt before the last one so."""
    token_hash = hash_of(token)
    return any(each.token_hash == token_hash and each.error == error for each in run.attempts)


def heartbeat(seen: Run, now: datetime) -> Run | None:
    """The run with a longer lease (if it is open, to be claimed over the row); None if its time is
    over."""
    terms = seen.completion
    if terms is None or now >= terms.until:
        return None
    lease_until = _lease_end(terms, now)
    if terms.is_open:
        lease_until = max(lease_until, seen.lease_until or now)
    return replace(seen, token=seen.token + 1, updated_at=now, lease_until=lease_until)


def report_message(run: Run, job: Job, now: datetime) -> Message:
    """The message that comes after a report about the run `run`, as it was before: who handles it
    does what follows from the end of the attempt."""
    return Message(
        key=run.key,
        generation_id=run.generation_id,
        segment=job.segment,
        lane=job.lane,
        due_at=run.effective_at or run.key.fire_at,
        attempt=run.attempt,
        after_finish=run.key.is_occurrence and isinstance(job.schedule, Delay),
        wait_until=now + REPORT_DELAY,
        waits=run.waits + 1,
    )


def is_of_a_report(message: Message, run: Run) -> bool:
    """True if a message that meets the ended attempt `run` came with the report that ended it."""
    is_ahead = message.attempt == run.attempt and message.waits > run.waits
    return run.completion is not None and run.status in _REPORTED and is_ahead


def _lease_end(terms: Completion, now: datetime) -> datetime:
    return min(now + timedelta(seconds=terms.heartbeat_seconds), terms.until)
