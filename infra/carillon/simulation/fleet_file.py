"""A file of jobs, in YAML or JSON, as values of JSON's types."""

import json
import re
from typing import Any

import yaml

from carillon.errors import InvalidFieldError

_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """YAML's core schema (1.2): no dates, no numbers to base 60, no `yes` and `off`.

    What the API takes as text, such as an instant or `09:30`, need not be quoted then.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012 - declared so by its base

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Keys are text, and stand once: the last of two would win in silence."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != "tag:yaml.org,2002:str":
                raise _error(key, "a key that is not text: quote it")
            if key.value in seen:
                raise _error(key, f"the key {key.value!r} stands twice")
            seen.add(key.value)
        return node


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
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)
_Loader.add_implicit_resolver(_MERGE, re.compile(r"^(?:<<)$"), ["<"])


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def document_of(text: str) -> Any:
    """Raises InvalidFieldError on `file`, with the line where the text goes wrong."""
    if text.lstrip().startswith(("[", "{")):
        try:
            # Quicker than YAML in Python.
            return json.loads(text, object_pairs_hook=_once_each)
        except (ValueError, RecursionError):
            pass  # flow style of YAML, perhaps; or YAML has the better words for it
    try:
        return yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise InvalidFieldError("file", f"is not YAML: {_told(error)}") from error
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError("file", f"is not YAML: {error}") from error


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _error(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _told(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return problem if mark is None else f"line {mark.line + 1}: {problem}"
