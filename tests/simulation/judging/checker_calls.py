"""I2 and I3 by the calls of targets: no second success, never early, late only with a reason; and
what pauses, deletions and overlap policies promise about calls."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from carillon.audit.evidence import Violation
from carillon.audit.known import moves
from carillon.domain.decisions import LONGEST_BRIEF_WAIT
from carillon.domain.job import Job, JobState, Lane
from carillon.domain.policies import Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from tests.simulation.judging import checker_stops
from tests.simulation.judging.evidence import CLAIMS, Ack, Circumstances, Delivery, RunWrite
from tests.simulation.judging.known import Known

_I2 = "I2"
_I3 = "I3"
_CHANGED_LATELY = timedelta(hours=1)
_LONGEST_LOOK = timedelta(seconds=4)
_LAG = timedelta(seconds=1.5)
_CALLS_BEFORE_START = 10
"""From its message to its target a run makes at most so many calls, where nothing goes wrong."""
QUICK_SECONDS = 0.5
"""Where half a call may take longer than this, ticks do not keep up: that is no time in which
nothing is broken."""
_TICK_LEASE_SECONDS = 45
_TICK_SKEW_SECONDS = 90
_STORE_PAUSE_SECONDS = 300


def succeeded_twice(known: Known) -> Iterator[Violation]:
    """At most one success is recorded for a run, ever, and nobody is called after it.

    A process that was struck between its claim and its call may call late: it cannot know.
    """
    for key, writes in known.writes.items():
        found = [write for write in writes if _is_success(write)]
        for again in found[1:]:
            text = f"{key.run_id} succeeded at {found[0].at}, and at {again.at} by {again.process}"
            yield Violation(_I2, key.job_id, text, key.fire_at)
        if not found:
            continue
        for delivery in known.deliveries.get(key.run_id, ()):
            if delivery.begun_at > found[0].at and delivery.is_untouched:
                text = (
                    f"{key.run_id} was called at {delivery.begun_at} by {delivery.process}, after"
                    f" its success at {found[0].at}"
                )
                yield Violation(_I2, key.job_id, text, key.fire_at)


def done_twice(known: Known) -> Iterator[Violation]:
    """No second call of a run after one that succeeded in a process which nothing struck, and no
    attempt is made twice, unless nobody could know of it any more (`_is_forgotten`).

    The second caller may call late if it was struck: stopped between its last look at the clock and
    its call for longer than its lease, it cannot know that others went on. Only the target can
    tell, by the run id (docs/reliability.md#not-promised).
    """
    for run_id, deliveries in known.deliveries.items():
        first_success: Delivery | None = None
        attempts: dict[int, Delivery] = {}
        for each in deliveries:
            if first_success is not None and each.is_untouched:
                text = (
                    f"{run_id} was called at {each.begun_at} by {each.process}, after its call at"
                    f" {first_success.begun_at} by {first_success.process} had succeeded"
                )
                yield _of_run(known, _I2, run_id, text)
            elif each.attempt in attempts and not _is_forgotten(
                known, run_id, attempts[each.attempt], each
            ):
                before = attempts[each.attempt]
                text = (
                    f"attempt {each.attempt} of {run_id} was made at {before.begun_at} by"
                    f" {before.process}, and at {each.begun_at} by {each.process}"
                )
                yield _of_run(known, _I2, run_id, text)
            attempts[each.attempt] = each
            if each.is_success and each.is_untouched:
                first_success = each


def _is_forgotten(known: Known, run_id: str, died: Delivery, each: Delivery) -> bool:
    """Whether the row of an attempt that died was removed before the next: the message that it was
    made for represented nothing any more, and no other generation's had claimed it yet."""
    key = known.run_ids.get(run_id)
    claimed_for: set[str] = set()
    for write in () if key is None else known.writes.get(key, ()):
        if write.after is not None:
            claimed_for.add(write.after.generation_id)
        elif died.begun_at < write.at < each.begun_at:
            return len(claimed_for) == 1
        else:
            claimed_for.clear()
    return False


def not_held(known: Known) -> Iterator[Violation]:
    """A target is called only under a claim that stands, unless its process was struck."""
    if not known.evidence.is_complete:
        return
    for run_id, deliveries in known.deliveries.items():
        key = known.run_ids.get(run_id)
        writes = () if key is None else known.writes.get(key, ())
        times = [write.at for write in writes]
        for each in deliveries:
            if not each.is_untouched:
                continue
            # Where calls take no time, claim, call and finish share an instant.
            number = bisect_right(times, each.begun_at)
            since = max(0, bisect_left(times, each.begun_at) - 1)
            if not any(_holds(write, each) for write in writes[since:number]):
                last = writes[number - 1] if number else None
                if last is not None and checker_stops.came_between(known, last, each):
                    continue
                row = None if last is None else last.after
                by = "nobody" if last is None else last.process
                status = "absent" if row is None else row.status.value
                text = (
                    f"{run_id} was called at {each.begun_at} by {each.process}, while its row was"
                    f" {status} by {by}"
                )
                yield _of_run(known, _I2, run_id, text)


def early(known: Known) -> Iterator[Violation]:
    """No call before the occurrence's effective time, nor before a retry's own time."""
    tolerance = timedelta(seconds=known.evidence.tolerance_seconds)
    for run_id, deliveries in known.deliveries.items():
        key = known.run_ids.get(run_id)
        if key is None:
            text = f"it was called at {deliveries[0].begun_at}, and no row ever told of it"
            yield Violation(_I3, deliveries[0].job_id, f"{run_id}: {text}")
            continue
        first_at = _due_at(known, key, known.by_run_id.get(run_id))
        retries = _retry_times(known.writes.get(key, ()))
        for each in deliveries:
            due_at = max(first_at, retries.get(each.attempt, first_at))
            if each.begun_at < due_at - tolerance:
                text = f"attempt {each.attempt} of {run_id}, due at {due_at}, began {each.begun_at}"
                yield Violation(_I3, key.job_id, text, key.fire_at)


def late(known: Known) -> Iterator[Violation]:
    """Where nothing struck, a run starts within 1.5 s; else within `recovery` of the last fault or
    the end of the last outage before its start.

    What strikes in another owner's targets, which hang or fail, is no reason. Not in lane slow. Of
    runs of occurrences that no policy may hold back, and no calendar moves to a day that may be
    over by then. One whose generation was committed after its time counts from there. What a
    catch-up sends waits for its place in the pace besides.
    """
    evidence = known.evidence
    terms = evidence.circumstances
    if not evidence.is_complete or terms.owner_starts_per_minute or terms.owner_concurrent_runs:
        return
    calls = timedelta(seconds=2 * _CALLS_BEFORE_START * terms.latency_seconds)
    bound = lag_of(terms) + timedelta(seconds=evidence.tolerance_seconds)
    for job_id, rows in known.rows.items():
        if may_wait(known, job_id):
            continue
        for row in rows:
            if not row.key.is_occurrence:
                continue
            deliveries = known.deliveries.get(row.key.run_id)
            if not deliveries or deliveries[0].job_lane is Lane.SLOW:
                continue
            started_at = deliveries[0].begun_at
            due_at = max(row.effective_at or row.key.fire_at, _committed_at(known, row))
            if started_at <= due_at + bound + _look_of(known, row):
                continue
            allowed = _recovered_by(known, row, started_at) + calls
            if started_at > allowed:
                text = (
                    f"{row.key.run_id}, due at {due_at}, was first called at {started_at}: what"
                    f" was broken before allows for {allowed:%Y-%m-%d %H:%M:%S.%f} at the latest"
                )
                yield Violation(_I3, job_id, text, row.key.fire_at)


def _look_of(known: Known, row: Run) -> timedelta:
    """The wait for a chunk that may have the run under the generation before, as long as others in
    it are called, at most; or for messages of other generations, each of which doubles it, up to
    LONGEST_BRIEF_WAIT."""
    times = known.times_in_others_hands(row)
    if times > 0:
        doubled = timedelta(seconds=2 ** min(times, 8))
        return max(_LONGEST_LOOK, min(doubled, times * LONGEST_BRIEF_WAIT))
    generations = known.generations.get(row.key.job_id, ())
    earliest = row.key.fire_at - _CHANGED_LATELY
    is_changed = any(earliest <= indexed.committed_at for indexed in generations[1:])
    return _LONGEST_LOOK if is_changed else timedelta()


def lag_of(terms: Circumstances) -> timedelta:
    """How late a run may start where nothing is broken; if calls take so long that ticks cannot
    keep up, that is broken."""
    calls = timedelta(seconds=2 * _CALLS_BEFORE_START * terms.latency_seconds)
    return calls + (_LAG if terms.latency_seconds <= QUICK_SECONDS else recovery(terms))


def recovery(terms: Circumstances) -> timedelta:
    """How long after the last fault everything due has started: the sum of what can follow from
    one fault, with a function timeout of T.

    6 T: the visibility timeout of a message whose executor died; T + 1: the lease that its run is
    under; T: behind others that come again, one by one; 300: a message whose store failed again
    and again waits; 45 + 90: the lease of a tick that died, by a clock that is off; 3 x 60: the
    next ticks, which take the minutes up and work them off. Besides what a message waited at most
    that came back from the dead-letter queue.
    """
    timeout_seconds = terms.function_timeout_seconds
    executor_seconds = 6 * timeout_seconds + timeout_seconds + 1 + timeout_seconds
    tick_seconds = _TICK_LEASE_SECONDS + _TICK_SKEW_SECONDS + 3 * 60
    waits_seconds = _STORE_PAUSE_SECONDS + terms.longest_return_seconds
    return timedelta(seconds=executor_seconds + waits_seconds + tick_seconds)


def _recovered_by(known: Known, row: Run, started_at: datetime) -> datetime:
    """By when a run must have started for what was broken before `started_at`."""
    evidence, terms = known.evidence, known.evidence.circumstances
    faults = known.faults_of(row.key.owner)
    number = bisect_right(faults, started_at)
    last = faults[number - 1] if number else row.key.fire_at
    for begin, end in evidence.outages:
        if begin <= started_at:
            last = max(last, min(end, started_at))
    allowed = last + recovery(terms) if number or last > row.key.fire_at else last
    if any(gap.from_at <= started_at for gap in evidence.gaps):
        # Each message of a catch-up takes a place, noise too: that of generations that never were
        # committed has no row. Twice: those of sends that failed in part are not seen.
        share = max(1, terms.catch_up_per_minute // terms.segments)
        allowed += timedelta(minutes=2 * sum(evidence.caught_up.values()) / share)
    return allowed


def disobeyed(known: Known) -> Iterator[Violation]:
    """No run starts whose read of the job follows an acknowledged pause or deletion, nor one that
    was claimed after it: the read follows the claim.

    A pause holds until the next resume that was committed, for runs of the schedule, their retries
    and backfills; a deletion for all, until the job is revived.
    """
    for ack in known.evidence.acks:
        rest = _rest(known, ack)
        if rest is None:
            continue
        begin, end = rest
        for run_id, deliveries in known.deliveries.items():
            key = known.run_ids.get(run_id)
            if key is None or key.job_id != ack.job_id:
                continue
            if ack.what == "pause" and not _stops_at_pause(key):
                continue
            for each in deliveries:
                claimed_at = _claimed_at(known, key, each)
                if end is not None and each.job_read_at is not None and each.job_read_at >= end:
                    continue  # by then it was resumed, or revived
                for what, at in (("read", each.job_read_at), ("claimed", claimed_at)):
                    if at is not None and begin < at and (end is None or at < end):
                        text = (
                            f"{run_id} was called at {each.begun_at} by {each.process}, which had"
                            f" {what} at {at}: the {ack.what} was acknowledged at {begin}"
                        )
                        yield Violation(ack.what, ack.job_id, text, key.fire_at)
                        break


def overlapping(known: Known) -> Iterator[Violation]:
    """Under overlap skip or queue_one no run starts while another that has started has not ended,
    its retries included.

    Lenient: jobs that allowed it at any time; callbacks, which tell of the past; and processes that
    were struck, since others may have gone on while they stood.
    """
    for job_id, versions in known.evidence.versions.items():
        if any(version.job.spec.overlap is Overlap.ALLOW for version in versions):
            continue
        spans = known.unfinished.get(job_id, ())
        started = {span.key: known.deliveries.get(span.key.run_id, ()) for span in spans}
        for key, deliveries in started.items():
            for each in deliveries:
                if not each.is_untouched:
                    continue
                for span in spans:
                    others = started[span.key]
                    is_under_way = span.from_at < each.begun_at and (
                        span.until_at is None or each.begun_at < span.until_at
                    )
                    if span.key == key or not is_under_way or not others:
                        continue
                    if span.from_at <= others[0].begun_at < each.begun_at:
                        text = (
                            f"{key.run_id} began at {each.begun_at}: {span.key.run_id}, which had"
                            f" begun at {others[0].begun_at}, had not ended"
                            f" ({versions[-1].job.spec.overlap.value})"
                        )
                        yield Violation("overlap", job_id, text, key.fire_at)


def too_many_attempts(known: Known) -> Iterator[Violation]:
    """No call beyond the attempts that the job allowed when its row was read."""
    for run_id, deliveries in known.deliveries.items():
        for each in deliveries:
            job = known.job_at(each.job_id, each.job_revision)
            if job is not None and each.attempt > job.spec.retry.max_attempts:
                most = job.spec.retry.max_attempts
                text = f"attempt {each.attempt} of {run_id} was made; {most} may"
                yield _of_run(known, "attempts", run_id, text)


def _holds(write: RunWrite, delivery: Delivery) -> bool:
    row = write.after
    is_running = row is not None and row.status is RunStatus.RUNNING
    return is_running and write.process == delivery.process


def _is_success(write: RunWrite) -> bool:
    was = None if write.before is None else write.before.status
    is_one = write.after is not None and write.after.status is RunStatus.SUCCEEDED
    return is_one and was is not RunStatus.SUCCEEDED


def _of_run(known: Known, invariant: str, run_id: str, text: str) -> Violation:
    key = known.run_ids.get(run_id)
    if key is None:
        return Violation(invariant, known.deliveries[run_id][0].job_id, text)
    return Violation(invariant, key.job_id, text, key.fire_at)


def _due_at(known: Known, key: RunKey, row: Run | None) -> datetime:
    """The earliest instant that any row of the job has ever allowed for a first attempt."""
    due_at = key.fire_at
    if key.is_occurrence:
        versions = known.evidence.versions.get(key.job_id, ())
        due_at += timedelta(seconds=min((v.job.spread_seconds for v in versions), default=0))
    effective_at = None if row is None else row.effective_at
    return due_at if effective_at is None else max(due_at, effective_at)


def _retry_times(writes: Sequence[RunWrite]) -> dict[int, datetime]:
    """When each attempt that was put off may begin, by its number."""
    times: dict[int, datetime] = {}
    for write in writes:
        row = write.after
        if row is None or row.next_attempt_at is None or row.status is not RunStatus.RETRYING:
            continue
        times[row.attempt + 1] = row.next_attempt_at
    return times


def may_wait(known: Known, job_id: str) -> bool:
    """Whether any policy or calendar of the job, at any time, may put off the start of a run."""

    def waits(job: Job) -> bool:
        is_held = job.spec.overlap is not Overlap.ALLOW or bool(
            job.spec.concurrency or job.spec.rate
        )
        return is_held or moves(job)

    return any(waits(version.job) for version in known.evidence.versions.get(job_id, ()))


def _committed_at(known: Known, row: Run) -> datetime:
    """When the first generation that yields the run was committed; for others that of the job."""
    generations = known.generations.get(row.key.job_id, ())
    yielding = [
        indexed
        for indexed in generations
        if indexed.is_computable and indexed.covers(row.key.fire_at)
    ]
    found = yielding or generations[:1]
    return min((indexed.committed_at for indexed in found), default=row.key.fire_at)


def _rest(known: Known, ack: Ack) -> tuple[datetime, datetime | None] | None:
    """From when until when nothing may start by an acknowledgement; None where it had no effect any
    more when it came: others had resumed or revived the job."""
    if ack.what not in ("pause", "delete"):
        return None
    version = known.version_at(ack.job_id, ack.answered_at)
    if version is None:
        return None
    stopped = JobState.PAUSED if ack.what == "pause" else JobState.DELETED
    if version.job.state is not stopped:
        return None
    later = known.evidence.versions[ack.job_id]
    ended = (v.at for v in later if v.at > version.at and v.job.state is not stopped)
    return ack.answered_at, next(ended, None)


def _stops_at_pause(key: RunKey) -> bool:
    stopped = (RunKind.SCHEDULED, RunKind.BACKFILL, RunKind.AFTER)
    return key.redrive == 0 and key.kind in stopped


def _claimed_at(known: Known, key: RunKey, delivery: Delivery) -> datetime | None:
    """When the caller had last claimed the run, or its chunk: a call in that which lasts puts a row
    of its own."""
    claims = [
        write.at
        for write in known.writes.get(key, ())
        if write.method in CLAIMS
        and write.process == delivery.process
        and write.at <= delivery.begun_at
    ]
    return delivery.chunk_claimed_at or (claims[-1] if claims else None)
