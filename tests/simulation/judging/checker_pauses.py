"""What is promised of a pause that is to end by itself."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import zip_longest

from carillon.audit.evidence import JobVersion, Violation
from carillon.domain.job import Job, JobState
from carillon.domain.spec.owners import SYSTEM
from carillon.schedules import Delay
from tests.simulation.judging.known import Known

_SOON = timedelta(minutes=1)
"""After the end of a pause the job is active again, where nothing strikes."""
_BEFORE = timedelta(minutes=3)
_SECOND = timedelta(seconds=1)
_FOR_EVER = datetime.max.replace(tzinfo=UTC)


def resumed(known: Known) -> Iterator[Violation]:
    """A job whose pause has an end is resumed then, not before it, and by nobody else's pause; it
    begins where the pause ended, whoever resumes it afterwards."""
    for job_id, versions in known.evidence.versions.items():
        for paused, following in zip_longest(versions, versions[1:]):
            resume_at = paused.job.resume_at
            if paused.job.state is not JobState.PAUSED or resume_at is None:
                continue
            for text in _wrong(known, paused, following, resume_at):
                yield Violation("paused", job_id, f"paused until {resume_at}: {text}", resume_at)


def _wrong(
    known: Known, paused: JobVersion, following: JobVersion | None, resume_at: datetime
) -> Iterator[str]:
    next_at = _FOR_EVER if following is None else following.at
    # A hand-over may commit a pause after its end.
    by_at = max(resume_at, paused.at) + _SOON
    is_calm = known.is_calm(resume_at - _BEFORE, by_at)
    is_due = by_at < min(next_at, known.evidence.until)
    if is_due and known.evidence.is_complete and (is_calm or following is None):
        yield "nothing resumed it"
    if following is None:
        return
    tolerance = _SECOND + timedelta(seconds=known.evidence.tolerance_seconds)
    job = following.job
    if job.author == SYSTEM and job.state is JobState.ACTIVE and next_at < resume_at - tolerance:
        yield f"it was resumed at {next_at}"
    if job.state is JobState.ACTIVE and next_at > resume_at + tolerance:
        begun = job.generation.from_at
        # Its owner may have resumed it before that, in a request that stood still until after it.
        is_by_owner = job.author != SYSTEM and begun < resume_at
        if not is_by_owner and begun != max(
            _beginning(paused.job, resume_at), paused.job.generation.from_at
        ):
            yield f"it begins after {begun}"
    # A pause that was asked for before may be slow to be committed.
    is_over = job.updated_at > resume_at + tolerance
    if job.state is JobState.PAUSED and is_over and job.resume_at != resume_at:
        yield f"it was paused on at {next_at}, until {job.resume_at}"


def _beginning(job: Job, resume_at: datetime) -> datetime:
    return resume_at if isinstance(job.schedule, Delay) else resume_at - _SECOND
