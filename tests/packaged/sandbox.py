"""What Lambda grants a function and no more, as far as this machine can withhold it."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
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


def limits() -> str:
    """Which of both hold on this machine, found by trying."""
    with subprocess.Popen(["sleep", "60"]) as process:
        share = CpuShare(process.pid, MEMORY_MB_OF_A_CPU)
        process.kill()
    share.end()
    cpu = share.by or "none, functions have all of it"
    mounts = "yes" if can_withhold() else "no, functions may write where their code lies"
    return f"CPU share: {cpu}; mount namespace: {mounts}"


class CpuShare:
    """A share of one processor for a process and what it starts, `by` the control groups of this
    machine where we may make one; else all of it, by nothing ("")."""

    def __init__(self, process_id: int, memory_mb: int) -> None:
        quota_us = _PERIOD_US * memory_mb // MEMORY_MB_OF_A_CPU
        if (_GROUPS / "cgroup.controllers").exists():
            parent, self.by = _GROUPS, "cgroup v2"
            texts = {"cpu.max": f"{quota_us} {_PERIOD_US}"}
        else:
            parent, self.by = _GROUPS / "cpu", "cgroup v1"
            texts = {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota_us)}
        self._group: Path | None = parent / f"carillon-{process_id}"
        try:
            self._group.mkdir(exist_ok=True)
            for name, text in texts.items():
                with (self._group / name).open("r+") as file:  # the kernel's: none is created
                    file.write(text)
            (self._group / "cgroup.procs").write_text(str(process_id))
        except OSError:
            with suppress(OSError):
                self._group.rmdir()
            self._group, self.by = None, ""

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
