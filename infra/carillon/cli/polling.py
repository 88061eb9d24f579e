"""Waiting for an end: polling, progress on stderr, Ctrl-C."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from types import FrameType
from typing import Any, TypeVar

import typer

from carillon.cli.client import ApiClient, Json, operation_path
from carillon.cli.display.progress import Show, progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_answer, write_error

Seen = TypeVar("Seen")

_FAILURES_IN_A_ROW = 10


def looks(
    look: Callable[[], Seen],
    interval_seconds: float,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Seen]:
    """The results of `look`, for ever, with a pause after each.

    An API that is away for a moment does not end it: stderr shows that. Raises what `look` raises
    the tenth time in a row, and every CliError of another kind.
    """
    failures = 0
    while True:
        try:
            seen = look()
        except CliError as error:
            failures += 1
            if error.exit_code != ExitCode.UNREACHABLE or failures >= _FAILURES_IN_A_ROW:
                raise
            write_error(error.text(as_json))
        else:
            failures = 0
            yield seen
        sleep(interval_seconds)


INTERVAL_SECONDS = 2.0
_RUNS_IN_AN_ANSWER = 1_000
"""Those of a backfill that the API counts in one request."""
_UNDER_WAY = {"scheduled", "running", "retrying"}
_FAILED = {"dead", "timed_out"}


def finish(
    api: ApiClient,
    operation: Json,
    wait: bool,
    as_json: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show the operation, with `wait` once it is over; a backfill once its runs have ended, too,
    with a member `runs`: how many are in which state.

    Raises typer.Exit with 1 for one that was waited for and did not succeed, or has failed runs.
    """
    if wait:
        operation = _over(api, operation, as_json, sleep)
    write_answer(operation, as_json)
    failed = set(operation.get("runs", ())) & _FAILED
    if wait and (operation.get("state") != "succeeded" or failed):
        raise typer.Exit(ExitCode.UNEXPECTED)


def fraction_of(operation: Json) -> float | None:
    """Its progress in its span, in [0, 1]; None where that is unknown."""
    try:
        first, last, reached = (
            datetime.fromisoformat(str(operation[name])) for name in ("from", "to", "reached")
        )
        return min(max((reached - first) / (last - first), 0.0), 1.0)
    except (KeyError, ValueError, TypeError, ZeroDivisionError):
        return None


def _over(api: ApiClient, operation: Json, as_json: bool, sleep: Callable[[float], None]) -> Json:
    operation_id = str(operation.get("operation_id", ""))
    path = operation_path(operation_id)
    try:
        with progress_bar() as bar:
            show = partial(_show, bar)
            if operation.get("state") != "running" and operation.get("kind") != "backfill":
                return operation
            show(operation)
            sleep(INTERVAL_SECONDS)
            for operation in looks(lambda: _looked_at(api, path), INTERVAL_SECONDS, as_json, sleep):
                if not _goes_on(operation):
                    break
                show(operation)
                answers = sum(operation.get("runs", {}).values()) // _RUNS_IN_AN_ANSWER
                if answers:  # a look at what became of the runs asks for all of them
                    sleep(INTERVAL_SECONDS * answers)
    except KeyboardInterrupt:
        write_error(f"It continues: `carillon operations show {operation_id} --wait`, or `cancel`")
        raise
    return operation


def _looked_at(api: ApiClient, path: str) -> Json:
    """The operation; of a backfill that has sent all, with what became of its runs."""
    operation = api.get(path)
    if operation.get("kind") != "backfill" or operation.get("state") == "running":
        return operation
    counts: Counter[str] = Counter()
    cursor: str | None = None
    while True:
        page = api.get(f"{path}/outcomes", None if cursor is None else {"cursor": cursor})
        counts.update(page.get("counts", {}))
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    # A run has no row before it begins.
    unseen = int(operation.get("done", 0)) - sum(counts.values())
    counts.update({"scheduled": max(0, unseen)})
    return {**operation, "runs": {status: count for status, count in counts.items() if count}}


def _goes_on(operation: Json) -> bool:
    is_under_way = bool(set(operation.get("runs", ())) & _UNDER_WAY)
    return operation.get("state") == "running" or (
        is_under_way and operation.get("state") == "succeeded"
    )


def _show(bar: Show, operation: Json) -> None:
    fraction = fraction_of(operation)
    bar(_told(operation), fraction or 0.0, None if fraction is None else 1.0)


def _told(operation: Json) -> str:
    done, passed_over = operation.get("done", 0), operation.get("passed_over", 0)
    runs = ", ".join(f"{count} {status}" for status, count in operation.get("runs", {}).items())
    told = f"{operation.get('kind')}: {done} done, {passed_over} passed over"
    return f"{told}; {runs}" if runs else told


class Interrupts:
    """While it is entered the first SIGINT is only noted; the next one interrupts as usual."""

    def __init__(self) -> None:
        self.is_interrupted = False
        self._before: Any = None

    def go_on(self) -> bool:
        """True until somebody interrupts."""
        return not self.is_interrupted

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_interrupted:
            raise KeyboardInterrupt
        self.is_interrupted = True
