"""Jobs of tests, whose settings and row are said together, as keywords."""

from dataclasses import replace
from typing import Any

from carillon.domain.job import Job
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.schedule_spec import canonical_members
from carillon.domain.targets import TaskTarget
from carillon.schedules import Schedule, parse_schedule

_PLAIN = JobSpec(name="name", schedule="every 1d", target=TaskTarget(name="echo"))


def make_job(schedule: Schedule | str, **members: Any) -> Job:
    """A job with these settings and members of its row; the settings are not checked."""
    parsed = parse_schedule(schedule) if isinstance(schedule, str) else schedule
    settings, row = _divided(members)
    spec = _PLAIN.model_copy(update={**canonical_members(parsed), **settings})
    return Job(spec=spec, schedule=parsed, **row)


def job_with(job: Job, **changes: Any) -> Job:
    """The job with other settings, or other members of its row."""
    settings, row = _divided(changes)
    if "schedule" in settings:
        row["schedule"] = settings.pop("schedule")
        settings |= canonical_members(row["schedule"])
    return replace(job, spec=job.spec.model_copy(update=settings), **row)


def _divided(members: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    settings = {name: value for name, value in members.items() if name in JobSpec.model_fields}
    return settings, {name: value for name, value in members.items() if name not in settings}
