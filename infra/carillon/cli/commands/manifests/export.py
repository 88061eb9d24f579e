"""`carillon export`: stored jobs and their calendars as a manifest."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from carillon.cli.client import ApiClient, Json, calendar_path
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.options import FilterOptions
from carillon.cli.options_table import DEFAULTS
from carillon.cli.output import printable, write_error, write_json, write_line
from carillon.cli.session import SessionOptions
from carillon.manifest.yaml_text import text_of

_HIDDEN = ("name", "revision", "created_at", "updated_at")
_VERBATIM = ("payload", "schedule")
_EMPTY: tuple[object, ...] = (None, [], {})


def export(
    manifest: Annotated[
        str | None,
        typer.Option(help="The jobs that this manifest manages.", show_default="all jobs"),
    ] = None,
    *,
    chosen: FilterOptions,
    session: SessionOptions,
) -> None:
    """Write jobs, and the calendars that they follow, as a manifest.

    Settings at their defaults are left out. The state of a job is no part of it: that it is paused
    stands in a comment.
    """
    api = session.connect()
    query = chosen.query | ({"managed_by": f"manifest/{manifest}"} if manifest else {})
    jobs: list[Json] = []
    with progress_bar() as show:
        for job in api.items("/jobs", None, query):
            jobs.append(job)
            show(f"{len(jobs):,} jobs read")
        document = exported(api, jobs, manifest)
    if session.is_json:
        write_json(document)
        return
    for comment in _comments(jobs):
        write_line(f"# {comment}")
    write_line(text_of(document).rstrip("\n"))
    if not jobs:
        write_error("No job was found")


def exported(api: ApiClient, jobs: Sequence[Json], manifest: str | None) -> Json:
    """The manifest of jobs as the API answers them. A calendar that is gone is left out, and named
    on stderr."""
    followed = {job["calendar"]["name"] for job in jobs if job.get("calendar")}
    found = {name: _calendar(api, name) for name in sorted(followed)}
    calendars = {name: calendar for name, calendar in found.items() if calendar is not None}
    return {
        **({"manifest": manifest} if manifest else {}),
        **({"calendars": calendars} if calendars else {}),
        "jobs": {job["name"]: _settings(job) for job in jobs},
    }


def _settings(job: Json) -> Json:
    own = {name: job[name] for name in DEFAULTS if name != "name"}
    return _beyond(own, DEFAULTS)


def _beyond(own: Json, defaults: Json) -> Json:
    """The members that say more than their defaults, of objects within, too: what is empty says
    nothing. Words of the user's own stay as they are; an empty payload is one."""
    said = {
        name: _beyond(value, defaults.get(name) or {})
        if isinstance(value, dict) and name not in _VERBATIM
        else value
        for name, value in own.items()
    }
    return {
        name: value
        for name, value in said.items()
        if value != defaults.get(name) and (name == "payload" or value not in _EMPTY)
    }


def _calendar(api: ApiClient, name: str) -> Json | None:
    try:
        calendar = api.get(calendar_path(name))
    except CliError as error:
        if error.exit_code is not ExitCode.NOT_FOUND:
            raise
        write_error(f"The calendar {name!r} is gone: to apply this manifest, define it")
        return None
    return {name: value for name, value in calendar.items() if name not in _HIDDEN and value}


def _comments(jobs: Sequence[Json]) -> Iterator[str]:
    for job in jobs:
        if job["state"] == "paused":
            why = f": {printable(job['note'])}" if job.get("note") else ""
            yield f"{printable(job['name'])} is paused{why}"
