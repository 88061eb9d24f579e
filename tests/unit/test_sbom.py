"""The bill of materials has everything that is deployed, under licences that are allowed."""

import json
import re

from cyclonedx.output.json import JsonV1Dot6

from carillon.cdk.packages import REQUIREMENTS
from tests.sbom import bill
from tests.vendored import SOURCES

ALLOWED = {
    "Apache-2.0",
    "Apache-2.0 OR BSD-3-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "LGPL-3.0-or-later",
    "MIT",
    "PSF-2.0",
}
"""The LGPL's libraries are used as they are published, and can be replaced in the layer."""


def test_everything_that_is_deployed_has_a_licence_that_is_allowed() -> None:
    components = json.loads(JsonV1Dot6(bill()).output_as_string())["components"]
    by_purl = {each["purl"]: each for each in components}
    locked = re.findall(r"^(\S+)==(\S+)", REQUIREMENTS.read_text(), re.M)
    python = {f"pkg:pypi/{name}@{version}" for name, version in locked}
    assert len(python) > 20
    npm = {path.partition("/")[0] for path in SOURCES.values()}
    assert {each.partition("@")[0] for each in by_purl.keys() - python} == {
        f"pkg:npm/{name}" for name in npm
    }
    assert python <= by_purl.keys()
    assert all(by_purl[each]["hashes"] for each in python)
    for each in components:
        (choice,) = each["licenses"]
        said = choice.get("expression") or choice["license"].get("id")
        assert said in ALLOWED, (each["name"], choice)
