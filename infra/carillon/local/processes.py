"""The processes of an emulator: found whatever group they moved to, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The variable by which every process of a MiniStack can be known, whatever its process group.
MARK = "CARILLON_EMULATOR"


@dataclass(frozen=True)
class Family:
    """What a MiniStack starts: its process group, and whatever inherits its mark.

    The executors give each task a process group of its own, so the group alone would miss them.
    """

    group_id: int
    mark: str

    def members(self) -> list[int]:
        """The ids of its living processes (zombies are not alive). Where there is no /proc the
        mark cannot be seen, and the group has to do."""
        return [
            process_id
            for process_id, group_id, state in _processes()
            if state != "Z" and (group_id == self.group_id or self._has_mark(process_id))
        ]

    def end(self, grace_seconds: float = 2.0) -> None:
        """Send SIGTERM to the group, and SIGKILL to every member that is left after the grace."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group_id, signal.SIGTERM)
        if self._are_gone_within(grace_seconds):
            return
        for process_id in self.members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        self._are_gone_within(grace_seconds)

    def _are_gone_within(self, seconds: float) -> bool:
        give_up_at = time.monotonic() + seconds
        while self.members():
            if time.monotonic() > give_up_at:
                return False
            time.sleep(0.02)
        return True

    def _has_mark(self, process_id: int) -> bool:
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{process_id}/environ").read_bytes()
            return f"{MARK}={self.mark}".encode() in environment.split(b"\0")
        return False


def _processes() -> Iterator[tuple[int, int, str]]:
    """Id, process group and state letter of every process: by /proc, or where there is none by
    `ps` (small images lack the command, other systems the folder)."""
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-A", "-o", "pid=", "-o", "pgid=", "-o", "stat="]
        listing = subprocess.run(command, capture_output=True, text=True, check=True)
        for row in map(str.split, listing.stdout.splitlines()):
            yield int(row[0]), int(row[1]), row[2][0]
        return
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # The name, in parentheses, may hold anything; what follows it is in columns.
            columns = path.read_text(errors="replace").rpartition(")")[2].split()
            yield int(path.parent.name), int(columns[2]), columns[0]
