"""The targets' side of runs that end by a report: they complete, fail, beat, fall silent, come
late, or report twice. Each report is a process that may die; who got no answer sends it again."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from carillon.domain.run import Run, RunError
from carillon.errors import QueueUnavailableError, StoreUnavailableError
from carillon.executor.targets import Call
from carillon.simulation.deployment import Deployment
from carillon.simulation.faults import Draws
from carillon.simulation.services import Api
from carillon.simulation.targets import TargetCall
from tests.simulation.judging.evidence import Ack
from tests.support.requests import API_SECONDS

_MOST_SENT = 4
_UNKNOWN = (StoreUnavailableError, QueueUnavailableError)
_WAYS = (
    *(("complete",), ("complete",), ("complete",), ("fail",), ()),
    *(("heartbeat", "complete"), ("heartbeat", "heartbeat", "complete"), ("heartbeat",)),
    *(("complete", "complete"), ("complete", "fail"), ("heartbeat", "fail")),
)
"""The reports that a receiver sends, one after the other."""
_SECONDS = (0.01, 0.5, 4.0, 9.0, 20.0, 40.0, 100.0)
"""The longest time before each; leases last from 10 s to a minute."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A report under way, the `number`-th of its attempt."""

    what: str
    call: TargetCall
    number: int
    requested_at: datetime
    repetition: int = 0

    @property
    def name(self) -> str:
        call = self.call.call
        told = f"{self.what} {self.number} of {call.run_id}/{call.attempt} by {self.call.process}"
        return told if self.repetition == 0 else f"{told} #{self.repetition}"


class Receivers:
    """`on_ack` is told of each report that was answered as taken."""

    def __init__(self, seed: int, on_ack: Callable[[Ack], object]) -> None:
        self._seed = seed
        self._on_ack = on_ack
        self._deployment: Deployment | None = None

    def attach(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._api = Api.of(deployment)

    def on_call(self, call: TargetCall) -> None:
        """A call has begun, which may be reported about."""
        if call.ended_at is not None or call.call.report_to is None or self._deployment is None:
            return
        if not accepts(self._seed, call.call):
            return
        loop = self._deployment.loop
        draws = Draws(self._seed, f"receiver {call.call.run_id}/{call.call.attempt}")
        at_us = loop.us
        for number, what in enumerate(draws.choice(_WAYS)):
            at_us += int(draws.fraction() * draws.choice(_SECONDS) * 1_000_000)
            self._send(_Sent(what, call, number, loop.instant(at_us)), loop.instant(at_us))

    def _send(self, sent: _Sent, at: datetime) -> None:
        assert self._deployment is not None
        task = self._deployment.invoke(
            sent.name, partial(self._report, sent), at=at, seconds=API_SECONDS
        )
        task.on_end = lambda: self._ended(sent, task.died, task.failure)

    def _report(self, sent: _Sent) -> Run:
        call, service = sent.call.call, self._api.completions
        assert call.report_to is not None
        address = (call.run_id, call.report_to.token)
        match sent.what:
            case "complete":
                return service.complete(*address, word_of(call.attempt, sent.number))
            case "fail":
                return service.fail(
                    *address, RunError("failed", word_of(call.attempt, sent.number))
                )
        return service.heartbeat(*address)

    def _ended(self, sent: _Sent, died: bool, failure: Exception | None) -> None:
        assert self._deployment is not None
        loop, call = self._deployment.loop, sent.call.call
        if not died and failure is None:
            word = word_of(call.attempt, sent.number)
            told = (sent.requested_at, loop.instant(), call.run_id)
            self._on_ack(Ack(sent.what, call.job_id, *told, word=word))
        elif (died or isinstance(failure, _UNKNOWN)) and sent.repetition < _MOST_SENT:
            draws = Draws(self._seed, f"repeat {sent.name}")
            at_us = loop.us + draws.choice((10_000, 1_000_000, 5_000_000))
            again = _Sent(sent.what, sent.call, sent.number, sent.requested_at, sent.repetition + 1)
            self._send(again, loop.instant(at_us))


def accepts(seed: int, call: Call) -> bool:
    """Whether the target goes on after the call; one in eight has nothing to do, and says so."""
    where = f"acceptance {call.run_id}/{call.attempt}"
    return call.report_to is not None and Draws(seed, where).fraction() < 0.88


def word_of(attempt: int, number: int) -> str:
    """The result, or the reason, of the `number`-th report about an attempt."""
    return f"{attempt}/{number}"
