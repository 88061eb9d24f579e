"""The tables of a deployment, as its own functions see them: for operators with AWS credentials."""

import os
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.session import OutputOptions
from carillon.errors import StoreUnavailableError

if TYPE_CHECKING:
    from carillon.settings import Settings
    from carillon.stores.ports import Stores

_TABLES = ("JOBS_TABLE", "WHEEL_TABLE", "RUNS_TABLE")


@dataclass(frozen=True, slots=True)
class AdminOptions(OutputOptions):
    """The options of every command that works on the tables themselves."""

    stack: Annotated[
        str,
        typer.Option(
            envvar="CARILLON_STACK",
            help="The CloudFormation stack. It is not asked where the environment has the "
            f"functions' own variables ({', '.join(_TABLES)} and the others).",
        ),
    ] = "Carillon"


def open_deployment(options: AdminOptions) -> "tuple[Settings, Stores]":
    """The settings and stores of a deployment, as `open_unchecked`: for what writes by time.

    Raises CliError, too, where this machine's clock is off: what is put on the wheel by it would
    come early, or late.
    """
    from carillon.stores.ports import SKEW_LIMIT_SECONDS

    settings, stores = open_unchecked(options)
    try:
        stores.wheel.examine_control(0)
    except StoreUnavailableError as error:
        raise CliError.local(ExitCode.UNREACHABLE, "Nothing done", str(error)) from error
    skew_seconds = stores.skew_seconds() or 0.0
    if abs(skew_seconds) > SKEW_LIMIT_SECONDS:
        apart = f"{abs(skew_seconds):.1f} s {'ahead of' if skew_seconds > 0 else 'behind'}"
        detail = f"it is {apart} the database's: set it, and try again"
        raise CliError.local(ExitCode.BAD_INPUT, "The clock of this machine is off", detail)
    return settings, stores


def open_with_zones(options: AdminOptions) -> "tuple[Settings, Stores]":
    """The settings and stores of a deployment, as `open_deployment`: for what puts jobs on the
    wheel, or says where they should be. Zones come from the package tzdata, as its functions have
    them, whatever files this machine has.

    Raises CliError, too, where the package is of another version than that of the last tick: jobs
    would stand, or be looked for, where no tick looks for them in time.
    """
    settings, stores = open_deployment(options)
    zoneinfo.reset_tzpath(())
    try:
        seen = stores.wheel.examine_control(0)
    except StoreUnavailableError as error:
        raise CliError.local(ExitCode.UNREACHABLE, "Nothing done", str(error)) from error
    theirs, own = seen and seen.members.get("tzdata"), version("tzdata")
    if theirs and theirs != own:
        detail = f"tzdata is {own} here, and {theirs} in the deployment: pip install"
        title = "The time zones of this machine are others"
        raise CliError.local(ExitCode.BAD_INPUT, title, f"{detail} tzdata=={theirs}, or deploy")
    return settings, stores


def open_unchecked(options: AdminOptions) -> "tuple[Settings, Stores]":
    """The settings and stores of a deployment; region, credentials and endpoint are boto3's search.

    The settings are the environment's where it names the tables, else those of the stack's api
    function. Raises CliError for what cannot be reached or read.
    """
    # A second that no other command should pay for.
    from botocore.exceptions import BotoCoreError, ClientError

    from carillon.clock import SystemClock
    from carillon.errors import ConfigurationError
    from carillon.settings import Settings
    from carillon.stores.dynamo import open_stores, read_parameters

    try:
        given = all(os.environ.get(name) for name in _TABLES)
        settings = (
            Settings.from_environment(os.environ, read_parameters)
            if given
            else settings_of(options.stack)
        )
        return settings, open_stores(settings, SystemClock())
    except ConfigurationError as error:
        raise CliError.local(ExitCode.USAGE, "Bad setting", str(error)) from error
    except (BotoCoreError, ClientError) as error:
        detail = f"stack {options.stack}: {error}"
        raise CliError.local(ExitCode.NOT_ALLOWED, "The stack cannot be read", detail) from error


def require_segment(settings: "Settings", stores: "Stores", segment: int) -> None:
    """Raises CliError for a segment that is not in use, or where that cannot be read."""
    from carillon.stores.segments import segments_in_use

    try:
        count = segments_in_use(stores.wheel, settings.segments)
    except StoreUnavailableError as error:
        raise CliError.local(ExitCode.UNREACHABLE, "Nothing done", str(error)) from error
    if segment >= count:
        detail = f"the deployment has segments 0 to {count - 1}"
        raise CliError.local(ExitCode.NOT_FOUND, f"No segment {segment}", detail)


def outputs_of(stack: str) -> Mapping[str, str]:
    """The outputs of the stack; raises CliError where it is none of Carillon's, and ClientError."""
    import boto3

    described = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described[0].get("Outputs", [])}
    if "TickFunction" not in outputs:
        detail = f"{stack} has no output TickFunction: is it Carillon's? Give --stack"
        raise CliError.local(ExitCode.NOT_FOUND, "No such deployment", detail)
    return outputs


def settings_of(stack: str) -> "Settings":
    """The settings of the stack's api function: what the deployment itself runs with.

    Raises CliError, ClientError, ConfigurationError.
    """
    import boto3

    from carillon.settings import Settings
    from carillon.stores.dynamo import read_parameters

    name = outputs_of(stack)["ApiFunction"]
    function = boto3.client("lambda").get_function_configuration(FunctionName=name)
    variables = function.get("Environment", {}).get("Variables", {})
    return Settings.from_environment(variables, read_parameters)
