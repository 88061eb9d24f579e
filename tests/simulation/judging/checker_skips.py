"""Skips: each has one of the reasons that the documentation names, and the reason was true."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from carillon.audit.evidence import Violation
from carillon.audit.known import Indexed, moves
from carillon.audit.outcomes import in_gap
from carillon.domain.admission.limits import KEPT
from carillon.domain.job import Job, JobState
from carillon.domain.policies import CatchUp, Overlap
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.schedules import Delay
from tests.simulation.judging.checker_after import wrong_skip
from tests.simulation.judging.evidence import RunWrite
from tests.simulation.judging.known import Known, had_passed

_OF_OCCURRENCES = frozenset({"catch_up", "calendar", "misfire", "spacing"})
"""Reasons that only an occurrence of the schedule can have."""
_OF_FIRST_ATTEMPTS = frozenset({"misfire", "spacing"})
"""The first two of these ask after the message, which a takeover does not change."""
_START_TO_COME = re.compile("it may start at ([^ ]+), too late")
"""What a rate has granted, which is used up to KEPT later."""
_LONGEST_STOP_SECONDS = 200


def untrue(known: Known) -> Iterator[Violation]:
    """Skips whose reason was not so, by the row of the job that the process had read
    (`job_revision`). Rows that cover a span: `passed_over`."""
    for key, writes in known.writes.items():
        for number, write in enumerate(writes):
            skip = write.after
            is_skip = skip is not None and skip.status is RunStatus.SKIPPED
            job = known.job_at(key.job_id, write.job_revision)
            if skip is None or not is_skip or job is None or key.kind is RunKind.MISSED:
                continue
            claimed_at = _claimed_at(writes[:number], write)
            wrong = _wrong(known, skip, write, job, claimed_at)
            if wrong:
                text = (
                    f"{key.run_id} was skipped as {skip.reason} by {write.process} at {write.at}:"
                    f" {wrong} (revision {job.revision}, {job.state.value})"
                )
                yield Violation("skip", key.job_id, text, key.fire_at)


def _wrong(known: Known, row: Run, write: RunWrite, job: Job, claimed_at: datetime) -> str | None:
    """What is wrong with a skip's reason; None if it was so."""
    key, reason = row.key, row.reason
    if key.kind is RunKind.AFTER and reason in ("changed", "misfire"):
        return wrong_skip(known, row, job)
    is_late = row.attempt > 1 and reason in _OF_FIRST_ATTEMPTS
    if reason in _OF_OCCURRENCES and (is_late or not key.is_occurrence):
        return f"a {key.kind.value} run at attempt {row.attempt}, redrive {key.redrive}"
    match reason:
        case "paused":
            return _not_paused(known, key, job)
        case "deleted":
            return None if job.state is JobState.DELETED else "the job was not deleted"
        case "changed":
            return _not_changed(known, key, job)
        case "catch_up":
            return _not_passed_over(known, row, job, write)
        case "calendar":
            return None if job.spec.calendar is not None else "the job follows no calendar"
        case "misfire":
            return _not_late(row, write, job)
        case "overlap":
            return _was_alone(known, key, job, claimed_at, write.at)
        case "spacing":
            return _was_spaced(known, row, job, write.at)
    return "no rule judges this reason"


def _not_paused(known: Known, key: RunKey, job: Job) -> str | None:
    """The job was paused when its row was read, or in the pause that its fire time lies in. Where
    occurrences move it is another instant that lies there: any pause will do."""
    if key.redrive or key.kind in (RunKind.MANUAL, RunKind.CALLBACK):
        return "somebody had asked for it, or it tells of the past"
    is_after = job.resume_at is not None and key.fire_at >= job.resume_at
    if is_after and key.kind is RunKind.SCHEDULED and not moves(job):
        return f"the job was to be resumed at {job.resume_at}"
    if job.paused_at is not None:
        return None
    generations = _generations_by(known, job)
    for one, other in pairwise(generations):
        was_paused = one.until_at is not None and one.until_at < other.from_at
        if was_paused and not one.is_computable:
            return None
        if one.until_at is not None and one.until_at < key.fire_at <= other.from_at:
            return None
    return "the job was not paused"


def _not_changed(known: Known, key: RunKey, job: Job) -> str | None:
    """Another generation had come by then, and has no such occurrence. Callbacks lose their
    target."""
    if key.kind is RunKind.CALLBACK:
        return None
    generations = _generations_by(known, job)
    if known.evidence.is_complete and len(generations) < 2:
        return "its generation was the first one"
    if generations and generations[-1].is_computable and generations[-1].covers(key.fire_at):
        return "it is an occurrence of the generation that the row named"
    return None


def _not_passed_over(known: Known, row: Run, job: Job, write: RunWrite) -> str | None:
    """An outage passed over it, under a policy that runs none of those; or it came late, and a
    later one that was due had been claimed by then."""
    key = row.key
    if job.spec.catch_up is CatchUp.LATEST and row.note is not None:
        return _not_superseded(known, row, job, write)
    covering = [
        f for f in _generations_by(known, job) if not f.is_computable or f.yields(key.fire_at)
    ]
    if not any(_skips(indexed.job) for indexed in covering):
        return "no generation of it skips what an outage passes over"
    gaps = known.gaps_of(job.job_id)
    has_passed = any(had_passed(indexed, key.fire_at) for indexed in covering)
    is_in_gap = has_passed or in_gap(gaps, row.effective_at or key.fire_at)
    if known.evidence.is_complete and not is_in_gap:
        segments = " or ".join(sorted({str(indexed.job.segment) for indexed in covering}))
        return f"it lay in no outage of segment {segments}"
    return None


