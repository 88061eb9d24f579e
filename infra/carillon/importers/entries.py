"""An entry of a source: the job that it becomes, and what is lost on the way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """A loss, or a change of meaning; `field` is what the source calls it."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Stub:
    """A task that the user is to write, in place of what the source ran."""

    task: str
    run: str


@dataclass(frozen=True, slots=True)
class Entry:
    """`place` is where the source has it, `wanted` the name that the job should get, `body` the
    job as a manifest has it, or None where nothing can be carried over."""

    place: str
    wanted: str
    body: Json | None
    notes: tuple[Note, ...] = ()
    stub: Stub | None = None

    @classmethod
    def left_out(cls, place: str, field: str, message: str) -> "Entry":
        return cls(place, "", None, (Note(field, message),))


def without_none(body: Mapping[str, Any]) -> Json:
    """The members that have a value."""
    return {name: value for name, value in body.items() if value is not None}


def json_of(text: str) -> Any:
    """The value of a JSON text; raises ValueError for what is none, or infinite."""
    value = json.loads(text)
    json.dumps(value, allow_nan=False)
    return value


def second_of(moment: datetime, *, up: bool) -> str:
    """An aware instant as a job states it: in UTC, in whole seconds."""
    later = timedelta(seconds=1 if up and moment.microsecond else 0)
    return f"{moment.astimezone(UTC).replace(microsecond=0) + later:%Y-%m-%dT%H:%M:%SZ}"
