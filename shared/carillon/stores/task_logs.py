"""The port to the output of tasks, and its implementation in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines as they were written, with their instants; `position` is where more may follow, ""
    at the end."""

    items: Sequence[tuple[datetime, str]]
    position: str = ""


class TaskLogs(Protocol):
    """The lines that executors and their tasks have logged."""

    def find(
        self, text: str, from_at: datetime, until_at: datetime, limit: int, position: str = ""
    ) -> Lines:
        """Lines of [from_at, until_at] that contain `text`, about `limit` at most, from a position
        on that an earlier answer has; eventually consistent, and of all owners.

        Raises StoreUnavailableError, and InvalidFieldError("cursor", …) for a position that is
        none, or has expired.
        """
        ...


class MemoryTaskLogs:
    """TaskLogs of lines that are given."""

    def __init__(self, lines: Iterable[tuple[datetime, str]] = ()) -> None:
        self.lines = list(lines)

    def find(
        self, text: str, from_at: datetime, until_at: datetime, limit: int, position: str = ""
    ) -> Lines:
        found = [
            (at, line) for at, line in self.lines if from_at <= at <= until_at and text in line
        ]
        first = int(position or 0)
        rest = first + limit < len(found)
        return Lines(found[first : first + limit], str(first + limit) if rest else "")
