"""`carillon jobs ...`: create, change, list, show, run; and changes of one job or of many."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, Query, job_path
from carillon.cli.commands.job_options import JobOptions, is_empty, job_body, refuse_contradictions
from carillon.cli.exits import CliError
from carillon.cli.inputs import payload_value
from carillon.cli.options import (
    Commands,
    FilterOptions,
    LengthOptions,
    YesOption,
    confirm,
)
from carillon.cli.output import (
    NOTED,
    printable,
    progress_line,
    write_done,
    write_items,
    write_json,
    write_notes,
    write_record,
    write_run,
)
from carillon.cli.session import (
    IdempotencyKeyOption,
    JobArgument,
    SessionOptions,
)
from carillon.errors import InvalidFieldError

jobs = Commands(help="Create, show and change jobs.", no_args_is_help=True)

_COLUMNS = ("job_id", "name", "state", "schedule", "timezone", "target", "next_fire_at")

OptionalJobArgument = Annotated[
    str | None, typer.Argument(metavar="JOB", help="Its name, or its id.", show_default=False)
]
RevisionOption = Annotated[
    int | None,
    typer.Option(help="Only if the job is at this revision.", show_default="whichever it is at"),
]
ClearOption = Annotated[
    list[str] | None,
    typer.Option(
        "--clear", metavar="MEMBER", show_default=False,
        help="Back to its default, as grace, tags.team or retry.backoff.type; repeatable.",
    ),
]  # fmt: skip
EveryJobOption = Annotated[bool, typer.Option("--all", help="All jobs there are now.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also what a manifest or stack manages.")
]


@jobs.command()
def create(
    *,
    options: JobOptions,
    idempotency_key: IdempotencyKeyOption = None,
    session: SessionOptions,
) -> None:
    """Create a job and show it; warnings about its schedule go to stderr."""
    as_json = session.is_json
    if is_empty(options):
        raise typer.BadParameter(
            "give --file, or --name, --schedule or --after, and --task, --webhook or --target"
        )
    body = _body(options)
    _show(session.connect().post_once("/jobs", body, idempotency_key), as_json)


@jobs.command()
def change(
    job: JobArgument,
    *,
    options: JobOptions,
    clear: ClearOption = None,
    revision: RevisionOption = None,
    force: ForceOption = False,
    session: SessionOptions,
) -> None:
    """Change the given settings of a job; the rest stays as it is.

    A change of when it fires counts from now on.
    """
    as_json = session.is_json
    body = _body(options)
    for name in clear or ():
        _clear(body, name)
    if not body:
        raise typer.BadParameter("give what is to change")
    condition = "*" if revision is None else f'"{revision}"'
    api = session.connect()
    path = _forced(api.job_path(job), force)
    _show(api.patch(path, body, {"If-Match": condition}), as_json)


@jobs.command(name="list")
def list_jobs(
    *,
    name: Annotated[
        str | None, typer.Option(help="Jobs with names that begin so.", show_default=False)
    ] = None,
    chosen: FilterOptions,
    length: LengthOptions,
    session: SessionOptions,
) -> None:
    """List your jobs by name, all or those of a parent or tag; with --json, an array."""
    query = chosen.query | ({"name": name} if name else {})
    found = list(session.connect().items("/jobs", length.most, query))
    write_items(found, _COLUMNS, session.is_json, _cell)


@jobs.command()
def show(job: JobArgument, *, session: SessionOptions) -> None:
    """Show one job, whole."""
    api = session.connect()
    _show(api.get(api.job_path(job)), session.is_json)


@jobs.command()
def pause(
    job: OptionalJobArgument = None,
    *,
    chosen: FilterOptions,
    every: EveryJobOption = False,
    reason: Annotated[str | None, typer.Option(help="Why; the job shows it.")] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT", help="When to resume by itself, as 2026-12-24T18:00:00+02:00."
        ),
    ] = None,
    session: SessionOptions,
) -> None:
    """Stop the occurrences of a job, of all of a parent or tag, or of all, until they are resumed,
    or until an instant."""
    members = {"reason": reason, "until": until}
    body = {name: value for name, value in members.items() if value is not None}
    _act(session, job, chosen, "pause", "paused", every, body or None)


@jobs.command()
def resume(
    job: OptionalJobArgument = None,
    *,
    chosen: FilterOptions,
    every: EveryJobOption = False,
    session: SessionOptions,
) -> None:
    """Let a paused job, all of a parent or tag, or all, fire again from now on."""
    _act(session, job, chosen, "resume", "resumed", every)


@jobs.command()
def run(
    job: JobArgument,
    *,
    payload: Annotated[
        str | None, typer.Option(help="JSON, @FILE, or @- for stdin: in place of the job's.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="What this run is for.")] = None,
    idempotency_key: IdempotencyKeyOption = None,
    session: SessionOptions,
) -> None:
    """Run a job now, whatever its schedule; shows the run."""
    body: dict[str, Any] = {} if note is None else {"note": note}
    if payload is not None:
        try:
            body["payload"] = payload_value(payload)
        except InvalidFieldError as error:
            raise CliError.from_invalid_field(error) from error
    api = session.connect()
    answer = api.post_once(api.job_path(job, "/run"), body or None, idempotency_key)
    write_run(answer, session.is_json)


@jobs.command()
def delete(
    job: OptionalJobArgument = None,
    *,
    chosen: FilterOptions,
    yes: YesOption = False,
    force: ForceOption = False,
    session: SessionOptions,
) -> None:
    """Delete a job, or all of a parent or tag, for good; histories stay until they expire."""
    query = _one_or_many(job, chosen)
    api = session.connect()
    as_json = session.is_json
    if job is None:
        confirm(f"Delete all jobs of {_told(query)} for good?", yes)
        if force:
            query["force"] = "true"
        _change_all(api, "DELETE", "/jobs", query, "deleted", as_json)
        return
    job_id = api.job_id(job)
    confirm(f"Delete {job} for good?", yes)
    api.delete(_forced(job_path(job_id), force))
    write_done(f"deleted {job}", {"job_id": job_id, "state": "deleted"}, as_json)


def _act(
    session: SessionOptions,
    job: str | None,
    chosen: FilterOptions,
    action: str,
    done: str,
    every: bool,
    body: dict[str, Any] | None = None,
) -> None:
    query = _one_or_many(job, chosen, every)
    api = session.connect()
    as_json = session.is_json
    if job is None:
        _change_all(api, "POST", f"/jobs/{action}", query, done, as_json, body)
    else:
        _show(api.post(api.job_path(job, f"/{action}"), body), as_json)


def _one_or_many(
    job: str | None, chosen: FilterOptions, every: bool = False
) -> dict[str, str | int]:
    """The filters of many jobs, none for one; raises typer.BadParameter for both or neither."""
    query = chosen.query
    if (job is not None) + bool(query) + every != 1:
        raise typer.BadParameter("give either a JOB, or --parent or --tag, or --all")
    return {"all": "true"} if every else query


def _change_all(
    api: ApiClient,
    method: str,
    path: str,
    query: Query,
    done: str,
    as_json: bool,
    body: dict[str, Any] | None = None,
) -> None:
    with progress_line() as show:
        counts = api.change_all(
            method, path, query, lambda count: show(f"{done} {count:,} jobs so far"), body
        )
    changed, managed = counts["changed"], counts["managed"]
    left = f"; {managed:,} that are managed elsewhere stay: --force" if managed else ""
    noun = "job" if changed == 1 else "jobs"
    write_done(f"{done} {changed:,} {noun}{left}", counts, as_json)


def _forced(path: str, force: bool) -> str:
    return f"{path}?force=true" if force else path


def _told(query: Mapping[str, Any]) -> str:
    return " and ".join(f"{name} {printable(value)}" for name, value in query.items())


def _body(options: JobOptions) -> dict[str, Any]:
    refuse_contradictions(options)
    try:
        return job_body(options)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error


def _clear(body: dict[str, Any], name: str) -> None:
    """Put null for a member, or for one within it; raises typer.BadParameter."""
    *path, last = _path_of(name)
    where: Any = body
    for member in path:
        where = where.setdefault(member, {}) if isinstance(where, dict) else None
    if not isinstance(where, dict) or last in where:
        raise typer.BadParameter(f"{name} cannot be both given and cleared, nor cleared twice")
    where[last] = None


def _path_of(name: str) -> list[str]:
    """The members that `retry.backoff.type` names; a tag and a header may have dots themselves."""
    member, *inner = name.split(".")
    named_freely = 0 if member == "tags" else 1 if inner[:1] == ["headers"] else len(inner)
    path = [member.replace("-", "_"), *inner[:named_freely]]
    return [*path, ".".join(inner[named_freely:])] if inner[named_freely:] else path


def _show(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_json(job)
        return
    write_notes(job)
    # The target whole: here its type counts.
    write_record({
        name: value if name == "target" else _cell(job, name)
        for name, value in job.items()
        if name not in NOTED
    })  # fmt: skip


def _cell(job: dict[str, Any], column: str) -> Any:
    value = job.get(column)
    if column == "target" and isinstance(value, dict):
        return _called(value)
    if column == "schedule" and value is None:
        return job.get("sentence")  # it runs after another job
    if column in ("schedule", "except") and isinstance(value, list):
        return " | ".join(map(printable, value)) or None
    if column == "calendar" and isinstance(value, dict):
        return f"{value.get('name')} ({value.get('rule')})"
    if column == "after" and isinstance(value, dict):
        within = f", within {value.get('within')}" if value.get("within") else ""
        return f"{value.get('job')} ({value.get('when')}{within})"
    if column == "slow" and isinstance(value, dict):
        return f"since {value.get('since')}: {value.get('reason')}"
    if column == "tags" and isinstance(value, dict):
        return " ".join(f"{key}={text}" for key, text in value.items()) or None
    if column == "events" and isinstance(value, list):
        return " ".join(map(printable, value)) or None
    return value


def _called(target: dict[str, Any]) -> Any:
    """The text that identifies a target: its name, URL or ARN."""
    named = (target.get("name"), target.get("url"))
    arns = (value for member, value in target.items() if member.endswith("_arn"))
    return next((value for value in (*named, *arns) if value), target)
