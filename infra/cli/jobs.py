"""`carillon jobs ...`: create, list, show, pause, resume, run, delete."""

import sys
from typing import Annotated, Any
from uuid import uuid4

import typer

from infra.cli.client import ApiClient, job_path
from infra.cli.exits import CliError, ExitCode
from infra.cli.job_body import JobOptions, job_body
from infra.cli.job_options import (
    CalendarOption,
    CalendarRuleOption,
    CatchUpOption,
    DstFoldOption,
    DstGapOption,
    EndAtOption,
    ExceptOption,
    FileOption,
    IdempotencyKeyOption,
    LaneOption,
    MaxAttemptsOption,
    MaxRunsOption,
    NameOption,
    OnCompleteOption,
    PayloadOption,
    ScheduleOption,
    StartAtOption,
    TaskOption,
    TimeoutOption,
    TimezoneOption,
    WebhookOption,
    WindowOption,
)
from infra.cli.notes import NOTED, write_notes
from infra.cli.output import printable, write_json, write_line, write_record, write_table
from infra.cli.session import (
    ApiUrlOption,
    JobIdArgument,
    JsonOption,
    TokenOption,
    connect,
    invocation_of,
)
from shared.errors import InvalidFieldError

jobs = typer.Typer(help="Create, look at and change jobs.", no_args_is_help=True)

_COLUMNS = ("job_id", "name", "state", "schedule", "timezone", "target", "next_fire_at")


@jobs.command()
def create(
    ctx: typer.Context,
    name: NameOption = None,
    schedule: ScheduleOption = None,
    timezone: TimezoneOption = None,
    start_at: StartAtOption = None,
    end_at: EndAtOption = None,
    max_runs: MaxRunsOption = None,
    on_complete: OnCompleteOption = None,
    exceptions: ExceptOption = None,
    window: WindowOption = None,
    calendar: CalendarOption = None,
    calendar_rule: CalendarRuleOption = None,
    dst_gap: DstGapOption = None,
    dst_fold: DstFoldOption = None,
    task: TaskOption = None,
    webhook: WebhookOption = None,
    payload: PayloadOption = None,
    max_attempts: MaxAttemptsOption = None,
    timeout: TimeoutOption = None,
    lane: LaneOption = None,
    catch_up: CatchUpOption = None,
    idempotency_key: IdempotencyKeyOption = None,
    file: FileOption = None,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a job and show it; what to know of its schedule goes to stderr."""
    invocation_of(ctx, as_json)
    # Lists that were not given are empty, however typer calls them.
    body = _body(JobOptions(
        file, name, schedule or None, exceptions or None, timezone, start_at, end_at, max_runs,
        on_complete, window, calendar, calendar_rule, dst_gap, dst_fold, task, webhook, payload,
        lane, catch_up, max_attempts, timeout,
    ))  # fmt: skip
    api = connect(ctx, api_url, token, as_json)
    _show(ctx, _post_once(api, "/jobs", body, idempotency_key))


@jobs.command(name="list")
def list_jobs(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option(help="At most so many jobs.", min=1)] = 100,
    every: Annotated[bool, typer.Option("--all", help="All of them, however many.")] = False,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """List your jobs; with --json, an array."""
    api = connect(ctx, api_url, token, as_json)
    found = list(api.items("/jobs", None if every else limit))
    if invocation_of(ctx).as_json:
        write_json(found)
    else:
        rows = [[_cell(job, column) for column in _COLUMNS] for job in found]
        write_table(_COLUMNS, rows)


@jobs.command()
def show(
    ctx: typer.Context,
    job_id: JobIdArgument,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one job, whole."""
    _show(ctx, connect(ctx, api_url, token, as_json).get(job_path(job_id)))


@jobs.command()
def pause(
    ctx: typer.Context,
    job_id: JobIdArgument,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a job's occurrences until it is resumed."""
    _show(ctx, connect(ctx, api_url, token, as_json).post(job_path(job_id, "/pause")))


@jobs.command()
def resume(
    ctx: typer.Context,
    job_id: JobIdArgument,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a paused job fire again, from now on."""
    _show(ctx, connect(ctx, api_url, token, as_json).post(job_path(job_id, "/resume")))


@jobs.command()
def run(
    ctx: typer.Context,
    job_id: JobIdArgument,
    idempotency_key: IdempotencyKeyOption = None,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a job now, whatever its schedule says; shows the run's id."""
    api = connect(ctx, api_url, token, as_json)
    _show(ctx, _post_once(api, job_path(job_id, "/run"), None, idempotency_key))


@jobs.command()
def delete(
    ctx: typer.Context,
    job_id: JobIdArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    api_url: ApiUrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a job for good; its history stays until it expires."""
    api = connect(ctx, api_url, token, as_json)
    path = job_path(job_id)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete {job_id} for good?", abort=True, err=True)
    api.delete(path)
    if invocation_of(ctx).as_json:
        write_json({"job_id": job_id, "state": "deleted"})
    else:
        write_line(f"deleted {job_id}")


def _body(options: JobOptions) -> dict[str, Any]:
    if options == JobOptions():
        raise typer.BadParameter("give --file, or --name, --schedule and --task or --webhook")
    if options.task is not None and options.webhook is not None:
        raise typer.BadParameter("give either --task or --webhook")
    if options.file == "-" and options.payload == "@-":
        raise typer.BadParameter("--file - and --payload @- cannot both read stdin")
    try:
        return job_body(options)
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error


def _post_once(
    api: ApiClient, path: str, body: dict[str, Any] | None, key: str | None
) -> dict[str, Any]:
    """Post under an idempotency key, the caller's or a fresh one.

    When nobody knows whether it worked, the problem tells how to repeat it safely.
    """
    # An empty key is the API's to refuse: a script's unset variable must not lose its guard.
    key = uuid4().hex if key is None else key
    try:
        return api.post(path, body, headers={"Idempotency-Key": key})
    except CliError as error:
        if error.exit_code in (ExitCode.UNREACHABLE, ExitCode.UNEXPECTED):
            hint = f"repeat with --idempotency-key {key}: it cannot be done twice"
            detail = error.problem.get("detail")
            error.problem["detail"] = f"{detail}; {hint}" if detail else hint
        raise


def _show(ctx: typer.Context, record: dict[str, Any]) -> None:
    if invocation_of(ctx).as_json:
        write_json(record)
        return
    write_notes(record)
    # The target whole: here its type counts.
    write_record({
        name: value if name == "target" else _cell(record, name)
        for name, value in record.items()
        if name not in NOTED
    })  # fmt: skip


def _cell(job: dict[str, Any], column: str) -> Any:
    value = job.get(column)
    if column == "target" and isinstance(value, dict):
        return value.get("name") or value.get("url") or value
    if column in ("schedule", "except") and isinstance(value, list):
        return " | ".join(map(printable, value)) or None
    if column == "calendar" and isinstance(value, dict):
        return f"{value.get('name')} ({value.get('rule')})"
    return value
