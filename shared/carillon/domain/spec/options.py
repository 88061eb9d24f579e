"""Marks by which settings become options of the CLI, and the options that are made of them.

Nothing here imports pydantic: the CLI starts without it.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "int", "float", "bool", "list"]
DATES_HELP = "ISO 8601; without an offset it is local time of the time zone given."
Panel = Literal["", "What is called", "Attempts", "Policies", "Labels and events"]


@dataclass(frozen=True, slots=True)
class Cli:
    """Marks a setting, or a member of one, with its option; `member` names one within it that
    cannot carry the mark itself."""

    flag: str
    help: str
    panel: Panel = ""
    metavar: str | None = None
    member: str = ""


@dataclass(frozen=True, slots=True)
class JobOption:
    """One option of `jobs create` and `jobs change`; `path` is that of the member in the body."""

    path: str
    flag: str
    kind: Kind
    help: str
    panel: Panel = ""
    metavar: str | None = None

    @property
    def parameter(self) -> str:
        """The name of its value in code."""
        return f"{self.path.replace('.', '_')}_"
