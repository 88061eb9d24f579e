"""Releases: what one deployment made of every function, and which of them is live.

Each function's `live` alias is what the clock, the queues and the API call. A release is named in
the descriptions of the versions that it published.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

LIVE = "live"
"""The alias of every function."""

KEPT = 3
"""So many releases stay when older ones are deleted, whichever is live among or beside them."""

CALLERS = ("Tick", "Api")
"""The functions whose messages the others must understand: the last to go to a newer release, and
the first to go back to an older one."""


def described(description: str, release: str) -> str:
    """A function's description, with the release that it belongs to."""
    return f"{description} (release {release})"


def release_of(description: str) -> str:
    """The release named in a version's description, "" without one."""
    found = re.search(r"\(release ([0-9a-f]+)\)$", description)
    return found[1] if found else ""


@dataclass(frozen=True, slots=True)
class Version:
    """A published version of one function."""

    number: str
    release: str
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Released:
    """One function: its versions, oldest first, and the number of the one that is live."""

    name: str
    versions: Sequence[Version]
    live: str

    def version_of(self, release: str) -> Version | None:
        """Its newest version of a release."""
        return next((one for one in reversed(self.versions) if one.release == release), None)
