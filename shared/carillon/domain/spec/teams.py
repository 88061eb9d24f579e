"""Teams and roles, as tokens name them: a team is what the claims of its members say."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

TEAM_NAME = r"[a-z0-9][a-z0-9-]{0,62}"
ROLE_PATTERN = r"viewer|editor|admin"
TEAM_PATTERN = rf"(?P<team>{TEAM_NAME}):(?P<role>{ROLE_PATTERN})"

SCOPE_PREFIX = "carillon/"
"""The resource server before each scope of a machine's token, as `carillon/billing:editor`."""


class Role(StrEnum):
    """The right to act for an owner; each has the rights of those before it."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"

    def includes(self, other: "Role") -> bool:
        """True if whoever has this role may do what `other` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(other)


@dataclass(frozen=True, slots=True)
class TeamPattern:
    """Reads a team and a role from the name of a group, a role, or a scope.

    `pattern` is to match the whole name. Its groups are `team` and, unless there is a default,
    `role`.
    """

    pattern: str
    default_role: Role | None

    def __post_init__(self) -> None:
        """Raises ValueError for what no team can be read by."""
        try:
            groups = re.compile(self.pattern).groupindex
        except re.error as error:
            raise ValueError(f"{self.pattern!r} is no regular expression: {error}") from error
        if "team" not in groups:
            raise ValueError(f"{self.pattern!r} has no group (?P<team>...)")
        if "role" not in groups and self.default_role is None:
            raise ValueError(f"{self.pattern!r} has no group (?P<role>...): set team_default_role")

    def teams_in(self, names: Iterable[str]) -> Mapping[str, Role]:
        """Each team with the highest role for it. Names that name none are ignored."""
        found: dict[str, Role] = {}
        for name in names:
            team, role = self._read(name)
            if team and role is not None and (team not in found or role.includes(found[team])):
                found[team] = role
        return dict(sorted(found.items()))

    def _read(self, name: str) -> tuple[str, Role | None]:
        match = re.fullmatch(self.pattern, name)
        members = {} if match is None else match.groupdict()
        # The name becomes part of keys: whatever the pattern, it is one of a team.
        if not re.fullmatch(TEAM_NAME, members.get("team") or ""):
            return "", None
        word = members.get("role")
        if word is None:
            return members["team"], self.default_role
        return members["team"], Role(word) if re.fullmatch(ROLE_PATTERN, word) else None


def names_of(claim: object) -> frozenset[str]:
    """The names that a claim holds: a list, or text with blanks between them.

    A gateway hands a list on as text, `[billing:editor operators]`. A name with a blank cannot be
    told from two there; a name with a bracket is none.
    """
    if isinstance(claim, str):
        found = claim.removeprefix("[").removesuffix("]").split()
    elif isinstance(claim, list):
        found = [name for name in claim if isinstance(name, str) and not re.search(r"\s", name)]
    else:
        found = []
    return frozenset(name for name in found if not re.search(r"[\[\]]", name))
