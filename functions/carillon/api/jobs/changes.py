"""The jobs that requests make or change, decided before anything is written."""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from carillon.api.jobs.drafts import EVERY_SETTING, Draft, changed_draft, created_draft
from carillon.domain.changes.change import differences
from carillon.domain.job import Generation, Job, JobState, fires_differently, segment_of
from carillon.domain.policies import InitialState
from carillon.domain.quotas import Load
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import Author
from carillon.settings import Settings


class PutAction(StrEnum):
    """The effect of a PUT on a job."""

    CREATE = "create"
    CHANGE = "change"
    REVIVE = "revive"
    RENAME = "rename"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Put:
    """The job after a PUT, or as it would be, and the stored row that it replaces, if any."""

    job: Job
    before: Job | None
    renamed: "Put | None" = None
    """What is done first: the job that gets this name becomes a tombstone under its former one."""

    @property
    def action(self) -> PutAction:
        if self.renamed is not None:
            return PutAction.RENAME
        if self.before is None:
            return PutAction.CREATE
        if self.job == self.before:
            return PutAction.NONE
        return PutAction.REVIVE if self.before.is_tombstone else PutAction.CHANGE

    @property
    def load(self) -> Load:
        """The load that it adds to its owner's, or takes away. A renamed job is the one it was."""
        before = self.before if self.renamed is None else self.renamed.before
        return Load.of(self.job) - Load.of(before)

    @property
    def reindexes(self) -> bool:
        """True if the job's entries on the wheel are new ones; a paused job has none."""
        is_new = self.before is None or self.job.generation != self.before.generation
        return is_new and self.job.state is JobState.ACTIVE

    @property
    def fires_otherwise(self) -> bool:
        """True if the job is new, or fires otherwise than before: a paused one once it is
        resumed."""
        if self.before is None or self.before.is_tombstone:
            return self.action is not PutAction.NONE
        return fires_differently(self.before, self.job)


def new_job(
    owner: str,
    spec: JobSpec,
    generation: Generation,
    settings: Settings,
    now: datetime,
    author: Author,
) -> Job:
    """A job with these settings, in its initial state; raises what `created_draft` raises."""
    job_id = job_id_of(owner, spec.name)
    is_paused = spec.initial_state is InitialState.PAUSED
    return Job(
        owner=owner,
        job_id=job_id,
        segment=segment_of(job_id, settings.segments),
        generation=generation,
        created_at=now,
        updated_at=now,
        state=JobState.PAUSED if is_paused else JobState.ACTIVE,
        paused_at=now if is_paused else None,
        author=author,
        **_members(created_draft(job_id, spec, settings, now)),
    )


def renamed_job(
    old: Job, spec: JobSpec, generation: Generation, settings: Settings, now: datetime
) -> Job:
    """`old` under the name of `spec`, with its settings: a schedule that stays the same goes on,
    and so does the count of its `max_runs`. Raises what `changed_draft` raises."""
    job_id = job_id_of(old.owner, spec.name)
    named = old.spec.model_copy(update={"name": spec.name})
    former = replace(old, job_id=job_id, spec=named)
    # Another schedule counts from where the job begins, too, though that may be a while ago.
    draft = changed_draft(former, spec, EVERY_SETTING, settings, generation.from_at)
    is_paused = old.paused_at is not None
    return Job(
        owner=old.owner,
        job_id=job_id,
        segment=segment_of(job_id, settings.segments),
        generation=generation,
        created_at=old.created_at,
        updated_at=now,
        state=JobState.PAUSED if is_paused else JobState.ACTIVE,
        paused_at=generation.from_at if is_paused else None,
        resume_at=old.resume_at,
        note=old.note if is_paused else "",
        slow=old.slow,
        renamed_from=old.job_id,
        renamed_at=generation.from_at,
        **_members(draft),
    )


def job_with(job: Job, draft: Draft) -> Job:
    """The job with the settings of a draft; as it was where the two are spelt differently only."""
    changed = replace(job, **_members(draft))
    same = not any(differences(job.spec.document, changed.spec.document))
    return replace(changed, spec=job.spec) if same else changed


def _members(draft: Draft) -> dict[str, Any]:
    """The members of a job that a draft decides."""
    return {field.name: getattr(draft, field.name) for field in fields(draft)}
