"""Bugs planted into the activity feed."""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from carillon.domain.activity.results import Result
from carillon.domain.activity.summary import Due
from carillon.domain.decisions import Defer
from carillon.domain.job import Job
from carillon.domain.run import Run
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.services import summing
from carillon.services.summing import Summing, Sums
from carillon.simulation.deployment import Deployment
from carillon.simulation.seams import BatchActivity
from tests.simulation.mutants.kit import Code, Mutant, Swap, faulty, instead, scheduled

_written = BatchActivity.flush


def _acknowledged_before(original: Code) -> Code:
    def _batch(self: Deployment, queue: Any, received: Any) -> None:
        original(self, queue, received)
        _written(self.activity)

    return _batch


class _Deaf:
    def add(self, results: Iterable[Result]) -> None:
        pass


def _told_once(original: Code) -> Code:
    def again(self: FollowUp, run: Run, context: RunContext) -> Defer | bool:
        untold = copy(self)
        untold._ports = replace(self._ports, activity=_Deaf())
        answer: Defer | bool = original(untold, run, context)
        return answer

    return again


def _known_from_the_span_on(original: Code) -> Code:
    def due(job: Job, calendars: Any, from_at: datetime, *others: Any) -> Due:
        found: Due = original(job, calendars, from_at, *others)
        return replace(found, since=max(found.since, from_at - timedelta(microseconds=1)))

    return due


def _without_the_first(original: Code) -> Code:
    def of(self: Summing, owner: str, jobs: Iterable[Job], *others: Any) -> Sums:
        sums: Sums = original(self, owner, jobs, *others)
        first = min((each.job_id for each in sums.counted), default="")
        return replace(sums, counted=tuple(c for c in sums.counted if c.job_id != first))

    return of


def _without_what_was_before(original: Code) -> Code:
    return lambda job, unresolved, span: (
        replace(wanted, span=None)
        if (wanted := original(job, unresolved, span)) and summing.is_by_schedule(job)
        else wanted
    )


FEED = (
    Mutant(
        "feed_after_acknowledgement",
        ("feed",),
        "a batch writes to the feed when its messages are gone: who dies between has told nobody",
        (
            Swap(BatchActivity, "flush", instead(lambda self: None)),
            Swap(Deployment, "_batch", _acknowledged_before),
        ),
        faulty(dies=0.02, target_fails=0.3),
    ),
    Mutant(
        "redelivered_result_untold",
        ("feed",),
        "a message that finds its run ended tells nothing: its executor died before it had told",
        (Swap(FollowUp, "again", _told_once),),
        faulty(dies=0.02, target_fails=0.3),
    ),
    Mutant(
        "cover_summed_twice",
        ("feed",),
        "what a catch-up covers from before a summary's span on counts whole, and each of it again",
        (Swap(summing, "due_of", _known_from_the_span_on),),
        scheduled("every 20s", "every 1m", catch_up="skip"),
    ),
    Mutant(
        "job_left_out_of_a_summary",
        ("feed",),
        "a summary has nothing of one of the jobs",
        (Swap(Summing, "of", _without_the_first),),
    ),
    Mutant(
        "summed_since_the_change",
        ("feed",),
        "lone successes from before the last change or resume are not read",
        (Swap(summing, "_wanted", _without_what_was_before),),
    ),
)
