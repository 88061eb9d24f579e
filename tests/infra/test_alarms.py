"""Alarms: what each looks at, when it is raised, whom it tells, and where its heading is."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from carillon.cdk.constructs.observability import OLDEST_MESSAGE_MINUTES, oldest_message_seconds
from carillon.domain.canary import CANARY_JOB_ID, CANARY_OWNER
from carillon.domain.run import RunStatus
from carillon.schedules.insight.cost import DEFAULT
from carillon.stores.dynamo.runs import item_of
from carillon.telemetry import Metric
from tests.contract.samples import NOW, a_key, a_run
from tests.infra.stacks import REGION, REPOSITORY, SynthesizedStack, deployed, referred

RUNBOOK = (REPOSITORY / "docs" / "operate.md").read_text()
LANES = {"High": "PAGE", "Normal": "PAGE", "Low": "TICKET", "Slow": "TICKET"}


class Told(NamedTuple):
    """An alarm: statistic of a metric, seconds and number of periods, threshold, missing data."""

    severity: str
    metric: str
    where: str
    statistic: str
    period: int
    times: int
    operator: str
    threshold: int
    missing: str


AT_LEAST, BELOW = "GreaterThanOrEqualToThreshold", "LessThanThreshold"
OK, RED, AS_IT_WAS = "notBreaching", "breaching", "ignore"

ALARMS = {
    "TicksMissing": Told("PAGE", "AWS/Lambda Invocations", "tick", "Sum", 60, 5, BELOW, 1, RED),
    "TickErrors": Told("PAGE", "AWS/Lambda Errors", "tick", "Sum", 60, 3, AT_LEAST, 1, OK),
    "WatermarkLag": Told(
        "PAGE", "Carillon WatermarkLag", "tick", "Maximum", 60, 3, AT_LEAST, 120, AS_IT_WAS
    ),
    "CanarySilent": Told(
        "PAGE", "Carillon CanaryLag", "executor", "SampleCount", 60, 13, BELOW, 1, RED
    ),
    "ClockSkew": Told("TICKET", "Carillon ClockSkew", "tick", "Maximum", 60, 3, AT_LEAST, 2, OK),
    "EntriesSetAside": Told(
        "TICKET", "Carillon EntriesSetAside", "tick", "Sum", 3600, 1, AT_LEAST, 1, OK
    ),
    **{
        f"OldestMessage{lane}": Told(
            severity,
            "AWS/SQS ApproximateAgeOfOldestMessage",
            f"QueueUrl{lane}",
            "Maximum",
            60,
            5,
            AT_LEAST,
            1200,
            OK,
        )
        for lane, severity in LANES.items()
    },
    "DeadLetters": Told(
        "TICKET",
        "AWS/SQS ApproximateNumberOfMessagesVisible",
        "DeadLetterQueueUrl",
        "Maximum",
        60,
        5,
        AT_LEAST,
        1,
        OK,
    ),
    "RunsDead": Told("TICKET", "Carillon RunsDead", "executor", "Sum", 3600, 1, AT_LEAST, 10, OK),
    "RunsMissed": Told(
        "TICKET", "Carillon RunsMissed", "executor", "Sum", 3600, 1, AT_LEAST, 10, OK
    ),
    "ApiErrors": Told("PAGE", "AWS/ApiGateway 5xx", "ApiId", "Sum", 300, 2, AT_LEAST, 5, OK),
}
CONSUMERS = {
    "executor-high",
    "executor-normal",
    "executor-low",
    "executor-slow",
    "dead-letter-consumer",
}
BURIERS = {"executor", "dead-letter-consumer"}
TOTALS = {
    "Throttles": ("PAGE", "Throttles", {"tick", "api"} | CONSUMERS, 300, 3),
    "ExecutorErrors": ("TICKET", "Errors", CONSUMERS, 300, 3),
    "ExecutorsDied": ("TICKET", "ExecutorsDied", BURIERS, 3600, 1),
}
"""Alarms at the sum over several functions."""

LOST_RUNS = {"RunsDead", "RunsMissed"}

Properties = Mapping[str, Any]


def alarms(stack: SynthesizedStack) -> dict[str, Properties]:
    """By their names without the stack's."""
    named = stack.properties("CloudWatch::Alarm").values()
    assert all(str(each["AlarmName"]).startswith(f"{stack.name}-") for each in named)
    return {str(each["AlarmName"]).removeprefix(f"{stack.name}-"): each for each in named}


