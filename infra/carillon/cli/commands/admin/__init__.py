"""`carillon admin ...`: what operators do to a deployment itself, with AWS credentials."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carillon.cli.commands.admin.audit import audit
from carillon.cli.commands.admin.erase import erase
from carillon.cli.commands.admin.machines import machine_clients
from carillon.cli.commands.admin.reindex import reindex
from carillon.cli.commands.admin.release import release
from carillon.cli.commands.admin.smoke import smoke
from carillon.cli.commands.admin.spread import spread
from carillon.cli.commands.admin.stores import AdminOptions, open_deployment, require_segment
from carillon.cli.commands.admin.users import add_to_team, add_user, remove_from_team, users
from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import utc_text
from carillon.cli.options import Commands
from carillon.cli.output import write_done

if TYPE_CHECKING:
    from carillon.domain.wheel.segment import Control
    from carillon.stores.ports import WheelStore

admin = Commands(
    help="For operators: works on the deployment itself, with AWS credentials.",
    no_args_is_help=True,
)

SegmentArgument = Annotated[int, typer.Argument(metavar="SEGMENT", min=0, show_default=False)]


@admin.command(name="mend-segment")
def mend_segment(segment: SegmentArgument, *, options: AdminOptions) -> None:
    """Mend a segment's control item that cannot be read, or whose lease no tick has taken.

    What can be read of it is kept. A lost watermark costs a backlog of 14 days, sent whole at the
    pace of catching up: what has run is not run again. Repeating it does no harm.
    """
    from carillon.clock import SystemClock
    from carillon.errors import StoreUnavailableError

    settings, stores = open_deployment(options)
    try:
        require_segment(settings, stores, segment)
        told = mend(stores.wheel, segment, SystemClock().now)
    except StoreUnavailableError as error:
        raise CliError.local(ExitCode.UNREACHABLE, "Not mended", str(error)) from error
    text = "\n".join(f"{name}: {value}" for name, value in told.items())
    write_done(text, told, options.is_json)


admin.command(name="audit")(audit)
admin.command(name="add-to-team")(add_to_team)
admin.command(name="add-user")(add_user)
admin.command(name="erase")(erase)
admin.command(name="machine-clients")(machine_clients)
admin.command(name="reindex")(reindex)
admin.command(name="release")(release)
admin.command(name="remove-from-team")(remove_from_team)
admin.command(name="smoke")(smoke)
admin.command(name="spread")(spread)
admin.command(name="users")(users)


def mend(wheel: "WheelStore", segment: int, now: "Callable[[], datetime]") -> dict[str, Any]:
    """Mend the control item; answers the faults, member by member, and the item as it is now.

    One read and one write, conditional on what was read: cut off anywhere it can be begun anew.
    Raises CliError when there is nothing to mend, or the item changed meanwhile.
    """
    from carillon.domain.wheel.segment import mended, with_lease_checked

    remains = wheel.examine_control(segment)
    if remains is None:
        detail = "the first use of a segment makes its control item: there is nothing to mend"
        raise CliError.local(ExitCode.NOT_FOUND, f"Segment {segment} has not been used", detail)
    checked = with_lease_checked(remains, now())
    if not checked.unreadable:
        return {"segment": segment, "mended": {}, "detail": "it can be read; nothing was changed"}
    control = mended(checked, now())
    if not wheel.mend_control(control, over=remains):
        detail = "a tick that still held it may have written it anew: try again"
        raise CliError.local(ExitCode.CONFLICT, f"Segment {segment} changed meanwhile", detail)
    return {"segment": segment, "mended": dict(checked.unreadable), **_facts(control)}


def _facts(control: "Control") -> dict[str, Any]:
    """Of a mended item: how far it is, in the words of `GET /status`."""
    from carillon.domain.wheel.entry import minute_end

    return {
        "watermark_at": utc_text(minute_end(control.watermark)),
        "horizon_at": utc_text(minute_end(control.horizon)),
        "backlog_minutes": sum(each.until - each.done for each in control.backlog),
        "token": control.token,
    }
