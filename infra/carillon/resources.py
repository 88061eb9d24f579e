"""The resources of a deployed stack."""

from collections.abc import Iterator
from typing import Any


def resources_of(cloudformation: Any, stack: str) -> Iterator[tuple[str, str, str]]:
    """Type, logical id and physical id, "" where it has none, of each; raises ClientError."""
    for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack):
        for each in page["StackResourceSummaries"]:
            physical_id = each.get("PhysicalResourceId", "")
            yield each["ResourceType"], each["LogicalResourceId"], physical_id
