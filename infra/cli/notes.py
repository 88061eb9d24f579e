"""Notes on a schedule, for people: its warnings, and the clock changes that it meets."""

from collections.abc import Mapping
from typing import Any

from infra.cli.output import write_error

NOTED = ("transitions", "warnings")
"""The members of the API's answers that `write_notes` tells."""


def transition_note(transition: Mapping[str, Any]) -> str:
    """One line of an entry of `transitions`, in the API's form."""
    at, effect = transition.get("transition_at"), transition.get("effect")
    count = transition.get("count", 1)
    more = f" (the first of {count})" if isinstance(count, int) and count > 1 else ""
    return f"Clock change {at}: {effect}{more}"


def warning_note(warning: Mapping[str, Any]) -> str:
    """One line of an entry of `warnings`, in the API's form."""
    return f"Warning: {warning.get('message')}"


def write_notes(answer: Mapping[str, Any]) -> None:
    """What an answer of the API says of its schedule, on stderr."""
    for member, note in zip(NOTED, (transition_note, warning_note), strict=True):
        entries = answer.get(member)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                write_error(note(entry))
