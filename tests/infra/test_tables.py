import pytest

from tests.infra.stacks import Resource, SynthesizedStack
from tests.support.tables import MODELS, shape_of


@pytest.mark.parametrize("kind", ["jobs", "wheel", "runs"])
def test_models_and_template_agree_on_keys_indexes_and_ttl(
    production: SynthesizedStack, kind: str
) -> None:
    table = production.properties("DynamoDB::Table")[production.output(f"{kind.capitalize()}Table")]
    shape = shape_of(MODELS[kind])
    assert table["KeySchema"] == shape.key_schema
    attributes = sorted(table["AttributeDefinitions"], key=lambda one: str(one["AttributeName"]))
    assert attributes == shape.attribute_definitions
    assert table.get("GlobalSecondaryIndexes", []) == shape.global_indexes
    assert table["TimeToLiveSpecification"] == {
        "AttributeName": shape.ttl_attribute,
        "Enabled": True,
    }


def test_there_are_three_tables_on_demand(production: SynthesizedStack) -> None:
    tables = production.properties("DynamoDB::Table")
    assert len(tables) == 3
    assert {table["BillingMode"] for table in tables.values()} == {"PAY_PER_REQUEST"}


def test_jobs_and_wheel_can_be_recovered_and_runs_where_that_was_asked_for(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    def recoverable(stack: SynthesizedStack) -> set[str]:
        tables = stack.properties("DynamoDB::Table")
        return {
            kind
            for kind in ("Jobs", "Wheel", "Runs")
            if tables[stack.output(f"{kind}Table")]["PointInTimeRecoverySpecification"]
            == {"PointInTimeRecoveryEnabled": True}
        }

    assert recoverable(production) == {"Jobs", "Wheel"}
    assert recoverable(unusual) == {"Jobs", "Wheel", "Runs"}


def test_tables_are_warm_where_that_was_asked_for(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    warm = {"WriteUnitsPerSecond": 40_000, "ReadUnitsPerSecond": 120_000}
    for stack, wanted in ((production, None), (unusual, warm)):
        for table in stack.properties("DynamoDB::Table").values():
            assert table.get("WarmThroughput") == wanted
            for index in table.get("GlobalSecondaryIndexes", []):
                assert index.get("WarmThroughput") == wanted


def test_data_of_production_outlives_its_stack_but_not_a_first_deployment_that_fails(
    production: SynthesizedStack,
) -> None:
    """A resource that is protected by itself would keep CloudFormation from taking it back."""
    kept = kept_resources(production)
    kinds = sorted(resource["Type"] for resource in kept.values())
    assert kinds == sorted(
        [
            *3 * ["AWS::DynamoDB::Table"],
            *5 * ["AWS::SQS::Queue"],  # the lanes' and their dead-letter queue
            "AWS::Cognito::UserPool",
            "AWS::SecretsManager::Secret",
        ]
    )
    for resource in kept.values():
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
        assert resource["UpdateReplacePolicy"] == "Retain"
        assert not resource["Properties"].get("DeletionProtectionEnabled")
        assert resource["Properties"].get("DeletionProtection", "INACTIVE") == "INACTIVE"


def test_any_other_stage_leaves_nothing_behind(unusual: SynthesizedStack) -> None:
    assert kept_resources(unusual) == {}


def kept_resources(stack: SynthesizedStack) -> dict[str, Resource]:
    """What stays when the stack goes: not versions, which their function takes along."""
    return {
        logical_id: resource
        for logical_id, resource in stack.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
        and resource["Type"] != "AWS::Lambda::Version"
    }
