"""Jobs that run after another one: each end that counts is followed once, and no other."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from carillon.audit.evidence import JobVersion, Violation
from carillon.domain.job import Job
from carillon.domain.run import DeadReason, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from tests.simulation.judging.evidence import CLAIMS, RunWrite
from tests.simulation.judging.known import Known

_ENDS = {
    "succeeded": {RunStatus.SUCCEEDED},
    "failed": {RunStatus.DEAD, RunStatus.TIMED_OUT},
    "finished": {RunStatus.SUCCEEDED, RunStatus.DEAD, RunStatus.TIMED_OUT},
}
_KINDS = (RunKind.SCHEDULED, RunKind.MANUAL, RunKind.BACKFILL)
_REPORTED = timedelta(seconds=10)
_ASKED_FOR_AT_ONCE = timedelta(seconds=90)
"""What ended so long before its job was there may have met the link; clocks differ, too."""


def followed(known: Known) -> Iterator[Violation]:
    """Runs that follow none that they may, and ends that nothing follows."""
    if not known.evidence.is_complete:
        return
    for key, writes in known.writes.items():
        if key.kind is RunKind.AFTER and not key.redrive and _has_lasted(known, writes[-1]):
            fault = _unfounded(known, key)
            if fault:
                yield Violation("after", key.job_id, f"{key.run_id}: {fault}", key.fire_at)
    followers = [
        job_id
        for job_id, versions in known.evidence.versions.items()
        if any(version.job.spec.after for version in versions)
    ]
    for key in known.writes if followers else ():
        end = _end_of(known, key)
        if end is not None and key.kind in _KINDS:
            for job_id in followers:
                yield from _unfollowed(known, key, end, job_id)


def wrong_skip(known: Known, row: Run, job: Job) -> str | None:
    """What is wrong with a skip of a run that follows another, for `changed` and `misfire`; None
    if its reason was so."""
    if row.reason == "changed":
        return "the run that it follows is there"
    return None if _is_late(known, row.key, job) else "the run that it follows had ended in time"


def _has_lasted(known: Known, write: RunWrite) -> bool:
    """True if the row is there, and not only by the claim of a process that was stopped, or that a
    request cancelled while it looked: a link may be ahead of a change that was not committed."""
    row = write.after
    if row is None or row.status is RunStatus.RUNNING:
        return False
    return row.status is not RunStatus.CANCELLED or row.key.run_id in known.deliveries


def _unfounded(known: Known, key: RunKey) -> str | None:
    before = key.predecessor
    end = _end_of(known, before)
    if end is None or end.after is None or before.kind not in _KINDS:
        return f"it follows {before.run_id}, which starts none"
    status = end.after.status
    wanting = [
        version
        for version in known.evidence.versions.get(key.job_id, ())
        if _wants(version, before.job_id, status)
    ]
    if not wanting:
        return f"its job never ran after one that {status.value}"
    links = [v.at for v in known.evidence.versions[key.job_id] if _follows(v, before.job_id)]
    # A repeated follow-up may meet the link of a setting that was changed since, for other ends.
    if end.at < min(links) - _ASKED_FOR_AT_ONCE and not _had_link(known, before, end.at, key):
        return f"{before.run_id} had ended at {end.at}, before its job ran after that"
    return None


def _had_link(known: Known, before: RunKey, at: datetime, key: RunKey) -> bool:
    """True if a link stood already as the predecessor ended: a creation or change had put it, and
    died before its commit."""
    version = known.version_at(before.job_id, at)
    links = () if version is None else version.job.successors
    return any(link.job_id == key.job_id for link in links)


def _unfollowed(known: Known, key: RunKey, end: RunWrite, job_id: str) -> Iterator[Violation]:
    """Where the job wanted to follow from before the last attempt was claimed until the end."""
    assert end.after is not None
    # What follows a report is done by a message that comes later.
    margin = timedelta() if end.after.completion is None else _REPORTED
    if end.at + margin > known.evidence.until:
        return
    begun_at = _begun_at(known, key, end)
    version = known.version_at(job_id, begun_at)
    later = [each for each in known.evidence.versions[job_id] if each.at > begun_at]
    if version is None or version.at >= begun_at or version.job.owner != key.owner:
        return
    status = end.after.status
    if not all(_wants(each, key.job_id, status) for each in (version, *later)):
        return
    writes = known.writes.get(key.successor(job_id), ())
    row = writes[-1].after if writes else None
    if row is None:
        text = f"{key.run_id} has {status.value} at {end.at}, and nothing of {job_id} follows it"
        yield Violation("I1", job_id, text, key.fire_at)
        return
    is_late = all(_is_late(known, row.key, each.job) for each in (version, *later))
    may_be = (RunStatus.SKIPPED, RunStatus.RUNNING, RunStatus.CANCELLED)
    if is_late and row.status not in may_be:
        text = f"{row.key.run_id} is {row.status.value}, though its predecessor had ended too late"
        yield Violation("after", job_id, text, key.fire_at)


def _begun_at(known: Known, key: RunKey, end: RunWrite) -> datetime:
    """The claim under which the run has ended, before which nobody had read its job's row for that.
    In a chunk it is the chunk's, though a run that lasts puts a row later; and what ends an open
    run for its silence has read the row before it writes."""
    writes = (each for each in known.writes[key] if each is not end and each.at <= end.at)
    claim = max((each for each in writes if each.method in CLAIMS), key=lambda each: each.at)
    calls = known.deliveries.get(key.run_id, ())
    own = (each.chunk_claimed_at for each in calls if each.process == claim.process)
    return min([claim.at, *filter(None, own)])


def _wants(version: JobVersion, predecessor: str, status: RunStatus) -> bool:
    """True if the row says that its job is to run after such an end."""
    after = version.job.spec.after
    is_end = after is not None and status in _ENDS[after.when]
    return is_end and not version.job.is_tombstone and _follows(version, predecessor)


def _follows(version: JobVersion, predecessor: str) -> bool:
    after = version.job.spec.after
    return after is not None and job_id_of(version.job.owner, after.job) == predecessor


def _is_late(known: Known, key: RunKey, job: Job) -> bool:
    end = _end_of(known, key.predecessor)
    within = None if job.spec.after is None else job.spec.after.within
    if end is None or end.after is None or end.after.finished_at is None or within is None:
        return False
    due_at = end.after.effective_at or end.after.key.fire_at
    return end.after.finished_at - due_at > timedelta(seconds=within)


def _end_of(known: Known, key: RunKey) -> RunWrite | None:
    """The write that has ended a run by success or failure, for all that can be told of it."""
    for write in known.writes.get(key, ()):
        row = write.after
        if row is not None and row.status in _ENDS["finished"]:
            return None if row.reason == DeadReason.UNREADABLE else write
    return None
