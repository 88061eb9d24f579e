"""What MiniStack accepts in a template and does not do: expiry and recovery of tables, by API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carillon.resources import resources_of

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "AWS::DynamoDB::Table"


def settle_tables(template: Path, stack: str, client: Callable[[str], Any]) -> None:
    """Give the deployed tables the expiry and the recovery that the template asks for."""
    dynamodb = client("dynamodb")
    resources = json.loads(template.read_text())["Resources"]
    for kind, logical_id, name in resources_of(client("cloudformation"), stack):
        if kind == TABLE:
            _settle(dynamodb, name, resources[logical_id]["Properties"])


def _settle(dynamodb: Any, table: str, wanted: dict[str, Any]) -> None:
    expiry = wanted["TimeToLiveSpecification"]
    found = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if found["TimeToLiveStatus"] != "ENABLED":  # a second time is refused
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=expiry)
    dynamodb.update_continuous_backups(
        TableName=table,
        PointInTimeRecoverySpecification=wanted["PointInTimeRecoverySpecification"],
    )
