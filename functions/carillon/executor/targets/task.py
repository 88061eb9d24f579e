"""Task targets: registered Python functions, run in child processes."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from carillon.clock import Clock
from carillon.domain.execution.stopping import STOPPED
from carillon.domain.run import RunError
from carillon.domain.targets import TaskTarget
from carillon.executor.deadlines import Deadline
from carillon.executor.targets.call import Call, Caller, Failure, Outcome, Success
from carillon.executor.targets.task_credentials import TaskCredentials
from carillon.executor.task_process.parent import (
    CallTimeoutError,
    ChildLostError,
    ChildNotReadyError,
    TaskCode,
)
from carillon.executor.task_process.pool import MOST_SHARED, ChildPool, PoolBusyError
from carillon.executor.task_process.room import Room
from carillon.executor.task_process.wire import Report, Request, exception_line
from carillon.settings import Settings

OWN_TASKS = "carillon.executor.tasks.canary"
"""The deployment's, whatever modules its owners' tasks are in."""


def create_caller(settings: Settings, clock: Clock) -> "TaskCaller":
    credentials = TaskCredentials(settings.task_role_arn, clock)
    code = TaskCode((OWN_TASKS, *settings.task_modules), settings.task_folder)
    return TaskCaller(ChildPool(code, credentials.kept), credentials.variables)


class TaskCaller(Caller):
    """Kinds of failure besides the classes of what tasks raise: `fail` (for good) and `retry`,
    which tasks ask for; `unknown_task` (for good), `task_import_failed`, `task_died`,
    `task_not_ready`, `task_not_started`, `timeout`."""

    def __init__(
        self,
        pool: ChildPool,
        variables: Callable[[Deadline], Mapping[str, str]] = lambda deadline: {},
        room: Room | None = None,
    ) -> None:
        """`room` is for calls of chunks (default: MOST_SHARED at once)."""
        self._pool = pool
        self._variables = variables
        self._room = room or Room(MOST_SHARED)

    @contextmanager
    def room(self) -> Iterator[bool]:
        has_room = self._room.take()
        try:
            yield has_room
        finally:
            if has_room:
                self._room.free()

    def deliver(self, target: TaskTarget, call: Call) -> Outcome:
        deadline = call.deadline()
        try:
            request = request_of(
                target,
                call,
                number=self._pool.next_number(),
                deadline_at=deadline.at,
                variables=self._variables(deadline),
            )
            return outcome_of(self._pool.run(request, deadline))
        except CallTimeoutError:
            return call.timed_out(f"the task was killed at its limit of {call.timeout_seconds:g} s")
        except (ChildNotReadyError, PoolBusyError, TimeoutError):
            return _not_ready(call)
        except ChildLostError as error:
            return Failure(RunError("task_died", exception_line(error)))
        except OSError as error:
            return Failure(RunError("task_not_started", exception_line(error)))

    def prepare(self, count: int) -> None:
        with contextlib.suppress(OSError):  # the first call will tell
            self._pool.prepare(count)

    def close(self) -> None:
        self._pool.close()


def _not_ready(call: Call) -> Failure:
    """The outcome of a call of which the task knows nothing: no time-out of its own."""
    if call.stopped.is_set():
        return Failure(STOPPED)
    message = f"no task process was ready within {call.timeout_seconds:g} s"
    return Failure(RunError("task_not_ready", message))


def request_of(
    target: TaskTarget,
    call: Call,
    *,
    number: int,
    deadline_at: float,
    variables: Mapping[str, str],
) -> Request:
    """The call as a task process takes it, with the environment's `variables` for it alone."""
    return Request(
        number=number,
        task=target.name,
        payload=call.payload,
        run_id=call.run_id,
        job_id=call.job_id,
        job_name=call.job_name,
        attempt=call.attempt,
        fire_at=call.fire_at.isoformat(),
        effective_at=(call.effective_at or call.fire_at).isoformat(),
        timeout_seconds=call.timeout_seconds,
        deadline_at=deadline_at,
        tags=dict(call.tags),
        traceparent=call.trace.traceparent if call.trace else "",
        keeps_whole=call.keeps_whole,
        variables=variables,
    )


def outcome_of(report: Report) -> Outcome:
    if report.error is None:
        return Success(report.result)
    return Failure(report.error, retry_after_seconds=report.retry_after_seconds)
