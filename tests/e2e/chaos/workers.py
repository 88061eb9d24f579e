"""The function workers of one emulator: found as its children, and killed by their ids."""

import contextlib
import os
import signal
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

from carillon.local.emulator import Emulator, EmulatorFailed

_FUNCTION = b"AWS_LAMBDA_FUNCTION_NAME="
_LISTENS = "0A"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that serves invocations of `function` (its name in the deployment)."""

    process_id: int
    function: str


@dataclass(frozen=True, slots=True)
class Kill:
    """A SIGKILL that met a living worker; `moment` says what it was caught at."""

    at: datetime
    worker: Worker
    moment: str


class Workers:
    """Lists and kills workers; several threads may share it.

    A process counts only while its parent is the emulator, which is looked at through a handle
    that cannot come to mean another process.
    """

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._lock = Lock()
        self.kills: list[Kill] = []

    def living(self, part_of_name: str = "") -> list[Worker]:
        """The workers whose function's name has this part, by process id; none while the emulator
        is down."""
        try:
            family = self._emulator.family
        except EmulatorFailed:
            return []
        found = []
        for process_id in sorted(family.members()):
            function = _function_of(process_id)
            if _parent_of(process_id) == family.group_id and function and part_of_name in function:
                found.append(Worker(process_id, function))
        return found

    def kill(self, worker: Worker, moment: str) -> bool:
        """Kill the worker; whether it was alive and is the emulator's."""
        with contextlib.suppress(OSError, EmulatorFailed):
            handle = os.pidfd_open(worker.process_id)
            try:
                alive = _parent_of(worker.process_id) == self._emulator.family.group_id
                if not alive or _function_of(worker.process_id) != worker.function:
                    return False
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)
            with self._lock:
                self.kills.append(Kill(datetime.now(UTC), worker, moment))
            return True
        return False

    def at_port(self, local_port: int) -> Worker | None:
        """The worker whose connection on loopback has this port at its own end."""
        inode = _inode_of(local_port)
        if inode is None:
            return None
        link = f"socket:[{inode}]"
        return next((each for each in self.living() if _holds(each.process_id, link)), None)

    def counts(self) -> Counter[str]:
        """How many kills caught workers at what."""
        return Counter(kill.moment for kill in self.kills)


def _function_of(process_id: int) -> str:
    """The function that a worker serves; "" for any other process."""
    try:
        variables = Path(f"/proc/{process_id}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    named = (each for each in variables if each.startswith(_FUNCTION))
    return next(named, _FUNCTION).removeprefix(_FUNCTION).decode()


def _parent_of(process_id: int) -> int:
    """The parent's id; 0 for a process that has ended, a zombie too."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text(errors="replace")
    except OSError:
        return 0
    state, parent = text.rpartition(")")[2].split()[:2]
    return 0 if state == "Z" else int(parent)


def _inode_of(local_port: int) -> str | None:
    """The inode of the connected socket at 127.0.0.1 with this port."""
    local = f"0100007F:{local_port:04X}"
    for row in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        columns = row.split()
        if columns[1] == local and columns[3] != _LISTENS:
            return columns[9]
    return None


def _holds(process_id: int, link: str) -> bool:
    with contextlib.suppress(OSError):
        for descriptor in Path(f"/proc/{process_id}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(descriptor) == link:
                    return True
    return False
