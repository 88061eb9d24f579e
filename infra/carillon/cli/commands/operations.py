"""`carillon operations ...`: backfills, and redrives and discards of many dead letters."""

from typing import Annotated

import typer

from carillon.cli.client import operation_path
from carillon.cli.lists import LengthOptions
from carillon.cli.option_groups import with_option_groups
from carillon.cli.output import write_answer, write_items
from carillon.cli.polling import finish
from carillon.cli.session import SessionOptions, connect, invocation_of

operations = typer.Typer(help="Work that goes on: backfills, redrives.", no_args_is_help=True)

_COLUMNS = (
    "operation_id", "kind", "state", "job_id", "done", "passed_over", "reached", "created_at",
    "note",
)  # fmt: skip

OperationIdArgument = Annotated[str, typer.Argument(metavar="OPERATION_ID", show_default=False)]


@operations.command(name="list")
@with_option_groups
def list_operations(ctx: typer.Context, *, length: LengthOptions, session: SessionOptions) -> None:
    """List your operations, newest first; with --json, an array."""
    found = list(connect(ctx, session).items("/operations", length.most))
    write_items(found, _COLUMNS, invocation_of(ctx).as_json)


@operations.command()
@with_option_groups
def show(
    ctx: typer.Context,
    operation_id: OperationIdArgument,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Show progress until it is over.")] = False,
    session: SessionOptions,
) -> None:
    """Show one operation, whole."""
    api = connect(ctx, session)
    operation = api.get(operation_path(operation_id))
    finish(api, operation, wait, invocation_of(ctx).as_json)


@operations.command()
@with_option_groups
def cancel(
    ctx: typer.Context, operation_id: OperationIdArgument, *, session: SessionOptions
) -> None:
    """Let an operation do no further step; what it did stays done."""
    answer = connect(ctx, session).post(operation_path(operation_id, "/cancel"))
    write_answer(answer, invocation_of(ctx).as_json)
