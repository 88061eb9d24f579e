"""The `carillon` command: its global options, its commands, and how errors end it."""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from carillon.cli.commands.account import logout, quota
from carillon.cli.commands.admin import admin
from carillon.cli.commands.admin.doctor import doctor
from carillon.cli.commands.calendars import calendars
from carillon.cli.commands.changes import changes
from carillon.cli.commands.completion import completion
from carillon.cli.commands.console import console
from carillon.cli.commands.imports import imports
from carillon.cli.commands.job_import import import_jobs
from carillon.cli.commands.jobs import jobs
from carillon.cli.commands.login import login, whoami
from carillon.cli.commands.manifests.apply import apply, diff
from carillon.cli.commands.manifests.export import export
from carillon.cli.commands.notifications import notifications
from carillon.cli.commands.opening import open_job
from carillon.cli.commands.overview import forecast, status, upcoming
from carillon.cli.commands.owners.export_data import export_data
from carillon.cli.commands.owners.hand_over import hand_over
from carillon.cli.commands.runs.dead_letters import dead_letters
from carillon.cli.commands.runs.logs import logs
from carillon.cli.commands.runs.operations import backfill, missed, operations
from carillon.cli.commands.runs.report import report
from carillon.cli.commands.runs.runs import runs
from carillon.cli.commands.runs.top import top
from carillon.cli.commands.simulation.simulate import simulate
from carillon.cli.commands.tasks import tasks
from carillon.cli.exits import EXIT_CODES_HELP, CliError, ExitCode
from carillon.cli.options import Commands
from carillon.cli.output import is_wide, write_error, write_line
from carillon.cli.preview.command import preview
from carillon.cli.session import Invocation, JsonOption, invocation_of


class CarillonGroup(TyperGroup):
    """Turns a CliError into its text on stderr and its exit code, wherever it was raised; so too
    the import of a library that only an extra brings."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return self._invoke(ctx)
        except CliError as error:
            write_error(error.text(invocation_of(ctx).as_json))
            raise typer.Exit(error.exit_code) from error

    def _invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            library, command = str(error.name).partition(".")[0], ctx.invoked_subcommand
            if library == "carillon":
                raise
            extra = "simulate" if command == "simulate" else "aws"
            detail = f"{library} is missing: pip install 'carillon[{extra}]'"
            title = f"{command} needs more than is installed"
            raise CliError.local(ExitCode.USAGE, title, detail) from error


app = Commands(
    name="carillon",
    cls=CarillonGroup,
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
    # A traceback is for a bug; rich would draw it with the values of variables around.
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if not asked:
        return
    # 30 ms that no other command should pay for.
    from importlib.metadata import PackageNotFoundError, version

    try:
        write_line(f"carillon {version('carillon')}")
    except PackageNotFoundError:
        write_line("carillon (run from a source tree)")
    raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    api_url: Annotated[
        str | None, typer.Option(envvar="CARILLON_API_URL", help="The deployment's address.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="CARILLON_TOKEN", help="The bearer token.")
    ] = None,
    team: Annotated[
        str | None, typer.Option(envvar="CARILLON_TEAM", help="Act for this team.")
    ] = None,
    as_json: JsonOption = False,
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Carillon: schedule jobs, read their history, preview a schedule.

    The options below can also follow a command's name.
    """
    is_wide.set(False)
    ctx.obj = Invocation(api_url or None, token or None, as_json, team)


app.command()(preview)
jobs.command(name="import")(import_jobs)
jobs.command()(backfill)
jobs.command()(missed)
app.add_typer(jobs, name="jobs")
app.add_typer(runs, name="runs")
app.command()(logs)
app.command()(changes)
app.command()(top)
app.command()(tasks)
app.command(name="open")(open_job)
app.command()(report)
app.command()(upcoming)
app.command()(forecast)
app.command()(simulate)
app.command()(diff)
app.command()(apply)
app.command()(export)
app.command()(hand_over)
app.command()(export_data)
app.add_typer(imports, name="import")
app.add_typer(dead_letters, name="dead-letters")
app.add_typer(operations, name="operations")
app.add_typer(calendars, name="calendars")
app.add_typer(notifications, name="notifications")
app.add_typer(quota, name="quota")
app.add_typer(admin, name="admin")
app.command()(console)
app.command()(login)
app.command()(logout)
app.command()(completion)
app.command()(status)
app.command()(doctor)
app.command()(whoami)
