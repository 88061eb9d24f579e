"""Bugs planted into what serves slow jobs apart."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from carillon.domain.job import Job, Slow
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.executor.runs.admission import Admission
from carillon.executor.runs.slow_lane import SlowLane
from tests.simulation.mutants.kit import (
    LANES,
    Code,
    Mutant,
    Reshape,
    Swap,
    asked,
    both,
    given,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario


def _runs_where_it_is(original: Code) -> Code:
    """Admission._by_lane without the look at where the message came from."""

    def by_lane(self: Admission, run: Run, message: Message, job: Job) -> Any:
        return original(self, run, replace(message, lane=job.lane), job)

    return by_lane


def _marks_what_it_read_before_the_call(original: Code) -> Code:
    """SlowLane._move that puts the mark into the row as it was when the run began, whatever it has
    become."""

    def move(self: SlowLane, job: Job, slow: Slow | None, at: datetime) -> Slow | None:
        current = self._ports.jobs.get(job.owner, job.job_id)
        if current is not None and not current.is_tombstone:
            self._ports.jobs.replace(replace(job, slow=slow), current.revision)
        return slow

    return move


def _lasting(seconds: float) -> Reshape:
    """Every call takes up to so many seconds."""

    def reshape(scenario: Scenario) -> Scenario:
        jobs = tuple(replace(job, seconds=seconds) for job in scenario.jobs)
        return replace(scenario, jobs=jobs)

    return reshape


_SLOW = both(
    small(8),
    scheduled("every 20s", "every 30s", overlap="allow", timeout_seconds=15),
    asked("change", 8, *LANES),
    _lasting(14),
    given(ticks_down=(), executors_down=()),
)

SLOW_LANE = (
    Mutant(
        "runs_in_the_wrong_lane",
        ("lane",),
        "a message runs in the lane that it came by, wherever its job is served",
        (Swap(Admission, "_by_lane", _runs_where_it_is),),
        reshape=_SLOW,
    ),
    Mutant(
        "mark_over_a_change",
        ("change",),
        "the mark is put into the job's row as it was before the call, over what its owner changed",
        (Swap(SlowLane, "_move", _marks_what_it_read_before_the_call),),
        reshape=_SLOW,
    ),
)
