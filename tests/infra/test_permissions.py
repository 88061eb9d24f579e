"""Each function may do what its protocol needs, on its own resources, and nothing else."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra.stacks import (
    ACCOUNT,
    REGION,
    ROLES,
    TARGETS,
    SynthesizedStack,
    deployed,
    referred,
)

LANES = ("QueueUrlHigh", "QueueUrlNormal", "QueueUrlLow", "QueueUrlSlow")
CONSUME = {
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
}
GET, PUT, DELETE = "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:DeleteItem"
BATCH, QUERY = "dynamodb:BatchWriteItem", "dynamodb:Query"
READ_BATCH = "dynamodb:BatchGetItem"
SEND_TO_LANES = {lane: {"sqs:SendMessage"} for lane in LANES}
ATTENTION = "RunsTable/index/attention"
BY_OWNER = "JobsTable/index/by_owner"

EMAIL = [f"arn:aws:ses:{REGION}:{ACCOUNT}:{each}/*" for each in ("identity", "configuration-set")]
"""An identity may have a configuration set, whose permission SES asks for, too."""

Grants = dict[str, set[str]]

RUNNING: Grants = {
    "JobsTable": {GET, READ_BATCH, PUT, QUERY},  # notifications are found by their owner
    "RunsTable": {GET, READ_BATCH, PUT, DELETE, QUERY},
    "WheelTable": {GET, PUT, DELETE, BATCH},
}


def secrets_under(prefix: str) -> Grants:
    return {
        f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:{prefix}/*": {
            "secretsmanager:GetSecretValue"
        },
        f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/{prefix}/*": {"ssm:GetParameter"},
    }


def parameters_of(stack: SynthesizedStack) -> Grants:
    path = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/carillon-settings/{stack.name}"
    return {key: {"ssm:GetParametersByPath"} for key in [path, f"{path}/*"]}


def executor(lane: str) -> Grants:
    own_queue = {f"QueueUrl{lane}": {"sqs:SendMessage"} | CONSUME}
    secret = {"WebhookSecretArn": {"secretsmanager:GetSecretValue"}}
    # Operations search dead letters; a hand-over chooses and counts jobs of owners.
    searched = {ATTENTION: {QUERY}, BY_OWNER: {QUERY}}
    return {**RUNNING, **SEND_TO_LANES, **own_queue, **searched, **secret}


EXECUTORS = {
    f"executor-{lane.lower()}": executor(lane) for lane in ("High", "Normal", "Low", "Slow")
}
ALLOWED: dict[str, Grants] = {
    "tick": {
        # Jobs are read; the canary is indexed, too.
        "JobsTable": {GET, PUT},
        "RunsTable": {GET, PUT},  # plans of chunks
        "WheelTable": {GET, PUT, DELETE, BATCH, QUERY},
        **SEND_TO_LANES,
    },
    **EXECUTORS,
    "dead-letter-consumer": {
        **RUNNING,
        **SEND_TO_LANES,
        "DeadLetterQueueUrl": CONSUME,
    },
    "api": {
        "JobsTable": {GET, PUT, DELETE, QUERY, READ_BATCH},
        BY_OWNER: {QUERY},
        "RunsTable": {GET, PUT, QUERY, READ_BATCH},
        ATTENTION: {QUERY},
        "WheelTable": {GET, PUT, DELETE, BATCH},
        **SEND_TO_LANES,
    },
}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_function_may_do_exactly_this(production: SynthesizedStack, name: str) -> None:
    secrets = secrets_under("carillon") if name in EXECUTORS else {}
    # Executors read theirs where targets are allowed, or were in the release that is gone back to.
    read = parameters_of(production) if name != "tick" else {}
    assert stated(production, name, "Allow") == ALLOWED[name] | secrets | read
    assert stated(production, name, "Deny") == {}


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_options_add_exactly_this(unusual: SynthesizedStack, name: str) -> None:
    """The listed targets and the secrets for the executors alone; the bus for every function,
    X-Ray for those that run jobs, and for the tick its own live version."""
    added: Grants = {"EventBusName": {"events:PutEvents"}}
    if name in (*EXECUTORS, "dead-letter-consumer"):
        added["*"] = {"xray:PutSpans", "xray:PutSpansForIndexing", "xray:PutTraceSegments"}
    denied: Grants = {}
    if name in EXECUTORS:
        report, bill, orders, news, bus, state_machine, task, batch_job, batch_queue = TARGETS
        added |= secrets_under("teams/carillon") | {
            **{arn: {"ses:SendEmail"} for arn in EMAIL},
            report: {"lambda:InvokeFunction"},
            bill: {"lambda:InvokeFunction"},
            orders: {"sqs:SendMessage", "sqs:GetQueueUrl"},
            news: {"sns:Publish"},
            bus: {"events:PutEvents"},
            state_machine: {"states:StartExecution"},
            task: {"ecs:RunTask"},
            batch_job: {"batch:SubmitJob"},
            batch_queue: {"batch:SubmitJob"},
            **{role: {"iam:PassRole"} for role in ROLES},
        }
        denied = {
            "DeadLetterQueueUrl": {"sqs:SendMessage"},
            "topic of alarms": {"sns:Publish"},
        }
        for logical_id in unusual.properties("Lambda::Function"):
            function = unusual.function_name(logical_id)
            denied |= {key: {"lambda:InvokeFunction"} for key in [function, f"{function}:*"]}
    if name != "tick":
        added |= parameters_of(unusual)
    else:
        added["TickFunction"] = {"lambda:InvokeFunction"}  # ticks may share a minute there
    assert stated(unusual, name, "Allow") == ALLOWED[name] | added
    assert stated(unusual, name, "Deny") == denied


def test_roles_are_passed_to_ecs_and_to_nobody_else(unusual: SynthesizedStack) -> None:
    (passed,) = [
        each
        for each in statements_of(unusual, "executor-normal")
        if "iam:PassRole" in listed(each["Action"])
    ]
    assert set(passed["Resource"]) == {*ROLES}
    assert passed["Condition"] == {
        "StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
    }


def test_e_mail_is_sent_from_the_one_address(unusual: SynthesizedStack) -> None:
    (sending,) = [
        each
        for each in statements_of(unusual, "executor-normal")
        if "ses:SendEmail" in listed(each["Action"])
    ]
    assert {*map(deployed, listed(sending["Resource"]))} == {*EMAIL}
    assert sending["Condition"] == {"StringEquals": {"ses:FromAddress": "carillon@example.com"}}


def test_what_jobs_may_call_and_what_is_the_deployments_own_are_parameters(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    """A version is made after them: its processes read when they begin."""
    (tasks,) = production.properties("SSM::Parameter").values()
    assert tasks["Name"] == "/carillon-settings/Carillon/TASK_NAMES/1"
    assert {"echo", "sleep"} < set(tasks["Value"].split(","))
    values = {
        str(each["Name"]): deployed(each["Value"])
        for each in unusual.properties("SSM::Parameter").values()
    }
    path = f"/carillon-settings/{unusual.name}"
    assert values[f"{path}/TARGET_ARNS/1"] == ",".join(TARGETS)
    own = values[f"{path}/OWN_ARNS/1"].split(",")
    kinds = ("Lambda::Function", "SQS::Queue", "Events::EventBus", "SNS::Topic")
    assert set(own) == {each for kind in kinds for each in unusual.resources(kind)}
    for version in unusual.resources("Lambda::Version").values():
        if unusual.function_name(referred(version["Properties"]["FunctionName"])) != "tick":
            assert unusual.resources("SSM::Parameter").keys() <= {*version["DependsOn"]}


def test_no_role_carries_a_managed_policy(production: SynthesizedStack) -> None:
    for role in production.properties("IAM::Role").values():
        assert "ManagedPolicyArns" not in role
        assert "Policies" not in role


def test_nothing_is_allowed_on_everything(production: SynthesizedStack) -> None:
    wildcards: set[str] = set()
    for policy in production.properties("IAM::Policy").values():
        for statement in policy["PolicyDocument"]["Statement"]:
            texts = [*listed(statement["Action"]), *map(deployed, listed(statement["Resource"]))]
            wildcards |= {text for text in texts if "*" in text}
    path = f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/carillon-settings/Carillon/*"
    assert wildcards == {*secrets_under("carillon"), path}


def test_the_tick_may_invoke_its_live_version_by_a_policy_for_which_it_does_not_wait(
    unusual: SynthesizedStack,
) -> None:
    """The alias is made after the function, the function after the policies that it waits for."""
    alias = unusual.output("TickFunction")
    function = unusual.aliased(alias)
    (name,) = (
        name
        for name, policy in unusual.properties("IAM::Policy").items()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Action"] == "lambda:InvokeFunction"
        and statement["Effect"] == "Allow"
        and statement["Resource"] == {"Ref": alias}
    )
    waits_for = unusual.resources("Lambda::Function")[function]["DependsOn"]
    assert name not in waits_for


def test_only_one_rule_and_one_api_may_invoke(production: SynthesizedStack) -> None:
    invokers = {
        (
            str(permission["Principal"]),
            production.called(permission["FunctionName"]),
        )
        for permission in production.properties("Lambda::Permission").values()
    }
    assert invokers == {("events.amazonaws.com", "tick"), ("apigateway.amazonaws.com", "api")}
    for permission in production.properties("Lambda::Permission").values():
        assert "SourceArn" in permission


def test_the_api_reads_the_logs_of_executors_alone(production: SynthesizedStack) -> None:
    (reading,) = [
        each
        for each in statements_of(production, "api")
        if "logs:FilterLogEvents" in listed(each["Action"])
    ]
    groups = [str(referred(resource)) for resource in listed(reading["Resource"])]
    assert len(groups) == 4
    assert all("Executor" in group for group in groups)


def stated(stack: SynthesizedStack, name: str, effect: str) -> Grants:
    """The actions that a function's role is allowed or denied, by resource; its log apart."""
    found: Grants = {}
    for statement in statements_of(stack, name):
        if statement["Effect"] == effect:
            for resource in listed(statement["Resource"]):
                named = resource_name(stack, resource)
                found.setdefault(named, set()).update(listed(statement["Action"]))
    if effect == "Allow":
        reads = {"logs:FilterLogEvents"} if name == "api" else set()
        written = {"logs:CreateLogStream", "logs:PutLogEvents"}
        assert found.pop("own log group") == written | reads
    return found


