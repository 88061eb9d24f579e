"""Choosing jobs by their parent and tags."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from carillon.cli.exits import CliError
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
    """Which jobs; with none of the two, nothing is chosen."""

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
        try:
            tags = tags_of(self.tag or ())
        except InvalidFieldError as error:
            raise CliError.from_invalid_field(error) from error
        for key, value in tags.items():
            if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
                raise CliError.bad_field("tag", f"{key}={value} can be no job's: {_TAG_RULE}")
        if tags:
            query["tag"] = ",".join(f"{key}:{value}" for key, value in tags.items())
        return query


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
