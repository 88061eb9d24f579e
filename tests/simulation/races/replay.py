"""One actor of a race, run again from its beginning with the answers that it had.

Neither a greenlet nor a thread can be copied, but the code under test is deterministic: what an
actor does next follows from the answers it has had. So it is run anew, in a deployment of its own,
up to the first call that has no answer yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from carillon.errors import CarillonError, QueueUnavailableError, StoreUnavailableError
from carillon.schedules.base import EPOCH
from carillon.simulation.deployment import Deployment, Options
from carillon.simulation.faults import Chaos, Faults
from carillon.simulation.loop import Loop, Process
from carillon.simulation.services import Api
from carillon.simulation.targets import SimulatedTargets

CLOCK = "clock"
ANSWER = "answer"
LOST = object()
"""In the place of an answer: the call had its effect, and the caller gets an error."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that waits for its effect."""

    port: str
    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def on(self, store: Any) -> Any:
        return getattr(store, self.method)(*self.args, **self.kwargs)


@dataclass(frozen=True, slots=True)
class World:
    """What an actor has: the functions as they are deployed, and the lanes' consumer's side."""

    deployment: Deployment
    api: Api
    lanes: Any

    def now(self) -> datetime:
        return self.deployment.clock.now()


Act = Callable[[World], Any]


class _WaitingError(BaseException):
    """The call has no answer yet; no code under test may catch this."""


class Replay:
    """Stands where the loop stands, and answers calls from what is known."""

    chaos = Chaos(0, Faults())
    interleaves = True

    def __init__(self, name: str, answers: tuple[Any, ...]) -> None:
        self.current = SimpleNamespace(process=Process(name), name=name)
        self.next: Call | None = None
        self._answers = answers
        self._count = 0
        self._now_us: int | None = None

    @property
    def us(self) -> int:
        """The time is looked at once between two calls: code of our own takes none."""
        if self._now_us is None:
            self._now_us = self._answer(Call(CLOCK, "now"))
        return self._now_us

    def instant(self, us: int | None = None) -> datetime:
        return EPOCH + timedelta(microseconds=self.us if us is None else us)

    def us_of(self, instant: datetime) -> int:
        return (instant - EPOCH) // timedelta(microseconds=1)

    def sleep(self, seconds: float) -> None:
        assert seconds <= 0, f"{self.current.name} sleeps {seconds} s: let the race begin later"

    def after(self, seconds: float, callback: object) -> None:
        """What is to be done during a call never is: a call takes no time."""

    def spawn(self, process: object, name: str, act: object, at_us: int) -> None:
        """Nor is what a timer would do."""

    def side_by_side(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Of one segment there is but one."""
        return [call() for call in calls]

    def call(
        self,
        port: str,
        method: str,
        effect: object,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Several at once are several calls: no batch is atomic."""
        if method == "put_entries" and len(args[0]) > 1:
            for entry in args[0]:
                self.call(port, method, effect, ([entry],), kwargs)
            return None
        if (port, method) == ("jobs", "get_all"):
            jobs = (self.call(port, "get", effect, key, kwargs) for key in args[0])
            return {job.job_id: job for job in jobs if job is not None}
        if (port, method) == ("queue", "send") and len(args[0]) > 1:
            messages, delays, *more = args
            for message, delay in zip(messages, delays, strict=True):
                self.call(port, method, effect, ([message], [delay], *more), kwargs)
            return None
        self._now_us = None
        call = Call(port, method, args, kwargs)
        answer = self._answer(call)
        if answer is LOST:
            if port == "queue":
                raise QueueUnavailableError(1, "the answer was lost")
            raise StoreUnavailableError(f"{port}.{method}: the answer was lost")
        return answer

    def _answer(self, call: Call) -> Any:
        if self._count == len(self._answers):
            self.next = call
            raise _WaitingError
        self._count += 1
        return self._answers[self._count - 1]


class _Lanes:
    """`receive` and `delete` of the lanes, as calls."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay

    def __getattr__(self, method: str) -> Callable[..., Any]:
        return lambda *args: self._replay.call("queue", method, None, args, {})


def proceed(
    name: str, act: Act, options: Options, answers: tuple[Any, ...], *, tells: bool
) -> Call | bool:
    """The call that an actor makes after these answers; at its end, whether it ended well.

    `tells`: somebody waits for its answer, which is a call too: it may die before.
    """
    replay = Replay(name, answers)
    loop = cast(Loop, replay)
    try:
        deployment = Deployment(loop, options, SimulatedTargets(loop))
        act(World(deployment, Api.of(deployment), _Lanes(replay)))
        if tells:
            replay.call(ANSWER, "answers", None, (), {})
    except _WaitingError:
        assert replay.next is not None
        return replay.next
    except CarillonError:
        return False
    return True
