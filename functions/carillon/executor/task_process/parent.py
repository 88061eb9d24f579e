"""A child process that runs tasks: start, call, kill."""

import contextlib
import itertools
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from subprocess import DEVNULL, Popen, TimeoutExpired

from carillon.executor.deadlines import Deadline
from carillon.executor.task_process.descendants import MARK, count_children, kill_descendants
from carillon.executor.task_process.wire import Hello, Report, Request
from carillon.settings import task_environment

# The parent's sys.path goes along: in Lambda it is not the interpreter's own.
_START = (
    "import sys; sys.path[:] = sys.argv[6:]; "
    "from carillon.executor.task_process.child import main; main(int(sys.argv[1]), *sys.argv[2:6])"
)
_numbers = itertools.count(1)
_DYING_SECONDS = 1.0
_LINE_LIMIT_BYTES = 1024 * 1024
_MOST_BELOW = 20
"""A child that has left this many of its own unreaped, or adopted this many, is not used again:
they would gather below it without end."""


class ChildLostError(Exception):
    """The child died, or is of no more use; the message has the reason."""


class ChildNotReadyError(Exception):
    """The child was still starting when the time was over; it may be used later."""


class CallTimeoutError(Exception):
    """The call did not end in time; the child is still at it."""


@dataclass(frozen=True, slots=True)
class TaskCode:
    """The modules of the tasks, and the folder that task processes alone have on their path: in
    front, so that what tasks require wins there, and cannot be met by the executor."""

    modules: tuple[str, ...]
    folder: str = ""


class ChildProcess:
    """One child; used by one thread at a time. Raises OSError when it cannot be started.

    `variables` are its own, beside those that all tasks see."""

    def __init__(self, code: TaskCode, log_level: str, variables: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair()
        self._unread = b""
        self._hello: Hello | None = None
        self._mark = f"{os.getpid()}-{next(_numbers)}"
        descriptor = theirs.fileno()
        arguments = [str(descriptor), log_level, ",".join(code.modules), code.folder, self._mark]
        try:
            self._process = Popen(
                [sys.executable, "-c", _START, *arguments, *sys.path],
                stdin=DEVNULL,
                stdout=2,
                pass_fds=(descriptor,),
                start_new_session=True,
                env={**task_environment(), **variables, MARK: self._mark},
            )
        except BaseException:
            self._channel.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def reusable(self) -> bool:
        """True if it may serve more calls: not if a module could not be imported, nor if too much
        of what tasks have started is below it."""
        has_failures = self._hello is not None and bool(self._hello.import_failures)
        return not has_failures and count_children(self.pid) <= _MOST_BELOW

    def is_ready(self) -> bool:
        """True if it waits for a call, asked without waiting; raises ChildLostError."""
        try:
            self._wait_ready(Deadline.after(0))
        except ChildNotReadyError:
            return False
        if self._read_line(Deadline.after(0)) is not None:
            raise ChildLostError("the task process spoke although it was not asked")
        return True

    def call(self, request: Request, deadline: Deadline) -> Report:
        """Run one request; raises ChildNotReadyError, CallTimeoutError, ChildLostError.

        After the latter two the child must be ended.
        """
        self._wait_ready(deadline)
        self._write(request.to_line(), deadline)
        while (line := self._read_line(deadline)) is not None:
            try:
                report = Report.from_line(line)
            except (ValueError, TypeError) as error:
                raise ChildLostError("the task process answered what is no report") from error
            if report.number == request.number:
                return report
        raise CallTimeoutError

    def end(self) -> None:
        """Kill the child and what it started, and wait until it is gone; may be repeated."""
        # Stopped, it can start nothing more, and still adopts.
        self._signal_group(signal.SIGSTOP)
        kill_descendants(self.pid if self._process.poll() is None else None, self._mark)
        self._signal_group(signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def _signal_group(self, number: int) -> None:
        # macOS reports the latter for a group that is only a zombie.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _wait_ready(self, deadline: Deadline) -> None:
        if self._hello is not None:
            return
        line = self._read_line(deadline)
        if line is None:
            raise ChildNotReadyError
        try:
            self._hello = Hello.from_line(line)
        except (ValueError, TypeError) as error:
            raise ChildLostError("the task process did not start properly") from error

    def _write(self, line: bytes, deadline: Deadline) -> None:
        left = deadline.remaining()
        if not left:
            raise CallTimeoutError
        self._channel.settimeout(left)
        try:
            self._channel.sendall(line)
        except TimeoutError as error:
            raise CallTimeoutError from error
        except OSError as error:
            raise ChildLostError(self._how_it_died()) from error

    def _read_line(self, deadline: Deadline) -> bytes | None:
        """The next line, or None when there is none in time; raises ChildLostError."""
        while b"\n" not in self._unread:
            exited = self._process.poll() is not None
            # A fork of a silent child may hold the socket open after its death.
            self._channel.settimeout(deadline.poll_seconds())
            try:
                received = self._channel.recv(65536)
            except (TimeoutError, BlockingIOError):
                if exited:
                    raise ChildLostError(self._how_it_died()) from None
                if deadline.passed:
                    return None
                continue
            except OSError as error:
                raise ChildLostError(self._how_it_died()) from error
            if not received:
                raise ChildLostError(self._how_it_died())
            self._unread += received
            if len(self._unread) > _LINE_LIMIT_BYTES:
                raise ChildLostError("the task process answered without end")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _how_it_died(self) -> str:
        try:
            code = self._process.wait(_DYING_SECONDS)
        except TimeoutExpired:
            return "the task process closed its connection to the executor"
        when = "" if self._hello else " before it was ready"
        if code < 0:
            return f"the task process was killed by {_signal_name(-code)}{when}"
        return f"the task process exited with code {code}{when}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
