"""Planted bugs of pauses that are to end by themselves."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

from carillon.domain.decisions import Defer, Drop, Proceed, Skip, SkipReason, Start
from carillon.domain.execution import next_run
from carillon.domain.execution import start_decision as starting
from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.run import Run
from carillon.executor.runs import resuming
from carillon.schedules import ClosedDays
from carillon.services.indexer import Indexer
from carillon.simulation.faults import Draws, Faults
from tests.simulation.mutants.kit import (
    MINUTE_US,
    Code,
    Mutant,
    Reshape,
    Swap,
    both,
    faulty,
    lasting,
    scheduled,
    small,
)
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import Request


def _paused_for_a_while(repeats: int) -> Reshape:
    """Each job is paused twice for one to three minutes, at the second time while the first may
    last."""

    def reshape(scenario: Scenario) -> Scenario:
        pauses = []
        for job in scenario.jobs:
            draws = Draws(scenario.seed, f"pauses of {job.name}")
            after_us = MINUTE_US + draws.below(MINUTE_US)
            for number in range(2):
                until = timedelta(microseconds=after_us, seconds=62 + draws.below(120))
                body = json.dumps({"until": (scenario.start + until).isoformat()})
                name = f"pause {job.name} for a while {number}"
                pauses.append(Request(name, "pause", job.name, after_us, "", body, repeats))
                after_us += draws.below(2 * MINUTE_US)
        return replace(scenario, requests=(*scenario.requests, *pauses))

    return reshape


def _without_pauses(scenario: Scenario) -> Scenario:
    kept = (each for each in scenario.requests if each.what not in ("pause", "resume"))
    return replace(scenario, requests=tuple(kept))


def _shape(repeats: int = 3) -> Reshape:
    return both(
        small(8),
        scheduled("every 5s", "every 10s", "every 20s", catch_up="all"),
        _without_pauses,
        _paused_for_a_while(repeats),
    )


def _after_the_row(original: Code) -> Code:
    """A process that dies between the two leaves a pause without an end."""

    def commit_paused(self: Indexer, job: Job, revision: int | None) -> bool:
        jobs = self._jobs
        won = jobs.create(job) if revision is None else jobs.replace(job, revision)
        if won and job.resume_at is not None:
            self.schedule_message(resume_message(job))
        return won

    return commit_paused


def _whichever_pause(original: Code) -> Code:
    def decide_resume(job: Job | None, message: Message, now: datetime) -> Proceed | Defer | Drop:
        is_paused = job is not None and job.state is JobState.PAUSED
        found: Proceed | Defer | Drop = original(job, message, now)
        return Proceed() if is_paused else found

    return decide_resume


def _from_now_on(original: Code) -> Code:
    def resumed_after(job: Job, now: datetime) -> datetime:
        return now.replace(microsecond=0)

    return resumed_after


def _in_its_place(original: Code) -> Code:
    def of_stopped(job: Job, message: Message, now: datetime, reason: SkipReason) -> Start:
        is_known = job.resume_at is not None and job.has_counted(message.generation_id)
        found: Start = original(job, message, now, reason)
        return Skip(reason) if is_known else found

    return of_stopped


def _of_any_generation(original: Code) -> Code:
    def is_over(
        job: Job, run: Run, message: Message, closed: ClosedDays | None, now: datetime
    ) -> bool:
        own = replace(message, generation_id=job.generation.generation_id)
        answer: bool = original(job, run, own, closed, now)
        return answer

    return is_over


def _ending(scenario: Scenario) -> Scenario:
    """Each job is a fixed delay that is paused and resumed while its first run may last, so that
    its last occurrence, before its end, comes long after."""
    asked = []
    for job in scenario.jobs:
        body = {
            "name": job.name,
            "target": {"type": "task", "name": "echo"},
            "schedule": "every 8m after finish",
            "timeout_seconds": 15,
            "end_at": (scenario.start + timedelta(minutes=16, seconds=8)).isoformat(),
            "on_complete": "delete",
        }
        pause_us = 8 * MINUTE_US + Draws(scenario.seed, job.name).below(8_000_000)
        asked += [
            Request(f"create {job.name}", "create", job.name, 0, job.name, json.dumps(body), 3),
            Request(f"pause {job.name}", "pause", job.name, pause_us),
            Request(f"resume {job.name}", "resume", job.name, pause_us + 100_000),
        ]
    return replace(scenario, requests=tuple(asked), faults=Faults(), minutes=18)


TIMED_PAUSES = (
    Mutant(
        "resumption_after_the_pause",
        ("paused",),
        "what ends a pause is sent when its row is written, and nobody asks again",
        (Swap(Indexer, "commit_paused", _after_the_row),),
        reshape=both(_shape(repeats=0), faulty(dies=0.1)),
    ),
    Mutant(
        "resumed_by_another_pause",
        ("paused", "I1"),
        "the end of an earlier pause ends a later one, too",
        (Swap(resuming, "decide_resume", _whichever_pause),),
        reshape=_shape(),
    ),
    Mutant(
        "resumed_from_now_on",
        ("paused", "I1"),
        "a job that is resumed late begins then, not where its pause ended",
        (Swap(resuming, "resumed_after", _from_now_on),),
        reshape=_shape(),
    ),
    Mutant(
        "paused_in_the_place_of_a_run",
        ("skip", "I1"),
        "an occurrence after the end of a pause is recorded as paused while nobody has resumed it",
        (Swap(starting, "_of_stopped", _in_its_place),),
        reshape=both(_shape(), faulty(late=0.3)),
    ),
    Mutant(
        "completed_by_a_run_from_before",
        ("complete", "I1"),
        "the end of a run from before a pause completes a fixed delay that has been resumed since",
        (Swap(next_run, "is_over", _of_any_generation),),
        reshape=both(small(8, jobs=4), _ending, lasting(14)),
    ),
)
