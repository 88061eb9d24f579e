"""`carillon jobs ...`: create, change, list, show, run; and changes of one job or of many."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from carillon.cli.client import ApiClient, Query, job_path
from carillon.cli.commands.job_options import JobOptions, is_empty, job_body, refuse_contradictions
from carillon.cli.commands.job_shown import (
    COLUMNS,
    LEAST_NEEDED,
    Sort,
    job_cell,
    sort_key,
    write_acted,
    write_job,
)
from carillon.cli.commands.runs.shown import write_run
from carillon.cli.completing import job_names
from carillon.cli.display.progress import progress_bar
from carillon.cli.exits import CliError
from carillon.cli.inputs import payload_value
from carillon.cli.options import (
    Commands,
    FilterOptions,
    LengthOptions,
    YesOption,
    confirm,
    confirm_many,
    tags_of,
)
from carillon.cli.output import printable, write_done, write_items
from carillon.cli.session import (
    IdempotencyKeyOption,
    JobArgument,
    OptionalJobArgument,
    SessionOptions,
)
from carillon.errors import InvalidFieldError

jobs = Commands(help="Create, show and change jobs.", no_args_is_help=True)

RevisionOption = Annotated[
    int | None,
    typer.Option(help="Only if the job is at this revision.", show_default="whichever it is at"),
]
AddTagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--add-tag", metavar="KEY=VALUE", show_default=False,
        help="Give it this tag, the others stay; repeatable.",
    ),
]  # fmt: skip
RemoveTagOption = Annotated[
    list[str] | None,
    typer.Option("--remove-tag", metavar="KEY", show_default=False, help="Repeatable."),
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
    write_job(session.connect().post_once("/jobs", body, idempotency_key), as_json)


@jobs.command()
def change(
    job: JobArgument,
    *,
    options: JobOptions,
    add_tag: AddTagOption = None,
    remove_tag: RemoveTagOption = None,
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
    if add_tag:
        body["tags"] = body.get("tags", {}) | _tags(add_tag)
    for name in (*(clear or ()), *(f"tags.{key}" for key in remove_tag or ())):
        _clear(body, name)
    if not body:
        raise typer.BadParameter("give what is to change")
    condition = "*" if revision is None else f'"{revision}"'
    api = session.connect()
    path = _forced(api.job_path(job), force)
    write_job(api.patch(path, body, {"If-Match": condition}), as_json)


@jobs.command(name="list")
def list_jobs(
    *,
    name: Annotated[
        str | None,
        typer.Option(
            help="Jobs with names that begin so, or the job of this id.",
            show_default=False,
            autocompletion=job_names,
        ),
    ] = None,
    state: Annotated[
        str | None, typer.Option(help="active, paused or completed.", show_default=False)
    ] = None,
    managed_by: Annotated[
        str | None, typer.Option(help="As manifest/billing.", show_default=False)
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="What is listed, by this; what has none of it comes last.")
    ] = Sort.NAME,
    chosen: FilterOptions,
    length: LengthOptions,
    session: SessionOptions,
) -> None:
    """List your jobs with their last runs, all or those of the filters; with --json, an array of
    whole jobs, without runs."""
    if session.is_json and sort is Sort.LAST:
        raise typer.BadParameter("--json shows jobs without their runs: no --sort last")
    given = {"q": name, "state": state, "managed_by": managed_by}
    query = chosen.query | {member: text for member, text in given.items() if text}
    if not session.is_json:
        query |= {"view": "summary", "include": "last_run"}
    found = list(session.connect().items("/jobs", length.most, query))
    found.sort(key=lambda job: sort_key(job, sort))
    write_items(found, COLUMNS, session.is_json, job_cell, LEAST_NEEDED)


@jobs.command()
def show(job: JobArgument, *, session: SessionOptions) -> None:
    """Show one job, whole."""
    api = session.connect()
    write_job(api.get(api.job_path(job)), session.is_json)


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
        confirm_many(f"Delete all jobs of {_told(query)} for good?", yes)
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
        write_acted(done, api.post(api.job_path(job, f"/{action}"), body), as_json)


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
    with progress_bar() as show:
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


def _tags(texts: list[str]) -> dict[str, str]:
    try:
        return tags_of(texts)
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
