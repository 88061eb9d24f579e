"""`carillon run ...`: look at one run, or cancel it."""

from typing import Annotated

import typer

from carillon.cli.client import run_path
from carillon.cli.option_groups import with_option_groups
from carillon.cli.run_display import write_run
from carillon.cli.session import SessionOptions, connect, invocation_of

run = typer.Typer(help="Look at one run, or cancel it.", no_args_is_help=True)

RunIdArgument = Annotated[str, typer.Argument(metavar="RUN_ID", show_default=False)]


@run.command()
@with_option_groups
def show(ctx: typer.Context, run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Show one run, whole, with each of its attempts."""
    answer = connect(ctx, session).get(run_path(run_id))
    write_run(answer, invocation_of(ctx).as_json)


@run.command()
@with_option_groups
def cancel(ctx: typer.Context, run_id: RunIdArgument, *, session: SessionOptions) -> None:
    """Cancel a run that waits or is to be retried; one under way is not stopped."""
    answer = connect(ctx, session).post(run_path(run_id, "/cancel"))
    write_run(answer, invocation_of(ctx).as_json)
