"""Declared jobs that belong into one apply, since one runs after the other.

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


def groups_of(jobs: Mapping[str, _Members]) -> Iterable[dict[str, _Members]]:
    """The jobs by name, each in one group with those that run after it."""
    groups: dict[str, dict[str, _Members]] = {}
    for name, members in jobs.items():
        groups.setdefault(predecessor_of(members) or folded(name), {})[name] = members
    return groups.values()
