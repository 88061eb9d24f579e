"""The tables of the CLI's options, for the CLI and for people, made of the marks of settings.

`make options` writes both.
"""

from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from carillon.cli import options_table
from carillon.domain.spec.fields import Seconds
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.options import Cli, JobOption, Kind

FILE = Path(options_table.__file__)
PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
_HEAD = '''"""The options of `jobs create` and `jobs change`, and defaults of a job's members.

`make options` writes this file.
"""

from typing import Any

from carillon.domain.spec.options import JobOption

# ruff: noqa: E501
# fmt: off
OPTIONS = (
'''
_KINDS: dict[Any, Kind] = {
    int: "int", float: "float", bool: "bool", tuple: "list", dict: "list", list: "list",
}  # fmt: skip


_PAGE_HEAD = """# Settings: every member of a job, and its option

`make options` writes this page. Types, bounds and defaults are in the API's OpenAPI document;
[running.md](running.md) and [schedules.md](schedules.md) tell what each is for.

| member | option of `carillon jobs create` and `change` | |
|---|---|---|
"""


def text() -> str:
    """The file as it should be."""
    lines = (f"    {_call(option)},\n" for option in _all_options())
    return f"{_HEAD}{''.join(lines)})\nDEFAULTS: dict[str, Any] = {_defaults()!r}\n"


def _defaults() -> dict[str, Any]:
    """By member, in JSON's types; null for those that are required."""
    required = {"name": "x", "schedule": "@hourly", "target": {"type": "task", "name": "x"}}
    return JobSpec.model_validate(required).document | dict.fromkeys(required)


def page() -> str:
    """The page as it should be."""
    rows = (f"| `{each.path}` | `{each.flag}` | {each.help} |\n" for each in _all_options())
    return _PAGE_HEAD + "".join(rows)


def _all_options() -> list[JobOption]:
    aliases = {name: field.alias or name for name, field in JobSpec.model_fields.items()}
    hints = get_type_hints(JobSpec, include_extras=True)
    return [option for name, alias in aliases.items() for option in _options(alias, hints[name])]


def _options(path: str, hint: Any) -> Iterator[JobOption]:
    parts = list(_parts(hint))
    within = next((part for part in parts if isinstance(part, type) and is_dataclass(part)), None)
    members = {} if within is None else get_type_hints(within, include_extras=True)
    for mark in (part for part in parts if isinstance(part, Cli)):
        place, kinds = (path, parts)
        if mark.member:
            place, kinds = f"{path}.{mark.member}", list(_parts(members[mark.member]))
        kind: Kind = "text" if mark.metavar else _kind(path, kinds)
        yield JobOption(place, mark.flag, kind, mark.help, mark.panel, mark.metavar)
    for name, member in members.items():
        yield from _options(f"{path}.{name}", member)


def _parts(hint: Any) -> Iterator[Any]:
    """The types and the marks of an annotation, but not of the items of a collection."""
    yield from getattr(hint, "__metadata__", ())
    origin = get_origin(hint)
    if origin in _KINDS:
        yield origin
    elif get_args(hint):
        for part in get_args(hint)[:1] if hasattr(hint, "__metadata__") else get_args(hint):
            yield from _parts(part)
    else:
        yield hint


def _kind(path: str, parts: list[Any]) -> Kind:
    if path in ("schedule", "except"):
        return "list"
    if any(isinstance(part, Seconds) for part in parts):
        return "text"
    return next(
        (_KINDS[part] for part in parts if isinstance(part, type) and part in _KINDS), "text"
    )


def _call(option: JobOption) -> str:
    values: list[str | None] = [option.path, option.flag, option.kind, option.help, option.panel]
    values += [option.metavar] if option.metavar else []
    return f"JobOption({', '.join(map(repr, values))})".replace(", '')", ")")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
