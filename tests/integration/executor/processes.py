"""Task callers with real child processes, and what the operating system says about processes."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from carillon.domain.targets import TaskTarget
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.call import Call, Outcome
from carillon.executor.targets.task import TaskCaller, request_of
from carillon.executor.task_process.parent import TaskCode
from carillon.executor.task_process.pool import MOST_CHILDREN, ChildPool
from carillon.executor.task_process.wire import Report

SAMPLES = "carillon.executor.tasks.samples"
TASKS = "tests.integration.executor.child_tasks"


class Tasks:
    """A pool of children and a short way to call tasks in it."""

    def __init__(
        self,
        pool: ChildPool | None = None,
        variables: Callable[[Deadline], Mapping[str, str]] = lambda deadline: {},
    ) -> None:
        self.pool = pool or ChildPool(TaskCode((SAMPLES, TASKS)))
        self._caller = TaskCaller(self.pool, variables)

    def run(
        self,
        name: str,
        payload: str = "null",
        timeout_seconds: float = 20,
        stopped: Event | None = None,
    ) -> Outcome:
        call = _call(name, payload, timeout_seconds, stopped or Event())
        return self._caller.deliver(TaskTarget(name=name), call)

    def run_in_child(self, name: str, payload: str = "null", timeout_seconds: float = 20) -> Report:
        """Run a task by the pool alone; raises as that does."""
        call = _call(name, payload, timeout_seconds, Event())
        deadline = call.deadline()
        request = request_of(
            TaskTarget(name=name),
            call,
            number=self.pool.next_number(),
            deadline_at=deadline.at,
            variables={},
        )
        return self.pool.run(request, deadline)


def _call(name: str, payload: str, timeout_seconds: float, stopped: Event) -> Call:
    return Call(
        run_id=f"run-of-{name}",
        job_id="job",
        job_name="name",
        owner="user/owner",
        attempt=1,
        fire_at=datetime(2026, 1, 1, tzinfo=UTC),
        payload=payload,
        timeout_seconds=timeout_seconds,
        stopped=stopped,
    )


@contextmanager
def tasks(*modules: str, limit: int = MOST_CHILDREN) -> Iterator[Tasks]:
    caller = Tasks(ChildPool(TaskCode(modules or (SAMPLES, TASKS)), limit=limit))
    try:
        yield caller
    finally:
        caller.pool.close()


def children(of: int | None = None) -> set[int]:
    """The children of a process, or of this one; dead ones that nobody waited for included."""
    wanted = os.getpid() if of is None else of
    return {pid for pid, parent, _ in _stats(Path("/proc")) if parent == wanted}


def is_running(pid: int) -> bool:
    """Whether any thread of it lives: a process whose first thread has ended holds its files open
    until the last one ends."""
    return any(state not in "ZX" for _, _, state in _stats(Path(f"/proc/{pid}/task")))


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether the condition came true in time."""
    ends_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.01)
    return True


def written_pids(path: Path) -> list[int]:
    """The pids that a task wrote to the file."""
    assert wait_until(path.exists)
    return [int(word) for word in path.read_text().split()]


def _stats(folder: Path) -> Iterator[tuple[int, int, str]]:
    """Id, parent's pid and state of every process or thread of the folder."""
    for entry in folder.glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue
        state, parent, *_ = stat.rpartition(")")[2].split()
        yield int(entry.name), int(parent), state
