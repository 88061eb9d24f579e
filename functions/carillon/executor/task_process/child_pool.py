"""Warm child processes, one call each at a time."""

import contextlib
import itertools
from collections.abc import Sequence
from threading import Lock

from carillon.executor.deadline import Deadline
from carillon.executor.task_process.parent import ChildLostError, ChildNotReadyError, ChildProcess
from carillon.executor.task_process.wire import Report, Request


class ChildPool:
    """Keeps up to `idle_limit` children that wait for calls; usable from several threads.

    Calls never wait for a child: where none is idle one more is started.
    """

    def __init__(
        self, task_modules: Sequence[str], *, idle_limit: int = 10, log_level: str = "INFO"
    ) -> None:
        self._task_modules = tuple(task_modules)
        self._idle_limit = idle_limit
        self._log_level = log_level
        self._idle: list[ChildProcess] = []
        self._lock = Lock()
        self._closed = False
        self._numbers = itertools.count(1)

    def next_number(self) -> int:
        """A number for a request, unique in this process."""
        return next(self._numbers)

    def prepare(self, count: int) -> None:
        """Have `count` children idle or starting (at most the limit), without waiting for them."""
        while True:
            with self._lock:
                if self._closed or len(self._idle) >= min(count, self._idle_limit):
                    return
            self._put_back(self._start())

    def run(self, request: Request, deadline: Deadline) -> Report:
        """Run a request in a child of its own until `deadline`.

        Raises CallTimeoutError and ChildLostError, after which the child is gone;
        ChildNotReadyError, when a new child took longer than that to start (it is kept for later
        calls); OSError when none can be started.
        """
        child = self._take()
        try:
            report = child.call(request, deadline)
        except ChildNotReadyError:
            self._put_back(child)
            raise
        except BaseException:
            child.end()
            self._replace()
            raise
        if child.reusable:
            self._put_back(child)
        else:
            child.end()
        return report

    def close(self) -> None:
        """End the idle children, and those at work as soon as their calls end."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _take(self) -> ChildProcess:
        """The idle child that was used last; else the one that starts longest; else a new one."""
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
        return chosen or self._start()

    def _put_back(self, child: ChildProcess) -> None:
        with self._lock:
            kept = not self._closed and len(self._idle) < self._idle_limit
            if kept:
                self._idle.append(child)
        if not kept:
            child.end()

    def _replace(self) -> None:
        """Start one child in advance if none is left for the next call."""
        with contextlib.suppress(OSError):  # the next call will tell
            self.prepare(1)

    def _start(self) -> ChildProcess:
        return ChildProcess(self._task_modules, self._log_level)
