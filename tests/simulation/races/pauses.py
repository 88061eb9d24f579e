"""Races of pauses that end by themselves."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from carillon.domain.decisions import SkipReason
from carillon.domain.job import JobState
from carillon.domain.run import RunStatus
from tests.simulation.races.ending import Ending
from tests.simulation.races.exploration import Actor, Setting
from tests.simulation.races.kit import (
    JOB_ID,
    OPTIONS,
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
    run_id,
    tick,
)
from tests.simulation.races.replay import World
from tests.simulation.worlds.runner import chunk_sizes

_LATER = at(9, 30)


def _pause(until: datetime) -> Request:
    return lambda api: api.jobs.pause(OWNER, JOB_ID, resume_at=until)


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


def _tick_in_chunks() -> Actor:
    """A tick that sends one job's occurrence in a chunk, too."""
    ordinary = tick()

    def act(world: World) -> None:
        with chunk_sizes(is_small=True):
            ordinary.act(world)

    return replace(ordinary, act=act)


def late_resumption() -> Setting:
    """The message that has ended a pause comes again an hour later, while a tick, which has
    announced 13:05 by now, or not yet, is about to send it in a chunk."""
    end = at(4, 55)
    plain = create(schedule={"cron": "5 13 * * *"}, overlap="allow", retry={"max_attempts": 3})
    requests = {at(0, 10): plain, at(2, 10): _pause(end)}
    resumptions = [kept for kept in lived(at(4, 50), requests)["queue"] if '"resume"' in kept.body]
    options = replace(OPTIONS, chunks=True)
    contents = lived(at(64, 50), requests, ticks_down=at(62), options=options)
    actors = [
        executor("resumes again", _resumed_at(end)),
        _tick_in_chunks(),
        executor("executor", run_id(65)),
        executor("executor of chunks", "0#"),
    ]
    return race(
        at(64, 55),
        contents | {"queue": (*contents["queue"], *resumptions)},
        actors,
        options=options,
        passing_seconds=[10],
    )


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
    Race(
        "end of a pause, again, against a chunk",
        late_resumption,
        "announced_at_once",
        minutes=12,
        losses=0,
    ),
)
