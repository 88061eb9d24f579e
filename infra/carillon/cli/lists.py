"""The options of lists: how much of them, and of which span of time."""

from dataclasses import dataclass
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from carillon.cli.exits import CliError
from carillon.cli.instants import parse_instant, utc_text
from carillon.errors import InvalidFieldError

LimitOption = Annotated[int, typer.Option(help="At most so many.", min=1)]
AllOption = Annotated[bool, typer.Option("--all", help="All of them, however many.")]
FromOption = Annotated[
    str | None,
    typer.Option("--from", help="Of fire times from this on: ISO 8601; UTC without an offset."),
]
UntilOption = Annotated[
    str | None, typer.Option("--to", help="... and until this, which is included.")
]


@dataclass(frozen=True, slots=True)
class LengthOptions:
    """How many items of a list; `most` is None for all of them."""

    limit: LimitOption = 100
    every: AllOption = False

    @property
    def most(self) -> int | None:
        return None if self.every else self.limit


@dataclass(frozen=True, slots=True)
class SpanOptions:
    """A span of fire times; open where nothing was given."""

    from_at: FromOption = None
    until_at: UntilOption = None

    @property
    def span(self) -> dict[str, str | int]:
        """`from` and `to` as the API takes them; raises CliError naming the one that is wrong."""
        return span_of(self.from_at, self.until_at)


def span_of(from_at: str | None, until_at: str | None) -> dict[str, str | int]:
    """`from` and `to` in UTC, as far as they are given; raises CliError naming the wrong one."""
    span: dict[str, str | int] = {}
    for name, text in (("from", from_at), ("to", until_at)):
        if text is not None:
            try:
                span[name] = utc_text(parse_instant(text, ZoneInfo("UTC"), name))
            except InvalidFieldError as error:
                raise CliError.from_invalid_field(error) from error
    return span
