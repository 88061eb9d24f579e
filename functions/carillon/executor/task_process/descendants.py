"""All that a task process has started, in whatever sessions and groups, and its end.

Two marks find it. On Linux a task process adopts the orphans below it, so that they stay in its
tree while it lives, however often they fork. And all inherit a variable of its environment, by
which they are found once it has died by itself; only who has dropped that variable is not found
then. Where there is no /proc nothing is found: only the process group ends there.
"""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

MARK = "CARILLON_TASK_PROCESS"
"""The variable; each task process has another value."""

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
"""Processes that are being killed may fork until they are dead: the search is repeated this often
at most."""
_ROUND_SECONDS = 0.01

_Processes = Mapping[int, tuple[int, str]]
"""Parent's pid and state by pid."""


def adopt_orphans() -> None:
    """Make orphans below this process its children, if the system can do that."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def count_children(pid: int) -> int:
    """The children of a process that it has not waited for, adopted ones too; 0 where that is
    unknown."""
    try:
        return len((_PROC / f"{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return 0


def kill_descendants(root: int | None, mark: str) -> None:
    """Kill all below the process `root` (None: it is gone already), and all with the mark.

    `root` itself and this process are spared: they kill their group.
    """
    spared = {root, os.getpid()}
    for _ in range(_ROUNDS):
        processes = {pid: (parent, state) for pid, parent, state in _processes()}
        found = (_below(root, processes) | set(_marked(mark, processes))) - spared
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if all(processes[pid][1] in "ZX" for pid in found):
            return
        time.sleep(_ROUND_SECONDS)


def _processes() -> Iterator[tuple[int, int, str]]:
    for entry in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            yield int(entry.name), int(parent), state


def _below(root: int | None, processes: _Processes) -> set[int]:
    found: set[int] = set()
    parents = {root}
    while more := {pid for pid, (parent, _) in processes.items() if parent in parents} - found:
        found |= more
        parents = {*more}
    return found


def _marked(mark: str, processes: _Processes) -> Iterator[int]:
    wanted = f"{MARK}={mark}".encode()
    for pid in processes:
        with contextlib.suppress(OSError):
            if wanted in (_PROC / f"{pid}/environ").read_bytes().split(b"\0"):
                yield pid
