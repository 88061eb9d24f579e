"""`carillon export`: stored jobs and their calendars as a manifest."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, Json, calendar_path
from carillon.cli.display.progress import progress_bar
from carillon.cli.options import FilterOptions
from carillon.cli.options_table import DEFAULTS
from carillon.cli.output import printable, write_error, write_json, write_line
from carillon.cli.session import SessionOptions
from carillon.manifest.yaml_text import text_of

_HIDDEN = ("name", "revision", "created_at", "updated_at")


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
    """The manifest of jobs as the API answers them."""
    followed = {job["calendar"]["name"] for job in jobs if job.get("calendar")}
    calendars = {name: _calendar(api.get(calendar_path(name))) for name in sorted(followed)}
    return {
        **({"manifest": manifest} if manifest else {}),
        **({"calendars": calendars} if calendars else {}),
        "jobs": {job["name"]: _settings(job) for job in jobs},
    }


def _settings(job: Json) -> Json:
    own = {name: job[name] for name in DEFAULTS if name != "name"}
    return _beside(own, DEFAULTS)


def _beside(own: Json, defaults: Json) -> Json:
    """The members that differ from their defaults, of objects within, too."""
    return {
        name: _beside(value, defaults[name]) if _are_objects(value, defaults.get(name)) else value
        for name, value in own.items()
        if value != defaults.get(name)
    }


def _are_objects(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)


def _calendar(calendar: Json) -> Json:
    return {name: value for name, value in calendar.items() if name not in _HIDDEN and value}


def _comments(jobs: Sequence[Json]) -> Iterator[str]:
    for job in jobs:
        if job["state"] == "paused":
            why = f": {printable(job['note'])}" if job.get("note") else ""
            yield f"{printable(job['name'])} is paused{why}"
