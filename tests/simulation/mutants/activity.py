"""Bugs planted into the activity feed."""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any

from carillon.domain.activity.results import Result
from carillon.domain.decisions import Defer
from carillon.domain.run import Run
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.simulation.deployment import Deployment
from carillon.simulation.seams import BatchActivity
from tests.simulation.mutants.kit import Code, Mutant, Swap, faulty, instead

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
)
