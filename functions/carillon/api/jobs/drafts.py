"""From the settings of a request to those of a job, checked, and what a change makes of one."""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.http.problems import InvalidFieldsError, PayloadTooLargeError, refuse_all
from carillon.api.jobs.request_models import JobPatch
from carillon.api.jobs.validation import (
    LIMITED,
    refuse_beyond_deployment,
    refuse_contradictions,
    refuse_settings_of_schedules,
)
from carillon.api.schedules.preview import (
    Scheduling,
    is_same,
    offset_seconds,
    refuse_finished,
    scheduling_of,
)
from carillon.domain.calendar import shifts
from carillon.domain.job import PAYLOAD_LIMIT_BYTES, Job, fraction_of
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.merge_patch import merged_document
from carillon.domain.spec.names import folded
from carillon.domain.spec.schedule_spec import SCHEDULE_FIELDS, canonical_members
from carillon.errors import InvalidFieldError
from carillon.schedules import NEVER, Schedule
from carillon.settings import Settings

SETTINGS_LIMIT_BYTES = 256 * 1024
"""Largest settings as compact JSON: DynamoDB takes rows of 400 KB, and those of a job grow by what
is noted of it."""
_RESCHEDULING = frozenset({*SCHEDULE_FIELDS, "max_runs", "after"})
"""A change of these is another schedule: `max_runs` is counted anew from then."""
EVERY_SETTING = frozenset(
    field.serialization_alias or name for name, field in JobSpec.model_fields.items()
)


@dataclass(frozen=True, slots=True)
class Draft:
    """The checked settings of a job in their canonical form, and what follows from them; each is
    named as in Job."""

    spec: JobSpec
    schedule: Schedule
    spread_seconds: int


def fingerprint_of(spec: JobSpec) -> str:
    """A digest of the settings, whatever their order; those that have their defaults are left out,
    so that a new setting changes no digest."""
    said = spec.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def created_draft(job_id: str, spec: JobSpec, settings: Settings, now: datetime) -> Draft:
    """The values of a new job; raises InvalidFieldError, InvalidFieldsError or
    PayloadTooLargeError."""
    refuse_settings_of_schedules(spec)
    scheduling = _new_scheduling(spec, now)
    shifted = shifts(spec.calendar)
    window = offset_seconds(spec.window, scheduling.schedule, fraction_of(job_id), shifted)
    return _draft(spec, scheduling, window, LIMITED, settings)


def patched_draft(job: Job, patch: JobPatch, settings: Settings, now: datetime) -> Draft:
    """The values of `job` after a patch; fields that are not named keep what they have.

    Raises what `changed_draft` raises.
    """
    changes = patch.model_dump(mode="json", exclude_unset=True, by_alias=True)
    try:
        spec = JobSpec.model_validate(merged_document(job.spec.document, changes))
    except ValidationError as error:
        raise InvalidFieldsError(field_errors(error.errors())) from error
    return changed_draft(job, spec, changes.keys(), settings, now)


def changed_draft(
    job: Job, spec: JobSpec, changes: Collection[str], settings: Settings, now: datetime
) -> Draft:
    """The values of `job` with the settings `spec`, of which those named in `changes` may differ.

    Raises InvalidFieldError, InvalidFieldsError or PayloadTooLargeError.
    """
    if folded(spec.name) != folded(job.spec.name):
        raise InvalidFieldError(
            "name", "is the job's address, of which the case may change: create another job"
        )
    refuse_settings_of_schedules(spec)
    scheduling = Scheduling(job.schedule, job.spec.end_at, job.spec.max_runs)
    window = (job.spec.window, job.spread_seconds)
    if not _RESCHEDULING.isdisjoint(changes) and not is_same(spec, job.spec):
        scheduling = _new_scheduling(spec, now)
    shifted = shifts(spec.calendar)
    is_same_room = scheduling.schedule == job.schedule and shifted == shifts(job.spec.calendar)
    if not is_same_room or "window" in changes:
        own = offset_seconds(spec.window, scheduling.schedule, fraction_of(job.job_id), shifted)
        # One that came from another owner has kept the place of the job that it was.
        window = window if is_same_room and own[0] == job.spec.window else own
    return _draft(spec, scheduling, window, changes, settings)


def refuse_payload(spec: JobSpec, schedule: Schedule) -> None:
    """Refuse what a run of these settings could not be called with; raises PayloadTooLargeError,
    InvalidFieldsError."""
    _refuse_large("payload", spec.payload, PAYLOAD_LIMIT_BYTES)
    refuse_contradictions(spec, schedule)


def _refuse_large(field: str, text: str, limit_bytes: int) -> None:
    """Raises PayloadTooLargeError."""
    size_bytes = len(text.encode())
    if size_bytes > limit_bytes:
        raise PayloadTooLargeError(field, size_bytes, limit_bytes)


def _draft(
    spec: JobSpec,
    scheduling: Scheduling,
    window: tuple[str | None, int],
    changed: Collection[str],
    settings: Settings,
) -> Draft:
    _refuse_large("payload", spec.payload, PAYLOAD_LIMIT_BYTES)
    _refuse_large("body", spec.text, SETTINGS_LIMIT_BYTES)
    refuse_all(
        lambda: refuse_contradictions(spec, scheduling.schedule),
        lambda: refuse_beyond_deployment(spec, changed, settings),
    )
    canonical = {
        **canonical_members(scheduling.schedule),
        "end_at": scheduling.end_at,
        "max_runs": scheduling.max_runs,
        "window": window[0],
        "timezone": spec.timezone if spec.after else scheduling.schedule.timezone,
    }
    return Draft(spec.model_copy(update=canonical), scheduling.schedule, window[1])


def _new_scheduling(spec: JobSpec, now: datetime) -> Scheduling:
    """Calendars do not apply: what is closed today may be open tomorrow."""
    if spec.after is not None:
        return Scheduling(NEVER, None, None)
    scheduling = scheduling_of(spec, now.replace(microsecond=0))
    refuse_finished(scheduling.schedule, scheduling.end_at, now)
    return scheduling
