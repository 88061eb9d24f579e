"""Notes on a schedule, for people: its warnings, and the clock changes that it meets."""

from collections.abc import Iterator, Mapping
from typing import Any

from carillon.cli.output import write_error

NOTED = ("transitions", "warnings")
"""The members that `notes_of` tells."""

_OF_THE_CLOCKS = "dst"
"""The code of a warning that sums the transitions up: where they are listed it says no more."""


def notes_of(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each entry of `transitions` and `warnings`, both in the API's form."""
    transitions, warnings = (_entries(told.get(member)) for member in NOTED)
    for transition in transitions:
        yield f"Clock change {transition.get('transition_at')}: {transition.get('effect')}"
    for warning in warnings:
        if not transitions or warning.get("code") != _OF_THE_CLOCKS:
            yield f"Warning: {warning.get('message')}"


def write_notes(answer: Mapping[str, Any]) -> None:
    """What an answer of the API says of its schedule, on stderr."""
    for note in notes_of(answer):
        write_error(note)


def _entries(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
