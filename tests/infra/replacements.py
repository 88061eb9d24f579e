"""What an update of a deployed stack would replace: found by comparing the template with the one
before, of which `baseline.json` holds what matters.

CloudFormation replaces a resource whose logical id is gone, or of which a property changed that
cannot be changed in place: a table, a queue, a user pool or a secret comes back empty. `make
baseline` takes the present template for the baseline, and notes what it replaces.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfnlint.schema.manager import (  # type: ignore[import-untyped]
    PROVIDER_SCHEMA_MANAGER,
)

from tests.infra.stacks import REPOSITORY, SynthesizedStack, synthesize

BASELINE = Path(__file__).with_name("baseline.json")
CHANGELOG = REPOSITORY / "CHANGELOG.md"

KEPT_TYPES = (
    "AWS::DynamoDB::Table",
    "AWS::SQS::Queue",
    "AWS::Cognito::UserPool",
    "AWS::SecretsManager::Secret",
    # What clients have noted: an id, an address.
    "AWS::Cognito::UserPoolClient",
    "AWS::ApiGatewayV2::Api",
)

NOT_IN_ITS_SCHEMA = {
    "AWS::Cognito::UserPool": ("AliasAttributes", "UsernameAttributes", "UsernameConfiguration"),
}
"""Cognito: "You can't change these settings after you create the user pool"."""

Fixed = dict[str, Any]
"""A resource's type, and those of its properties that cannot be changed in place."""


def fixed_properties(kind: str) -> tuple[str, ...]:
    """The names of the properties of a resource type whose change replaces the resource, as AWS's
    own schema of the type says."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    found = {
        pointer.split("/")[2]
        for key in ("createOnlyProperties", "conditionalCreateOnlyProperties")
        for pointer in schema.get(key, ())
    }
    return tuple(sorted(found | {*NOT_IN_ITS_SCHEMA.get(kind, ())}))


def fixed_resources(template: Mapping[str, Any]) -> dict[str, Fixed]:
    """All resources of a template that hold something, by logical id."""
    return {
        logical_id: _fixed(resource["Type"], resource["Properties"])
        for logical_id, resource in sorted(template["Resources"].items())
        if resource["Type"] in KEPT_TYPES
    }


def _fixed(kind: str, properties: Mapping[str, Any]) -> Fixed:
    found = {name: properties[name] for name in fixed_properties(kind) if name in properties}
    if "KeySchema" in found:
        types = {each["AttributeName"]: each for each in properties["AttributeDefinitions"]}
        found["KeySchema"] = [{**types[key["AttributeName"]], **key} for key in found["KeySchema"]]
    return {"Type": kind, **found}


def replaced(before: Mapping[str, Fixed], after: Mapping[str, Fixed]) -> dict[str, str]:
    """What of `before` an update to `after` would replace or delete: logical ids, with the words
    for it."""
    found: dict[str, str] = {}
    for logical_id, old in before.items():
        new = after.get(logical_id)
        if new is None:
            found[logical_id] = f"{old['Type']} is gone"
        elif changed := sorted(k for k in {*old, *new} if old.get(k) != new.get(k)):
            found[logical_id] = f"{old['Type']} has another {', '.join(changed)}"
    return found


def untold(replaced_before: list[str], changelog: str) -> list[str]:
    """Of what earlier renewals of the baseline replaced, what no line `replaces: …` names."""
    told = " ".join(line for line in changelog.splitlines() if "replaces: " in line)
    return [logical_id for logical_id in replaced_before if logical_id not in told]


def main() -> None:
    """Write the baseline anew, and say what stands in CHANGELOG.md for it."""
    with tempfile.TemporaryDirectory() as directory:
        stack: SynthesizedStack = synthesize(Path(directory))
    after = fixed_resources(stack.template)
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"resources": {}}
    lost = replaced(baseline["resources"], after)
    for logical_id, words in lost.items():
        sys.stdout.write(f"CHANGELOG.md needs: replaces: {logical_id} ({words})\n")
    noted = sorted({*baseline.get("replaced", []), *lost})
    content = {"replaced": noted, "resources": after}
    BASELINE.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
