"""The schedules of EventBridge Scheduler in one account and region: reads only."""

from collections.abc import Iterator
from typing import Any

import boto3

from carillon.importers.entries import Entry
from carillon.importers.eventbridge.schedules import entry_of, place_of


def eventbridge_entries(group: str | None, region: str | None) -> Iterator[Entry]:
    """An entry for each schedule, of one group or of all; credentials are boto3's search.

    Raises ClientError and BotoCoreError, also while it is gone through.
    """
    client = boto3.client("scheduler", region_name=region)
    asked: dict[str, Any] = {} if group is None else {"GroupName": group}
    if group is not None:
        client.get_schedule_group(Name=group)  # a list of one that does not exist is empty
    found = [
        (summary["GroupName"], summary["Name"])
        for page in client.get_paginator("list_schedules").paginate(**asked)
        for summary in page["Schedules"]
    ]
    for group_name, name in sorted(found):
        try:
            schedule: Any = client.get_schedule(GroupName=group_name, Name=name)
        except client.exceptions.ResourceNotFoundException:
            place = place_of(group_name, name)
            yield Entry.left_out(place, "Name", "was deleted while schedules were read")
        else:
            yield entry_of(schedule)
