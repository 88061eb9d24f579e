"""`carillon console`: the web page, served on this machine."""

import secrets
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Annotated

import typer

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.output import write_done
from carillon.cli.session import SessionOptions, sign_in_of

PortOption = Annotated[int, typer.Option(help="The port; by default any that is free.", min=0)]
ReadOnlyOption = Annotated[
    bool, typer.Option("--read-only", help="Pass nothing on that would change anything.")
]


def console(
    *, port: PortOption = 0, read_only: ReadOnlyOption = False, session: SessionOptions
) -> None:
    """Serve the console on this machine, and print the link that opens it; Ctrl-C ends it.

    The page calls the API with your sign-in, through this command: the token never is in the
    browser. The link holds a key that is good until this ends: give it to nobody.
    """
    serve_console(session, port=port, read_only=read_only)


def serve_console(
    session: SessionOptions,
    *,
    port: int = 0,
    read_only: bool = False,
    page: str = "",
    show: Callable[[str], object] | None = None,
) -> None:
    """Serve it until Ctrl-C; the link that is printed, and given to `show`, opens the `page`."""
    # A server's modules take time that no other command has.
    from carillon.console.loopback import Loopback

    try:
        loopback = Loopback(
            *sign_in_of(session), secrets.token_urlsafe(24), port=port, read_only=read_only
        )
    except OSError as error:
        raise CliError.local(ExitCode.USAGE, f"Port {port} cannot be had", str(error)) from error
    with closing(loopback):
        told = {"team": session.acts_for, "to": page}
        link = loopback.link + "".join(f"&{name}={text}" for name, text in told.items() if text)
        write_done(link, {"link": link}, session.is_json)
        sys.stdout.flush()
        if show is not None:
            show(link)
        try:
            loopback.serve()
        except KeyboardInterrupt:
            return
