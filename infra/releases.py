"""Releases: what one deployment made of every function.

Each function's `live` alias is what the clock, the queues and the API call. A release is named in
the descriptions of the versions that it published, one of every function.
"""

import re

LIVE = "live"
"""The alias of every function."""

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