def statements_of(stack: SynthesizedStack, name: str) -> Iterator[Mapping[str, Any]]:
    role = referred(stack.functions()[name]["Role"])
    for kind in ("IAM::Policy", "IAM::ManagedPolicy"):
        for policy in stack.properties(kind).values():
            if role in [referred(one) for one in policy["Roles"]]:
                yield from policy["PolicyDocument"]["Statement"]


def resource_name(stack: SynthesizedStack, resource: object) -> str:
    """The output that names a resource, with a suffix like /index/…, or a word of our own.

    An ARN that is written out stands for itself.
    """
    text = deployed(resource)
    if text == "*" or text.startswith("arn:"):
        return text
    logical_id, slash, suffix = text.partition("/")
    if logical_id in stack.resources("Logs::LogGroup"):
        return "own log group"
    if logical_id in stack.resources("SNS::Topic"):
        return "topic of alarms"
    function, colon, version = text.partition(":")
    if function in stack.resources("Lambda::Function"):
        return f"{stack.function_name(function)}{colon}{version}"
    for output in stack.template["Outputs"]:
        value = stack.template["Outputs"][output]["Value"]
        if value == {"Ref": logical_id}:
            return f"{output}{slash}{suffix}"
    raise AssertionError(f"{logical_id} has no output")


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
