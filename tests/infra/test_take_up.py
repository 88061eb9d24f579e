"""What a removal has left, as the events of the deleted stack tell it."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest

from carillon.cdk.take_up import CannotTakeUpError, Left, find_left, take_up

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
    """Some stacks, each with its events: what is asked of the client in `carillon.cdk.take_up`."""

    def __init__(self, *stacks: tuple[str, str, datetime, list[dict[str, str]]]) -> None:
        self.stacks = stacks

    def get_paginator(self, operation: str) -> "CloudFormation":
        assert operation in ("list_stacks", "describe_stack_events")
        return self

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        output = {"OutputKey": "WebhookSecretArn", "OutputValue": "arn:new"}
        return {"Stacks": [{"StackName": StackName, "Outputs": [output]}]}

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


def test_of_two_that_had_one_logical_id_the_last_is_taken() -> None:
    """An update that replaced a table has left the table of before; events come newest first."""
    replaced = event("Jobs", "AWS::DynamoDB::Table", "Carillon-Jobs-0", "DELETE_SKIPPED")
    secret = event("Secret", "AWS::SecretsManager::Secret", "arn:replaced", "DELETE_SKIPPED")
    left = Left.of([*EVENTS, replaced, secret])
    assert left.mapping["Jobs"] == {"TableName": "Carillon-Jobs-1"}
    assert left.secret_id == "arn:secret"


def test_an_import_that_failed_is_no_stack() -> None:
    deleted = ("Carillon/1", "DELETE_COMPLETE", CREATED_AT.replace(day=1), EVENTS)
    failed = ("Carillon/2", "REVIEW_IN_PROGRESS", CREATED_AT, EVENTS[:0])
    assert find_left(CloudFormation(failed, deleted), "Carillon") == Left.of(EVENTS)


def test_a_removal_that_left_nothing_is_passed_over() -> None:
    deleted = ("Carillon/1", "DELETE_COMPLETE", CREATED_AT.replace(day=1), EVENTS)
    empty = ("Carillon/2", "DELETE_COMPLETE", CREATED_AT, EVENTS[3:4])
    assert find_left(CloudFormation(empty, deleted), "Carillon") == Left.of(EVENTS)


def test_the_secret_may_be_one_removal_older_than_what_was_imported() -> None:
    """The stack of a take-up that was cut off after its import had no secret yet."""
    deleted = ("Carillon/1", "DELETE_COMPLETE", CREATED_AT.replace(day=1), EVENTS)
    cut_off = ("Carillon/2", "DELETE_COMPLETE", CREATED_AT, EVENTS[:3])
    assert find_left(CloudFormation(cut_off, deleted), "Carillon").secret_id == "arn:secret"


def test_a_stack_that_is_there_is_told_the_secret_of_its_earlier_removal() -> None:
    deleted = ("Carillon/1", "DELETE_COMPLETE", CREATED_AT.replace(day=1), EVENTS)
    imported = ("Carillon/2", "IMPORT_COMPLETE", CREATED_AT, EVENTS[:0])
    with pytest.raises(
        CannotTakeUpError, match=r"(?s)make deploy.*cut off.*--secret-id arn:secret"
    ):
        find_left(CloudFormation(imported, deleted), "Carillon")


class Gone(Exception):
    """What boto3 has as ResourceNotFoundException among the client's exceptions."""


class Secrets:
    """One secret, and what was put where."""

    exceptions = SimpleNamespace(ResourceNotFoundException=Gone)

    def __init__(self) -> None:
        self.put: dict[str, str] = {}
        self.gone = False

    def get_secret_value(self, SecretId: str) -> dict[str, str]:
        assert SecretId == "arn:secret"
        if self.gone:
            raise Gone
        return {"SecretString": "as before"}

    def put_secret_value(self, SecretId: str, SecretString: str) -> None:
        self.put[SecretId] = SecretString


Cdk = Callable[[str], list[list[str]]]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> Secrets:
    secrets = Secrets()
    stacks = CloudFormation(("Carillon/1", "DELETE_COMPLETE", CREATED_AT, EVENTS))
    clients = {"cloudformation": stacks, "secretsmanager": secrets}
    monkeypatch.setattr(boto3, "client", clients.__getitem__)
    return secrets


@pytest.fixture
def cdk(monkeypatch: pytest.MonkeyPatch) -> Cdk:
    """Takes the place of the command, of which one subcommand fails; gives what it was called."""

    def replace(failing: str) -> list[list[str]]:
        called: list[list[str]] = []

        def call(command: Sequence[str], check: bool) -> "subprocess.CompletedProcess[str]":
            called.append(list(command[1:]))
            return subprocess.CompletedProcess(command, int(command[1] == failing))

        monkeypatch.setattr(shutil, "which", "/bin/".__add__)
        monkeypatch.setattr(subprocess, "run", call)
        return called

    return replace


def test_the_new_secret_has_the_old_value_and_nobody_is_asked(
    secrets: Secrets, cdk: Cdk, capsys: pytest.CaptureFixture[str]
) -> None:
    called = cdk("")
    take_up("Carillon", ["-c", "segments=8"])
    assert secrets.put == {"arn:new": "as before"}
    imported, deployed = called
    assert imported[:2] == ["import", "Carillon"]
    approval = ["--require-approval", "never"]
    assert deployed == ["deploy", "Carillon", *approval, "-c", "segments=8"]
    before = capsys.readouterr().out.partition("to be imported")[0]
    assert "put-secret-value" in before
    assert "--secret-id arn:secret" in before


def test_a_secret_that_is_gone_holds_up_nothing(secrets: Secrets, cdk: Cdk) -> None:
    secrets.gone = True
    called = cdk("")
    take_up("Carillon", [])
    assert len(called) == 2
    assert secrets.put == {}


@pytest.mark.parametrize("asked", [["--require-approval", "broadening"], ["--require-approval=x"]])
def test_who_wants_to_be_asked_is_asked(secrets: Secrets, cdk: Cdk, asked: list[str]) -> None:
    called = cdk("")
    take_up("Carillon", asked)
    assert called[1] == ["deploy", "Carillon", *asked]


@pytest.mark.parametrize("failing", ["import", "deploy"])
def test_what_fails_names_the_secret_that_is_to_be_kept(
    secrets: Secrets, cdk: Cdk, failing: str
) -> None:
    cdk(failing)
    told = rf"(?s)cdk {failing} ended with code 1.*put-secret-value.*--secret-id arn:secret"
    with pytest.raises(CannotTakeUpError, match=told):
        take_up("Carillon", [])
    assert secrets.put == {}
