"""`carillon preview --batch`: an answer for each line of stdin, by a process that starts quickly.

Nothing of typer is imported here: half of the time of 5,000 lines would go into that.
"""

import gc
import json
import os
import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from carillon.cli.instants import utc_text
from carillon.cli.preview.local_schedule import LARGEST_COUNT, PreviewRequest, occurrences
from carillon.errors import InvalidFieldError

DEFAULT_COUNT = 10
_INTERRUPTED = 130
_MEMBERS = frozenset(
    ("schedule", "timezone", "after", "count", "start_at", "end_at", "max_runs", "except", "dst")
)
_EXTRAS = _MEMBERS - {"schedule", "timezone", "after", "count"}
_TEXT_OPTIONS = {
    "--timezone": "timezone",
    "--after": "after",
    "--start-at": "start_at",
    "--end-at": "end_at",
    "--dst-gap": "gap",
    "--dst-fold": "fold",
}
_NUMBER_OPTIONS = {"--count": "limit", "--max-runs": "max_runs"}


def request_of_options(**given: Any) -> PreviewRequest:
    """The options, and for those that were not given (None) what they are then."""
    now = utc_text(datetime.now(UTC).replace(microsecond=0))
    defaults = {"schedule": None, "timezone": "UTC", "after": now, "limit": DEFAULT_COUNT}
    return PreviewRequest(
        **(defaults | {name: value for name, value in given.items() if value is not None})
    )


def plain_batch(arguments: Sequence[str]) -> PreviewRequest | None:
    """The defaults of a batch, where the command line is one in its plainest form.

    None for every other: wrong options, and rare spellings of right ones, are typer's.
    """
    if not arguments or arguments[0] != "preview" or arguments.count("--batch") != 1:
        return None
    given: dict[str, Any] = {}
    words = iter(arguments[1:])
    for argument in words:
        # All of a batch's output is JSON: to ask for it changes nothing.
        if argument in ("--batch", "--json"):
            continue
        word, equals, value = argument.partition("=")
        value = value if equals else next(words, "")
        if not value or value.startswith("-"):
            return None
        if word in _TEXT_OPTIONS:
            given[_TEXT_OPTIONS[word]] = value
        elif word in _NUMBER_OPTIONS and _is_count(value):
            given[_NUMBER_OPTIONS[word]] = int(value)
        else:
            return None
    return request_of_options(**given)


def run_batch(defaults: PreviewRequest) -> int:
    """Answer stdin on stdout; the exit code, as typer's for an interrupt and for a closed pipe."""
    # Compiled schedules stay until the end: rarely search them again and again.
    gc.set_threshold(200_000)
    try:
        answer_lines(defaults)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Buffered output has nowhere to go: without this, its flush at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def answer_lines(defaults: PreviewRequest) -> None:
    """Answer each line of stdin with one of stdout; to a terminal, at once."""
    # Bytes: a line that is not UTF-8 is a bad line, not the end of the stream.
    answers = batch_answers(sys.stdin.buffer, defaults)
    if sys.stdout.isatty():
        for answer in answers:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
        return
    sys.stdout.writelines(chain.from_iterable((answer, "\n") for answer in answers))


def batch_answers(lines: Iterable[bytes], defaults: PreviewRequest) -> Iterator[str]:
    """For each line of JSON one line of JSON without its line feed, in order.

    `{"fire_at": [...]}`, or `{"error": "..."}` for a line that cannot be answered. Members that
    a line leaves out are taken from `defaults`.
    """
    for line in lines:
        try:
            fires = [utc_text(instant) for instant in occurrences(_request_of(line, defaults))]
        # Whatever is wrong with a line must not take the answers of the others with it.
        except Exception as error:
            text = str(error) or type(error).__name__
            yield json.dumps({"error": text})
        else:
            yield '{"fire_at": ["' + '", "'.join(fires) + '"]}' if fires else '{"fire_at": []}'


def _request_of(line: bytes, defaults: PreviewRequest) -> PreviewRequest:
    try:
        form = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError("line", f"is not JSON: {error}") from error
    if not isinstance(form, dict):
        raise InvalidFieldError("line", "is not a JSON object")
    if not form.keys() <= _MEMBERS:
        unknown = min(form.keys() - _MEMBERS)
        raise InvalidFieldError(unknown, f"is unknown: use {', '.join(sorted(_MEMBERS))}")
    if "schedule" not in form:
        raise InvalidFieldError("schedule", "is missing")
    request = defaults._replace(
        schedule=form["schedule"],
        timezone=_text(form, "timezone", defaults.timezone),
        after=_text(form, "after", defaults.after),
        limit=form.get("count", defaults.limit),
    )
    return request if _EXTRAS.isdisjoint(form) else _with_extras(request, form)


def _with_extras(request: PreviewRequest, form: Mapping[str, Any]) -> PreviewRequest:
    """The rarer members of a line; null is as good as left out."""
    given = {name: value for name, value in form.items() if value is not None}
    exceptions = given.get("except", request.exceptions)
    if not isinstance(exceptions, list | tuple):
        raise InvalidFieldError("except", f"must be a list, not {reprlib.repr(exceptions)}")
    dst = given.get("dst", {})
    if not isinstance(dst, dict) or not dst.keys() <= {"gap", "fold"}:
        raise InvalidFieldError("dst", f"must be an object of gap and fold, not {dst!r:.60}")
    return request._replace(
        start_at=_text(given, "start_at", request.start_at),
        end_at=_text(given, "end_at", request.end_at),
        max_runs=given.get("max_runs", request.max_runs),
        exceptions=tuple(exceptions),
        gap=_text(dst, "gap", request.gap, "dst."),
        fold=_text(dst, "fold", request.fold, "dst."),
    )


def _text(form: Mapping[str, Any], member: str, default: Any, path: str = "") -> Any:
    """The member, which must be text, else the default."""
    value = form.get(member)
    if isinstance(value, str):
        return value
    if member not in form:
        return default
    raise InvalidFieldError(path + member, f"must be text, not {reprlib.repr(value)}")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= LARGEST_COUNT
