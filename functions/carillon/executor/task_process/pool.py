"""The child processes of one executor: so many at most, and an order for the calls that wait."""

import contextlib
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from threading import Event, Lock

from carillon.executor.deadlines import Deadline
from carillon.executor.task_process.parent import (
    ChildLostError,
    ChildNotReadyError,
    ChildProcess,
    TaskCode,
)
from carillon.executor.task_process.wire import Report, Request

MOST_SHARED = 5
"""Calls of chunks at once: of all the others in a process, each would wait for one that lasts."""
MOST_CHILDREN = 10 + MOST_SHARED
"""As many as a batch has messages that run side by side besides: none of their calls waits."""


class PoolBusyError(Exception):
    """No child was free in time: nothing was started, and the task knows of no call."""


class ChildPool:
    """Has `limit` children at most, idle ones included; usable from several threads.

    A call without a free child waits for one; who waits longest is served first.
    """

    def __init__(
        self,
        code: TaskCode,
        variables: Callable[[], Mapping[str, str]] = dict,
        *,
        limit: int = MOST_CHILDREN,
        log_level: str = "INFO",
    ) -> None:
        self._code = code
        self._variables = variables
        self._limit = limit
        self._log_level = log_level
        self._idle: list[ChildProcess] = []
        self._taken = 0
        """Places that are in use, each for one child: by a call, or by a start in advance. With the
        idle children they are never more than the limit, but while a call takes an idle one."""
        self._waiting: deque[Event] = deque()
        """Calls without a place, the oldest first. An event that is set is a place handed over."""
        self._lock = Lock()
        self._closed = False
        self._numbers = itertools.count(1)

    def next_number(self) -> int:
        """A number for a request, unique in this process."""
        return next(self._numbers)

    def prepare(self, count: int) -> None:
        """Have `count` children idle or starting, as far as the limit permits, without waiting for
        them. Raises OSError when none can be started."""
        while True:
            with self._lock:
                wanted = min(count, self._limit - self._taken)
                if self._closed or len(self._idle) >= wanted:
                    return
                self._taken += 1
            self._put_back(self._started())

    def run(self, request: Request, deadline: Deadline) -> Report:
        """Run a request in a child of its own until `deadline`, of which waiting for a child is a
        part.

        Raises PoolBusyError, when no child was free in time; CallTimeoutError and ChildLostError,
        after which the child is gone; ChildNotReadyError, when a new child took longer than that to
        start (it is kept for later calls); OSError when none can be started.
        """
        self._take_place(deadline)
        child = self._idle_child() or self._started()
        try:
            report = child.call(request, deadline)
        except ChildNotReadyError:
            self._put_back(child)
            raise
        except BaseException:
            self._end(child)
            self._replace()
            raise
        if child.reusable:
            self._put_back(child)
        else:
            self._end(child)
        return report

    def close(self) -> None:
        """End the idle children, and those at work as soon as their calls end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _take_place(self, until: Deadline) -> None:
        """Wait for a place; raises PoolBusyError. Places are handed over in order: none is free
        while a call waits."""
        with self._lock:
            if self._taken < self._limit:
                self._taken += 1
                return
            place = Event()
            self._waiting.append(place)
        while not (place.wait(until.poll_seconds()) or until.passed):
            pass
        if until.passed:
            self._give_up(place)
            raise PoolBusyError("no task process was free in time")

    def _give_up(self, place: Event) -> None:
        with self._lock:
            if place in self._waiting:
                self._waiting.remove(place)
                return
        self._free_place()  # it has come at the last moment

    def _free_place(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken -= 1

    def _idle_child(self) -> ChildProcess | None:
        """The idle child that was used last; else the one that starts longest; None if there is
        none."""
        chosen: ChildProcess | None = None
        dead: list[ChildProcess] = []
        with self._lock:
            for child in reversed(self._idle):
                try:
                    ready = child.is_ready()
                except ChildLostError:
                    dead.append(child)
                    continue
                chosen = child
                if ready:
                    break
            gone = {id(child) for child in (*dead, chosen)}
            self._idle = [child for child in self._idle if id(child) not in gone]
        for child in dead:
            child.end()
        return chosen

    def _started(self) -> ChildProcess:
        """A new child, for a place that is taken, and freed again when it cannot be started."""
        try:
            return ChildProcess(self._code, self._log_level, self._variables())
        except BaseException:
            self._free_place()
            raise

    def _put_back(self, child: ChildProcess) -> None:
        """Let a child be idle, and free its place."""
        with self._lock:
            kept = not self._closed
            if kept:
                self._idle.append(child)
        if kept:
            self._free_place()
        else:
            self._end(child)

    def _end(self, child: ChildProcess) -> None:
        try:
            child.end()
        finally:
            self._free_place()

    def _replace(self) -> None:
        """Start one child in advance if none is left for the next call."""
        with contextlib.suppress(OSError):  # the next call will notice
            self.prepare(1)
