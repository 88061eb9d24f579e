"""YAML as manifests are written in it: the core schema of YAML 1.2, of which JSON is a part.

No dates, no numbers to base 60, no `yes` and `off`: what the API takes as text, such as an instant
or `09:30`, need not be quoted.
"""

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import yaml

from carillon.errors import InvalidFieldError

_MERGE = "tag:yaml.org,2002:merge"
_FLOAT = "tag:yaml.org,2002:float"
_FLOAT_FORM = re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$")
_FLOAT_BEGINS = list("-+0123456789.")
_OTHER_BREAKS = frozenset("\x85\u2028\u2029")


_CORE = ("null", "bool", "int", "str", "seq", "map")


class _Loader(yaml.SafeLoader):
    """Knows the types of JSON only: what a tag makes of them, as a date, could not be sent."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - declared so by its base
    yaml_constructors = {  # noqa: RUF012 - declared so by its base
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (*(f"tag:yaml.org,2002:{name}" for name in _CORE), None)
    }

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        """No alias stands within the node that it names: it would have no end."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent) and node is not None and node.end_mark is None:
            raise _error(node, f"*{event.anchor} stands within what it names")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Keys are text, and unique: otherwise the last of two would win in silence."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != "tag:yaml.org,2002:str":
                raise _error(key, "a key that is not text: quote it")
            if key.value in seen:
                raise _error(key, f"the key {key.value!r} appears twice")
            seen.add(key.value)
        return node


class _Dumper(yaml.SafeDumper):
    """Quotes what either version of YAML reads as something else than text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool",
    re.compile(r"^(true|True|TRUE|false|False|FALSE)$"),
    list("tTfF"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(_MERGE, re.compile(r"^(?:<<)$"), ["<"])
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver(_FLOAT, _FLOAT_FORM, _FLOAT_BEGINS)


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    found = float(loader.construct_scalar(node))
    if not math.isfinite(found):
        raise _error(node, f"{node.value[:40]} is no number that JSON has")
    return found


_Loader.add_constructor(_FLOAT, _float)


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # Breaks of lines other than the feed are folded, unless they are escaped.
    style = None if _OTHER_BREAKS.isdisjoint(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def document_of(text: str) -> Any:
    """Raises InvalidFieldError on `file`, with the line where the text goes wrong."""
    if text.lstrip().startswith(("[", "{")):
        try:
            # Quicker than YAML in Python.
            return json.loads(
                text,
                object_pairs_hook=_once_each,
                parse_float=_finite,
                parse_constant=_finite,
            )
        except (ValueError, RecursionError):
            pass  # flow style of YAML, perhaps; or YAML has the better words for it
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InvalidFieldError("file", f"is not YAML: {_told(error)}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError("file", f"is not YAML: {error}") from error


def text_of(document: Any) -> str:
    """A document of JSON's types as YAML; `document_of` reads it back equal."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def line_of(text: str, path: Sequence[str]) -> int | None:
    """The line, from 1, of the last member on `path` that a readable document has; None where only
    JSON's own reader takes the text."""
    try:
        node = _composed(text)
    except (yaml.YAMLError, RecursionError):
        return None
    line = 0 if node is None else node.start_mark.line
    for name in path:
        members = node.value if isinstance(node, yaml.MappingNode) else ()
        found = next(((key, value) for key, value in members if key.value == name), None)
        if found is None:
            break
        key, node = found
        line = key.start_mark.line
    return line + 1


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key appears twice")
    return found


@lru_cache(maxsize=4)  # a file with many faults is asked for the line of each
def _composed(text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, _Loader)
    except yaml.YAMLError:
        # Tabs may stand between the members of JSON, where YAML has none.
        return yaml.compose(text.replace("\t", " "), _Loader)


def _finite(text: str) -> float:
    """Raises InvalidFieldError: YAML would take what JSON does not have for text."""
    found = float(text)
    if not math.isfinite(found):
        raise InvalidFieldError("file", f"is not JSON: {text[:40]} is no number there")
    return found


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _told(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return problem if mark is None else f"line {mark.line + 1}: {problem}"
