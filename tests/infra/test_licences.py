"""The licences of what is deployed."""

import re
from importlib.metadata import distribution

from tests.infra.stacks import REPOSITORY
from tests.infra.test_project import pins

FREE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|Unlicense)\b|0BSD")
"""Licences that ask for no more than their own words. tzdata is of the public domain, under
Apache-2.0."""


LESSER = {"recurring-ical-events", "x-wr-timezone"}
"""They read iCalendar files in the API, as they are, and are told of in docs/security.md."""


def licence_of(name: str) -> str:
    """The licence in the metadata of an installed distribution."""
    metadata = distribution(name).metadata
    texts = metadata.get_all("License-Expression") or [
        each for each in metadata.get_all("Classifier") or () if "License ::" in each
    ]
    return "; ".join(texts or metadata.get_all("License") or ())[:200]


def test_what_is_deployed_may_be_used_anywhere() -> None:
    deployed = pins("functions")
    assert len(deployed) > 10
    licences = {name: licence_of(name) for name in deployed}
    others = {name: text for name, text in licences.items() if not FREE.search(text)}
    assert others.keys() == LESSER
    assert all("Lesser" in text or "LGPL" in text for text in others.values())
    page = (REPOSITORY / "docs" / "security.md").read_text()
    assert [name for name in LESSER if f"`{name}`" not in page] == []


def test_what_the_console_ships_says_its_licences() -> None:
    vendor = REPOSITORY / "infra" / "carillon" / "console" / "vendor"
    told = (vendor / "LICENSES.txt").read_text()
    assert len(FREE.findall(told)) >= len([*vendor.glob("*.js")]) - 1
