"""The stack as a whole: its outputs, its names, where it can be deployed, cdk-nag."""

import json
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_sqs as sqs

from carillon.cdk.app import build
from tests.infra.replacements import fixed_properties
from tests.infra.stacks import REGION, SynthesizedStack, default_context, deployed, synthesize

OUTPUTS = {
    "ApiId",
    "ApiUrl",
    "UserPoolId",
    "UserPoolClientId",
    "JobsTable",
    "WheelTable",
    "RunsTable",
    "QueueUrlHigh",
    "QueueUrlNormal",
    "QueueUrlLow",
    "QueueUrlSlow",
    "DeadLetterQueueUrl",
    "WebhookSecretArn",
    "TickFunction",
    "DeadLetterFunction",
    "ApiFunction",
    "ExecutorFunctionHigh",
    "ExecutorFunctionNormal",
    "ExecutorFunctionLow",
    "ExecutorFunctionSlow",
}

USER_POOL = {"UserPoolId", "UserPoolClientId"}
EVENT_BUS = {"EventBusName", "EventBusArn"}


def test_the_outputs_are_an_interface(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert set(production.template["Outputs"]) == OUTPUTS
    assert set(unusual.template["Outputs"]) == OUTPUTS - USER_POOL | EVENT_BUS


def test_the_template_belongs_to_no_account(production: SynthesizedStack) -> None:
    manifest = json.loads((production.directory / "manifest.json").read_text())
    assert (
        manifest["artifacts"][production.name]["environment"]
        == "aws://unknown-account/unknown-region"
    )
    assert "missing" not in manifest  # nothing to look up in an account


def test_each_stage_is_a_stack_of_its_own(tmp_path: Path) -> None:
    """No name of one is part of the other: a change of one is none of the other."""
    one = synthesize(tmp_path / "one", stage="one", event_bus=True)
    two = synthesize(tmp_path / "two", stage="two", event_bus=True)
    assert (one.name, two.name) == ("Carillon-one", "Carillon-two")
    log_group = "/aws/vendedlogs/Carillon-one/access"
    names = {"Carillon-one", "Carillon-one-events", "carillon-one", log_group}
    alarms = {each["AlarmName"] for each in one.properties("CloudWatch::Alarm").values()}
    assert all(each.startswith("Carillon-one-") for each in alarms)
    names |= {"carillon-settings", "/carillon-settings/Carillon-one/TASK_NAMES/1"}
    tag, dashboard = {"carillon"}, {"Carillon-one-", f"Carillon-one-{REGION}"}
    assert own_names(one) == names | alarms | tag | dashboard
    assert plain(one) == plain(two).replace("-two", "-one"), "nothing else differs"


def plain(stack: SynthesizedStack) -> str:
    """The resources without their ids, of which CDK makes some of the stack's name; without
    policies of queues, which have such an id inside; and without the digest of the options, of
    which the stage is one."""
    resources = [json.dumps(each) for each in stack.template["Resources"].values()]
    release = r"(?<=CurrentVersion[0-9A-F]{8})[0-9a-f]{32}|\(release \w+\)"
    resources = [re.sub(release, "", each) for each in resources]
    return "\n".join(sorted(each for each in resources if "SQS::QueuePolicy" not in each))


def own_names(stack: SynthesizedStack) -> set[str]:
    """The words of the template that name the project, but for descriptions; and what is given a
    name in the account."""
    words: set[str] = set()
    for resource in stack.template["Resources"].values():
        told = ("Description", "AlarmDescription", "DashboardBody")
        properties = {k: v for k, v in resource["Properties"].items() if k not in told}
        words |= set(re.findall(r"(?i)[\w-]*carillon[\w-]*", json.dumps(properties)))
        words |= physical_names(resource["Type"], properties, ids=stack.template["Resources"])
    return {word for word in words if not word.startswith("AllowEventRule")}


def physical_names(kind: str, properties: Mapping[str, Any], ids: Collection[str]) -> set[str]:
    """What the template itself calls a resource in its account, where two stages could meet.

    An alias has its name within its function, a stage within its API, a group within its pool; what
    is said by reference to another resource (`ids`) has a name that CloudFormation made.
    """
    if kind in {"AWS::Lambda::Alias", "AWS::ApiGatewayV2::Stage", "AWS::Cognito::UserPoolGroup"}:
        return set()
    named = {name for name in fixed_properties(kind) if name.endswith("Name")}
    values = [value for name, value in properties.items() if name in named]
    given = [value for value in values if not any(each in json.dumps(value) for each in ids)]
    return {deployed(value) for value in given}


def test_production_has_the_plain_name(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert (production.name, unusual.name) == ("Carillon", "Carillon-trial")


def test_cdk_nag_finds_nothing(production: SynthesizedStack, unusual: SynthesizedStack) -> None:
    for stack in (production, unusual):
        report = json.loads((stack.directory / "validation-report.json").read_text())
        found = [
            rule["ruleName"] for each in report["pluginReports"] for rule in each["violations"]
        ]
        # That nobody is told of alarms is said at each synthesis, and is no finding of a pack.
        assert [name for name in found if name != "Annotation::carillon:alarms"] == []


def test_a_finding_without_a_reason_fails_synthesis(tmp_path: Path) -> None:
    app = build({**default_context(), "aws:cdk:bundling-stacks": []}, str(tmp_path))
    stack = app.node.find_child("Carillon")
    assert isinstance(stack, Stack)
    sqs.Queue(stack, "Careless")
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        app.synth()
    # Only the report of a pack that found something names it: that both are there is seen here.
    reports = json.loads((tmp_path / "validation-report.json").read_text())["pluginReports"]
    failed = {each["pluginName"] for each in reports if each["conclusion"] == "failure"}
    assert failed == {"AwsSolutions", "Serverless"}


def test_cfn_lint_finds_nothing(production: SynthesizedStack, unusual: SynthesizedStack) -> None:
    """As `make lint-template` does for the stack of cdk.json alone."""
    command = str(Path(sys.executable).parent / "cfn-lint")
    templates = [
        str(each.directory / f"{each.name}.template.json") for each in (production, unusual)
    ]
    told = subprocess.run(
        [command, "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr
