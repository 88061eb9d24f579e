"""`carillon open`: a job's page of the console."""

import webbrowser
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
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
    with TemporaryDirectory(prefix="carillon-") as folder:
        show = partial(_show, Path(folder)) if browser else None
        serve_console(session, page=page, show=show)


def _show(folder: Path, link: str) -> None:
    """Open a file that leads to the link: others on this machine read what a browser is started
    with, and the link has the key. Only its owner reads the folder."""
    file = folder / "open.html"
    file.write_text(f'<meta http-equiv="refresh" content="0; url={escape(link)}">\n')
    webbrowser.open(file.as_uri())
