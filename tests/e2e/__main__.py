"""The tests of two deployed stacks: `python -m tests.e2e`, as `make test` runs them.

Both stacks come from one synthesis. Tests that bear company run two at a time; those that spoil a
stack, flood it, or bring another one, come by themselves. Chaos has a stack of its own.
"""

import json
import os
import subprocess
import sys
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

from carillon.local.deployment import Deployment, synthesize
from carillon.local.emulator import REPOSITORY, Emulator
from tests.e2e.conftest import APP, CONTEXT, LONGEST_DELAY_SECONDS, SHARED, installed

JOBS = "tests/e2e/jobs"
STACKS = [
    [
        [
            "tests/e2e/runs",
            f"{JOBS}/test_api.py {JOBS}/test_firing.py {JOBS}/test_manifests.py",
            f"{JOBS}/test_teams.py {JOBS}/test_machines.py {JOBS}/test_handing_over.py",
            "tests/e2e/console",
            f"{JOBS}/test_schedules.py {JOBS}/test_targets.py",
        ],
        ["tests/e2e/drills/test_bad_items.py"],
    ],
    [
        ["tests/e2e/operators"],
        ["tests/e2e/foreign"],
        ["tests/e2e/drills/test_neighbours.py"],
    ],
]
"""For each stack what runs there, row after row; the sessions of a row bear company, the longest
first."""
MOST_AT_A_TIME = 2
"""With more, a slow machine has functions start for longer than their callers wait."""


@dataclass
class Session:
    """A pytest of its own."""

    paths: str
    output: Path
    process: "subprocess.Popen[bytes]"


@dataclass
class Track:
    """The sessions on one stack; those of the next row begin when all others have ended."""

    deployment: Deployment
    rows: list[deque[str]]
    logs: Path
    sessions: list[Session] = field(default_factory=list)

    def goes_on(self) -> bool:
        """True until all have ended; begins those whose turn it is."""
        under_way = sum(each.process.poll() is None for each in self.sessions)
        if not under_way:
            self.rows = [row for row in self.rows if row]
        while self.rows and self.rows[0] and under_way < MOST_AT_A_TIME:
            self.sessions.append(self._begun(self.rows[0].popleft()))
            under_way += 1
        return under_way > 0

    def _begun(self, paths: str) -> Session:
        words = [sys.executable, "-m", "pytest", "-p", "no:schemathesis", *paths.split()]
        environment = {**os.environ, SHARED: json.dumps(asdict(self.deployment))}
        output = self.logs / paths.replace("/", "-")
        with output.open("wb") as log:
            process = subprocess.Popen(
                words, cwd=REPOSITORY, env=environment, stdout=log, stderr=log
            )
        return Session(paths, output, process)

    def end(self) -> None:
        for each in self.sessions:
            each.process.kill()
            each.process.wait()


def main() -> int:
    with ExitStack() as stacks:
        work = Path(stacks.enter_context(TemporaryDirectory()))
        emulators = [stacks.enter_context(Emulator()) for _ in STACKS]
        assembly = synthesize(
            emulators[0].endpoint_url,
            work,
            context=CONTEXT,
            app=APP,
            longest_delay_seconds=LONGEST_DELAY_SECONDS,
        )
        tracks: list[Track] = []
        for emulator, rows in zip(emulators, STACKS, strict=True):
            track = Track(installed(emulator.endpoint_url, assembly), [*map(deque, rows)], work)
            stacks.callback(track.end)
            track.goes_on()
            tracks.append(track)
        while sum(track.goes_on() for track in tracks):
            sleep(0.5)
        sessions = [each for track in tracks for each in track.sessions]
        for each in sessions:
            sys.stdout.write(f"\n== {each.paths}\n{each.output.read_text(errors='replace')}")
    return 1 if any(each.process.returncode for each in sessions) else 0


if __name__ == "__main__":
    raise SystemExit(main())
