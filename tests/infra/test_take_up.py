"""What a removal has left, as the events of the deleted stack tell it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from infra.take_up import CannotTakeUpError, Left, find_left

CREATED_AT = datetime(2026, 11, 22, tzinfo=UTC)


def event(logical_id: str, kind: str, physical_id: str, status: str) -> dict[str, str]:
    return {
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": physical_id,
        "ResourceStatus": status,
        "ResourceType": kind,
    }


EVENTS = [
    event("Jobs", "AWS::DynamoDB::Table", "Carillon-Jobs-1", "DELETE_SKIPPED"),
    event("Users", "AWS::Cognito::UserPool", "us-east-1_abc", "DELETE_SKIPPED"),
    event("Normal", "AWS::SQS::Queue", "https://sqs/Carillon-Normal-1", "DELETE_SKIPPED"),
    event("Failed", "AWS::SQS::Queue", "https://sqs/Carillon-Failed-1", "DELETE_COMPLETE"),
    event("Secret", "AWS::SecretsManager::Secret", "arn:secret", "DELETE_SKIPPED"),
    event("Carillon", "AWS::CloudFormation::Stack", "arn:stack", "DELETE_COMPLETE"),
]


class CloudFormation:
    """Some stacks, each with its events: what is asked of the client in `infra.take_up`."""

    def __init__(self, *stacks: tuple[str, str, datetime, list[dict[str, str]]]) -> None:
        self.stacks = stacks

    def get_paginator(self, operation: str) -> "CloudFormation":
        assert operation in ("list_stacks", "describe_stack_events")
        return self

    def paginate(self, StackName: str | None = None) -> list[dict[str, Any]]:
        if StackName is not None:
            return [
                {"StackEvents": events} for id_, _, _, events in self.stacks if id_ == StackName
            ]
        return [
            {"StackSummaries": [_summary(id_, status, at) for id_, status, at, _ in self.stacks]}
        ]


def _summary(stack_id: str, status: str, created_at: datetime) -> dict[str, Any]:
    names = {"StackName": stack_id.split("/")[0], "StackId": stack_id}
    return {**names, "StackStatus": status, "CreationTime": created_at}


def test_what_the_newest_removal_has_left_is_named_by_its_identifiers() -> None:
    older = ("Carillon/1", "DELETE_COMPLETE", CREATED_AT.replace(day=1), EVENTS[:1])
    newest = ("Carillon/2", "DELETE_COMPLETE", CREATED_AT, EVENTS)
    other = ("Carillon-dev/3", "CREATE_COMPLETE", CREATED_AT, EVENTS)
    left = find_left(CloudFormation(newest, older, other), "Carillon")
    assert left == Left(
        {
            "Jobs": {"TableName": "Carillon-Jobs-1"},
            "Normal": {"QueueUrl": "https://sqs/Carillon-Normal-1"},
            "Users": {"UserPoolId": "us-east-1_abc"},
        },
        "arn:secret",
    )


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        (("Carillon/1", "UPDATE_COMPLETE", CREATED_AT, EVENTS), "is there: update it"),
        (("Carillon/1", "DELETE_COMPLETE", CREATED_AT, EVENTS[3:4]), "has left nothing"),
        (("Other/1", "DELETE_COMPLETE", CREATED_AT, EVENTS), "no stack Carillon was deleted"),
    ],
)
def test_where_there_is_nothing_to_take_up_it_says_why(
    stack: tuple[str, str, datetime, list[dict[str, str]]], message: str
) -> None:
    with pytest.raises(CannotTakeUpError, match=message):
        find_left(CloudFormation(stack), "Carillon")
