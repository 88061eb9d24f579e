"""Races of pauses that end by themselves."""

from collections.abc import Iterator
from datetime import datetime

from carillon.domain.decisions import SkipReason
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OWNER,
    Race,
    Request,
    at,
    create,
    cron,
    executor,
    lived,
    race,
    request,
    tick,
)

_LATER = at(9, 30)


def _pause(until: datetime) -> Request:
    return lambda api: api.jobs.pause(OWNER, JOB_ID, until=until)


def _resumed_at(end: datetime) -> str:
    return f"{JOB_ID}_{end:%Y%m%dT%H%M%SZ}_resume"


def resumption_dispatch() -> Setting:
    """The pause ends while the tick comes to the minute after."""
    end = at(4, 55)
    requests = {at(0, 10): create(**cron("5,6")), at(2, 10): _pause(end)}
    actors = [executor("resumes", _resumed_at(end)), tick(), executor("executor", JOB_ID)]
    return race(end, lived(at(4, 50), requests, ticks_down=at(4)), actors, passing_seconds=[10])


def resumption_pause() -> Setting:
    """The owner pauses the job again in the second in which it is resumed, and its message comes
    twice: what is due before the owner's pause runs, and that pause lasts."""
    end = at(4, 55)
    requests = {at(0, 10): create(**cron("5,6")), at(2, 10): _pause(end)}
    contents = lived(at(4, 50), requests)
    resumptions = [kept for kept in contents["queue"] if '"resume"' in kept.body]
    actors = [
        request("pause", _pause(_LATER)),
        executor("resumes", _resumed_at(end)),
        executor("resumes again", _resumed_at(end)),
    ]
    return race(end, contents | {"queue": (*contents["queue"], *resumptions)}, actors)


def paused_on(ending: Ending) -> Iterator[str]:
    """After an acknowledged pause the job rests until its end, and no longer."""
    if "pause" not in ending.told:
        return
    (job,) = (row for row in ending.contents["jobs"] if row.job_id == JOB_ID)
    if job.state is not JobState.ACTIVE or job.generation.from_at < _LATER.replace(second=29):
        yield f"the job is {job.state.value} from {job.generation.from_at:%H:%M:%S} on"
    for run in ending.contents["runs"]:
        if run.status is RunStatus.SKIPPED and run.reason != SkipReason.PAUSED:
            yield f"an occurrence was skipped: {run.reason}"


RESTING = frozenset({RunStatus.SUCCEEDED, RunStatus.SKIPPED})
PAUSES = (
    Race(
        "end of a pause against dispatch",
        resumption_dispatch,
        "horizon_first",
        losses=0,
    ),
    Race(
        "end of a pause against another pause",
        resumption_pause,
        "any_pause",
        allowed=RESTING,
        check=paused_on,
        minutes=8,
        losses=0,
    ),
)
