"""`carillon admin erase`: nothing of an owner is left in the tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.commands.admin.all_jobs import work_off
from carillon.cli.commands.admin.stores import AdminOptions, open_deployment
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.options import YesOption, confirm_many
from carillon.cli.output import printable

if TYPE_CHECKING:
    from carillon.stores.dynamo.erasing import Erased

OwnerArgument = Annotated[
    str, typer.Argument(metavar="OWNER", help="team/NAME, or user/SUBJECT of the token.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Delete nothing: count what would be deleted.")
]
_KINDS = ("team/", "user/")


def erase(
    owner: OwnerArgument,
    *,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    options: AdminOptions,
) -> None:
    """Delete all that an owner has, for good: jobs, their entries, runs, results and changes, the
    feed, calendars, notifications, quotas, and whatever else is stored under its name.

    Take its members out of the team first (`remove-from-team --now`): who has a token may make jobs
    anew. It reads all tables whole, may be interrupted, and is to be repeated half an hour later,
    since what was under way may have left rows: exit code 1 says so, 0 that nothing was found.
    docs/teams.md#erasing-an-owner has what is kept elsewhere, and for how long.
    """
    from carillon.clock import SystemClock
    from carillon.stores.dynamo.erasing import Erasure, HandOverUnderWayError

    if not owner.startswith(_KINDS) or owner in _KINDS:
        detail = f"{owner!r} is none: team/NAME or user/SUBJECT"
        raise CliError.local(ExitCode.USAGE, "Bad owner", detail)
    settings, _ = open_deployment(options)
    if not dry_run:
        # Who has forgotten --stack is in production.
        where = printable(settings.stack_name or settings.jobs_table)
        confirm_many(f"Delete all that {printable(owner)} has in {where} for good?", yes)
    work = Erasure.of(owner, settings, SystemClock(), is_rehearsal=dry_run)

    def lines(done: "Erased") -> list[str]:
        what = "to be deleted" if dry_run else "deleted"
        counts = [f"{kind}: {count:,}" for kind, count in sorted(done.removed.items())]
        return [f"{done.read:,} items read, {done.removed.total():,} {what}", *counts]

    def told(done: "Erased") -> dict[str, Any]:
        members = {"owner": owner, "dry_run": dry_run, "read": done.read}
        return {**members, "deleted": dict(done.removed), "left": done.left}

    try:
        work_off(work, lines, told, as_json=options.is_json)
    except HandOverUnderWayError as error:
        raise CliError.local(ExitCode.CONFLICT, "Nothing deleted", str(error)) from error
