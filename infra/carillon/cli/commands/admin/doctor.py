"""`carillon doctor`: the faults of a deployment, and their remedies; for operators."""

from dataclasses import asdict

import typer

from carillon.cli.commands.admin.stores import AdminOptions, open_unchecked
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import printable, write_json, write_line


def doctor(*, options: AdminOptions) -> None:
    """Check a deployment for faults: a line for each check, with the remedy.

    Only reads, with AWS credentials. Exit code 1 where something is wrong.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from carillon.clock import SystemClock
    from carillon.doctor.collecting import Collector
    from carillon.doctor.dispatching import examine
    from carillon.doctor.verdicts import Level

    settings, stores = open_unchecked(options)
    stack = settings.stack_name or options.stack
    try:
        seen = Collector(stack, settings, stores, SystemClock().now()).snapshot()
    except (BotoCoreError, ClientError) as error:
        detail = f"stack {stack}: {error}"
        raise CliError.local(ExitCode.NOT_ALLOWED, "Not checked to the end", detail) from error
    verdicts = examine(seen)
    wrong = sum(each.level is Level.WRONG for each in verdicts)
    if options.is_json:
        write_json([asdict(each) for each in verdicts])
    else:
        for each in verdicts:
            advice = f" -> {each.advice}" if each.advice and each.level is not Level.OK else ""
            write_line(printable(f"{each.level:<14} {each.check}: {each.text}{advice}"))
        write_line(f"{stack}: {len(verdicts)} checks, {wrong} wrong")
    if wrong:
        raise typer.Exit(ExitCode.UNEXPECTED)
