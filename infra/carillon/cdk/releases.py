"""Releases: what one deployment made of every function.

Each function's `live` alias is what the clock, the queues and the API call. A release is named in
the descriptions of the versions that it published, one of every function.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Versions:
    """A function's published versions, first to last: the latest number of each release in the
    order in which releases were first published, and the one that is live."""

    function: str
    service: str
    """Its POWERTOOLS_SERVICE_NAME."""
    by_release: Mapping[str, int]
    published_at: Mapping[str, datetime]
    """The publication of the first version of each release."""
    live: int

    @classmethod
    def of(cls, function: str, versions: Iterable[Mapping[str, Any]], live: str) -> "Versions":
        """From what ListVersionsByFunction and GetAlias answer."""
        by_release: dict[str, int] = {}
        published_at: dict[str, datetime] = {}
        service = ""
        for each in versions:
            release = release_of(each.get("Description", ""))
            if release and each["Version"] != "$LATEST":
                by_release[release] = int(each["Version"])
                at = datetime.fromisoformat(each["LastModified"])
                published_at.setdefault(release, at)
                service = each["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        return cls(function, service, by_release, published_at, int(live))

    @property
    def is_caller(self) -> bool:
        return self.service in map(str.lower, CALLERS)


def switches(functions: Sequence[Versions], release: str) -> list[tuple[str, int]]:
    """The function aliases to switch, in this order, for a release to be live.

    Raises LookupError where a function has no version of the release.
    """
    for each in functions:
        if release not in each.by_release:
            known = ", ".join(each.by_release) or "none"
            raise LookupError(
                f"{each.function} has no version of release {release}; it has {known}"
            )
    changed = [each for each in functions if each.by_release[release] != each.live]
    goes_back = any(_is_later(each, release) for each in changed)
    ordered = sorted(changed, key=lambda each: each.is_caller != goes_back)
    return [(each.function, each.by_release[release]) for each in ordered]


def _is_later(function: Versions, release: str) -> bool:
    """True if a later release is live, however often that was deployed since."""
    order = list(function.by_release)
    live = [name for name in order if function.by_release[name] == function.live]
    return bool(live) and order.index(release) < order.index(live[0])
