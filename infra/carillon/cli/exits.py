"""The end of a command: exit codes for scripts, and the errors that carry them."""

import json
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from carillon.errors import InvalidFieldError


class ExitCode(IntEnum):
    """The process's exit status; documented in `carillon --help`."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    BAD_INPUT = 3
    NOT_FOUND = 4
    NOT_ALLOWED = 5
    CONFLICT = 6
    UNREACHABLE = 7
    DIFFERENT = 8
    INTERRUPTED = 130


EXIT_CODES_HELP = "\n".join(
    (
        "Exit codes:",
        "0  done",
        "1  unexpected error, here or in the API; or an operation that did not succeed",
        "2  the command line is wrong",
        "3  the API, or the command itself, refused the input; stderr names each field",
        "4  not found, or gone",
        "5  not signed in, or not allowed",
        "6  conflict: the job changed, a revision must be named, or the run ended",
        "7  the API cannot be reached or is busy (429, 503, 504): try again later",
        "8  diff: the manifest and the deployment differ",
        "130  interrupted (Ctrl-C): what was shown is a part",
    )
)

_BAD_INPUT = frozenset({400, 413, 414, 415, 422})
_CONFLICT = frozenset({409, 412, 428})
_BUSY = frozenset({429, 503, 504})


def exit_code_of_status(status: int) -> ExitCode:
    """The exit code for an HTTP error status."""
    if status in _BAD_INPUT:
        return ExitCode.BAD_INPUT
    if status in (401, 403):
        return ExitCode.NOT_ALLOWED
    if status in (404, 410):
        return ExitCode.NOT_FOUND
    if status in _CONFLICT:
        return ExitCode.CONFLICT
    return ExitCode.UNREACHABLE if status in _BUSY else ExitCode.UNEXPECTED


class CliError(Exception):
    """Ends the command with `exit_code`, after the problem was printed on stderr.

    `problem` has the form of RFC 9457: type, title, status (0 when no HTTP answer is behind it),
    detail, errors [{field, message}].
    """

    def __init__(self, exit_code: ExitCode, problem: dict[str, Any]) -> None:
        super().__init__(str(problem.get("title", "")))
        self.exit_code = exit_code
        self.problem = problem

    @classmethod
    def local(cls, exit_code: ExitCode, title: str, detail: str = "") -> "CliError":
        """An error found on this side of the wire."""
        return cls(exit_code, {"type": "about:blank", "title": title, "detail": detail})

    @classmethod
    def bad_field(cls, field: str, message: str) -> "CliError":
        """Input that need not be sent to know that it is wrong."""
        problem = {
            "type": "about:blank",
            "title": "Bad input",
            "detail": "",
            "errors": [{"field": field, "message": message}],
        }
        return cls(ExitCode.BAD_INPUT, problem)

    @classmethod
    def from_invalid_field(cls, error: InvalidFieldError) -> "CliError":
        return cls.bad_field(error.field, error.message)

    @property
    def is_outcome_unknown(self) -> bool:
        """True if the request may have been carried out all the same."""
        return self.exit_code in (ExitCode.UNREACHABLE, ExitCode.UNEXPECTED)

    def add(self, hint: str) -> None:
        """Add a sentence to the detail."""
        detail = self.problem.get("detail")
        self.problem["detail"] = f"{detail}; {hint}" if detail else hint

    def text(self, as_json: bool) -> str:
        """The text for stderr: one JSON document, or a headline and a line per field."""
        if as_json:
            return json.dumps(self.problem)
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        status = self.problem.get("status")
        title = str(self.problem.get("title") or "Error")
        detail = str(self.problem.get("detail") or "")
        headline = f"{title} ({status})" if status else title
        errors = self.problem.get("errors")
        entries = errors if isinstance(errors, list) else []
        # Where fields are named, the detail repeats them.
        yield f"Error: {headline}{f': {detail}' if detail and not entries else ''}"
        for entry in entries:
            if isinstance(entry, dict):
                yield f"  {entry.get('field', '?')}: {entry.get('message', '')}"
            else:
                yield f"  {entry}"
