"""The canary: a job of the deployment's own, in time only while the whole path works."""

from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.job import Generation, Job, JobState, fires_differently, segment_of
from carillon.domain.policies import CatchUp
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import SYSTEM_PREFIX
from carillon.domain.targets import TaskTarget
from carillon.schedules import parse_schedule

CANARY_OWNER = f"{SYSTEM_PREFIX}carillon"
CANARY_JOB_ID = job_id_of(CANARY_OWNER, "canary")
CANARY_TASK = "carillon.canary"
CANARY_INTERVAL = timedelta(minutes=5)
CANARY_EXPECT_WITHIN = timedelta(minutes=2)
"""Later than this it is missed, and is not run: a late canary is as silent as none."""


def is_canary(owner: str, job_id: str) -> bool:
    return (owner, job_id) == (CANARY_OWNER, CANARY_JOB_ID)


def canary_to_index(
    stored: Job | None, segments: int, generation_id: str, now: datetime
) -> Job | None:
    """The canary under a new generation, where none is stored, or one of another release, or one
    that is not active; else None. `generation_id` must be greater than that of the one stored."""
    wanted = _canary(segments, generation_id, now)
    if stored is None:
        return wanted
    active = stored.state is JobState.ACTIVE
    if (
        active
        and stored.spec.target == wanted.spec.target
        and not fires_differently(stored, wanted)
    ):
        return None
    return replace(stored.replaced_by(wanted), created_at=stored.created_at)


def _canary(segments: int, generation_id: str, now: datetime) -> Job:
    schedule = parse_schedule(f"every {int(CANARY_INTERVAL.total_seconds())}s")
    within_seconds = int(CANARY_EXPECT_WITHIN.total_seconds())
    spec = JobSpec(
        name="canary",
        schedule=schedule.text,
        target=TaskTarget(name=CANARY_TASK),
        # Under `latest` one that comes late would give way to the next, which is in time.
        catch_up=CatchUp.SKIP,
    ).model_copy(update={"grace": within_seconds, "expect_within": within_seconds})
    return Job(
        owner=CANARY_OWNER,
        job_id=CANARY_JOB_ID,
        spec=spec,
        schedule=schedule,
        segment=segment_of(CANARY_JOB_ID, segments),
        generation=Generation(generation_id, now.replace(microsecond=0)),
        created_at=now,
        updated_at=now,
    )
