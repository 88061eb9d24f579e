"""Choosing jobs by their parent and tags."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from infra.cli.exits import CliError
from shared.errors import InvalidFieldError

ParentFilter = Annotated[
    str | None, typer.Option("--parent", help="Jobs of this parent.", show_default=False)
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", help="Jobs with this tag, as KEY=VALUE; of several, with all.", show_default=False
    ),
]


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Which jobs; with none of the two, nothing is chosen."""

    parent: ParentFilter = None
    tag: TagFilter = None

    @property
    def query(self) -> dict[str, str | int]:
        """The filters as the API takes them.

        Raises CliError for empty ones: a script's unset variable must not choose other jobs.
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
