"""The change between two rows of a job."""

from datetime import UTC
from typing import Any

from carillon.domain.changes.change import Action, Change, Subject, changed_members
from carillon.domain.changes.handing_over import former_owner
from carillon.domain.job import Job, JobState
from carillon.domain.spec.owners import SYSTEM

_TIMED = "its pause was to end then"
_BY_STATE = {
    JobState.DELETED: Action.DELETE,
    JobState.COMPLETED: Action.COMPLETE,
    JobState.RENAMED: Action.RENAME,
}


def job_change(before: Job | None, after: Job) -> Change:
    """The change that made `after` of `before`, the row that it replaces, if there is one.

    It follows from the two rows alone: who writes the same row again writes the same change.
    """
    action = _action(before, after)
    is_new = before is None or (before.is_tombstone and not after.is_tombstone)
    hides = is_new or after.is_tombstone  # a whole job is no difference
    changed = () if before is None or hides else changed_members(_shown(before), _shown(after))
    return Change(
        owner=after.owner,
        subject=Subject.JOB,
        key=after.job_id,
        name=after.spec.name,
        action=action,
        revision=after.revision,
        at=after.updated_at,
        author=SYSTEM if action is Action.MOVE else after.author,
        changed=changed,
        note=_note(before, after, action),
        source=after.managed_by,
    )


def _action(before: Job | None, after: Job) -> Action:
    if after.state is JobState.RENAMED and after.handed_to is not None:
        return Action.HAND_OVER
    if after.state in _BY_STATE:
        return _BY_STATE[after.state]
    if before is None or before.is_tombstone:
        if former_owner(after) or _is_taken_back(before, after):
            return Action.HAND_OVER
        return Action.RENAME if after.renamed_from else Action.CREATE
    if before.segment != after.segment and before.spec == after.spec:
        return Action.MOVE
    if _declared(before) != _declared(after):
        return Action.CHANGE
    if after.state is JobState.PAUSED:
        return Action.PAUSE
    return Action.RESUME if before.state is JobState.PAUSED else Action.CHANGE


def _declared(job: Job) -> tuple[object, ...]:
    """Its settings, and who applies which of them."""
    return job.spec, job.managed_by, job.applied


def _is_taken_back(before: Job | None, after: Job) -> bool:
    """True if a job that was to be handed over stays after all."""
    if before is None or before.handed_to is None:
        return False
    # A job that comes back from the other owner was made then, too, but has a new mark.
    return (after.created_at, after.handed_from) == (before.created_at, before.handed_from)


def _note(before: Job | None, after: Job, action: Action) -> str:
    if action is Action.HAND_OVER:
        return _note_of_hand_over(before, after)
    if action is Action.RENAME:
        other = after.renamed_to or after.renamed_from
        return f"{'to' if after.renamed_to else 'from'} job {other}"
    if action is Action.PAUSE:
        return after.note
    is_timed = before is not None and before.resume_at is not None and after.author == SYSTEM
    return _TIMED if action is Action.RESUME and is_timed else ""


def _note_of_hand_over(before: Job | None, after: Job) -> str:
    if after.handed_to is not None:
        return f"to {after.handed_to.owner}, as job {after.renamed_to}"
    if _is_taken_back(before, after):
        return "it stays: the other owner cannot take it any more"
    return f"from {former_owner(after)}, where it was {after.renamed_from}"


def _shown(job: Job) -> dict[str, Any]:
    """The members of a job that a change may tell of: its settings, and its owner's doings."""
    resume_at = job.resume_at and f"{job.resume_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {
        **job.spec.document,
        "state": job.state.value,
        "resume_at": resume_at,
        "managed_by": job.managed_by or None,
        "segment": job.segment,
    }
