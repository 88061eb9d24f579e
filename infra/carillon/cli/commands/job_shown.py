"""The look of jobs: the columns of their lists, one job whole, and what became of one."""

from enum import StrEnum
from typing import Any

from carillon.cli.client import Json
from carillon.cli.display.words import address_of, members_of
from carillon.cli.output import (
    NOTED,
    printable,
    write_json,
    write_line,
    write_notes,
    write_record,
)

COLUMNS = (
    "job_id", "name", "state", "schedule", "timezone", "next_fire_at", "last_run", "managed_by"
)  # fmt: skip
LEAST_NEEDED = ("managed_by", "job_id", "timezone", "last_run")
"""A name is as good as an id, and shorter."""

_TYPED = frozenset({"payload", "except"})
"""Members whose form is the caller's own."""


class Sort(StrEnum):
    """The orders of a list of jobs."""

    NAME = "name"
    NEXT = "next"
    LAST = "last"
    STATE = "state"


def sort_key(job: Json, by: Sort) -> tuple[bool, str, str]:
    """The place in the order; `last` has the newest run last, as `next` the latest fire time."""
    last = job.get("last_run") or {}
    values = {
        Sort.NAME: job.get("name"),
        Sort.NEXT: job.get("next_fire_at"),
        Sort.LAST: last.get("fire_at"),
        Sort.STATE: job.get("state"),
    }
    # Uniform UTC texts sort as their instants do.
    return values[by] is None, str(values[by]).casefold(), str(job.get("name")).casefold()


def write_job(job: Json, as_json: bool) -> None:
    """A job, whole: a line per member; warnings about its schedule go to stderr."""
    if as_json:
        write_json(job)
        return
    write_notes(job)
    told = {name: _member(job, name) for name in job if name not in NOTED}
    write_record(told)


def write_acted(done: str, job: Json, as_json: bool) -> None:
    """The job by its name, behind what was done with it, and when it goes on."""
    if as_json:
        write_json(job)
        return
    said = [f"{done} {printable(job.get('name') or job.get('job_id'))}"]
    if job.get("resume_at"):
        said.append(f"until {job['resume_at']}")
    elif job.get("state") == "active":
        said.append(f"next fire {printable(job.get('next_fire_at'))}")
    write_line(", ".join(said))
    write_notes(job)


def job_cell(job: Json, column: str) -> Any:
    """The columns of a list of jobs."""
    value = job.get(column)
    if column == "target" and isinstance(value, dict):
        return address_of(value)
    if column == "schedule" and value is None:
        return job.get("sentence")  # it runs after another job
    if column in ("schedule", "except") and isinstance(value, list):
        return " | ".join(map(printable, value)) or None
    if column == "last_run" and isinstance(value, dict):
        return value.get("status")
    if column == "tags" and isinstance(value, dict):
        return members_of(value)
    return value


def _member(job: Json, name: str) -> Any:
    """A member of one job, which has room for all of it."""
    value: Any = job.get(name)
    match name, value:
        case "calendar", {"name": calendar, "rule": rule}:
            return f"{calendar} ({rule})"
        case "after", {"job": before, "when": ends}:
            within = f", within {value['within']}" if value.get("within") else ""
            return f"{before} ({ends}{within})"
        case "slow", {"since": since, "reason": reason}:
            return f"since {since}: {reason}"
        case (("target" | "on_success" | "on_failure"), {"type": kind}):
            address = address_of(value)
            rest = {
                each: member
                for each, member in value.items()
                if each != "type" and member != address
            }
            return " ".join(filter(None, (kind, printable(address), members_of(rest))))
        case "events", list():
            return " ".join(map(printable, value)) or None
        case _, dict() if name not in _TYPED:
            return members_of(value)
    return job_cell(job, name)
