"""Bugs planted into what starts jobs after other jobs' runs."""

import json
from dataclasses import replace
from typing import Any

from carillon.api.jobs.links import Links
from carillon.domain.job import Job
from carillon.domain.run import RunKey
from carillon.executor.runs.follow_up import FollowUp
from carillon.stores.memory.rows import MemoryJobStore
from tests.simulation.mutants.kit import Code, Mutant, Swap, both, faulty
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import JobPlan, Request


def _followed(scenario: Scenario) -> Scenario:
    """More jobs run after the first one, made when that has lived for a while."""
    first = scenario.jobs[0]
    jobs, requests = list(scenario.jobs), list(scenario.requests)
    begin_us = next(each.after_us for each in requests if each.job == first.name)
    for number in range(4):
        body = {"name": f"b{number}", "target": {"type": "task", "name": "echo"}}
        text = json.dumps({**body, "after": {"job": first.name, "when": "finished"}})
        jobs.append(JobPlan(f"b{number}", text, owner=first.owner))
        after_us = begin_us + 20_000_000 * (number + 1)
        named = f"create b{number}"
        requests.append(Request(named, "create", f"b{number}", after_us, f"b{number}", text, 3))
    return replace(scenario, jobs=tuple(jobs), requests=tuple(requests))


def _whatever_the_redrive(original: Code) -> Code:
    def successor(self: RunKey, job_id: str) -> RunKey:
        key: RunKey = original(replace(self, redrive=0), job_id)
        return key

    return successor


def _anew_when_repeated(original: Code) -> Code:
    """A repeated follow-up gives the run that follows another id."""

    def consequences(self: FollowUp, run: Any, context: Any, *, repeated: bool) -> Any:
        if repeated and context.job.successors:
            key = replace(run.key, request_id=f"{run.key.request_id}again")
            original(self, replace(run, key=key), context, repeated=repeated)
        return original(self, run, context, repeated=repeated)

    return consequences


def _nothing(original: Code) -> Code:
    return lambda self, job, before: None


def _linked_first(original: Code) -> Code:
    put = Links.put

    def late(self: Links, job: Job, before: Job | None) -> None:
        put(self, job, before)
        original(self, job, before)

    return late


def _links_unseen(original: Code) -> Code:
    def unseen(self: MemoryJobStore, job: Job, revision: int, successors: Any) -> Any:
        stored = self._rows.get(job.job_id)
        return original(self, job, revision, stored.successors if stored else successors)

    return unseen


def _not_repeated(original: Code) -> Code:
    def consequences(self: FollowUp, run: Any, context: Any, *, repeated: bool) -> Any:
        if repeated:
            context = replace(context, job=replace(context.job, successors=()))
        return original(self, run, context, repeated=repeated)

    return consequences


SUCCESSORS = (
    Mutant(
        "after_whatever_the_redrive",
        ("I1", "after"),
        "the run that follows is named without the redrive of the one before",
        (Swap(RunKey, "successor", _whatever_the_redrive),),
    ),
    Mutant(
        "after_started_twice",
        ("after",),
        "a repeated follow-up starts another run after the same one",
        (Swap(FollowUp, "_consequences", _anew_when_repeated),),
    ),
    Mutant(
        "after_not_repeated",
        ("I1",),
        "who repeats the follow-up of a run leaves out what runs after it",
        (Swap(FollowUp, "_consequences", _not_repeated),),
    ),
    Mutant(
        "link_after_commit",
        ("I1",),
        "a job is linked to its predecessor after its commit",
        (Swap(Links, "tidy_up", _linked_first), Swap(Links, "put", _nothing)),
        reshape=both(_followed, faulty(dies=0.03)),
    ),
    Mutant(
        "links_unseen",
        ("change", "I1"),
        "who writes a job's row may take away links that he has not seen",
        (Swap(MemoryJobStore, "_replace", _links_unseen),),
        reshape=_followed,
    ),
)
