"""Simulated targets in place of real ones: they take their time, and some fail."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from carillon.domain.execution.stopping import STOPPED
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.run import RunError
from carillon.executor.deadlines import POLL_SECONDS
from carillon.executor.targets import Call, Failure, Outcome, Success
from carillon.simulation.faults import Draws, Fault
from carillon.simulation.loop import Loop


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour of a target for one call: it takes `seconds`, then answers `outcome`.

    `is_done`: it has had its effect, whatever it answers.
    """

    seconds: float
    outcome: Outcome
    is_done: bool = True


@dataclass(frozen=True, slots=True)
class TargetCall:
    """One call as its target saw it, in true time. `ended_at` is None where the caller had died
    first; `process` names it."""

    call: Call
    process: str
    begun_at: datetime
    ended_at: datetime | None = None
    is_done: bool = False
    outcome: Outcome | None = None


Behave = Callable[[Deliverable, Call, Draws], Behaviour]
"""The behaviour of a target where no fault strikes."""


def prompt(target: Deliverable, call: Call, draws: Draws) -> Behaviour:
    """Every call succeeds within 50 ms."""
    return Behaviour(draws.fraction() * 0.05, Success(None))


class SimulatedTargets:
    """The targets that the executor calls; `on_call` hears of each call when it begins and ends."""

    def __init__(
        self, loop: Loop, behave: Behave = prompt, on_call: Callable[[TargetCall], object] = repr
    ) -> None:
        self._loop = loop
        self._behave = behave
        self._on_call = on_call

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        loop, task = self._loop, self._loop.current
        if call.stopped.is_set():  # before it has begun
            return Failure(STOPPED)
        process = "" if task is None else task.name
        begun = TargetCall(call, process, loop.instant())
        self._on_call(begun)
        # By the callee, not by the caller: so a duplicate finds the same target.
        where = f"target {call.run_id}/{call.attempt}"
        behaviour = self._behaviour(target, call, where)
        if self._is_stopped(call, min(behaviour.seconds, call.timeout_seconds)):
            behaviour = replace(behaviour, outcome=Failure(STOPPED), is_done=False)
        elif behaviour.seconds > call.timeout_seconds:
            error = RunError("timeout", f"no answer within {call.timeout_seconds:g} s")
            behaviour = replace(behaviour, outcome=Failure(error, timed_out=True))
        ended_at = loop.instant()
        self._on_call(
            replace(begun, ended_at=ended_at, is_done=behaviour.is_done, outcome=behaviour.outcome)
        )
        return behaviour.outcome

    def _is_stopped(self, call: Call, seconds: float) -> bool:
        """Let the call last so long, or until it is stopped; True in that case. Where nothing
        interleaves nobody stops it: there it is not to take a step for each look."""
        loop, until_us = self._loop, self._loop.us + int(seconds * 1_000_000)
        longest_seconds = POLL_SECONDS if loop.interleaves else seconds
        while loop.us < until_us and not call.stopped.is_set():
            loop.sleep(min((until_us - loop.us) / 1_000_000, longest_seconds))
        return call.stopped.is_set()

    def _behaviour(self, target: Deliverable, call: Call, where: str) -> Behaviour:
        chaos, us = self._loop.chaos, self._loop.us
        draws = Draws(chaos.seed, where)
        usual = self._behave(target, call, draws)
        if chaos.strikes(Fault.TARGET_FAILS, where, us, draws):
            failure = Failure(RunError("http_503", "simulated"))
            return Behaviour(usual.seconds, failure, is_done=False)
        if chaos.strikes(Fault.TARGET_REFUSES, where, us, draws):
            failure = Failure(RunError("http_400", "simulated", permanent=True))
            return Behaviour(usual.seconds, failure, is_done=False)
        if chaos.strikes(Fault.TARGET_HANGS, where, us, draws):
            return Behaviour(call.timeout_seconds + 1, Success(None), is_done=False)
        if chaos.strikes(Fault.TARGET_LOST, where, us, draws):
            failure = Failure(RunError("connection", "simulated: the answer was lost"))
            return Behaviour(usual.seconds, failure)
        return usual
