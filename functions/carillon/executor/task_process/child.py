"""The child process in which tasks run: imports the task modules once, then serves call after call.

Started by parent.py, which see for its life. It imports little: every import is lag.
"""

import faulthandler
import importlib
import inspect
import io
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Thread, current_thread, local, main_thread
from typing import BinaryIO, cast
from weakref import WeakSet

from carillon.domain.run import FAIL_KIND, RETRY_KIND, RunError, kept_text, one_line
from carillon.executor.deadlines import Deadline
from carillon.executor.task_process.descendants import adopt_orphans, kill_descendants
from carillon.executor.task_process.shown import show
from carillon.executor.task_process.wire import (
    Hello,
    Report,
    Request,
    exception_line,
    kind_of,
)
from carillon.tasks import (
    Fail,
    Retry,
    TaskContext,
    TaskLogger,
    TaskRegistry,
    UnknownTaskError,
    registered_tasks,
)

ACTION = "task.log"
"""The `action` of every record (carillon.telemetry.Action.TASK_LOG, which is slow to import)."""

MOST_LINES = 1_000
"""Of an attempt: what it logs and prints beyond these is dropped."""
LIMIT_CHARACTERS = 7_000
"""Of a message, of the end of a trace, and of a record's other members together: CloudWatch parts a
line of more than 256 KiB, and a character may take 12 bytes."""

_OWN_MEMBERS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_IDS = "run_ids"
"""The attribute of a record that has the ids of its logger's attempt."""
_RESERVED = frozenset({_IDS, "run_id", "job_id", "job_name", "attempt", "trace_id", "action"})


class JsonLines(logging.Formatter):
    """One JSON object per record, with the ids of the attempt under way as members.

    Only what that attempt logs has them. A thread that an earlier one has left behind, perhaps for
    another owner, logs without, and so do the threads that it starts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._ids: Mapping[str, object] = {}
        self._threads: WeakSet[Thread] = WeakSet()
        self._left = {True: MOST_LINES, False: MOST_LINES}

    def bind(self, ids: Mapping[str, object]) -> None:
        """Begin an attempt, the members of whose records these are."""
        if ids is not self._ids:
            self._threads.clear()  # before its ids are there to be read by one of them
        self._ids = ids
        self._left = {True: MOST_LINES, False: MOST_LINES}

    def watch_threads(self) -> None:
        """Let threads of this process belong to the attempt whose thread starts them."""
        start = Thread.start

        def start_as_own(thread: Thread) -> None:
            if self._is_own_thread():
                self._threads.add(thread)
            start(thread)

        Thread.start = start_as_own  # type: ignore[assignment,method-assign]

    def allows(self, record: logging.LogRecord) -> bool:
        """True for the first records of an attempt; the last of them says that there were more."""
        is_own = bool(self._ids_of(record))
        self._left[is_own] -= 1
        if self._left[is_own] == 0:
            record.msg, record.args = f"{MOST_LINES} lines of an attempt are kept: no more", ()
        return self._left[is_own] >= 0

    def format(self, record: logging.LogRecord) -> str:
        members: dict[str, object] = {
            "level": record.levelname,
            "message": record.getMessage()[:LIMIT_CHARACTERS],
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "service": "executor",
            "action": ACTION,
            "logger": record.name,
            **_extra(record),
            **self._ids_of(record),
        }
        if record.exc_info:
            text = "".join(traceback.format_exception(*record.exc_info))
            members["exception"] = text[-LIMIT_CHARACTERS:]
        return json.dumps(members, default=repr)

    def _ids_of(self, record: logging.LogRecord) -> Mapping[str, object]:
        """The ids of the attempt if the record is its own: by its thread, or by its logger, which a
        thread of somebody else's pool may use."""
        ids = self._ids  # read first: see `bind`
        is_own = self._is_own_thread() or getattr(record, _IDS, None) is ids
        return ids if is_own else {}

    def _is_own_thread(self) -> bool:
        current = current_thread()
        return current is main_thread() or current in self._threads