def told(stack: SynthesizedStack, alarm: Properties) -> Told:
    (dimension,) = alarm["Dimensions"]
    return Told(
        severity_of(alarm),
        f"{alarm['Namespace']} {alarm['MetricName']}",
        place(stack, dimension["Value"]),
        alarm["Statistic"],
        alarm["Period"],
        alarm["EvaluationPeriods"],
        alarm["ComparisonOperator"],
        alarm["Threshold"],
        alarm["TreatMissingData"],
    )


def severity_of(alarm: Properties) -> str:
    return str(alarm["AlarmDescription"]).partition(":")[0]


def place(stack: SynthesizedStack, value: object) -> str:
    """The service, or the output, that a dimension's value belongs to."""
    if isinstance(value, str):
        return value
    resource = referred(value)
    if resource in stack.properties("Lambda::Function"):
        return stack.function_name(resource)
    outputs = stack.template["Outputs"]
    (name,) = [name for name in outputs if outputs[name]["Value"] == {"Ref": resource}]
    return str(name)


def test_there_are_no_others(production: SynthesizedStack) -> None:
    assert set(alarms(production)) == set(ALARMS) | set(TOTALS)


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_is_raised_by_this(production: SynthesizedStack, name: str) -> None:
    alarm = alarms(production)[name]
    assert told(production, alarm) == ALARMS[name]
    assert alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]) == alarm["EvaluationPeriods"]


@pytest.mark.parametrize("name", TOTALS)
def test_an_alarm_is_raised_by_the_sum_over_functions(
    production: SynthesizedStack, name: str
) -> None:
    alarm = alarms(production)[name]
    severity, metric, functions, period, times = TOTALS[name]
    assert severity_of(alarm) == severity
    (total,) = [each for each in alarm["Metrics"] if "Expression" in each]
    assert (total["Expression"], total.get("ReturnData", True)) == ("SUM(METRICS())", True)
    parts = [each for each in alarm["Metrics"] if each is not total]
    assert not any(each["ReturnData"] for each in parts)
    stats = [each["MetricStat"] for each in parts]
    assert {each["Metric"]["MetricName"] for each in stats} == {metric}
    assert {(each["Stat"], each["Period"]) for each in stats} == {("Sum", period)}
    dimensions = [each["Metric"]["Dimensions"][0]["Value"] for each in stats]
    assert sorted(place(production, each) for each in dimensions) == sorted(functions)
    assert (alarm["EvaluationPeriods"], alarm["Threshold"]) == (times, 1)
    assert (alarm["ComparisonOperator"], alarm["TreatMissingData"]) == (AT_LEAST, OK)


