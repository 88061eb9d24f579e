"""Tasks: the Python functions that a job may name as its target.

    from carillon.tasks import TaskContext, task

    @task
    def clean_up(payload, context):
        for item in payload["items"]:
            if context.expired:
                return {"stopped_at": item}
            ...

`@job(schedule="0 3 * * *", timezone="Europe/Riga")` makes a task, too, and declares the job that
calls it.

A task that raises fails: it is tried again by its job's retry policy. It may raise
`Retry(after=...)` to set the time, and `Fail(reason)` if no retry can help.

The executor runs them in child processes, which import the deployment's task modules once and
serve run after run; so a module's state lives from run to run, until a run is stopped or dies.
"""

import inspect
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from logging import Logger, LoggerAdapter
from typing import Any, TypeVar, overload

from carillon.errors import CarillonError, restored

EXPIRY_SHARE = 0.1
EXPIRY_RESERVE_SECONDS = 1.0
"""A task is asked to end when this share of its limit is left, at most this many seconds."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


class TaskRegistrationError(CarillonError):
    """A function cannot be registered as a task: its name is taken or not allowed, or its form."""


class UnknownTaskError(CarillonError):
    """No task has this name; the message names those that there are."""

    def __init__(self, name: str, registered: tuple[str, ...]) -> None:
        known = ", ".join(registered) if registered else "none"
        super().__init__(f"no task is registered as {name!r}; registered: {known}")


class Retry(Exception):
    """Raised by a task: this attempt failed, and the next is wanted `after` this many seconds.

    It counts as an attempt: with none left the run is a dead letter. Without `after` the job's
    backoff decides. The history keeps `reason` (cut at 512 bytes) under the kind `retry`.
    """

    after_seconds: float | None = None

    def __init__(self, after: float | timedelta | None = None, reason: str = "") -> None:
        """Raises ValueError for a negative or infinite time."""
        super().__init__(reason or "the task asks to be tried again")
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not 0 <= seconds < float("inf"):
            raise ValueError(f"after must be a time of 0 seconds or more, not {after!r}")
        if seconds is not None:
            self.after_seconds = float(seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.args, vars(self))


class Fail(Exception):
    """Raised by a task: this run failed for good, whatever attempts are left.

    The history keeps `reason` (cut at 512 bytes) under the kind `fail`.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason or "the task failed for good")


class TaskLogger(LoggerAdapter[Logger]):
    """A stdlib logger whose records carry the run's ids besides the call's own `extra`."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        bound: Mapping[str, object] = self.extra or {}
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **bound}
        return msg, kwargs


@dataclass(frozen=True, slots=True)
class TaskContext:
    """The facts that a task may use about its attempt.

    `run_id` is the same at every attempt of a run: the key to deduplicate by. `fire_at` is aware,
    in UTC; `effective_at` is when the run was to start: later than that in a window. `remaining()`
    answers the seconds until the hard stop, never below 0: the process is killed then.
    `timeout_seconds` is the whole limit of the attempt. `tags` are the job's. `traceparent` is the
    place of the call in the run's trace, by W3C Trace Context; "" in a deployment without tracing.
    """

    run_id: str
    job_id: str
    job_name: str
    attempt: int
    fire_at: datetime
    effective_at: datetime
    timeout_seconds: float
    tags: Mapping[str, str]
    remaining: Callable[[], float]
    logger: TaskLogger
    traceparent: str = ""

    @property
    def expired(self) -> bool:
        """True if it is time to end cleanly: the last tenth of the limit, at most its last second.

        Check often: a task that is still running when `remaining()` is 0 is killed.
        """
        reserve = min(EXPIRY_RESERVE_SECONDS, self.timeout_seconds * EXPIRY_SHARE)
        return self.remaining() <= reserve


TaskFunction = Callable[[Any, TaskContext], object]
"""Takes the payload (a JSON value) and the context; see `result` in the run for what it returns."""

_F = TypeVar("_F", bound=TaskFunction)


class TaskRegistry:
    """Task functions by name."""

    def __init__(self) -> None:
        self._functions: dict[str, TaskFunction] = {}

    def add(self, name: str, function: TaskFunction) -> None:
        """Raises TaskRegistrationError."""
        if not _NAME.fullmatch(name):
            raise TaskRegistrationError(
                f"{name!r} is no name for a task: letters, digits, '_', '.' and '-', "
                "beginning with a letter or '_', at most 128"
            )
        if name in self._functions:
            other = self._functions[name]
            raise TaskRegistrationError(
                f"{_place(function)} cannot be the task {name!r}: {_place(other)} is"
            )
        _check_form(name, function)
        self._functions[name] = function

    def find(self, name: str) -> TaskFunction:
        """Raises UnknownTaskError."""
        try:
            return self._functions[name]
        except KeyError:
            raise UnknownTaskError(name, self.names) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, in order."""
        return tuple(sorted(self._functions))


registered_tasks = TaskRegistry()
"""The registry of `@task`."""


@overload
def task(function: _F, /) -> _F: ...


@overload
def task(*, name: str) -> Callable[[_F], _F]: ...


def task(function: _F | None = None, /, *, name: str = "") -> _F | Callable[[_F], _F]:
    """Register a function as a task, under its own name or `name`; the function stays as it is.

    Raises TaskRegistrationError at import.
    """

    def register(decorated: _F) -> _F:
        registered_tasks.add(name or getattr(decorated, "__name__", ""), decorated)
        return decorated

    return register if function is None else register(function)


@dataclass(frozen=True, slots=True)
class DeclaredJob:
    """A job that calls the task of its own name: its settings, and the file and line of both."""

    name: str
    settings: Mapping[str, Any]
    file: str
    line: int


declared_jobs: list[DeclaredJob] = []
"""Those of `@job`."""


def job(*, schedule: object = None, name: str = "", **settings: Any) -> Callable[[_F], _F]:
    """Register a function as a task, and declare a job that calls it, of the same name.

    `schedule` (or `after`) and `settings` are members of a job (docs/settings.md). The job comes
    and goes with the decorator, at each deployment of the CDK app whose tasks these are. Raises
    TaskRegistrationError at import.
    """

    def register(decorated: _F) -> _F:
        code = getattr(inspect.unwrap(decorated), "__code__", None)
        own_name = name or getattr(decorated, "__name__", "")
        if "target" in settings:
            raise TaskRegistrationError(f"the job {own_name!r} calls its own task: omit `target`")
        registered_tasks.add(own_name, decorated)
        file, line = (code.co_filename, code.co_firstlineno) if code else ("", 0)
        members = settings if schedule is None else {"schedule": schedule, **settings}
        declared_jobs.append(DeclaredJob(own_name, members, file, line))
        return decorated

    return register


def _check_form(name: str, function: TaskFunction) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise TaskRegistrationError(f"the task {name!r} is async: it would never be awaited")
    if inspect.isgeneratorfunction(function):
        raise TaskRegistrationError(f"the task {name!r} is a generator: it would never be run")
    try:
        inspect.signature(function).bind(None, None)
    except TypeError as error:
        raise TaskRegistrationError(
            f"the task {name!r} must take (payload, context): {error}"
        ) from error


def _place(function: TaskFunction) -> str:
    name = getattr(function, "__qualname__", repr(function))
    return f"{getattr(function, '__module__', '?')}.{name}"
