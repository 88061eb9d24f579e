"""The construct in an app of somebody else's."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from carillon.cdk import Carillon
from carillon.errors import ConfigurationError
from tests.infra.stacks import SynthesizedStack, deployed, referred
from tests.infra.test_stack import physical_names


def app(directory: Path, **context: object) -> cdk.App:
    """Without the feature flags of a new project, and without building assets."""
    return cdk.App(outdir=str(directory), context={"aws:cdk:bundling-stacks": [], **context})


def synthesized(stack: cdk.Stack, path: str = "Scheduler") -> SynthesizedStack:
    assembly = cdk.App.of(stack).synth()  # type: ignore[union-attr]
    template = assembly.get_stack_by_name(stack.stack_name).template
    return SynthesizedStack(stack.stack_name, template, Path(assembly.directory), path)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> SynthesizedStack:
    """Two deployments in one stack, the first of which may send to the app's own queue."""
    stack = cdk.Stack(app(tmp_path_factory.mktemp("foreign")), "Billing")
    topic, queue = sns.Topic(stack, "OnCall"), sqs.Queue(stack, "Orders")
    cdk.CfnOutput(stack, "OrdersArn", value=queue.queue_arn)
    everything = "arn:aws:sqs:*:*:*"
    Carillon(stack, "Scheduler", event_bus=True, alarm_topic=topic, target_arns=[everything])
    Carillon(cdk.Stack.of(stack), "Second", event_bus=True, stage="dev")
    return synthesized(stack)


def names(stack: SynthesizedStack) -> list[str]:
    found: list[str] = []
    for resource in stack.template["Resources"].values():
        properties: Mapping[str, Any] = resource.get("Properties", {})
        ids = stack.template["Resources"]
        found += physical_names(resource["Type"], properties, ids=ids)
    return found


def test_two_in_one_stack_have_no_name_in_common(foreign: SynthesizedStack) -> None:
    found = names(foreign)
    assert len(found) == len({*found})
    assert all("Billing-Scheduler-" in name or "Billing-Second-" in name for name in found)


def test_outputs_begin_with_the_path(foreign: SynthesizedStack) -> None:
    assert {"SchedulerApiUrl", "SecondApiUrl"} < foreign.template["Outputs"].keys()


def test_own_is_what_the_construct_has_made_and_nothing_of_the_app(
    foreign: SynthesizedStack,
) -> None:
    (value,) = (
        json.dumps(each["Value"])
        for each in foreign.properties("SSM::Parameter").values()
        if "OWN_ARNS" in each["Name"]
    )
    for kind in ("SQS::Queue", "Lambda::Function", "Events::EventBus"):
        for logical_id in foreign.resources(kind):
            assert (f'"{logical_id}"' in value) is logical_id.startswith("Scheduler"), logical_id


def test_an_alarm_topic_may_be_one_of_the_app(foreign: SynthesizedStack) -> None:
    (topic,) = foreign.resources("SNS::Topic")
    alarms = foreign.resources("CloudWatch::Alarm")
    told = {name for name, each in alarms.items() if "AlarmActions" in each["Properties"]}
    assert told == {name for name in alarms if name.startswith("Scheduler")}
    for name in told:
        assert alarms[name]["Properties"]["AlarmActions"] == [{"Ref": topic}]


def test_the_data_of_a_trial_goes_with_it(foreign: SynthesizedStack) -> None:
    for name, table in foreign.resources("DynamoDB::Table").items():
        assert (table["DeletionPolicy"] == "Delete") is name.startswith("Second")


def test_however_much_jobs_may_call_a_role_s_own_policies_are_not_too_long(
    tmp_path: Path,
) -> None:
    """IAM takes 10,240 characters of all inline policies of a role together."""
    stack = cdk.Stack(app(tmp_path), "Billing")
    arn = "arn:aws:sqs:eu-west-1:123456789012:Billing-Production-Reminders-ABCDEFGHIJKL-{:03}"
    arns = [arn.format(number) for number in range(100)]
    Carillon(stack, "Scheduler", team="billing", target_arns=arns)
    template = synthesized(stack)
    role = referred(template.functions()["executor-normal"]["Role"])
    documents = [
        policy["PolicyDocument"]
        for policy in template.properties("IAM::Policy").values()
        if role in map(referred, policy["Roles"])
    ]
    texts = [json.dumps(_as_long(each), separators=(",", ":")) for each in documents]
    assert sum(map(len, texts)) <= 10_240


def _as_long(value: Any) -> Any:
    """A document with texts of the length of a function's ARN for what deployment makes."""
    if isinstance(value, Mapping):
        if str(value.get("Ref")).startswith("AWS::"):
            return deployed(value)
        if {"Ref", "Fn::GetAtt"} & value.keys():
            return "arn:aws:lambda:eu-west-1:123456789012:function:" + 64 * "x"
        if "Fn::Join" in value:
            separator, parts = value["Fn::Join"]
            return separator.join(map(_as_long, parts))
        return {name: _as_long(each) for name, each in value.items()}
    return list(map(_as_long, value)) if isinstance(value, list) else value


def test_a_wrong_option_is_refused_by_name(tmp_path: Path) -> None:
    stack = cdk.Stack(app(tmp_path), "Billing")
    with pytest.raises(ConfigurationError, match="segmnets"):
        Carillon(stack, "Scheduler", segmnets=4)
