"""`carillon logout`: the end of a stored sign-in; `carillon quota ...`: what owners may have and
take."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from carillon.cli.client import quota_path
from carillon.cli.commands.login import revoke
from carillon.cli.exits import CliError
from carillon.cli.options import Commands
from carillon.cli.output import write_done, write_error, write_items
from carillon.cli.session import OutputOptions, SessionOptions, stored_sign_in
from carillon.client.settings import credentials_path


def logout(*, output: OutputOptions) -> None:
    """Forget the stored sign-in; the means to renew it are revoked where Cognito gave them.

    Where nobody is signed in nothing is done. CARILLON_TOKEN is left as it is.
    """
    path = credentials_path()
    stored = stored_sign_in()
    told = {"api_url": None if stored is None else stored.api_url}
    if stored is None:
        write_done("not signed in", told, output.is_json)
        return
    path.unlink(missing_ok=True)
    if stored.refresh is not None:
        try:
            revoke(stored.refresh)
        except CliError as error:
            write_error(f"Note: not revoked at Cognito: {error.text(as_json=False)}")
    write_done(f"signed out of {stored.api_url}", told, output.is_json)


quota = Commands(help="What you may have and take, and how much of it is in use.")

_COLUMNS = ("name", "limit", "use", "set by")

OwnerArgument = Annotated[
    str, typer.Argument(metavar="OWNER", help="As team/billing or user/SUBJECT.")
]
LimitsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME=LIMIT...",
        help="As jobs=20000, 0 for none; NAME=default for the deployment's.",
        show_default=False,
    ),
]
_DEFAULT = "default"


@quota.command()
def show(
    owner: Annotated[
        str | None,
        typer.Argument(metavar="OWNER", help="As team/billing, for operators.", show_default=False),
    ] = None,
    *,
    session: SessionOptions,
) -> None:
    """Show your limits and their use, or those of an owner; a limit of 0 is none."""
    _write(session.connect().get(quota_path(owner)), session)


@quota.command(name="set")
def set_limits(owner: OwnerArgument, limits: LimitsArgument, *, session: SessionOptions) -> None:
    """Set limits of one owner in place of the deployment's; for operators. Others stay.

    They count everywhere within half a minute.
    """
    api, path = session.connect(), quota_path(owner)
    answer = api.get(path)
    own = {each["name"]: each["limit"] for each in answer["quotas"] if each["own"]}
    known = [each["name"] for each in answer["quotas"]]
    _write(api.put(path, own | _given(limits, known)), session)


def _given(limits: Sequence[str], known: Sequence[str]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for text in limits:
        name, _, value = text.partition("=")
        if name not in known or not (value == _DEFAULT or (value.isascii() and value.isdigit())):
            names = ", ".join(known)
            raise typer.BadParameter(
                f"{text!r}: expected NAME=LIMIT, with a whole number or {_DEFAULT}, of {names}"
            )
        found[name] = None if value == _DEFAULT else int(value)
    return found


def _write(answer: Mapping[str, Any], session: SessionOptions) -> None:
    write_items(answer["quotas"], _COLUMNS, session.is_json, _cell)


def _cell(quota: Mapping[str, Any], column: str) -> Any:
    match column:
        case "set by":
            return "an operator" if quota["own"] else "the deployment"
        case "limit":
            return quota["limit"] or "none"
        case _:
            return quota[column]
