"""Cooperative tasks under one virtual clock: the same seed gives the same run, to the letter."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any, TypeVar

from greenlet import GreenletExit, getcurrent, greenlet

from carillon.clock import SeededEntropy
from carillon.errors import CarillonError, QueueUnavailableError, StoreUnavailableError
from carillon.schedules.base import EPOCH
from carillon.simulation.faults import Chaos, Draws, Fault, Faults

_T = TypeVar("_T")

Observer = Callable[["Task | None", str, str, tuple[Any, ...], object], None]
"""Called for each call that had its effect: task, port, method, positional arguments, answer."""

_MICROSECOND = timedelta(microseconds=1)
_SLOW_US = 8_000_000
_PAUSED_US = (20_000_000, 200_000_000)
_WIRE = frozenset({"queue", "targets", "events"})
"""Ports that are no stores: their throttling and losses are faults of their own."""
_BATCH_READ = ("jobs", "get_all")
"""BatchGetItem leaves out what a throttled table does not answer with the rest."""


class RunawayError(RuntimeError):
    """A world does not come to rest: it has gone beyond what was set as its bounds."""


class Process:
    """One invocation of a function: its tasks die together.

    `skew_us` is its clock minus the true one. `is_frozen`: it was stopped for minutes; its end does
    not reach it meanwhile, as it would a process that runs. `faults` counts what struck it.
    """

    __slots__ = (
        "ends_us",
        "entropy",
        "faults",
        "freezes",
        "is_alive",
        "is_frozen",
        "name",
        "skew_us",
    )

    def __init__(self, name: str, *, skew_us: int = 0, freezes: bool = False) -> None:
        self.name = name
        self.skew_us = skew_us
        self.freezes = freezes
        self.is_alive = True
        self.is_frozen = False
        self.ends_us: int | None = None
        self.faults = 0
        self.entropy: SeededEntropy | None = None


def _nothing() -> None:
    """The work left to a task that has ended."""


def _without_frames(error: CarillonError) -> CarillonError:
    """The error without what was on the stack: that may hold the task itself."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


class Task(greenlet):
    """One thread of a process. When it has ended: its `value`, or its `failure`, or it `died`."""

    def __init__(self, loop: "Loop", process: Process, name: str, run: Callable[[], Any]) -> None:
        super().__init__(parent=loop.hub)
        self.process = process
        self.name = name
        self.steps = 0
        self.value: Any = None
        self.failure: Exception | None = None
        self.died = False
        self.on_end: Callable[[], None] | None = None
        self.ties = Draws(loop.chaos.seed, f"{name}~")
        self._run = run

    def run(self) -> None:
        try:
            self.value = self._run()
        except GreenletExit:
            self.died = True
        except CarillonError as error:  # the task that waits for it sees to this
            self.failure = _without_frames(error)
        except Exception as error:
            self.failure = error
        on_end, self.on_end = self.on_end, None
        # No greenlet, not even one that has ended, may be part of a cycle: none is collected.
        self._run = _nothing
        if on_end is not None:
            on_end()