def _extra(record: logging.LogRecord) -> Mapping[str, object]:
    """The members that the caller has given: none that says whose the record is, so that no task
    writes in the name of another run, and the beginning of their text where they are too long."""
    left_out = _OWN_MEMBERS | _RESERVED
    extra = {key: value for key, value in vars(record).items() if key not in left_out}
    text = json.dumps(extra, default=repr, skipkeys=True)
    return extra if len(text) <= LIMIT_CHARACTERS else {"extra": text[:LIMIT_CHARACTERS]}


PRINTED = logging.getLogger("print")


class Printed(io.TextIOBase):
    """Standard output of tasks: each line becomes a record of the thread that prints it. Bytes go
    out as they are."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._begun = local()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    @property
    def buffer(self) -> BinaryIO:
        assert sys.__stdout__ is not None
        return cast(BinaryIO, sys.__stdout__.buffer)

    def write(self, text: str) -> int:
        *lines, begun = (getattr(self._begun, "line", "") + text).split("\n")
        # A record has no more of it, and to keep all of a line of dots takes ever longer per dot.
        self._begun.line = begun[:LIMIT_CHARACTERS]
        for line in filter(None, lines):
            PRINTED.info("%s", line)
        return len(text)

    def close(self) -> None:
        """Stay open: the tasks that come after the one that closes it print, too."""

    def end(self) -> None:
        """Log the line that the task's own thread has begun; to be called when it has ended."""
        self.write("\n")


def start_logging(level: str) -> JsonLines:
    """Send every logger of this process to standard error as JSON lines."""
    lines = JsonLines()
    # Of its own: a task may close sys.stderr, and what logs after that would raise.
    handler = logging.StreamHandler(os.fdopen(2, "w", encoding="utf-8", closefd=False))
    handler.setFormatter(lines)
    handler.addFilter(lines.allows)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Apart from the root, whose handlers may be a task's, on standard output: they would print
    # what they print for ever. What is printed has no level that one could leave it out by.
    PRINTED.propagate, PRINTED.handlers = False, [handler]
    PRINTED.setLevel(logging.INFO)
    return lines


def task_logger(name: str, ids: Mapping[str, object]) -> TaskLogger:
    return TaskLogger(logging.getLogger(name), {**ids, _IDS: ids})


OVERDUE_SECONDS = 1.0
"""A call that nobody stopped ends the process by itself this long after its limit."""


def main(descriptor: int, log_level: str, task_modules: str, folder: str, mark: str) -> None:
    """Serve on `descriptor`, a stream socket; `task_modules` are separated by commas, `folder` is
    theirs ("" for none), and `mark` is what all bear that this process starts."""
    os.set_inheritable(descriptor, False)
    adopt_orphans()
    lines: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_receive, args=(descriptor, lines, mark), daemon=True).start()
    logs = start_logging(log_level)
    logs.watch_threads()
    sys.stdout = printed = Printed()
    if folder:  # nothing is imported above but the standard library and Carillon's own
        sys.path.insert(0, folder)
    failures = import_modules(task_modules.split(","))
    _send(descriptor, Hello(failures).to_line())
    server = TaskServer(registered_tasks, failures, logs)
    own_pid = os.getpid()
    while True:
        request = Request.from_line(lines.get())
        faulthandler.dump_traceback_later(
            Deadline(request.deadline_at).remaining() + OVERDUE_SECONDS, exit=True, file=2
        )
        show(request.variables)
        report = server.serve(request)
        printed.end()
        if os.getpid() != own_pid:
            os._exit(0)  # a fork that a task made and did not end: it must not answer too
        faulthandler.cancel_dump_traceback_later()
        _send(descriptor, report.to_line())


def import_modules(names: Iterable[str]) -> dict[str, str]:
    """Import each module; answers those that failed, with the reason."""
    failures = {}
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:  # the others' tasks shall run
            traceback.print_exc()
            failures[name] = f"{type(error).__name__}: {exception_line(error)}"
    return failures


def _remaining(request: Request) -> Callable[[], float]:
    return Deadline(request.deadline_at).remaining


