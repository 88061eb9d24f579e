"""`carillon operations`, `backfill` and `missed`."""

from typing import Annotated, Any

import typer

from carillon.cli.client import operation_path
from carillon.cli.options import Commands, LengthOptions, LimitOption, SpanOptions
from carillon.cli.output import write_answer, write_error, write_items
from carillon.cli.polling import finish
from carillon.cli.session import (
    IdempotencyKeyOption,
    JobArgument,
    SessionOptions,
)

operations = Commands(help="Backfills, bulk redrives: list, show, cancel.", no_args_is_help=True)

_OPERATION_COLUMNS = (
    "operation_id", "kind", "state", "job_id", "done", "passed_over", "reached", "created_at",
    "note",
)  # fmt: skip

_LEAST_NEEDED = ("created_at", "passed_over", "reached", "job_id", "kind")

OperationIdArgument = Annotated[str, typer.Argument(metavar="OPERATION_ID", show_default=False)]


@operations.command(name="list")
def list_operations(*, length: LengthOptions, session: SessionOptions) -> None:
    """List your operations, newest first; with --json, an array."""
    found = list(session.connect().items("/operations", length.most))
    write_items(found, _OPERATION_COLUMNS, session.is_json, least_needed=_LEAST_NEEDED)


@operations.command()
def show(
    operation_id: OperationIdArgument,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until it is over.")] = False,
    session: SessionOptions,
) -> None:
    """Show one operation, whole."""
    api = session.connect()
    operation = api.get(operation_path(operation_id))
    finish(api, operation, wait, session.is_json)


@operations.command()
def cancel(operation_id: OperationIdArgument, *, session: SessionOptions) -> None:
    """Stop an operation before its next step; finished steps stay done."""
    answer = session.connect().post(operation_path(operation_id, "/cancel"))
    write_answer(answer, session.is_json)


_MISSED_COLUMNS = ("fire_at", "status", "reason", "run_id")


def backfill(
    job: JobArgument,
    *,
    span: SpanOptions,
    only: Annotated[
        str, typer.Option(help="all occurrences, or missed: those without a success.")
    ] = "all",
    per_minute: Annotated[
        int | None, typer.Option(help="The most runs in a minute.", min=1, show_default="the API's")
    ] = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait/--no-wait", help="Until all runs have ended; exit code 1 if one has failed."
        ),
    ] = False,
    idempotency_key: IdempotencyKeyOption = None,
    session: SessionOptions,
) -> None:
    """Run a job's occurrences of a span of time, throttled; shows the operation."""
    if span.from_at is None or span.until_at is None:
        raise typer.BadParameter("give --from and --to")
    body: dict[str, Any] = {**span.span, "only": only}
    if per_minute is not None:
        body["per_minute"] = per_minute
    api = session.connect()
    operation = api.post_once(api.job_path(job, "/backfill"), body, idempotency_key)
    finish(api, operation, wait, session.is_json)


def missed(
    job: JobArgument,
    *,
    span: SpanOptions,
    limit: LimitOption = 100,
    session: SessionOptions,
) -> None:
    """List the occurrences without a success, since the last pause or of the last 24 hours.

    `carillon jobs backfill JOB --only missed --from ... --to ...` runs them. With --json, an
    array.
    """
    api = session.connect()
    answer = api.get(api.job_path(job, "/missed"), {**span.span, "limit": limit})
    if answer.get("complete") is False:
        write_error(
            f"Note: only searched since {answer.get('from')}; give an earlier --to for more"
        )
    write_items(answer.get("items", []), _MISSED_COLUMNS, session.is_json)