def test_what_is_looked_at_is_emitted_under_that_name(unusual: SynthesizedStack) -> None:
    """A metric that nobody emits is an alarm that never goes off."""
    services = {
        properties["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        for properties in unusual.functions().values()
    }
    for properties in unusual.functions().values():
        variables = properties["Environment"]["Variables"]
        assert variables["POWERTOOLS_METRICS_NAMESPACE"] == unusual.name
    own = [each for each in alarms(unusual).values() if each.get("Namespace") == unusual.name]
    assert len(own) == 6
    for alarm in own:
        assert alarm["MetricName"] in {metric.value for metric in Metric}
        assert alarm["Dimensions"] == [
            {"Name": "service", "Value": alarm["Dimensions"][0]["Value"]}
        ]
        assert alarm["Dimensions"][0]["Value"] in services


@pytest.mark.parametrize(("timeout", "limit"), [(60, 1200), (85, 1200), (300, 2700), (900, 6900)])
def test_one_executor_that_died_is_no_lane_behind(timeout: int, limit: int) -> None:
    """Its message is hidden for six times the timeout, and its age counts on."""
    assert oldest_message_seconds(timeout) == limit
    assert limit + 60 * OLDEST_MESSAGE_MINUTES >= 900 + (6 + 1) * timeout


def test_lost_runs_have_the_limit_that_was_chosen(unusual: SynthesizedStack) -> None:
    for name in LOST_RUNS:
        assert alarms(unusual)[name]["Threshold"] == 1


def test_an_emulator_has_no_sums_and_without_a_limit_no_lost_run_is_an_alarm(
    emulated: SynthesizedStack,
) -> None:
    assert set(alarms(emulated)) == set(ALARMS) - LOST_RUNS


def test_every_alarm_tells_all_topics_when_it_is_raised_and_when_it_is_over(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    (own,) = unusual.resources("SNS::Topic")
    topics = ["arn:aws:sns:eu-west-1:123456789012:on-call", {"Ref": own}]
    for alarm in alarms(unusual).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == topics
        assert alarm.get("ActionsEnabled", True)
    for alarm in alarms(production).values():
        assert "AlarmActions" not in alarm
    assert production.resources("SNS::Topic") == {}


def test_the_topic_sends_to_the_address_and_takes_alarms_of_the_account_only_by_tls(
    unusual: SynthesizedStack,
) -> None:
    ((topic, properties),) = unusual.properties("SNS::Topic").items()
    # Alarms could not publish to one that is encrypted with the key of SNS.
    assert "KmsMasterKeyId" not in properties
    (subscription,) = unusual.properties("SNS::Subscription").values()
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "on-call@example.com")
    assert referred(subscription["TopicArn"]) == topic
    (policy,) = unusual.properties("SNS::TopicPolicy").values()
    plain, alarms_only = policy["PolicyDocument"]["Statement"]
    assert (plain["Effect"], plain["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )
    assert alarms_only["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert (alarms_only["Effect"], alarms_only["Action"]) == ("Allow", "sns:Publish")
    condition = alarms_only["Condition"]
    assert condition["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert json.dumps(condition["ArnLike"]["aws:SourceArn"]).endswith('":alarm:*"]]}')


def test_the_budget_counts_what_has_the_stack_s_tag(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert production.resources("Budgets::Budget") == {}
    (properties,) = unusual.properties("Budgets::Budget").values()
    budget = properties["Budget"]
    assert deployed(budget["BudgetName"]) == f"{unusual.name}-{REGION}"
    assert budget["BudgetLimit"] == {"Amount": 20, "Unit": "USD"}
    assert budget["CostFilters"] == {"TagKeyValue": ["user:carillon:stack$Carillon-trial"]}
    assert (budget["BudgetType"], budget["TimeUnit"]) == ("COST", "MONTHLY")
    notifications = [each["Notification"] for each in properties["NotificationsWithSubscribers"]]
    shares = [(each["NotificationType"], each["Threshold"]) for each in notifications]
    assert shares == [("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)]
    for each in properties["NotificationsWithSubscribers"]:
        assert each["Subscribers"] == [
            {
                "SubscriptionType": "SNS",
                "Address": "arn:aws:sns:eu-west-1:123456789012:on-call",
            },
            {"SubscriptionType": "EMAIL", "Address": "on-call@example.com"},
        ]


UNTAGGED = {
    "ApiGatewayV2::Authorizer",
    "ApiGatewayV2::Integration",
    "ApiGatewayV2::Route",
    "Budgets::Budget",
    "Cognito::UserPoolClient",
    "Cognito::UserPoolGroup",
    "IAM::ManagedPolicy",
    "IAM::Policy",
    "Lambda::Alias",
    "Lambda::EventInvokeConfig",
    "Lambda::LayerVersion",
    "Lambda::Permission",
    "Lambda::Version",
    "SNS::Subscription",
    "SNS::TopicPolicy",
    "SQS::QueuePolicy",
}
"""Of these none costs anything by itself, and CloudFormation knows no tags of them."""


def test_whatever_has_a_price_has_the_tag(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    for stack in (production, unusual):
        for logical_id, resource in stack.template["Resources"].items():
            if resource["Type"].removeprefix("AWS::") in UNTAGGED:
                continue
            properties = resource["Properties"]
            tags = properties.get("Tags") or properties.get("UserPoolTags") or ()
            if not isinstance(tags, Mapping):
                tags = {tag["Key"]: tag["Value"] for tag in tags}
            assert tags.get("carillon:stack") == stack.name, logical_id


def test_the_dashboard_can_be_left_out_and_stays_within_the_free_size(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert unusual.resources("CloudWatch::Dashboard") == {}
    (dashboard,) = production.properties("CloudWatch::Dashboard").values()
    assert deployed(dashboard["DashboardName"]) == f"{production.name}-{REGION}"
    widgets = json.loads(deployed(dashboard["DashboardBody"]))["widgets"]
    graphs = [each["properties"]["metrics"] for each in widgets if each["type"] == "metric"]
    rows = [row[:-1] if isinstance(row[-1], dict) else row for graph in graphs for row in graph]
    assert {"WatermarkLag", "OccurrencesSent", "CanaryLag", "RunLag"} <= {row[1] for row in rows}
    assert len({tuple(row) for row in rows}) == 50
    (alarm_list,) = [each for each in widgets if each["type"] == "alarm"]
    assert len(alarm_list["properties"]["alarms"]) == len(alarms(production))


class TestRunbook:
    """docs/operate.md has a heading for each alarm, and none for anything else."""

    def headings(self) -> set[str]:
        chapter = RUNBOOK.partition("\n## Alarms\n")[2].partition("\n## ")[0]
        return set(re.findall(r"^### (\w+)$", chapter, re.M))

    def test_every_alarm_links_to_its_heading(self, production: SynthesizedStack) -> None:
        anchors = {heading.lower() for heading in self.headings()}
        linked = set()
        for name, alarm in alarms(production).items():
            match = re.search(r"\. docs/operate\.md#(\w+)$", alarm["AlarmDescription"])
            assert match, name
            linked.add(match[1])
        assert linked == anchors

    def test_every_heading_has_its_severity_as_the_alarm_has_it(
        self, production: SynthesizedStack
    ) -> None:
        for name, alarm in alarms(production).items():
            heading = "OldestMessage" if name.startswith("OldestMessage") else name
            text = RUNBOOK.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
            assert f"**{severity_of(alarm)}**" in text, name

    def test_what_it_asks_for_the_canary_s_runs_is_where_they_are(self) -> None:
        text = RUNBOOK.partition("\n### CanarySilent\n")[2].partition("\n### ")[0]
        key = replace(a_key(CANARY_OWNER), job_id=CANARY_JOB_ID)
        ended = {"status": RunStatus.SKIPPED, "reason": "catch_up", "finished_at": NOW}
        row = item_of(a_run(key, **ended))
        assert f'{{":key": {{"S": "{row["job_key"]["S"]}"}}}}' in text
        asked = re.findall(r"(\w+)\.([SN])\b", text)
        found = [row[name][kind] for name, kind in asked]
        micros = str(int(NOW.timestamp() * 1_000_000))
        assert found == [key.sort_key, "skipped", "catch_up", micros]

    def test_it_says_how_many_metrics_the_alarms_look_at(
        self, production: SynthesizedStack
    ) -> None:
        """They cost by those; tests/infra/test_cost.py counts them."""
        assert f"{len(alarms(production))} alarms on {DEFAULT.alarms} metrics" in RUNBOOK
