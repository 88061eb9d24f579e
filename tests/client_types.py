"""The types of the client's requests and answers, made of the API's OpenAPI description.

`make client-types` writes them.
"""

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from carillon.client import types
from tests.unit.api.conftest import new_world

FOLDER = Path(types.__file__).parent
_HEAD = '''"""{subject} `make client-types` writes this file from the API's OpenAPI description."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
{imports}
# ruff: noqa: E501
# fmt: off
'''
_REFERENCE = re.compile(r'"#/components/schemas/([^"]+)"')
_SIMPLE = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None",
}  # fmt: skip
_LEAST_INHERITED = 10

Schema = Mapping[str, Any]
Schemas = dict[str, Schema]


def files() -> dict[Path, str]:
    """Each file as it should be."""
    description = new_world().api().describe()
    schemas: Schemas = description["components"]["schemas"]
    operations = [each for methods in description["paths"].values() for each in methods.values()]
    sent = _reached(schemas, _names([each.get("requestBody", {}) for each in operations]))
    got = _reached(schemas, _names([each["responses"] for each in operations]))
    requests = {name: schemas[name] for name in sorted(sent)}
    answers = {name: schemas[name] for name in sorted(got - sent)}
    shared = sorted(map(_name, _names(list(answers.values())) - answers.keys()))
    imported = ",\n    ".join(shared)
    imports = f"\nfrom carillon.client.types.requests import (\n    {imported},\n)\n"
    return {
        FOLDER / "requests.py": _text("Bodies of requests.", "", requests),
        FOLDER / "answers.py": _text("Bodies of answers.", imports, answers),
    }


def _names(value: object) -> set[str]:
    """The schemas to which a part of the description refers."""
    return set(_REFERENCE.findall(json.dumps(value)))


def _reached(schemas: Schemas, names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    left = set(names)
    while left:
        found |= left
        left = _names([schemas[name] for name in left]) - found
    return found


def _text(subject: str, imports: str, schemas: Schemas) -> str:
    literals = [
        f"{_name(name)} = {_type(schemas[name])}\n" for name in schemas if _is_simple(schemas[name])
    ]
    objects = {name: schema for name, schema in schemas.items() if not _is_simple(schema)}
    # Those that others inherit from come first.
    ordered = sorted(objects, key=lambda name: len(objects[name]["properties"]))
    bases = {name: _base_of(name, objects) for name in ordered}
    classes = [
        _class(name, objects[name], objects.get(bases[name] or ""), bases[name]) for name in ordered
    ]
    head = _HEAD.format(subject=subject, imports=imports)
    return head + "".join([*literals, *classes])


def _is_simple(schema: Schema) -> bool:
    return "properties" not in schema


def _base_of(name: str, objects: Schemas) -> str | None:
    """The schema of which this one has all members, and more."""
    members = _members(objects[name])
    for other in sorted(objects, key=lambda one: -len(objects[one]["properties"])):
        own = _members(objects[other])
        if other != name and len(own) >= _LEAST_INHERITED and own.items() < members.items():
            return other
    return None


def _members(schema: Schema) -> dict[str, str]:
    required = schema.get("required", ())
    types_of = {name: _type(member) for name, member in schema["properties"].items()}
    return {
        name: kind if name in required else f"NotRequired[{kind}]"
        for name, kind in types_of.items()
    }


def _class(name: str, schema: Schema, base: Schema | None, base_name: str | None) -> str:
    members = _members(schema)
    for inherited in () if base is None else base["properties"]:
        del members[inherited]
    words = {member: kind for member, kind in members.items() if keyword.iskeyword(member)}
    parents = [_name(base_name)] if base_name else []
    lines: list[str] = []
    if words:
        # A word of Python can be a member in this form only.
        parents.append(f"_{_name(name)}Words")
        told = ", ".join(f'"{member}": "{kind}"' for member, kind in words.items())
        lines.append(f'{parents[-1]} = TypedDict("{parents[-1]}", {{{told}}})')
    lines.append(f"class {_name(name)}({', '.join(parents) or 'TypedDict'}):")
    lines += [f"    {member}: {kind}" for member, kind in members.items() if member not in words]
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return name.replace("-", "")


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return (
            f"Literal[{', '.join(json.dumps(value).replace('true', 'True') for value in values)}]"
        )
    forms = schema.get("anyOf") or schema.get("oneOf")
    if forms:
        kinds = list(dict.fromkeys(_kinds(forms)))
        return "Any" if "Any" in kinds else " | ".join(kinds)
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema['items'])}]"
        case "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {_type(values) if isinstance(values, dict) else 'Any'}]"
        case None:
            return "Any"
        case kind:
            return _SIMPLE[kind]


def _kinds(forms: Iterable[Schema]) -> Iterator[str]:
    for form in forms:
        yield from _type(form).split(" | ") if "[" not in _type(form) else [_type(form)]


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
