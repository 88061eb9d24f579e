"""The tasks of task modules, found by importing these in a process of their own.

`python -m carillon.cdk.discovery OUTPUT FOLDER MODULE...` is that process: it writes what it has
found, or the reason why it could not, to OUTPUT.
"""

import importlib
import json
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from carillon.cdk.tasks import Tasks
from carillon.errors import ConfigurationError
from carillon.tasks import declared_jobs, registered_tasks


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job that is declared by `@job`, and where."""

    name: str
    settings: dict[str, Any]
    place: str


@dataclass(frozen=True, slots=True)
class Found:
    """The names of all tasks of a deployment, and the jobs that are declared beside them."""

    names: tuple[str, ...] = ()
    jobs: tuple[FoundJob, ...] = ()
    fault: str = ""

    @classmethod
    def from_json(cls, text: str) -> "Found":
        members: dict[str, Any] = json.loads(text)
        jobs = tuple(FoundJob(**each) for each in members["jobs"])
        return cls(tuple(members["names"]), jobs, members["fault"])


def discover(modules: Sequence[str], tasks: Tasks | None) -> Found:
    """Import the modules, with the requirements of `tasks` for this machine's platform.

    Raises ConfigurationError, naming file and line, for a module that cannot be imported, and for
    a task whose name is taken.
    """
    with tempfile.TemporaryDirectory() as directory:
        folder, output = Path(directory) / "tasks", Path(directory) / "found.json"
        if tasks is not None:
            tasks.build(folder, sys.executable)
        command = [sys.executable, "-m", "carillon.cdk.discovery", str(output), str(folder)]
        done = subprocess.run([*command, *modules], capture_output=True, text=True, check=False)
        if not output.exists():
            reason = done.stderr.strip() or f"exit code {done.returncode}"
            raise ConfigurationError("tasks", f"the import of {', '.join(modules)} ended: {reason}")
        found = Found.from_json(output.read_text())
    if found.fault:
        raise ConfigurationError("tasks", found.fault)
    return found


def _imported(folder: str, modules: Sequence[str]) -> Found:
    # In front, as in task processes.
    sys.path.insert(0, folder)
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            return Found(fault=f"{_place(error, Path(folder), module)}: {_words(error)}")
    jobs = tuple(
        FoundJob(each.name, dict(each.settings), _line(each.file, each.line, Path(folder)))
        for each in declared_jobs
    )
    return Found(registered_tasks.names, jobs)


def _place(error: BaseException, folder: Path, module: str) -> str:
    """The last line of the users' own code that led to the error."""
    if isinstance(error, SyntaxError) and error.filename:
        return _line(error.filename, error.lineno or 0, folder)
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if Path(each.filename).is_relative_to(folder)]
    if not own:
        return module
    return _line(own[-1].filename, own[-1].lineno or 0, folder)


def _line(filename: str, line: int, folder: Path) -> str:
    path = Path(filename)
    told = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else filename
    return f"{told}, line {line}"


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


if __name__ == "__main__":
    found = asdict(_imported(sys.argv[2], sys.argv[3:]))
    # A setting that is no JSON is refused as the text that it looks like.
    Path(sys.argv[1]).write_text(json.dumps(found, default=str))
