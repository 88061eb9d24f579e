"""MiniStack as a child process: started on loopback, waited for, and ended without a trace."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: The variable by which every process of a MiniStack can be known, whatever its process group.
MARK = "CARILLON_EMULATOR"


@dataclass(frozen=True)
class Family:
    """The processes of a MiniStack: its process group, and all that inherit its mark.

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


REPOSITORY = Path(__file__).resolve().parents[3]
INTERPRETER = REPOSITORY / ".venv-ministack" / "bin" / "python"
LAUNCHER = Path(__file__).with_name("launcher.py")

ACCOUNT_ID = "000000000000"
REGION = "us-east-1"
HOST = "127.0.0.1"

#: Where `make run` looks for its ports: below the ports that systems lend to outgoing connections.
STATE_PORTS = range(4566, 4666)
RECEIVER_PORTS = range(4666, 4766)

#: A minutely rule then fires within a fifth of a second of its minute.
SWEEP_SECONDS = 0.2
#: A message is then taken within about a tenth of a second of becoming visible.
WAKE_SECONDS = 0.05

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")


class EmulatorFailed(Exception):
    """MiniStack did not start, or did not stop; the message ends with the tail of its log."""


def free_port() -> int:
    """A port on loopback that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """True if a server could listen on this port of loopback now."""
    with socket.socket() as probe:
        # Like the server itself: connections that linger after a stop do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def port_of_state(
    state_directory: Path, name: str = "port", candidates: Iterable[int] = STATE_PORTS
) -> int:
    """The port that belongs to a state directory; chosen and noted there, as `name`, at first use.

    Saved queues hold their port in their addresses: under another one they would be dead without
    a word. So a port that is taken is an error here, never a reason to choose again.

    Raises:
        EmulatorFailed: the noted port is taken, or no candidate is free.
    """
    note = state_directory / name
    if note.exists():
        port = int(note.read_text())
        if not port_is_free(port):
            raise EmulatorFailed(
                f"port {port} belongs to the state in {state_directory} and is in use: "
                f"stop what listens there, or delete {state_directory} to begin anew"
            )
        return port
    for port in candidates:
        if port_is_free(port):
            state_directory.mkdir(parents=True, exist_ok=True)
            note.write_text(f"{port}\n")
            return port
    raise EmulatorFailed("none of the ports for the local stack is free")


def emulator_environment(
    port: int,
    temporary_directory: Path,
    state_directory: Path | None,
    inherited: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of MiniStack, which its Lambda workers inherit.

    Nothing of the caller's AWS set-up passes: neither credentials, nor profiles, nor endpoints.
    """
    environment = {name: inherited[name] for name in _INHERITED if name in inherited}
    environment |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "BIND_HOST": HOST,
        "DOCKER_HOST": f"unix://{temporary_directory}/no-docker.sock",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        # Surplus workers stay: a warmed slot must not grow cold in a quiet spell.
        "LAMBDA_WARM_TTL_SECONDS": "86400",
        "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
        "MINISTACK_REGION": REGION,
        "PYTHONUNBUFFERED": "1",
        "S3_DATA_DIR": str(temporary_directory / "s3"),
        "SFTP_ENABLED": "0",
        "STATE_DIR": str(temporary_directory / "state"),
        "TMPDIR": str(temporary_directory),
        "TZ": "UTC",
    }
    if state_directory is not None:
        environment |= {
            "PERSIST_STATE": "1",
            "S3_DATA_DIR": str(state_directory / "s3"),
            "S3_PERSIST": "1",
            "STATE_DIR": str(state_directory / "services"),
        }
    return environment


