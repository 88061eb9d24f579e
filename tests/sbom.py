"""The bill of materials of what is deployed: the layer of the functions and the console's
libraries, in CycloneDX. `make sbom` prints it."""

import json
import re
import sys
from collections.abc import Iterator
from email.message import Message
from importlib.metadata import metadata
from typing import cast

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from carillon.cdk.packages import REQUIREMENTS
from tests.vendored import LICENSES, MODULES

_LOCKED = re.compile(
    r"^(\S+)==(\S+)(?: ; [^\\]+)? \\\n((?:    --hash=sha256:\S+(?: \\)?\n?)+)", re.M
)
_SPDX = {
    "Apache License 2.0": "Apache-2.0",
    "Dual License": "Apache-2.0 OR BSD-3-Clause",  # of python-dateutil, by its file LICENSE
}
"""What older packages say, in the words of SPDX."""
_FACTORY = LicenseFactory()


def bill() -> Bom:
    """Each package with its version, licence, and the hashes of the files that may be installed."""
    whole = Component(name="carillon", type=ComponentType.APPLICATION)
    bom = Bom(components=[*_of_python(), *_of_npm()])
    bom.metadata.component = whole
    bom.register_dependency(whole, bom.components)
    return bom


def _of_python() -> Iterator[Component]:
    for name, version, hashes in _LOCKED.findall(REQUIREMENTS.read_text()):
        found = cast(Message, metadata(name))
        if found["Version"] != version:
            raise RuntimeError(f"{name} {found['Version']} is installed, {version} locked")
        digests = re.findall(r"sha256:(\w+)", hashes)
        yield Component(
            name=name,
            version=version,
            purl=PackageURL("pypi", name=name, version=version),
            licenses=[_FACTORY.make_from_string(_license_of(found))],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in digests],
        )


def _of_npm() -> Iterator[Component]:
    for name in (path.partition("/")[0] for path in LICENSES):
        package = json.loads((MODULES / name / "package.json").read_text())
        yield Component(
            name=name,
            version=package["version"],
            purl=PackageURL("npm", name=name, version=package["version"]),
            licenses=[_FACTORY.make_from_string(package["license"])],
        )


def _license_of(found: Message) -> str:
    """The expression of PEP 639, or the field of older packages."""
    said = str(found["License-Expression"] or found["License"])
    return _SPDX.get(said, said)


if __name__ == "__main__":
    sys.stdout.write(f"{JsonV1Dot6(bill()).output_as_string(indent=2)}\n")
