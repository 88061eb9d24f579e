"""The changes that requests about runs are: by hand, to cancel, redrive or discard, or many at
once."""

from datetime import datetime

from carillon.domain.changes.change import Action, Change, Subject
from carillon.domain.job import Job
from carillon.domain.notifying.notification import notification_of
from carillon.domain.operation import Operation
from carillon.domain.run import RunKey, RunKind
from carillon.domain.spec.owners import Author

_OF_NOTIFICATIONS = (RunKind.NOTICE, RunKind.WINDOW)


def run_change(
    key: RunKey, job: Job | None, action: Action, author: Author, at: datetime, note: str = ""
) -> Change:
    """A request about one run of `job`, None for one that is gone, or of a notification."""
    subject, of, name, revision = Subject.JOB, key.job_id, "", 0
    if key.kind in _OF_NOTIFICATIONS:
        subject, of = Subject.NOTIFICATION, notification_of(key)
        name = of
    elif job is not None:
        name, revision = job.spec.name, job.revision
    ref = key.run_id
    return Change(key.owner, subject, of, name, action, revision, at, author, note=note, ref=ref)


def operation_change(
    operation: Operation, job: Job | None, action: Action, author: Author, at: datetime
) -> Change:
    """A request about many runs: of `job`, or else a subject of its own. So it is where the owner
    has no job of the id that it names: nobody else's job gets a history by it."""
    ref = operation.operation_id
    subject, of, name, revision = Subject.OPERATION, ref, operation.kind.value, 0
    if job is not None:
        subject, of, name, revision = Subject.JOB, job.job_id, job.spec.name, job.revision
    return Change(operation.owner, subject, of, name, action, revision, at, author, ref=ref)
