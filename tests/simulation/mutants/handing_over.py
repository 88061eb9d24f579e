"""Bugs planted into the handing over of jobs to other owners."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import carillon.executor.operations.hand_over as handing_over
from carillon.domain.job import Job
from carillon.domain.operation import Operation, Progress
from carillon.domain.run import RunKey
from carillon.executor.operations.hand_over import HandingOver
from carillon.executor.ports import ExecutorPorts
from carillon.simulation.faults import Draws
from tests.simulation.mutants.kit import (
    MINUTE_US,
    Code,
    Mutant,
    Swap,
    both,
    faulty,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import OWNERS
from tests.simulation.worlds.scenario_requests import hand_over


def _then_handed_over(scenario: Scenario) -> Scenario:
    """Each job goes to another owner once, as it is, in the last half of the minutes of chaos."""
    half_us = scenario.minutes * MINUTE_US // 2
    made = []
    for job in scenario.jobs:
        draws = Draws(scenario.seed, f"hand over {job.name}")
        to = draws.choice([owner for owner in OWNERS if owner != job.owner])
        at_us = half_us + draws.below(half_us)
        made.append(hand_over(f"hand over {job.name}", job, job.owner, to, at_us, is_one=True))
    return replace(scenario, requests=(*scenario.requests, *made))


_HANDED_OVER = both(
    small(8), _then_handed_over, scheduled("every 10s", "every 20s", catch_up="all")
)


def _from_now_on(original: Code) -> Code:
    def begun(
        tombstone: Job, operation: Operation, new_id: str, now: datetime, taken: Job | None
    ) -> Job | None:
        job: Job | None = original(tombstone, operation, new_id, now, taken)
        if job is None:
            return None
        later = replace(job.generation, from_at=now.replace(microsecond=0))
        return replace(job, generation=later)

    return begun


def _on_and_on(original: Code) -> Code:
    """The former owner's job keeps its occurrences."""

    def ended(job: Job, *rest: Any) -> Job:
        tombstone: Job = original(job, *rest)
        kept = replace(tombstone, state=job.state, expires_at=None)
        return replace(kept, previous=job.previous, earlier=job.earlier)

    return ended


def _by_the_new_row(original: Code) -> Code:
    """A run that is left goes by the job as it is now."""

    def job_of_run(self: ExecutorPorts, key: RunKey) -> Job | None:
        job: Job | None = original(self, key)
        if job is None or job.handed_to is None:
            return job
        return self.jobs.get(job.handed_to.owner, job.renamed_to) or job

    return job_of_run


def _at_once(original: Code) -> Code:
    """What is chosen is moved in the same step: no row says what has begun."""

    def step(self: HandingOver, operation: Operation, work_until: datetime) -> Progress:
        progress: Progress = original(self, operation, work_until)
        if operation.in_hand or not progress.in_hand:
            return progress
        chosen = replace(operation, cursor=progress.cursor, in_hand=progress.in_hand)
        moved: Progress = original(self, chosen, work_until)
        return moved

    return step


HANDING_OVER = (
    Mutant(
        "handed_over_from_now_on",
        ("handed over", "renamed"),
        "a job that is handed over begins when its new row is made, not where it has ended",
        (Swap(handing_over, "begun", _from_now_on),),
        reshape=both(_HANDED_OVER, faulty(dies=0.1)),
    ),
    Mutant(
        "handed_over_and_still_there",
        ("handed over", "renamed", "I1"),
        "a job that was handed over fires under its former owner, too",
        (Swap(handing_over, "ended", _on_and_on),),
        reshape=_HANDED_OVER,
    ),
    Mutant(
        "run_by_the_new_owner_s_row",
        ("owner",),
        "a run that was due before its job was handed over goes by its new owner's row",
        (Swap(ExecutorPorts, "job_of_run", _by_the_new_row),),
        reshape=both(_HANDED_OVER, faulty(target_fails=0.3)),
    ),
    Mutant(
        "handed_over_without_a_trace",
        ("handed over",),
        "jobs are chosen and handed over in one step, which forgets what it has begun",
        (Swap(HandingOver, "step", _at_once),),
        reshape=both(_HANDED_OVER, faulty(dies=0.1)),
    ),
)


def _never(original: Code) -> Code:
    return lambda tombstone, taken: False


RACED_HAND_OVERS = (
    Mutant(
        "taken_over_unseen",
        ("handed over",),
        "who repeats a step does not see that the job has begun under its new owner",
        (Swap(handing_over, "is_taken_over", _never),),
    ),
)
"""Planted in races alone."""
