"""From the entries of a source to a manifest whose jobs the API would take, and the report."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from carillon.api.http.fields import field_errors
from carillon.api.http.problems import InvalidFieldsError
from carillon.api.jobs.validation import refuse_contradictions
from carillon.api.schedules.preview import refuse_finished, scheduling_of
from carillon.domain.job import PAYLOAD_LIMIT_BYTES
from carillon.domain.spec.job_spec import JobSpec
from carillon.errors import InvalidFieldError
from carillon.importers.entries import Entry, Json, Note, Stub
from carillon.importers.names import JobNames

_ORDER = [field.alias or name for name, field in JobSpec.model_fields.items()]


@dataclass(frozen=True, slots=True)
class Line:
    """The report about one entry; `job` is its name in the manifest, None for one left out."""

    entry: Entry
    job: str | None

    def as_json(self) -> Json:
        notes = [{"field": note.field, "message": note.message} for note in self.entry.notes]
        return {"entry": self.entry.place, "job": self.job, "notes": notes}


@dataclass(frozen=True, slots=True)
class Imported:
    """The result: a line for each entry, in order. `remarks` are about the source as a whole."""

    manifest: str
    lines: tuple[Line, ...]
    remarks: tuple[str, ...] = ()

    @property
    def jobs(self) -> dict[str, Json]:
        """The bodies of a manifest's jobs, by name."""
        return {line.job: line.entry.body or {} for line in self.lines if line.job is not None}

    @property
    def document(self) -> Json:
        """The manifest in JSON's types."""
        return {"manifest": self.manifest, "jobs": self.jobs}

    @property
    def stubs(self) -> list[Stub]:
        """The tasks of the jobs that are to be written."""
        return [line.entry.stub for line in self.lines if line.job and line.entry.stub]

    @property
    def left_out(self) -> int:
        return sum(line.job is None for line in self.lines)

    def as_json(self) -> Json:
        return {
            "manifest": self.document,
            "report": [line.as_json() for line in self.lines],
            "remarks": list(self.remarks),
        }


def imported(
    manifest: str, entries: Iterable[Entry], now: datetime, remarks: Sequence[str] = ()
) -> Imported:
    """The result for these entries, judged as the API would at `now`."""
    names = JobNames()
    lines = tuple(_line(entry, names, now) for entry in entries)
    return Imported(manifest, lines, tuple(remarks))


def _line(entry: Entry, names: JobNames, now: datetime) -> Line:
    if entry.body is None:
        return Line(entry, None)
    body = {name: entry.body[name] for name in sorted(entry.body, key=_place)}
    refusals = refusals_of(body, now)
    if refusals:
        notes = (*entry.notes, *(Note(field, message) for field, message in refusals))
        return Line(replace(entry, body=None, notes=notes), None)
    name = names.take(entry.wanted)
    notes = entry.notes
    if name != entry.wanted:
        notes = (
            *notes,
            Note("name", f"is {name} here: names are unique, whatever their case"),
        )
    return Line(replace(entry, body=body, notes=notes), name)


def _place(member: str) -> int:
    return _ORDER.index(member) if member in _ORDER else len(_ORDER)


def refusals_of(body: Json, now: datetime) -> list[tuple[str, str]]:
    """Pairs of field and message, of what the API would refuse in a job of a manifest; the limits
    of a deployment are left to it."""
    try:
        return _refusals({**body, "name": "imported"}, now)
    except ValidationError as error:
        return field_errors(error.errors())
    except InvalidFieldsError as error:
        return list(error.errors)
    except InvalidFieldError as error:
        return [(error.field, error.message)]
    except ValueError as error:  # text that UTF-8 cannot hold
        return [("job", f"cannot be written as JSON: {error}")]


def _refusals(document: Any, now: datetime) -> list[tuple[str, str]]:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    spec = JobSpec.model_validate_json(text.encode())
    scheduling = scheduling_of(spec, now)
    refuse_finished(scheduling.schedule, scheduling.end_at, now)
    refuse_contradictions(spec, scheduling.schedule)
    size = len(spec.payload.encode())
    if size > PAYLOAD_LIMIT_BYTES:
        return [("payload", f"has {size:,} bytes; at most {PAYLOAD_LIMIT_BYTES:,} are taken")]
    return []