class Loop:
    """Runs tasks in the order of virtual time; between those of one instant the dice decide."""

    def __init__(
        self,
        start: datetime,
        chaos: Chaos | None = None,
        *,
        interleaves: bool = True,
        most_steps: int | None = None,
    ) -> None:
        """Without `chaos`, or where it is not to interleave, nothing comes between the calls of a
        task, and no fault strikes them: that is quick. After `most_steps` resumptions of tasks and
        callbacks `run` raises RunawayError."""
        self.hub = getcurrent()
        self.current: Task | None = None
        self.observers: list[Observer] = []
        self.trace: Callable[[str], None] | None = None
        self.chaos = chaos or Chaos(0, Faults())
        self.interleaves = interleaves and chaos is not None
        self.us = (start - EPOCH) // _MICROSECOND
        self.steps = 0
        self._most_steps = most_steps
        self._until_us = 0
        self._last_instant = (0, EPOCH)
        self._heap: list[tuple[int, int, int, Task | Callable[[], None]]] = []
        self._count = 0

    def instant(self, us: int | None = None) -> datetime:
        """The virtual time, as an aware instant."""
        wanted_us = self.us if us is None else us
        # Many ask at one and the same time.
        known_us, known = self._last_instant
        if wanted_us == known_us:
            return known
        found = EPOCH + timedelta(microseconds=wanted_us)
        self._last_instant = (wanted_us, found)
        return found

    def us_of(self, instant: datetime) -> int:
        """An aware instant in microseconds since the epoch."""
        return (instant - EPOCH) // _MICROSECOND

    def later(self, at_us: int, callback: Callable[[], None]) -> None:
        """Call back from the loop itself, outside of any task."""
        self._count += 1
        heappush(self._heap, (max(at_us, self.us), 0, self._count, callback))

    def after(self, seconds: float, callback: Callable[[], None]) -> None:
        """The same, `seconds` from now."""
        self.later(self.us + int(seconds * 1_000_000), callback)

    def spawn(
        self, process: Process, name: str, run: Callable[[], Any], at_us: int | None = None
    ) -> Task:
        """Start a task; it first runs when the loop comes to it."""
        task = Task(self, process, name, run)
        self._schedule(task, self.us if at_us is None else at_us)
        return task

    def kill(self, process: Process) -> None:
        """End every task of the process where it is."""
        process.is_alive = False

    def end_at(self, process: Process, at_us: int) -> None:
        """Kill the process then, unless it is frozen: Lambda's own time limit."""
        process.ends_us = at_us

        def end() -> None:
            if not process.is_frozen:
                self.kill(process)

        self.later(at_us, end)

    def run(self, until_us: int) -> None:
        """Let everything happen that is due up to `until_us`, and be there then.

        Raises RunawayError where that takes more steps than the loop was given.
        """
        self._until_us = until_us
        while self._heap and self._heap[0][0] <= until_us:
            self.steps += 1
            if self._most_steps is not None and self.steps > self._most_steps:
                raise RunawayError(f"more than {self._most_steps} steps by {self.instant()}")
            self.us, _, _, item = heappop(self._heap)
            if not isinstance(item, Task):
                item()
            elif not item.dead:
                self._resume(item)
        self.us = max(self.us, until_us)

    def close(self) -> None:
        """End whatever is under way: the frames of a suspended greenlet are out of the garbage
        collector's sight, and would keep their whole world in memory."""
        self.trace = None
        self.observers.clear()
        while self._heap:
            item = heappop(self._heap)[3]
            if not isinstance(item, Task) or item.dead:
                continue
            item.process.is_alive = False
            if item:
                self._resume(item)
            elif item.on_end is not None:  # it has not begun: who waits for it is to end, too
                item.on_end()

    def sleep(self, seconds: float) -> None:
        """Let the current task wait; outside of any task time does not pass."""
        task = self.current
        if task is None or seconds <= 0:
            return
        self._wait(task, int(seconds * 1_000_000))

    def together(self, named: Sequence[tuple[str, Callable[[], Any]]]) -> list[Task]:
        """Run these as tasks of the current one's process; answers them when all have ended."""
        task = self.current
        assert task is not None, "only a task can wait"
        left = len(named)

        def ended() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._schedule(task, self.us)

        tasks = [self.spawn(task.process, name, run) for name, run in named]
        for each in tasks:
            each.on_end = ended
        if tasks:
            self._switch(task)
        return tasks

    def side_by_side(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """The answers of calls that the current task's process makes at one time, in their order;
        raises what one has raised."""
        task = self.current
        if task is None or len(calls) < 2:
            return [call() for call in calls]
        task.steps += 1
        tasks = self.together(
            [(f"{task.name}/{task.steps}.{place}", call) for place, call in enumerate(calls)]
        )
        for each in tasks:
            if each.failure is not None:
                raise each.failure
        return [each.value for each in tasks]

    def wait_for(self, other: Task) -> None:
        """Let the current task wait until another of its process, under way, has ended."""
        task = self.current
        assert task is not None, "only a task can wait"
        other.on_end = lambda: self._schedule(task, self.us)
        self._switch(task)

    def call(
        self,
        port: str,
        method: str,
        effect: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """A call from a task to the outside: other tasks may come before and after its effect, and
        faults may strike."""
        task = self.current
        if task is not None and not task.process.is_alive:
            raise GreenletExit
        if task is None or not self.interleaves:
            return self._effect(task, port, method, effect, args, kwargs)
        task.steps += 1
        where = f"{task.name}/{task.steps}"
        draws = Draws(self.chaos.seed, task.name, task.steps)
        self._before(task, port, method, where, draws)
        answer = self._effect(task, port, method, effect, args, kwargs)
        self._wait(task, self.chaos.latency_us(self.us, draws))
        if self._strikes(Fault.DIES, f"{where}-", draws):
            self._die(task, f"after {port}.{method}")
        if port not in _WIRE and self._strikes(Fault.LOST, where, draws):
            if draws.fraction() < 0.5:
                raise StoreUnavailableError(f"{port}.{method}: the answer was lost")
            answer = self._effect(task, port, method, effect, args, kwargs)
        if (port, method) == _BATCH_READ and self._strikes(Fault.THROTTLED, f"{where}~", draws):
            answer = {key: row for key, row in answer.items() if draws.fraction() < 0.5}
        return answer

    def _before(self, task: Task, port: str, method: str, where: str, draws: Draws) -> None:
        wait_us = self.chaos.latency_us(self.us, draws)
        if self._strikes(Fault.SLOW, where, draws):
            wait_us += int(draws.fraction() * _SLOW_US)
        if task.process.freezes and self._strikes(Fault.PAUSED, where, draws):
            task.process.is_frozen = True
            wait_us += int(draws.between(*_PAUSED_US))
            self._wait(task, wait_us)
            self.tell("goes on after its pause")
            task.process.is_frozen = self.us >= (task.process.ends_us or self.us)
        else:
            self._wait(task, wait_us)
        if self._strikes(Fault.DIES, where, draws):
            self._die(task, f"before {port}.{method}")
        if port == "queue":
            if self._strikes(Fault.THROTTLED, where, draws):
                raise QueueUnavailableError(1, "throttled")
        elif port not in _WIRE and self._strikes(Fault.THROTTLED, where, draws):
            raise StoreUnavailableError(f"{port}.{method}: throttled")
        if method.endswith("_control") and self._strikes(Fault.CONTENDED, where, draws):
            raise StoreUnavailableError(f"{port}.{method}: contended")

    def _strikes(self, fault: Fault, where: str, draws: Draws) -> bool:
        if not self.chaos.strikes(fault, where, self.us, draws):
            return False
        if self.current is not None:
            self.current.process.faults += 1
        self.tell(f"FAULT {fault.value}")
        return True

    def _die(self, task: Task, where: str) -> None:
        self.tell(f"the process {task.process.name} dies {where}")
        self.kill(task.process)
        raise GreenletExit

    def _effect(
        self,
        task: Task | None,
        port: str,
        method: str,
        effect: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        try:
            answer = effect(*args, **kwargs)
        except CarillonError as error:
            self.tell(f"{port}.{method} raises {error!r}")
            raise
        if self.trace is not None:
            self.tell(f"{port}.{method}({', '.join(map(_short, args))}) -> {_short(answer)}")
        for observer in self.observers:
            observer(task, port, method, args, answer)
        return answer

    def tell(self, text: str) -> None:
        """A line of the trace."""
        if self.trace is not None:
            who = "" if self.current is None else self.current.name
            self.trace(f"{self.instant():%Y-%m-%d %H:%M:%S.%f} {who}: {text}")

    def _wait(self, task: Task, wait_us: int) -> None:
        at_us = self.us + wait_us
        comes_next = at_us <= self._until_us and (not self._heap or at_us < self._heap[0][0])
        if comes_next and task.process.is_alive:
            # Nothing comes between: it goes on as if the loop had resumed it.
            self.steps += 1
            self.us = at_us
            return
        self._schedule(task, at_us)
        self._switch(task)

    def _schedule(self, task: Task, at_us: int) -> None:
        self._count += 1
        tie = 0
        if self.interleaves:
            tie = task.ties.first_of(task.steps)
        heappush(self._heap, (at_us, tie, self._count, task))

    def _switch(self, task: Task) -> None:
        self.hub.switch()
        if not task.process.is_alive:
            raise GreenletExit

    def _resume(self, task: Task) -> None:
        self.current = task
        task.switch()
        self.current = None


def _short(value: object) -> str:
    if isinstance(value, Iterator):  # its own words are its address, which no replay repeats
        return f"<{type(value).__name__}>"
    text = repr(value) if not hasattr(value, "run_id") else str(value.run_id)
    return text if len(text) <= 160 else f"{text[:150]}..."
