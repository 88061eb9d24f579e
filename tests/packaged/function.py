"""One execution environment of one function: the real awslambdaric with the packaged assets."""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from types import TracebackType
from typing import Any

from carillon.local.emulator import MARK, Family
from tests.packaged.runtime_api import RuntimeApi, RuntimeFailed
from tests.packaged.sandbox import CpuShare, can_withhold, withheld

LOAD_SECONDS = 90.0
"""On AWS it is 10; this machine may be busy."""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
CLIENT = ("awslambdaric", "simplejson", "snapshot-restore-py")
"""Lambda's runtime interface client and what it needs: its own, not the function's."""


@dataclass(frozen=True)
class Assets:
    """What the template's code and layer are unpacked to: /var/task and /opt on Lambda."""

    code: Path
    layer: Path


def link_client(directory: Path) -> None:
    """Make a folder of Lambda's runtime client alone, out of this environment's packages."""
    directory.mkdir()
    for name in CLIENT:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (directory / top).symlink_to(str(found.locate_file(top)))


class Function:
    """Runs the handler of a function of the template in a process of its own; a context manager.

    `properties` are those of the template, their references resolved.
    """

    def __init__(
        self,
        properties: Mapping[str, Any],
        assets: Assets,
        client: Path,
        *,
        share: bool = True,
        log_path: Path,
    ) -> None:
        self._properties = properties
        self._assets = assets
        self._client = client
        self._share = share
        self._log_path = log_path
        self._mark = secrets.token_hex(16)
        self._stack = ExitStack()

    def __enter__(self) -> "Function":
        arn = "arn:aws:lambda:us-east-1:123456789012:function:Carillon-Function:live"
        self._api = self._stack.enter_context(RuntimeApi(arn, self._properties["Timeout"]))
        log = self._stack.enter_context(self._log_path.open("ab"))
        self._process = subprocess.Popen(
            self._command(),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._stack.callback(self._end)
        if self._share:
            share = CpuShare(self._process.pid, self._properties["MemorySize"])
            self._stack.callback(share.end)
            self._stack.callback(self._end)
        try:
            self._api.wait_until_loaded(LOAD_SECONDS)
        except RuntimeFailed as error:
            self._stack.close()
            raise RuntimeFailed(f"{error}\n{self._log_path.read_text()[-4000:]}") from error
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def invoke(self, event: object) -> Any:
        """The function's answer. Raises RuntimeFailed with what it raised."""
        return self._api.invoke(event)

    def freeze(self, seconds: float) -> None:
        """Stop all its processes for so long, as Lambda does between invocations."""
        processes = self._family.members()
        for process_id in processes:
            os.kill(process_id, signal.SIGSTOP)
        time.sleep(seconds)
        for process_id in processes:
            os.kill(process_id, signal.SIGCONT)

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log_path.read_text()

    @property
    def cpu_seconds(self) -> float:
        """What it has used of a processor, with children that have ended."""
        columns = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, columns[11:15])) / TICKS_PER_SECOND

    @property
    def _family(self) -> Family:
        return Family(self._process.pid, self._mark)

    def _command(self) -> list[str]:
        # The interpreter below this environment, without its packages: only the layer has any.
        interpreter = str(getattr(sys, "_base_executable", sys.executable))
        command = [interpreter, "-S", "-m", "awslambdaric", str(self._properties["Handler"])]
        if not can_withhold():
            return command
        return withheld(command, [self._assets.code, self._assets.layer])

    def _environment(self) -> dict[str, str]:
        path = [self._assets.code, self._assets.layer / "python", self._client]
        runtime = str(self._properties["Runtime"])
        return {
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{runtime}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self._properties["MemorySize"]),
            "AWS_LAMBDA_FUNCTION_NAME": "Carillon-Function",
            "AWS_LAMBDA_FUNCTION_VERSION": "1",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "AWS_LAMBDA_LOG_GROUP_NAME": "group",
            "AWS_LAMBDA_LOG_STREAM_NAME": "stream",
            "AWS_LAMBDA_RUNTIME_API": self._api.address,
            "AWS_REGION": "us-east-1",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_SESSION_TOKEN": "test",
            "LAMBDA_TASK_ROOT": str(self._assets.code),
            "LANG": "en_US.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "TZ": ":UTC",
            "_HANDLER": str(self._properties["Handler"]),
            MARK: self._mark,
            **self._properties["Environment"]["Variables"],
        }

    def _end(self) -> None:
        for process_id in self._family.members():
            os.kill(process_id, signal.SIGKILL)
        self._process.wait()
