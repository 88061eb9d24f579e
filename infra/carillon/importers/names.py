"""Names of jobs and tasks, made of what other schedulers call theirs."""

import re

from carillon.domain.spec.names import folded, is_job_id

LONGEST_NAME = 128
_NOT_IN_JOBS = re.compile(r"[/\\%?#]+")
_NOT_IN_TASKS = re.compile(r"[^A-Za-z0-9_.-]+")


class JobNames:
    """Gives each name once, whatever its case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """The wanted name, made fit for a job; numbered where another job has it."""
        first = name = _fit(wanted)
        number = 2
        while folded(name) in self._taken:
            ending = f"-{number}"
            name = first[: LONGEST_NAME - len(ending)].rstrip() + ending
            number += 1
        self._taken.add(folded(name))
        return name


class TaskNames:
    """Gives each thing that is run one name, and two things never the same."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}

    def of(self, wanted: str, run: str) -> str:
        """The name of the task that is to do what `run` did."""
        first = name = _task(wanted)
        number = 2
        while self._runs.setdefault(name, run) != run:
            ending = f"_{number}"
            name = first[: LONGEST_NAME - len(ending)] + ending
            number += 1
        return name


def _fit(wanted: str) -> str:
    """The text with `-` for what no name may have, cut."""
    shown = "".join(letter if letter.isprintable() else " " for letter in wanted)
    name = _NOT_IN_JOBS.sub("-", " ".join(shown.split())).lstrip(" .")[:LONGEST_NAME].rstrip()
    if not name:
        return "job"
    return f"{name}-job" if is_job_id(folded(name)) else name


def _task(wanted: str) -> str:
    name = _NOT_IN_TASKS.sub("_", wanted).strip("_-.")
    if not re.match("[A-Za-z_]", name):
        name = f"task_{name}" if name else "task"
    return name[:LONGEST_NAME]
