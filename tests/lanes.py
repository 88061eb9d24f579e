"""What `make test` runs, in lanes beside each other: `python -m tests.lanes [part ...]`.

Deployed stacks mostly wait, and some for minutes: they begin at once, one after the other. Beside
them two processes at a time do everything else, at a lower priority, so that the stacks keep time;
three, once those have ended.
A line comes when a part ends; what the red ones printed comes last.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from threading import Event, Lock, Thread, Timer
from time import monotonic

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 3000
"""No part takes so long on a machine that works."""
GRACE_SECONDS = 45
"""What ending a stack may take, with all of its workers."""


@dataclass(frozen=True)
class Part:
    """Folders or files of tests without some of them, or a command where there is one."""

    name: str
    paths: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        # Importing this plugin takes longer than pytest's start, and one folder needs it.
        options = [] if "tests/unit/api" in self.paths else ["-p", "no:schemathesis"]
        options += [f"--ignore={path}" for path in self.without]
        return [*self.command] or [sys.executable, "-m", "pytest", *self.paths, *options]

    def holds(self, path: Path) -> bool:
        """Whether a file of tests is one of this part."""

        def inside(paths: Iterable[str]) -> bool:
            return any(path.is_relative_to(ROOT / each) for each in paths)

        return inside(self.paths) and not inside(self.without)


def _rest(folder: str, *apart: str) -> list[Part]:
    """Some subfolders as parts of their own, and one of all that is left."""
    paths = tuple(f"{folder}/{name}" for name in apart)
    return [*(Part(path, (path,)) for path in paths), Part(folder, (folder,), without=paths)]


STACKS = [
    # Alone among the stacks, and first: its promises are about time.
    Part("tests/e2e/chaos", ("tests/e2e/chaos",)),
    Part(
        "tests/e2e",
        ("tests/e2e",),
        without=("tests/e2e/chaos",),
        command=(sys.executable, "-m", "tests.e2e"),
    ),
]
REST = [
    *_rest("tests/simulation", "mutants", "races", "worlds"),
    *_rest("tests/unit", "schedules", "api", "executor"),
    Part("tests/models", ("tests/models",)),
    Part("tests/contract", ("tests/contract",)),
    Part("tests/integration", ("tests/integration",)),
    Part("tests/browser", ("tests/browser",)),
    # Together, since the CDK library takes longer to load than a stack to synthesise.
    Part("tests/infra+packaged", ("tests/packaged", "tests/infra")),
    Part("check", command=("make", "check")),
]
EVERYTHING = [*STACKS, *REST]


@dataclass(frozen=True)
class Lane:
    """Parts, how many of them at a time, and by how much they give way to others. Who finds none
    left goes on with the next lane."""

    parts: Sequence[Part]
    count: int
    nice: int


@dataclass(frozen=True)
class Ended:
    """How a part ended, and what it printed."""

    part: Part
    code: int
    output: Path


@dataclass
class Lanes:
    """Runs parts, each lane one after the other; knows what is under way."""

    logs: Path
    limit_seconds: float = LIMIT_SECONDS
    grace_seconds: float = GRACE_SECONDS
    ended: list[Ended] = field(default_factory=list)
    _under_way: set[int] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)
    _over: Event = field(default_factory=Event)

    def run(self, lanes: Iterable[Lane]) -> None:
        """Work off all lanes.

        Raises KeyboardInterrupt after having ended everything, if that comes meanwhile.
        """
        waiting = [(lane, deque(lane.parts)) for lane in lanes]
        threads = [
            Thread(target=self._work, args=(waiting[place:],), daemon=True)
            for place, (lane, _) in enumerate(waiting)
            for _ in range(lane.count)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            self._end(threads)

    def _work(self, waiting: "Sequence[tuple[Lane, deque[Part]]]") -> None:
        while True:
            with self._lock:
                lane, parts = next(filter(itemgetter(1), waiting), (None, None))
                if self._over.is_set() or lane is None or parts is None:
                    return
                part = parts.popleft()
                output = self.logs / part.name.replace("/", "-")
                process = _start(part, lane.nice, output)
                self._under_way.add(process.pid)
            began = monotonic()
            timer = Timer(self.limit_seconds, _signal, (process.pid, signal.SIGKILL))
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            _signal(process.pid, signal.SIGKILL)  # what it has left behind
            cpu = usage.ru_utime + usage.ru_stime
            with self._lock:
                self._under_way.discard(process.pid)
                self.ended.append(Ended(part, process.returncode, output))
                color = "red  " if process.returncode else "green"
                _say(f"{color}  {part.name:22}{monotonic() - began:5.0f} s, CPU {cpu:4.0f} s")

    def _end(self, threads: Sequence[Thread]) -> None:
        with self._lock:
            self._over.set()
            under_way = [*self._under_way]
        for process_id in under_way:
            _signal(process_id, signal.SIGINT)
        give_up_at = monotonic() + self.grace_seconds
        for thread in threads:
            if thread.ident is not None:
                thread.join(max(0.0, give_up_at - monotonic()))
        for process_id in [*self._under_way]:
            _signal(process_id, signal.SIGKILL)


def _start(part: Part, nice: int, output: Path) -> "subprocess.Popen[bytes]":
    """Start a part in a process group of its own, which is reached whatever it starts."""
    # Dozens of processes would compile all that they import.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with output.open("wb") as log:
        process = subprocess.Popen(
            ["nice", "-n", str(nice), *part.words],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Where Linux shares processors out among sessions, it goes by this niceness alone.
    with contextlib.suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(str(nice))
    return process


def _signal(process_id: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process_id, number)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(names: Sequence[str]) -> int:
    def chosen(parts: Sequence[Part]) -> list[Part]:
        return [part for part in parts if not names or part.name in names]

    # Also where SIGINT is ignored, as under `nohup make test &`: tests and their children want it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began = monotonic()
    with tempfile.TemporaryDirectory() as directory:
        lanes = Lanes(Path(directory))
        try:
            lanes.run([Lane(chosen(STACKS), 1, nice=0), Lane(chosen(REST), 2, nice=10)])
        except KeyboardInterrupt:
            _say("interrupted: everything has been ended")
            return 130
        green = {each.part for each in lanes.ended if each.code == 0}
        for each in lanes.ended:
            if each.code:
                _say(f"\n== {each.part.name}\n{each.output.read_text(errors='replace')}")
    red = [part.name for part in chosen(EVERYTHING) if part not in green]
    took = f"{(monotonic() - began) / 60:.1f} minutes"
    _say(f"red: {', '.join(red)}; {took}" if red else f"green; {took}")
    return 1 if red else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
