"""Changes of a document by RFC 7396: their form, and what they make of one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, Field, create_model

from carillon.domain.spec.fields import Document
from carillon.errors import InvalidFieldError


@dataclass(frozen=True, slots=True)
class PatchedAs:
    """Marks a member whose form in a patch is not its own with null besides."""

    form: Any


def partial(name: str, declared: type[Any], doc: str | None = None) -> type[Document]:
    """A model of patches: each member of `declared` with its own checks, null, or absent.

    Members that are dataclasses become partial, too.
    """
    fields = declared.model_fields if issubclass(declared, BaseModel) else {}
    members: dict[str, Any] = {}
    for member, hint in get_type_hints(declared, include_extras=True).items():
        alias = fields[member].alias if member in fields else None
        if member in fields or is_dataclass(declared):
            members[member] = (_form(hint) | None, Field(default=None, alias=alias))
    made: type[Document] = create_model(name, __base__=Document, __doc__=doc, **members)
    return made


def merged_document(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The document after a change: null takes a member away, so that it gets its default. An object
    is merged member by member; a target only while it keeps its type, and its headers one by one.

    Raises InvalidFieldError for a null member of a target that has no such member.
    """
    merged = dict(document)
    for member, change in changes.items():
        if change is None:
            del merged[member]
        elif member in TARGETS:
            merged[member] = _merged_target(member, merged[member], change)
        elif member in WHOLE:
            merged[member] = change
        else:
            merged[member] = _merged(merged[member], change)
    return merged


TARGETS = ("target", "on_success", "on_failure")
WHOLE = ("payload", "schedule")
"""Members that a change replaces, though they may be objects: what they hold is not the job's."""


def _form(hint: Any) -> Any:
    """The form of a member in a patch."""
    marks = getattr(hint, "__metadata__", ())
    marked = next((mark.form for mark in marks if isinstance(mark, PatchedAs)), None)
    return marked or next((partial(f"{each.__name__}Patch", each) for each in _objects(hint)), hint)


def _objects(hint: Any) -> Iterator[type[Any]]:
    """The dataclasses in an annotation."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
    for part in get_args(hint):
        yield from _objects(part)


def _merged(value: Any, change: Any) -> Any:
    if not isinstance(change, dict):
        return change
    merged = dict(value) if isinstance(value, dict) else {}
    for name, member in change.items():
        if member is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), member)
    return merged


def _merged_target(
    field: str, target: Mapping[str, Any] | None, change: Mapping[str, Any]
) -> dict[str, Any]:
    if target is None or change.get("type", target["type"]) != target["type"]:
        return dict(change)
    merged = dict(target)
    for member, value in change.items():
        if value is None:
            if member not in target:
                raise InvalidFieldError(f"{field}.{member}"[:200], "is not a known field")
            del merged[member]
        elif member == "headers" and isinstance(value, dict):
            merged[member] = _merged_headers(target.get(member, {}), value)
        else:
            merged[member] = value
    return merged


def _merged_headers(headers: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Upper and lower case are the same in the name of a header."""
    named = {name.lower() for name in change}
    kept = {name: value for name, value in headers.items() if name.lower() not in named}
    return kept | {name: value for name, value in change.items() if value is not None}