class Emulator:
    """A running MiniStack; a context manager that stops it.

    With a `state_directory` everything in it survives `stop()` (not a SIGKILL), and the port is
    the one that belongs to that state; without, it forgets, and listens on any free port.
    It has a process group of its own, so that a Ctrl-C in the terminal does not reach it and
    `stop()` ends every Lambda worker that it started, and theirs.

    Raises:
        EmulatorFailed: on entering, if it is not installed or not ready within the time limit.
    """

    def __init__(
        self,
        state_directory: Path | None = None,
        *,
        log_path: Path | None = None,
        start_timeout_seconds: float = 60.0,
        stop_timeout_seconds: float = 30.0,
        interpreter: Path = INTERPRETER,
    ) -> None:
        self.state_directory = state_directory
        self.port = 0
        self._given_log_path = log_path
        self._start_timeout_seconds = start_timeout_seconds
        self._stop_timeout_seconds = stop_timeout_seconds
        self._interpreter = interpreter
        self._temporary_directory = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = secrets.token_hex(16)

    @property
    def endpoint_url(self) -> str:
        """The address of every AWS service, for AWS_ENDPOINT_URL."""
        return f"http://{HOST}:{self.port}"

    @property
    def log_path(self) -> Path:
        """MiniStack's log, with everything that the functions log. Lost with the temporary
        directory unless there is a state directory or a path was given."""
        if self._given_log_path is not None:
            return self._given_log_path
        return (self.state_directory or self._temporary_directory) / "ministack.log"

    @property
    def family(self) -> Family:
        """Its processes. Raises EmulatorFailed when it is not running."""
        if self._process is None:
            raise EmulatorFailed("MiniStack is not running")
        return Family(self._process.pid, self._mark)

    def __enter__(self) -> Emulator:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start MiniStack and wait until it answers."""
        if not self._interpreter.exists():
            raise EmulatorFailed(f"MiniStack is not installed at {self._interpreter}: make setup")
        if self.state_directory is None:
            self.port = free_port()
            self._temporary_directory = Path(tempfile.mkdtemp(prefix="carillon-ministack-"))
        else:
            self.port = port_of_state(self.state_directory)
            self._temporary_directory = self.state_directory / "temporary"
            shutil.rmtree(self._temporary_directory, ignore_errors=True)
            self._temporary_directory.mkdir(parents=True)
        try:
            with self.log_path.open("wb") as log:
                self._launch(log)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def _launch(self, log: IO[bytes]) -> None:
        environment = emulator_environment(
            self.port, self._temporary_directory, self.state_directory, os.environ
        )
        self._process = subprocess.Popen(
            [
                str(self._interpreter),
                "-P",  # this folder's modules are not MiniStack's
                str(LAUNCHER),
                f"--sweep-seconds={SWEEP_SECONDS}",
                f"--wake-seconds={WAKE_SECONDS}",
            ],
            cwd=self._temporary_directory,
            env=environment | {MARK: self._mark},
            stdin=subprocess.PIPE,  # its end shows the launcher that we are gone
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        give_up_at = time.monotonic() + self._start_timeout_seconds
        while time.monotonic() < give_up_at:
            if self._process.poll() is not None:
                raise EmulatorFailed(f"MiniStack ended at once:\n{self.log_tail()}")
            if self._answers():
                return
            time.sleep(0.05)
        raise EmulatorFailed(
            f"MiniStack was not ready after {self._start_timeout_seconds:.0f} s:\n{self.log_tail()}"
        )

    def _answers(self) -> bool:
        # Not through a proxy, whatever the environment has.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.endpoint_url}/_ministack/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def log_tail(self, line_count: int = 30) -> str:
        """The last lines of the log."""
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError:
            return "(no log)"
        return "\n".join(lines[-line_count:])

    def stop(self) -> None:
        """Stop MiniStack, wait until its state is saved, and end what is left of its family.

        The server is asked first and its workers afterwards: the other way round it would start
        new workers while it shuts down. Does nothing if it is not running.

        Raises:
            EmulatorFailed: it did not stop in time, so that its state was not saved.
        """
        process, self._process = self._process, None
        if process is None:
            self._discard_temporary_directory()
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=self._stop_timeout_seconds)
            stopped = True
        except subprocess.TimeoutExpired:
            stopped = False
        Family(process.pid, self._mark).end()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        unsaved = [] if self.state_directory is None else self._unsaved()
        tail = self.log_tail()
        self._discard_temporary_directory()
        if not stopped:
            raise EmulatorFailed(f"MiniStack did not stop by itself; state is lost:\n{tail}")
        if unsaved:
            raise EmulatorFailed("MiniStack could not save its state:\n" + "\n".join(unsaved))

    def _unsaved(self) -> list[str]:
        """Lines of the log about state that was not saved; MiniStack stops all the same."""
        lines = self.log_path.read_text(errors="replace").splitlines()
        return [line for line in lines if "Persistence: failed" in line or "error getting" in line]

    def _discard_temporary_directory(self) -> None:
        if self._temporary_directory != Path():
            shutil.rmtree(self._temporary_directory, ignore_errors=True)
