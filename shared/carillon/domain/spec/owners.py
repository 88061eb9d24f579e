"""Owners of jobs, and the authors of changes to them."""

from dataclasses import dataclass, replace
from enum import StrEnum

SYSTEM_PREFIX = "system/"
"""Owners that begin so are the deployment's own: no token can name one."""


def user_owner(subject: str) -> str:
    """The owner that a token's subject is, when it acts for no team."""
    return f"user/{subject}"


def team_owner(name: str) -> str:
    return f"team/{name}"


def is_system(owner: str) -> bool:
    """True if an owner is the deployment itself."""
    return owner.startswith(SYSTEM_PREFIX)


class AuthorKind(StrEnum):
    PERSON = "person"
    MACHINE = "machine"
    ROLE = "role"
    """A role of IAM."""
    SYSTEM = "system"


class Via(StrEnum):
    """The way by which a change came."""

    API = "api"
    CLI = "cli"
    CONSOLE = "console"
    APPLY = "apply"
    STACK = "stack"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Author:
    """The one who made a change: `id` is the token's subject or the role's ARN, `name` what people
    know it by, "" where the token has none."""

    kind: AuthorKind
    id: str
    name: str
    via: Via

    @property
    def who(self) -> dict[str, str]:
        """The one, apart from the way, as JSON."""
        return {"kind": self.kind.value, "id": self.id, "name": self.name}

    def by(self, via: Via) -> "Author":
        """The same one by another way."""
        return replace(self, via=via)


SYSTEM = Author(AuthorKind.SYSTEM, "carillon", "", Via.SYSTEM)
"""Carillon itself, as where it pauses a job that fails too often."""
