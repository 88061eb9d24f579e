"""Declared jobs that belong into one apply: one runs after the other, or had its name before.

Nothing here imports pydantic: the CLI starts without it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from carillon.domain.spec.names import folded

_Members = TypeVar("_Members", bound=Mapping[str, Any])


def predecessor_of(members: Mapping[str, Any]) -> str | None:
    """The folded name of the job that a declared one is to run after; None for one with a
    schedule, and for a form that is refused."""
    after = members.get("after")
    name = after.get("job") if isinstance(after, dict) else after
    return folded(name) if isinstance(name, str) else None


def former_of(members: Mapping[str, Any]) -> str | None:
    """The folded name that a declared job had before; None for none, and for a form that is
    refused."""
    was = members.get("was")
    return folded(was) if isinstance(was, str) else None


def groups_of(jobs: Mapping[str, _Members]) -> Iterable[dict[str, _Members]]:
    """The jobs by name, each in one group with those that run after it, with those that had its
    name before, and with those whose names differ in their case only: one apply judges them all."""
    heads: dict[str, str] = {}
    for name, members in jobs.items():
        for other in filter(None, (predecessor_of(members), former_of(members))):
            heads[_head(heads, folded(name))] = _head(heads, other)
    groups: dict[str, dict[str, _Members]] = {}
    for name, members in jobs.items():
        groups.setdefault(_head(heads, folded(name)), {})[name] = members
    return groups.values()


def _head(heads: dict[str, str], name: str) -> str:
    """The name that stands for all that were joined to this one."""
    while (head := heads.get(name, name)) != name:
        heads[name] = heads.get(head, head)  # a shorter way for the next one who asks
        name = head
    return name