class TaskServer:
    """Runs one request at a time; `remaining` says how a request's task learns what time it has
    left."""

    def __init__(
        self,
        registry: TaskRegistry,
        import_failures: Mapping[str, str],
        logs: JsonLines,
        remaining: Callable[[Request], Callable[[], float]] = _remaining,
    ) -> None:
        self._registry = registry
        self._import_failures = import_failures
        self._logs = logs
        self._remaining = remaining

    def serve(self, request: Request) -> Report:
        """Run the task; whatever it raises is reported."""
        ids: dict[str, object] = {
            "run_id": request.run_id,
            "job_id": request.job_id,
            "job_name": request.job_name,
            "attempt": request.attempt,
        }
        if request.traceparent:
            ids["trace_id"] = request.traceparent.split("-")[1]
        self._logs.bind(ids)
        try:
            function = self._registry.find(request.task)
        except UnknownTaskError as error:
            return Report(request.number, error=self._not_found(error))
        context = TaskContext(
            run_id=request.run_id,
            job_id=request.job_id,
            job_name=request.job_name,
            attempt=request.attempt,
            fire_at=datetime.fromisoformat(request.fire_at),
            effective_at=datetime.fromisoformat(request.effective_at),
            timeout_seconds=request.timeout_seconds,
            tags=request.tags,
            remaining=self._remaining(request),
            logger=task_logger(f"task.{request.task}", ids),
            traceparent=request.traceparent,
        )
        try:
            returned = function(json.loads(request.payload), context)
            _refuse_unrun(returned)
            result = result_text(returned, whole=request.keeps_whole)
        except BaseException as error:  # sys.exit and KeyboardInterrupt too: the child continues
            self._logs.bind(ids)  # so that the reason is told after however many lines
            return _failed(request.number, error, context)
        return Report(request.number, result=result)

    def _not_found(self, error: UnknownTaskError) -> RunError:
        if not self._import_failures:
            return RunError("unknown_task", exception_line(error), permanent=True)
        reasons = "; ".join(f"{name}: {reason}" for name, reason in self._import_failures.items())
        # First, since the names of many tasks would leave no room for it.
        message = f"modules that could not be imported: {reasons}; {error}"
        return RunError("task_import_failed", one_line(message))


def _refuse_unrun(returned: object) -> None:
    """Raises Fail for a call that has only made what is to run, as that of an async function behind
    a decorator does: nobody runs it, and the run must not count as done."""
    is_unrun = (inspect.isawaitable, inspect.isgenerator, inspect.isasyncgen)
    if any(test(returned) for test in is_unrun):
        what = type(returned).__name__
        raise Fail(f"the task returned a {what}, which nobody runs: it has to run that itself")


def _failed(number: int, error: BaseException, context: TaskContext) -> Report:
    if isinstance(error, Retry):
        context.logger.warning("the task asks to be tried again: %s", exception_line(error))
    else:
        context.logger.error("the task failed", exc_info=error)
    return failure_of(number, error)


def failure_of(number: int, error: BaseException) -> Report:
    """The report of a task that raised this."""
    message = exception_line(error)
    if isinstance(error, Retry):
        return Report(number, None, RunError(RETRY_KIND, message), error.after_seconds)
    if isinstance(error, Fail):
        return Report(number, error=RunError(FAIL_KIND, message, permanent=True))
    return Report(number, error=RunError(kind_of(error), message))


def result_text(value: object, *, whole: bool = False) -> str | None:
    """A task's return value as the history keeps it, `whole` or its beginning: JSON, else its repr;
    None stays None."""
    if value is None:
        return None
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except Exception:  # not JSON: a foreign type, NaN, a cycle
        try:
            text = repr(value)
        except Exception:  # the task has succeeded all the same
            text = f"<{type(value).__name__}>"
    return kept_text(text, whole=whole)


def _receive(descriptor: int, lines: "SimpleQueue[bytes]", mark: str) -> None:
    """Pass the parent's lines on; when the parent is gone, end this process and what it started."""
    try:
        with open(descriptor, "rb", closefd=False) as channel:
            for line in channel:
                lines.put(line)
    finally:  # an end, or a reset if the parent had not read all
        kill_descendants(os.getpid(), mark)
        # Only ever the group that was made for this process.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)


def _send(descriptor: int, line: bytes) -> None:
    while line:
        line = line[os.write(descriptor, line) :]
