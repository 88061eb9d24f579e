"""Work on all jobs of a deployment that can be cut off and repeated: its bar and its exit codes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import typer

from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_done, write_error
from carillon.errors import QueueUnavailableError, StoreUnavailableError


class Progress(Protocol):
    """The progress so far; `left` are the reasons why something was left as it is."""

    left: list[str]


_P = TypeVar("_P", bound=Progress)


class Work(Protocol[_P]):
    done: _P

    def run(self, on_progress: Callable[[_P], None]) -> None: ...


def work_off(
    work: Work[_P],
    lines: Callable[[_P], Sequence[str]],
    told: Callable[[_P], Mapping[str, Any]],
    *,
    as_json: bool,
) -> None:
    """Do the work, and tell what was done in `lines`, the first of which is enough for the bar, or
    as JSON.

    Raises CliError where it was cut off, and typer.Exit where something is left as it is.
    """
    try:
        with progress_bar() as show:
            show("reading jobs")
            work.run(lambda done: show(lines(done)[0]))
    except (StoreUnavailableError, QueueUnavailableError) as error:
        detail = f"{error}; so far {lines(work.done)[0]}: repeat it"
        raise CliError.local(ExitCode.UNREACHABLE, "Not done to the end", detail) from error
    write_done("\n".join(lines(work.done)), told(work.done), as_json)
    for reason in work.done.left:
        write_error(f"left as it is: {reason}")
    if work.done.left:
        raise typer.Exit(ExitCode.UNEXPECTED)
