"""Races of jobs that move to another segment while they fire."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from carillon.domain.job import Job, segment_of
from carillon.domain.run import RunStatus
from carillon.errors import StoreUnavailableError
from carillon.reindexing.spreading import Spread
from carillon.stores.ports import JobStore, Page
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
    one_shot,
    race,
    request,
    run_id,
    tick,
)
from tests.simulation.races.replay import World

SEGMENTS = next(number for number in range(2, 10) if segment_of(JOB_ID, number))
"""As few as move the job out of the first segment."""
TARGET = segment_of(JOB_ID, SEGMENTS)
_RAISED = replace(OPTIONS, segments=SEGMENTS)


class _OneJob:
    """The store of jobs, whose only one is read in the place of a scan."""

    def __init__(self, jobs: JobStore) -> None:
        self._jobs = jobs

    def __getattr__(self, method: str) -> Any:
        return getattr(self._jobs, method)

    def scan(self, limit: int, cursor: str | None) -> Page[Job]:
        job = self._jobs.get(OWNER, JOB_ID)
        return Page(() if job is None else (job,))


def _spread(world: World) -> None:
    """All jobs, as the operator's command does it."""
    ports, deployment = world.deployment.stores.ports, world.deployment
    ports = replace(ports, jobs=cast(JobStore, _OneJob(ports.jobs)))
    longest = deployment.options.longest_delay_seconds
    work = Spread(ports, deployment.clock, deployment.entropy, longest, SEGMENTS)
    work.run()
    if work.done.left:
        raise StoreUnavailableError(work.done.left[0])


SPREAD = Actor("spread", _spread, tells=True)


def _moving(made: Request, *actors: Actor) -> Setting:
    """12:05 is not announced yet in the segment that the job has; the other one is new."""
    contents = lived(at(4, 50), {at(0, 10): made}, ticks_down=at(3), options=OPTIONS)
    actors = (SPREAD, *actors)
    return race(at(4, 55), contents, actors, options=_RAISED, passing_seconds=[10])


def spread_dispatch() -> Setting:
    """A tick comes to the minute in the segment that the job is leaving."""
    return _moving(create(**cron("5,6")), tick("tick"), executor())


def spread_arrival() -> Setting:
    """A tick comes to the minute in the segment that the job is moved to."""
    return _moving(create(**cron("5,6")), tick("tick", TARGET))


def spread_one_shot() -> Setting:
    """Its only entry stands in a dated slot that the tick may just have passed."""
    return _moving(create(**one_shot(5)), tick("tick", TARGET), executor())


def spread_pause() -> Setting:
    """The owner pauses the job, whose 12:04 is in the queue."""
    contents = lived(at(4), {at(0, 10): create(**cron("4,5,6"))}, executors_down=at(1))
    pause = request("pause", lambda api: api.jobs.pause(OWNER, JOB_ID))
    actors = [SPREAD, pause, executor("executor", run_id(4))]
    return race(at(4, 1), contents, actors, options=_RAISED, forbidding=frozenset({"pause"}))


def moved_well(ending: Ending) -> Iterator[str]:
    """Who is told that all jobs are moved finds them there."""
    (job,) = (row for row in ending.contents["jobs"] if row.job_id == JOB_ID)
    is_over = job.schedule.next(at(5, 5)) is None
    if "spread" in ending.told and job.segment != TARGET and not is_over:
        yield f"the job is in segment {job.segment}"


RESTING = frozenset({RunStatus.SUCCEEDED, RunStatus.SKIPPED})
SPREADS = (
    *(
        Race(name, setting, planted, check=moved_well, losses=0)
        for name, setting, planted in (
            ("spread against dispatch", spread_dispatch, "removed_early"),
            ("spread against arrival", spread_arrival, "horizon_first"),
            ("spread of a one-shot", spread_one_shot, "horizon_first"),
        )
    ),
    Race(
        "spread against pause",
        spread_pause,
        "row_before_claim",
        allowed=RESTING,
        check=moved_well,
        losses=0,
    ),
)
