"""Targets for what a deployment cannot run: commands, images, other people's functions.

Each becomes a task that the user writes, or a call of one webhook. Neither the command nor the
environment goes into a job: both may hold secrets.
"""

import keyword
from collections.abc import Iterable
from dataclasses import dataclass, field

from carillon.importers.entries import Json, Note, Stub
from carillon.importers.names import TaskNames

TIME_LIMIT = (
    "An attempt ends after half of its interval, or 10 s, unless timeout_seconds says otherwise."
)

_HEAD = '''"""The tasks of an imported manifest, to be written; "was" is what ran before."""

from carillon.tasks import Fail, TaskContext, task
'''


@dataclass(frozen=True, slots=True)
class Stubs:
    """`prefix` stands before the names of tasks; with a `webhook` that is called instead."""

    prefix: str = ""
    webhook: str | None = None
    _names: TaskNames = field(default_factory=TaskNames)

    def target(
        self, wanted: str, run: str, arguments: Json | None = None
    ) -> tuple[Json, Note, Stub | None]:
        """The members `target` and `payload` of a job, for what `run` says; `arguments` are its
        own, and go along."""
        task = self._names.of(self.prefix + wanted, run)
        shown = one_line(run)
        if self.webhook is not None:
            target = {"type": "webhook", "url": self.webhook}
            note = Note("target", f"the webhook gets the task {task}; before it was: {shown}")
            return {"target": target, "payload": {"task": task, **(arguments or {})}}, note, None
        body: Json = {"target": {"type": "task", "name": task}}
        if arguments:
            body["payload"] = arguments
        note = Note("target", f"the task {task} is to be written; before it was: {shown}")
        return body, note, Stub(task, run)


def skeleton(stubs: Iterable[Stub]) -> str:
    """A Python module with the tasks; each fails until it is written."""
    parts, functions = [_HEAD], TaskNames()
    for word in (*keyword.kwlist, "Fail", "TaskContext", "task"):
        functions.of(word, "")  # no task's: its name is taken
    for stub in dict.fromkeys(stubs):
        function = functions.of(stub.task.replace(".", "_").replace("-", "_"), stub.task)
        parts.append(
            f'\n\n@task(name="{stub.task}")\n'
            f"def {function}(payload: object, context: TaskContext) -> object:\n"
            f"    # was: {one_line(stub.run)}\n"
            f'    raise Fail("{stub.task} is not written yet")\n'
        )
    return "".join(parts)


def one_line(text: str) -> str:
    """The text with its control characters shown."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
