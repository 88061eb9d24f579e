"""Options that commands share: groups, lists, filters, instants, confirmation."""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints
from zoneinfo import ZoneInfo

import typer

from carillon.cli.exits import CliError, ExitCode
from carillon.cli.instants import parse_instant, utc_text
from carillon.errors import InvalidFieldError

ParentFilter = Annotated[
    str | None, typer.Option("--parent", help="Jobs of this parent.", show_default=False)
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", help="Jobs with this tag, as KEY=VALUE; of several, with all.", show_default=False
    ),
]


_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_VALUE = re.compile(r"[^\x00-\x1f\x7f,]{0,256}")
_TAG_RULE = "keys have letters, digits, _, . and -, values no commas or control characters"


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """A choice of jobs; with neither of the two, nothing is chosen."""

    parent: ParentFilter = None
    tag: TagFilter = None

    @property
    def query(self) -> dict[str, str | int]:
        """The filters as the API takes them.

        Raises CliError for empty ones and for tags that a filter cannot name: a script's unset
        variable, or a comma in its value, must not choose other jobs.
        """
        query: dict[str, str | int] = {}
        if self.parent is not None:
            if not self.parent:
                raise CliError.bad_field("parent", "is empty")
            query["parent"] = self.parent
        return query | tag_query(self.tag)


def tag_query(texts: Sequence[str] | None) -> dict[str, str | int]:
    """Tags given as KEY=VALUE, as the API filters by them; raises CliError as
    `FilterOptions.query`."""
    try:
        tags = tags_of(texts or ())
    except InvalidFieldError as error:
        raise CliError.from_invalid_field(error) from error
    for key, value in tags.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise CliError.bad_field("tag", f"{key}={value} can be no job's: {_TAG_RULE}")
    return {"tag": ",".join(f"{key}:{value}" for key, value in tags.items())} if tags else {}


def tags_of(texts: Sequence[str]) -> dict[str, str]:
    """Tags given as KEY=VALUE; raises InvalidFieldError on `tags`."""
    tags: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InvalidFieldError("tags", f"{text!r} is no tag such as team=billing")
        if tags.setdefault(key, value) != value:
            raise InvalidFieldError("tags", f"{key} has two values")
    return tags


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer is to see it: a parameter that is a dataclass becomes its fields.

    Every field needs a default and an `Annotated` type, as a command's own options have them; but a
    field `ctx` gets the call's context.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    if "ctx" not in hints:
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        parameters.append(context)
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _options_of(hints[name])
        else:
            parameters.append(
                parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)
            )

    @wraps(command)
    def called(ctx: typer.Context, **given: Any) -> None:
        if "ctx" in hints:
            given["ctx"] = ctx
        filled = {
            name: group(
                **{
                    field.name: ctx if field.name == "ctx" else given.pop(field.name)
                    for field in fields(group)
                }
            )
            for name, group in groups.items()
        }
        command(**given, **filled)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


class Commands(typer.Typer):
    """A group of commands, whose parameters may be groups of options."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        register = super().command(name, **settings)

        def add(command: Callable[..., None]) -> Callable[..., None]:
            register(with_option_groups(command))
            return command

        return add


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
        if field.name != "ctx"
    ]


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; elsewhere nobody could answer. Raises typer.Abort on a no."""
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True, err=True)


def confirm_many(question: str, yes: bool) -> None:
    """As `confirm`, for many at once; raises CliError where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        detail = "nobody can be asked off a terminal: repeat with --yes"
        raise CliError.local(ExitCode.USAGE, question.rstrip("?"), detail)
    confirm(question, yes)


LimitOption = Annotated[int, typer.Option(help="The most to show.", min=1)]
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
    """The number of items of a list; `most` is None for all of them."""

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
