"""What Lambda grants a function and no more, as far as this machine can withhold it."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_CPU = Path("/sys/fs/cgroup/cpu")
_PERIOD_US = 100_000

MEMORY_MB_OF_A_CPU = 1769
"""So much memory comes with one whole processor (Lambda: configure function memory)."""


def can_withhold() -> bool:
    """Whether this process may make a mount namespace."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


_UNSHARE = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--map-root-user", "--mount"]


def withheld(command: Sequence[str], read_only: Sequence[Path]) -> list[str]:
    """The command, for which nothing can be written below `read_only`, nor to /dev/shm."""
    script = ["set -e", "mount -t tmpfs -o ro none /dev/shm"]
    for path in map(shlex.quote, map(str, read_only)):
        script += [f"mount --bind {path} {path}", f"mount -o remount,bind,ro {path}"]
    script.append(f"exec {shlex.join(command)}")
    return [*_UNSHARE, "sh", "-c", "\n".join(script)]


class CpuShare:
    """A share of one processor for a process and what it starts, where this machine has control
    groups (version 1) that we may make; else all of it."""

    def __init__(self, process_id: int, memory_mb: int) -> None:
        self._group: Path | None = _CPU / f"carillon-{process_id}"
        try:
            self._group.mkdir()
        except OSError:
            self._group = None
            return
        quota_us = _PERIOD_US * memory_mb // MEMORY_MB_OF_A_CPU
        (self._group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (self._group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (self._group / "cgroup.procs").write_text(str(process_id))

    def end(self) -> None:
        """Give the group back; children of a killed process are gone a moment after it."""
        if self._group is None:
            return
        give_up_at = time.monotonic() + 10
        while True:
            try:
                self._group.rmdir()
                return
            except OSError:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(0.05)
