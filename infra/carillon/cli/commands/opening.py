"""`carillon open`: a job's page of the console."""

import webbrowser
from typing import Annotated
from urllib.parse import quote

import typer

from carillon.cli.commands.console import serve_console
from carillon.cli.session import JobArgument, SessionOptions


def open_job(
    job: JobArgument,
    *,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it, or only print the link.")
    ] = True,
    session: SessionOptions,
) -> None:
    """Open a job's page of the console, served on this machine until Ctrl-C."""
    page = f"/jobs/{quote(session.connect().job_id(job), safe='')}"
    serve_console(session, page=page, show=webbrowser.open if browser else None)
