"""Bugs planted into the stopping of runs whose targets are being called."""

from dataclasses import replace
from datetime import datetime

import carillon.executor.runs.protocol as protocol
from carillon.domain.run import Run
from carillon.executor.runs.call import StopWatch
from carillon.stores.memory.runs import MemoryRunStore
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Reshape,
    Swap,
    asked,
    both,
    given,
    instead,
    lasting,
    scheduled,
    small,
)
from tests.simulation.mutants.runs import always_finishes


def _unfenced(original: Code) -> Code:
    def cancelled(
        self: Run, reason: str, claim_id: str, now: datetime, expires_at: datetime
    ) -> Run:
        ended: Run = original(self, reason, claim_id, now, expires_at)
        return replace(ended, token=self.token, claim_id=self.claim_id)

    return cancelled


_STOPPED: Reshape = both(
    small(6),
    scheduled("every 20s", overlap="allow", timeout_seconds=15),
    lasting(14),
    asked("stop", 4),
)
"""Calls that last, and owners who do not want to wait."""

_BLIND = Swap(StopWatch, "is_lost", instead(lambda self, run: False))

STOPS = (
    Mutant(
        "stopped_goes_on",
        ("stop",),
        "the row of a stopped run is cancelled, and its call goes on",
        (_BLIND,),
        reshape=_STOPPED,
    ),
    Mutant(
        "stop_overwritten",
        ("I4", "I1"),
        "a call that was stopped goes on, and its end is written over the stop",
        (_BLIND, Swap(MemoryRunStore, "finish", always_finishes)),
        reshape=_STOPPED,
    ),
    Mutant(
        "stop_unfenced",
        ("I4",),
        "a stop leaves the token of the run as it is",
        (Swap(Run, "cancelled", _unfenced),),
        reshape=_STOPPED,
    ),
    Mutant(
        "stopped_before_its_call",
        ("I2",),
        "a run that was stopped while gates were slow is called all the same",
        (Swap(protocol, "is_overdue", instead(lambda run, now: False)),),
        reshape=both(
            _STOPPED,
            scheduled(
                "every 20s",
                overlap="skip",
                timeout_seconds=10,
                rate={"key": "r", "limit": 100, "per": "1m"},
                concurrency={"key": "k", "limit": 10},
            ),
            given(most_latency_us=700_000),
        ),
    ),
)
