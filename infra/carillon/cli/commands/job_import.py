"""`carillon jobs import`: many jobs from one file, each created once however often it is sent."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import uuid4

import typer

from carillon.cli.client import ApiClient, Json
from carillon.cli.display.progress import Show, no_progress, progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.inputs import parse_json, read_text
from carillon.cli.output import write_error, write_json, write_line
from carillon.cli.session import IdempotencyKeyOption, SessionOptions
from carillon.errors import InvalidFieldError

MOST_ITEMS = 1_000
MOST_BYTES = 1_000_000
"""Of the items of one request; the API takes a body of 1 MiB."""
_BUSY = 503
_IDLE_ROUNDS = 5

FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A job, as the body of POST /jobs, on each line; or a JSON array; - for stdin.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Item:
    """A job to create. `where` is its place in the file; `answer` the API's, once there is one."""

    where: str
    body: Json
    answer: Json | None = None

    @property
    def status(self) -> int:
        return _BUSY if self.answer is None else int(self.answer.get("status", 0))

    @property
    def is_created(self) -> bool:
        return self.status in (200, 201)

    def as_json(self) -> Json:
        answer = self.answer or {"status": _BUSY, "job_id": None, "problem": None}
        return {"where": self.where, **{name: answer.get(name) for name in _ANSWERED}}


_ANSWERED = ("status", "job_id", "problem")


def import_jobs(
    file: FileArgument,
    *,
    idempotency_key: IdempotencyKeyOption = None,
    session: SessionOptions,
) -> None:
    """Create the jobs of a file; those that are refused are named on stderr.

    Each job has an idempotency key: its own member `idempotency_key`, or KEY/0, KEY/1, ...
    With --json, {"items": [...], "created", "existing", "refused", "unavailable"}.
    """
    as_json = session.is_json
    key = idempotency_key or uuid4().hex  # an empty one would be shared by all files
    try:
        items = _with_keys(_items_of(read_text(file, "file")), key)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    api = session.connect()
    try:
        with progress_bar() as show:
            done = create_all(api, items, show=show)
    except CliError as error:
        if error.is_outcome_unknown:
            error.add(f"repeat with --idempotency-key {key}: no job is created twice")
        raise
    raise typer.Exit(_report(done, key, as_json))


def create_all(
    api: ApiClient,
    items: Sequence[Item],
    sleep: Callable[[float], None] = time.sleep,
    show: Show = no_progress,
) -> list[Item]:
    """The items with their answers, in order; `show` gets the progress.

    Those that the API did not reach are sent again, until five times in a row it reaches none.
    Raises CliError for a request that fails, unless it is busy in the midst of the work, or refused
    for what an item of it is.
    """
    done = list(items)
    idle_rounds = 0
    while idle_rounds < _IDLE_ROUNDS:
        left = [(number, item) for number, item in enumerate(done) if item.status == _BUSY]
        if not left:
            break
        if idle_rounds:
            sleep(2.0 ** (idle_rounds - 1))
        for chunk in _chunks(left):
            for number, item in _answered(api, chunk, is_begun=done != list(items)):
                done[number] = item
            reached = sum(item.status != _BUSY for item in done)
            show(f"{reached:,} of {len(done):,} jobs", reached, len(done))
        idle_rounds = (
            0 if any(done[number].status != _BUSY for number, _ in left) else idle_rounds + 1
        )
    return done


def _answered(
    api: ApiClient, chunk: Sequence[tuple[int, Item]], is_begun: bool
) -> Iterator[tuple[int, Item]]:
    try:
        answer = api.post("/jobs/bulk", {"items": [item.body for _, item in chunk]})
    except CliError as error:
        if error.exit_code == ExitCode.BAD_INPUT:
            yield from _told_apart(api, chunk, error)
            return
        if not is_begun or error.exit_code != ExitCode.UNREACHABLE:
            raise
        write_error(error.text(as_json=False))
        return
    for entry in answer.get("items", []):
        number, item = chunk[int(entry["index"])]
        yield number, replace(item, answer=entry)


def _told_apart(
    api: ApiClient, chunk: Sequence[tuple[int, Item]], refusal: CliError
) -> Iterator[tuple[int, Item]]:
    """The answers where a whole request was refused: for one item that is too large, or nested too
    deep. The halves are sent again, until that one is alone and has the refusal."""
    if len(chunk) > 1:
        middle = len(chunk) // 2
        for half in (chunk[:middle], chunk[middle:]):
            yield from _answered(api, half, is_begun=True)
        return
    number, item = chunk[0]
    status = refusal.problem.get("status")
    yield number, replace(item, answer={"status": status, "problem": refusal.problem})


def _chunks(items: Sequence[tuple[int, Item]]) -> Iterator[list[tuple[int, Item]]]:
    """The items in order, in groups within the limits of one request; an item beyond them is
    alone."""
    chunk: list[tuple[int, Item]] = []
    size = 0
    for numbered in items:
        length = len(json.dumps(numbered[1].body)) + 1
        if chunk and (len(chunk) == MOST_ITEMS or size + length > MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(numbered)
        size += length
    if chunk:
        yield chunk


def _items_of(text: str) -> list[Item]:
    """Raises InvalidFieldError on `file`, `line 3` or `items[2]`."""
    if text.lstrip().startswith("["):
        found = parse_json(text, "file")
        items = [Item(f"items[{number}]", body) for number, body in enumerate(found)]
    else:
        lines = enumerate(text.split("\n"), start=1)
        items = [
            Item(f"line {number}", parse_json(line, f"line {number}"))
            for number, line in lines
            if line.strip()
        ]
    for item in items:
        if not isinstance(item.body, dict):
            raise InvalidFieldError(item.where, "must be a JSON object, the body of POST /jobs")
    if not items:
        raise InvalidFieldError("file", "holds no job")
    return items


def _with_keys(items: Sequence[Item], key: str) -> list[Item]:
    return [
        item
        if item.body.get("idempotency_key") is not None
        else replace(item, body={**item.body, "idempotency_key": f"{key}/{number}"})
        for number, item in enumerate(items)
    ]


def _report(items: Sequence[Item], key: str, as_json: bool) -> ExitCode:
    counts = {
        "created": sum(item.status == 201 for item in items),
        "existing": sum(item.status == 200 for item in items),
        "refused": sum(not item.is_created and item.status != _BUSY for item in items),
        "unavailable": sum(item.status == _BUSY for item in items),
    }
    if as_json:
        write_json({"items": [item.as_json() for item in items], **counts})
    else:
        write_line(", ".join(f"{name} {count:,}" for name, count in counts.items()))
        for item in items:
            if not item.is_created:
                write_error(f"{item.where}: {_problem_text(item)}")
    if counts["unavailable"]:
        write_error(f"Repeat with --idempotency-key {key} for those that were not reached")
        return ExitCode.UNREACHABLE
    return ExitCode.BAD_INPUT if counts["refused"] else ExitCode.OK


def _problem_text(item: Item) -> str:
    problem: Any = (item.answer or {}).get("problem")
    if not isinstance(problem, dict):
        return "not reached" if item.status == _BUSY else f"status {item.status}"
    return CliError(ExitCode.BAD_INPUT, problem).text(as_json=False).removeprefix("Error: ")
