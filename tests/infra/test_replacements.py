"""No change of the template replaces what holds data, unless it says so."""

import copy
import json
from typing import Any

import pytest

from tests.infra.replacements import (
    BASELINE,
    CHANGELOG,
    fixed_properties,
    fixed_resources,
    replaced,
    untold,
)
from tests.infra.stacks import SynthesizedStack

RENEW = "if it is meant: `make baseline`, and its lines `replaces: …` into CHANGELOG.md"


@pytest.fixture(scope="module")
def baseline() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(BASELINE.read_text())
    return content


def test_the_template_replaces_nothing_of_the_baseline(
    production: SynthesizedStack, baseline: dict[str, Any]
) -> None:
    assert replaced(baseline["resources"], fixed_resources(production.template)) == {}, RENEW


def test_the_baseline_knows_all_that_holds_something(
    production: SynthesizedStack, baseline: dict[str, Any]
) -> None:
    assert baseline["resources"].keys() == fixed_resources(production.template).keys(), RENEW


def test_what_was_replaced_is_told(baseline: dict[str, Any]) -> None:
    assert untold(baseline["replaced"], CHANGELOG.read_text()) == []


def test_tables_queues_users_and_secret_are_compared(baseline: dict[str, Any]) -> None:
    kinds = [resource["Type"] for resource in baseline["resources"].values()]
    assert kinds.count("AWS::DynamoDB::Table") == 3
    assert kinds.count("AWS::Cognito::UserPool") == kinds.count("AWS::SecretsManager::Secret") == 1
    assert kinds.count("AWS::SQS::Queue") > 4


CHANGES: dict[str, list[tuple[str, object]]] = {
    "DynamoDB::Table": [
        ("KeySchema", [{"AttributeName": "owner", "KeyType": "HASH"}]),
        ("TableName", "jobs"),
        ("AttributeDefinitions", "N"),
    ],
    "SQS::Queue": [("QueueName", "high"), ("FifoQueue", True)],
    "Cognito::UserPool": [("AliasAttributes", ["phone_number"])],
    "SecretsManager::Secret": [("Name", "signing")],
    "Cognito::UserPoolClient": [("GenerateSecret", True)],
}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [(kind, name, value) for kind, changes in CHANGES.items() for name, value in changes],
)
def test_a_change_that_replaces_is_found(
    production: SynthesizedStack, kind: str, name: str, value: object
) -> None:
    changed = copy.deepcopy(dict(production.template))
    logical_id = next(iter(production.resources(kind)))
    properties = changed["Resources"][logical_id]["Properties"]
    if name == "AttributeDefinitions":
        for each in properties[name]:
            each["AttributeType"] = value
    else:
        properties[name] = value
    found = replaced(fixed_resources(production.template), fixed_resources(changed))
    assert [*found] == [logical_id]


def test_a_resource_that_is_gone_or_renamed_is_found(production: SynthesizedStack) -> None:
    changed = copy.deepcopy(dict(production.template))
    logical_id = next(iter(production.resources("Cognito::UserPool")))
    changed["Resources"]["Renamed"] = changed["Resources"].pop(logical_id)
    found = replaced(fixed_resources(production.template), fixed_resources(changed))
    assert found == {logical_id: "AWS::Cognito::UserPool is gone"}


def test_what_is_changed_in_place_is_no_finding(production: SynthesizedStack) -> None:
    changed = copy.deepcopy(dict(production.template))
    for queue in production.resources("SQS::Queue"):
        changed["Resources"][queue]["Properties"]["VisibilityTimeout"] = 1
    for table in production.resources("DynamoDB::Table"):
        changed["Resources"][table]["Properties"].pop("PointInTimeRecoverySpecification", None)
    assert replaced(fixed_resources(production.template), fixed_resources(changed)) == {}


def test_aws_s_own_schemas_say_what_replaces() -> None:
    assert "KeySchema" in fixed_properties("AWS::DynamoDB::Table")
    assert fixed_properties("AWS::SQS::Queue") == ("FifoQueue", "QueueName")


def test_a_replacement_that_is_not_told_is_found() -> None:
    changelog = (
        "- Queues of each lane.\n- replaces: LanesHigh1, LanesLow2 (AWS::SQS::Queue is gone)"
    )
    assert untold(["LanesHigh1", "LanesSlow3"], changelog) == ["LanesSlow3"]
