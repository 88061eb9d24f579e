"""Messages between the executor and its children: JSON, one line each.

A child says Hello once, when its task modules are imported; then each Request is answered by the
Report of the same number.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from carillon.domain.run import RunError, one_line


@dataclass(frozen=True, slots=True)
class Hello:
    """The child is ready; `import_failures` maps a task module to why it could not be imported."""

    import_failures: Mapping[str, str]

    def to_line(self) -> bytes:
        return _line({"import_failures": dict(self.import_failures)})

    @classmethod
    def from_line(cls, line: bytes) -> "Hello":
        """Raises ValueError for a line that is no Hello."""
        return cls(dict(_members(line, "import_failures")["import_failures"]))


@dataclass(frozen=True, slots=True)
class Request:
    """Run a task once. `payload` is JSON text, `deadline_at` a Deadline's, the other instants are
    ISO 8601. `variables` take the place of those of that name in the child's environment."""

    number: int
    task: str
    payload: str
    run_id: str
    job_id: str
    job_name: str
    attempt: int
    fire_at: str
    effective_at: str
    timeout_seconds: float
    deadline_at: float
    tags: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    traceparent: str = ""
    keeps_whole: bool = False

    def to_line(self) -> bytes:
        return _line(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> "Request":
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Report:
    """The result of the request of this number: a text (or none), or an error.

    `retry_after_seconds`: when the task wants its next attempt.
    """

    number: int
    result: str | None = None
    error: RunError | None = None
    retry_after_seconds: float | None = None

    def to_line(self) -> bytes:
        return _line(asdict(self))

    @classmethod
    def from_line(cls, line: bytes) -> "Report":
        """Raises ValueError for a line that is no Report."""
        members = _members(line, "number", "result", "error", "retry_after_seconds")
        error, after_seconds = members["error"], members["retry_after_seconds"]
        return cls(
            number=int(members["number"]),
            result=members["result"],
            error=None if error is None else RunError(**error),
            retry_after_seconds=None if after_seconds is None else float(after_seconds),
        )


def _line(members: dict[str, Any]) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode() + b"\n"


def _members(line: bytes, *names: str) -> dict[str, Any]:
    members = json.loads(line)
    if not isinstance(members, dict) or members.keys() != set(names):
        raise ValueError(f"not a line with {', '.join(names)}")
    return members


KIND_LIMIT_CHARACTERS = 128
"""Longer names of error classes are cut here."""


def exception_line(error: BaseException) -> str:
    """The exception's own message; never raises."""
    try:
        return one_line(str(error))
    except Exception:  # a broken __str__ is the task's
        return "(its message cannot be shown)"


def kind_of(error: BaseException) -> str:
    """The error's class as the history's kind, cut at KIND_LIMIT_CHARACTERS."""
    return one_line(type(error).__name__)[:KIND_LIMIT_CHARACTERS]