def _not_superseded(known: Known, row: Run, job: Job, write: RunWrite) -> str | None:
    """Nobody had claimed or held it before; it was late; and the one that its note names was later,
    due, and claimed, unless it may go in a chunk."""
    key = row.key
    if isinstance(job.schedule, Delay) or not job.schedule.is_recurring:
        return f"no other can stand for one of {job.schedule.text!r}"
    held: list[Run] = []
    for each in known.writes.get(key, ()):
        if each is write:
            break
        # What made its row for nothing has removed it: it begins anew, perhaps at once.
        held = [] if each.after is None else [*held, each.after]
    if any(run.status is not RunStatus.RUNNING or run.attempt > 1 for run in held):
        return "it had begun, or a policy had held it back"
    due_at = row.effective_at or key.fire_at
    grace = timedelta(seconds=60 if job.spec.grace is None else job.spec.grace)
    if write.at - due_at <= grace:
        return f"it was {write.at - due_at} late, with {grace} of grace"
    named = (row.note or "").split(" ")[0]
    latest = known.run_ids.get(named)
    if latest is None and named.startswith(f"{key.job_id}_"):
        unknown = RunKey.from_run_id(key.owner, named)
        # One that may go in a chunk is not claimed, and another may stand for it, too.
        latest = unknown if job.is_chunked(unknown.fire_at + (due_at - key.fire_at)) else None
    if latest is None or not key.fire_at < latest.fire_at <= write.at - (due_at - key.fire_at):
        return f"{row.note!r} names no later occurrence that was due"
    if job.is_chunked(latest.fire_at + (due_at - key.fire_at)):
        return None  # it comes by itself, and has an outcome of its own
    if not any(each.at <= write.at for each in known.writes.get(latest, ())):
        return f"{latest.run_id} had not been claimed"
    return None


def _skips(job: Job) -> bool:
    """Under a calendar, closed days stand for themselves whatever the policy."""
    return job.spec.catch_up is CatchUp.SKIP or job.spec.calendar is not None


def _not_late(row: Run, write: RunWrite, job: Job) -> str | None:
    if job.spec.catch_up is not CatchUp.SKIP:
        return f"the job has catch-up {job.spec.catch_up.value}"
    granted = _START_TO_COME.match(row.note or "")
    starts_at = write.at if granted is None else datetime.fromisoformat(granted[1]) + KEPT
    late = starts_at - (row.effective_at or row.key.fire_at)
    seconds = 60 if job.spec.grace is None else job.spec.grace
    if late <= timedelta(seconds=seconds):
        return f"it was {late} late, with {seconds} s of grace"
    follows = job.schedule.is_recurring and not isinstance(job.schedule, Delay)
    return None if follows or job.spec.grace is not None else "no other follows it"


def _was_alone(
    known: Known, key: RunKey, job: Job, claimed_at: datetime, skipped_at: datetime
) -> str | None:
    """Another run of the job had not ended at some time between claim and skip. What somebody asked
    for waits instead."""
    if job.spec.overlap is Overlap.ALLOW:
        return "the job allows overlaps"
    if key.kind not in (RunKind.SCHEDULED, RunKind.AFTER) or key.redrive:
        return "somebody had asked for it"
    for span in known.unfinished.get(key.job_id, ()):
        if span.key != key and span.affects(claimed_at, skipped_at):
            return None
    return f"no other run was active or waiting between {claimed_at} and {skipped_at}"


def _was_spaced(known: Known, row: Run, job: Job, skipped_at: datetime) -> str | None:
    """Another occurrence had begun less than interval - tolerance before. Lenient by the time that
    a process may stand still between its look at the gate and its write."""
    if job.spec.tolerance is None or job.interval_seconds is None:
        return "the job has no tolerance, or no interval"
    spacing = timedelta(seconds=job.interval_seconds - job.spec.tolerance)
    since = skipped_at - spacing - timedelta(seconds=_LONGEST_STOP_SECONDS)
    for span in known.unfinished.get(row.key.job_id, ()):
        if span.key != row.key and span.affects(since, skipped_at):
            return None
    return f"no other run had begun since {since}"


def _generations_by(known: Known, job: Job) -> Sequence[Indexed]:
    """The generations that had been committed when the row had this revision."""
    generations = known.generations.get(job.job_id, ())
    if not known.evidence.is_complete:
        return generations
    return [indexed for indexed in generations if indexed.job.revision <= job.revision]


def _claimed_at(writes: Sequence[RunWrite], write: RunWrite) -> datetime:
    """When the process that skips had claimed the run."""
    for earlier in reversed(writes):
        if earlier.method == "claim" and earlier.process == write.process:
            return earlier.at
    return write.at
