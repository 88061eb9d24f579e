"""Tables and queues for tests, made from the PynamoDB models.

The deployed ones come from the template; an infra test compares the two. Nothing expires here: the
rows of many tests are of a fixed day, and MiniStack takes away what has expired by its own clock.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from pynamodb.attributes import TTLAttribute
from pynamodb.models import Model

from carillon.domain.job import Lane
from carillon.settings import Settings
from carillon.stores.dynamo.models import JobRow, RunRow, WheelRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

MODELS: dict[str, type[Model]] = {"jobs": JobRow, "wheel": WheelRow, "runs": RunRow}


@dataclass(frozen=True)
class TableShape:
    """What model and template must agree on, in the words of CreateTable."""

    key_schema: list[dict[str, str]]
    attribute_definitions: list[dict[str, str]]
    global_indexes: list[dict[str, Any]]
    ttl_attribute: str


def shape_of(model: type[Model]) -> TableShape:
    """The shape of a model's table: partition key first, attributes and indexes by name."""
    schema = model._get_schema()
    ttl = next(a for a in model.get_attributes().values() if isinstance(a, TTLAttribute))
    return TableShape(
        key_schema=_keys(schema["key_schema"]),
        attribute_definitions=sorted(
            ({str(k): str(v) for k, v in d.items()} for d in schema["attribute_definitions"]),
            key=lambda d: d["AttributeName"],
        ),
        global_indexes=[
            {
                "IndexName": index["index_name"],
                "KeySchema": _keys(index["key_schema"]),
                "Projection": dict(index["projection"]),
            }
            for index in schema["global_secondary_indexes"]
        ],
        ttl_attribute=ttl.attr_name,
    )


def create_deployment(prefix: str) -> Settings:
    """New tables and lanes on whatever boto3 reaches, and the settings that name them."""
    names = {kind: f"{prefix}-{kind}" for kind in MODELS}
    dynamodb = boto3.client("dynamodb")
    for kind, model in MODELS.items():
        create_table(dynamodb, model, names[kind])
    urls = create_queues(boto3.client("sqs"), prefix)
    return Settings.from_environment(
        {
            **{f"{kind.upper()}_TABLE": name for kind, name in names.items()},
            "LANE_QUEUES": json.dumps({lane.value: url for lane, url in urls.items()}),
            "SEGMENTS": "16",
        }
    )


def create_table(client: "DynamoDBClient", model: type[Model], name: str) -> None:
    shape = shape_of(model)
    definition: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": shape.key_schema,
        "AttributeDefinitions": shape.attribute_definitions,
    }
    if shape.global_indexes:
        definition["GlobalSecondaryIndexes"] = shape.global_indexes
    client.create_table(**definition)
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})


def create_queues(client: "SQSClient", prefix: str) -> dict[Lane, str]:
    """One queue per lane: its URL."""
    return {
        lane: client.create_queue(QueueName=f"{prefix}-{lane.value}")["QueueUrl"] for lane in Lane
    }


def _keys(schema: Any) -> list[dict[str, str]]:
    keys = [{"AttributeName": k["AttributeName"], "KeyType": k["KeyType"]} for k in schema]
    return sorted(keys, key=lambda key: key["KeyType"])
