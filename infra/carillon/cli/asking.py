"""Asking before what cannot be undone."""

import sys
from typing import Annotated

import typer

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")]


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; elsewhere nobody could answer. Raises typer.Abort on a no."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)
