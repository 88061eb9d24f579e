"""A dataclass of options in the place of the options themselves."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from carillon.cli.options import with_option_groups


@dataclass(frozen=True)
class Color:
    red: Annotated[int, typer.Option("--red", "-r", max=255)] = 0
    name: str | None = None


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()

    @app.command()
    @with_option_groups
    def paint(local_time: str, *, color: Color, coats: int = 1) -> None:
        """Paint a wall."""
        print(local_time, color, coats)  # noqa: T201

    return app


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["north"], f"north {Color()} 1\n"),
        (["-r", "7", "--name", "x", "south", "--coats", "2"], f"south {Color(7, 'x')} 2\n"),
    ],
)
def test_each_field_is_an_option(app: typer.Typer, arguments: list[str], printed: str) -> None:
    result = CliRunner().invoke(app, arguments)

    assert (result.exit_code, result.stdout) == (0, printed)


def test_the_limits_and_the_help_are_those_of_the_options(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["north", "--red", "256"]).exit_code == 2
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "Paint a wall." in shown
    assert "--color" not in shown
