"""Jobs that an app declares: what is refused at synthesis, and what the deployment applies."""

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from carillon.api.apply.stack import with_values
from carillon.cdk import Carillon, Tasks
from carillon.cdk.constructs.event_rules import event_name
from carillon.cdk.declared import Declared
from carillon.cdk.discovery import Found, discover
from carillon.cdk.options import team_name
from carillon.errors import ConfigurationError
from tests.infra.stacks import ACCOUNT, REGION, SynthesizedStack, deployed, referred
from tests.infra.test_construct import app, synthesized
from tests.infra.test_permissions import listed, statements_of
from tests.infra.test_tasks import write

NIGHTLY = """
from carillon.tasks import job, task

@task
def report(payload, context): ...

@job(schedule="0 3 * * *", timezone="Europe/Riga", expect_within="30m")
def nightly(payload, context): ...
"""


CLUSTER = f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/jobs"
MANIFEST = """calendars: {{h: {{dates: [2026-12-25]}}}}
jobs:
  a: {{schedule: {}, target: {{type: task, name: report}}}}
"""


@pytest.fixture
def stack(tmp_path: Path) -> cdk.Stack:
    return cdk.Stack(app(tmp_path / "out"), "Billing")


def scheduler(stack: cdk.Stack, source: str = "", **options: Any) -> Carillon:
    folder = Path(str(cdk.Stage.of(stack).outdir)).parent / "jobs"  # type: ignore[union-attr]
    write(folder, **{"jobs.py": source or NIGHTLY})
    tasks = Tasks.from_directory(folder, modules=["jobs"])
    return Carillon(stack, "Scheduler", tasks=tasks, **{"team": "billing", **options})


def declared(folder: Path, source: str = NIGHTLY) -> Declared:
    """As a construct with these tasks would have it."""
    write(folder, **{"jobs/jobs.py": source})
    tasks = Tasks.from_directory(folder / "jobs", modules=["jobs"])
    return Declared(discover(tasks.modules, tasks), lambda service, arn, resource: None)


def resource(stack: SynthesizedStack) -> dict[str, Any]:
    (found,) = [
        each["Properties"]
        for each in stack.template["Resources"].values()
        if each["Type"] == "Custom::CarillonJobs"
    ]
    return dict(found)


def document(stack: SynthesizedStack) -> tuple[dict[str, Any], dict[str, str]]:
    """What is in the asset, and the values that it refers to."""
    place = resource(stack)["Document"]
    name = f"asset.{str(place['Key']).removesuffix('.json')}.json"
    values = {key: deployed(value) for key, value in place["Values"].items()}
    return json.loads((stack.directory / name).read_text()), values


def test_a_decorated_task_is_a_job_of_the_team(stack: cdk.Stack) -> None:
    scheduler(stack)
    template = synthesized(stack)
    assert resource(template)["Team"] == "billing"
    assert resource(template)["Manager"] == "stack/Billing/Scheduler"
    jobs = document(template)[0]["jobs"]
    (read,) = [
        each["Resource"]
        for each in statements_of(template, "apply")
        if each["Action"] == "s3:GetObject"
    ]
    assert json.dumps(read).endswith('/*.json"]]}')
    target = {"type": "task", "name": "nightly"}
    settings = {"schedule": "0 3 * * *", "timezone": "Europe/Riga", "expect_within": "30m"}
    assert jobs == {"nightly": {**settings, "target": target}}


def test_a_key_that_the_app_does_not_make_may_be_used_too(stack: cdk.Stack) -> None:
    """Nor is a key known by its alias one of the class Key."""
    shared = kms.Key.from_key_arn(stack, "Shared", f"arn:aws:kms:{REGION}:{ACCOUNT}:key/shared")
    named = kms.Alias(stack, "Alias", alias_name="alias/news", target_key=kms.Key(stack, "Key"))
    made = scheduler(stack)
    queue = sqs.Queue(stack, "Orders", encryption_master_key=shared)
    topic = sns.Topic(stack, "News", master_key=named)
    made.add_job("orders", schedule="every 5m", target=queue, on_failure=topic)
    template = synthesized(stack)
    used = {
        deployed(arn)
        for each in statements_of(template, "executor-normal")
        if "kms:Decrypt" in listed(each["Action"])
        for arn in listed(each["Resource"])
    }
    assert used == {shared.key_arn, *ids(template, "KMS::Key")}


def test_a_job_may_call_exactly_the_resource_that_it_names(stack: cdk.Stack) -> None:
    key = kms.Key(stack, "Key")
    queue = sqs.Queue(stack, "Orders", encryption_master_key=key)
    topic, bus = sns.Topic(stack, "News"), events.EventBus(stack, "Bus")
    code = lambda_.Code.from_inline("def handler(event, context): ...")
    runtime = lambda_.Runtime.PYTHON_3_12
    function = lambda_.Function(stack, "Bill", code=code, handler="index.handler", runtime=runtime)
    made = scheduler(stack)
    made.add_job("orders", schedule="every 5m", target=queue, on_failure=topic)
    made.add_job("bill", schedule="every 5m", target=function, on_success=queue)
    to_bus = {"type": "eventbridge", "bus_arn": bus.event_bus_arn}
    told = {**to_bus, "source": "billing", "detail_type": "due"}
    made.add_job("told", schedule="every 5m", target=told)
    template = synthesized(stack)

    (orders,), (news,) = ids(template, "SQS::Queue"), ids(template, "SNS::Topic")
    (bill,) = ids(template, "Lambda::Function")
    (own_bus,) = ids(template, "Events::EventBus")
    granted: dict[str, set[str]] = {}
    for statement in statements_of(template, "executor-normal"):
        for arn in map(deployed, listed(statement["Resource"])):
            if statement["Effect"] == "Allow" and not arn.startswith(("Scheduler", "arn:")):
                granted.setdefault(arn, set()).update(listed(statement["Action"]))
    (used,) = ids(template, "KMS::Key")
    assert granted.pop(used) >= {"kms:Decrypt", "kms:Encrypt"}
    assert granted == {
        orders: {"sqs:GetQueueUrl", "sqs:SendMessage"},
        news: {"sns:Publish"},
        bill: {"lambda:InvokeFunction"},
        own_bus: {"events:PutEvents"},
    }
    (allowed,) = [
        deployed(each["Value"]).split(",")
        for each in template.properties("SSM::Parameter").values()
        if "TARGET_ARNS" in each["Name"]
    ]
    assert set(allowed) == {orders, news, bill, own_bus}
    content, values = document(template)
    assert set(values.values()) == set(allowed)
    wanted = content["jobs"]["orders"]
    assert values[wanted["target"]["queue_arn"]["$ref"]] == orders
    assert values[wanted["on_failure"]["topic_arn"]["$ref"]] == news


def test_a_task_may_be_run_with_its_own_roles(stack: cdk.Stack) -> None:
    """As a construct in the place of its ARN; the roles are those that the definition has."""
    definition = ecs.FargateTaskDefinition(stack, "Report")
    image = ecs.ContainerImage.from_registry("example.com/report")
    logging = ecs.LogDrivers.aws_logs(stream_prefix="report")
    definition.add_container("main", image=image, logging=logging)
    cluster = ecs.Cluster.from_cluster_arn(stack, "Jobs", CLUSTER)
    subnet = ec2.CfnSubnet(stack, "Subnet", vpc_id="vpc-0a1b2c3d", cidr_block="10.0.0.0/24")
    target = {"type": "ecs", "task_definition_arn": definition, "cluster_arn": cluster}
    target |= {"subnets": [subnet.ref], "container": "main"}
    made = scheduler(stack)
    # The ARN alone tells no roles; the construct does, also after it, and twice.
    by_name = {**target, "task_definition_arn": definition.task_definition_arn}
    made.add_job("other", schedule="every 5m", target=by_name)
    made.add_job("report", schedule="every 5m", target=target, payload={"a": 1})
    made.add_job("again", schedule="every 5m", target=target)
    template = synthesized(stack)

    (defined,) = ids(template, "ECS::TaskDefinition")
    roles = template.properties("ECS::TaskDefinition")[defined]
    granted = {
        action: set(map(deployed, listed(each["Resource"])))
        for each in statements_of(template, "executor-normal")
        for action in listed(each["Action"])
        if action in ("ecs:RunTask", "iam:PassRole")
    }
    passed = {referred(roles["TaskRoleArn"]), referred(roles["ExecutionRoleArn"])}
    assert granted == {"ecs:RunTask": {every_revision(defined)}, "iam:PassRole": passed}
    content, values = document(template)
    wanted = content["jobs"]["report"]["target"]
    assert wanted["cluster_arn"] == CLUSTER
    assert values[wanted["task_definition_arn"]["$ref"]] == defined
    assert [values[each["$ref"]] for each in wanted["subnets"]] == ids(template, "EC2::Subnet")


def test_a_new_revision_is_allowed_by_executors_that_began_with_the_one_before(
    stack: cdk.Stack,
) -> None:
    """A change of a definition gives it another ARN, and publishes no version of any function."""
    definition = ecs.FargateTaskDefinition(stack, "Report")
    definition.add_container("main", image=ecs.ContainerImage.from_registry("example.com/report"))
    batch = cdk.CfnResource(stack, "Nightly", type="AWS::Batch::JobDefinition")
    queue = f"arn:aws:batch:{REGION}:{ACCOUNT}:job-queue/nightly"
    job = {"type": "batch", "job_definition_arn": batch.ref, "job_queue_arn": queue}
    task = {"type": "ecs", "task_definition_arn": definition, "subnets": ["subnet-0a1b2c3d"]}
    made = scheduler(stack)
    made.add_job("batch", schedule="every 5m", target=job)
    made.add_job("report", schedule="every 5m", target=task)
    template = synthesized(stack)
    (defined,) = ids(template, "ECS::TaskDefinition")
    allowed = next(
        deployed(each["Value"]).split(",")
        for each in template.properties("SSM::Parameter").values()
        if "TARGET_ARNS" in each["Name"]
    )
    assert set(allowed) == {every_revision("Nightly"), queue, every_revision(defined)}
    _, values = document(template)
    assert set(values.values()) == {"Nightly", defined}, "jobs name the one that was deployed"


def every_revision(definition: str) -> str:
    """As a pattern of what is known at deployment only."""
    return ":".join([*(f"{definition} : {number}" for number in range(6)), "*"])


def test_an_imported_definition_brings_the_roles_that_it_was_told(stack: cdk.Stack) -> None:
    """Those of others are passed by the option `pass_role_arns`."""
    arn = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/report:7"
    definition = ecs.FargateTaskDefinition.from_fargate_task_definition_arn(stack, "Report", arn)
    target = {"type": "ecs", "task_definition_arn": definition, "subnets": ["subnet-0a1b2c3d"]}
    scheduler(stack).add_job("report", schedule="every 5m", target=target)
    statements = statements_of(synthesized(stack), "executor-normal")
    actions = [action for each in statements for action in listed(each["Action"])]
    assert ("ecs:RunTask" in actions, "iam:PassRole" in actions) == (True, False)


def test_a_definition_without_a_revision_is_allowed_with_all_of_them(stack: cdk.Stack) -> None:
    at = f"arn:aws:batch:{REGION}:{ACCOUNT}"
    target = {"type": "batch", "job_definition_arn": f"{at}:job-definition/report"}
    target |= {"job_queue_arn": f"{at}:job-queue/nightly"}
    scheduler(stack).add_job("report", schedule="every 5m", target=target)
    template = synthesized(stack)
    submitting = [
        arn
        for each in statements_of(template, "executor-normal")
        for arn in listed(each["Resource"])
        if "batch:SubmitJob" in listed(each["Action"])
    ]
    named = {f"{at}:job-definition/report:*", f"{at}:job-queue/nightly"}
    assert set(submitting) == named
    assert document(template)[0]["jobs"]["report"]["target"] == target


def test_a_definition_alone_says_what_is_missing(stack: cdk.Stack) -> None:
    made = scheduler(stack)
    definition = ecs.FargateTaskDefinition(stack, "Report")
    with pytest.raises(ConfigurationError, match=r"target\.subnets: must be given on Fargate"):
        made.add_job("report", schedule="every 5m", target=definition)


def ids(stack: SynthesizedStack, kind: str) -> list[str]:
    """Of the app's own."""
    return [each for each in stack.resources(kind) if not each.startswith("Scheduler")]


def test_values_of_the_deployment_may_be_anywhere_in_a_job(stack: cdk.Stack) -> None:
    queue = sqs.Queue(stack, "Orders")
    payload = {"url": f"{queue.queue_url}?x", "n": [1, {"arn": queue.queue_arn}]}
    scheduler(stack).add_job("report", schedule="every 5m", target="report", payload=payload)
    content, values = document(synthesized(stack))
    told = content["jobs"]["report"]["payload"]
    assert set(told["url"]) == set(told["n"][1]["arn"]) == {"$ref"}
    assert values[told["url"]["$ref"]].endswith("?x")


def test_a_list_may_be_a_tuple() -> None:
    jobs = Declared(Found(("report",)), lambda service, arn, resource: None)
    definition = CLUSTER.replace("cluster/jobs", "task-definition/t:1")
    target = {"type": "ecs", "task_definition_arn": definition, "cluster_arn": CLUSTER}
    told = {"schedule": "every 5m", "events": ("run.dead",)}
    jobs.add("report", {**told, "target": {**target, "subnets": ("subnet-0a1b2c3d",)}}, "here")
    made = jobs.document()[0]["jobs"]["report"]
    assert (made["events"], made["target"]["subnets"]) == (["run.dead"], ["subnet-0a1b2c3d"])


def test_a_number_of_the_deployment_is_one(stack: cdk.Stack) -> None:
    """Such as the port of a database: until then CDK has a number of no meaning in its place."""
    port = cdk.CfnParameter(stack, "Port", type="Number").value_as_number
    jobs = Declared(Found(("report",)), lambda service, arn, resource: None)
    payload = {"text": cdk.Token.as_string(port), "from": port, "to": [port], "size": 1.5}
    jobs.add("report", {"schedule": "every 5m", "target": "report", "payload": payload}, "here")
    content, values = jobs.document()
    assert [stack.resolve(value) for value in values.values()] == [{"Ref": "Port"}] * 2
    told = with_values(content, dict.fromkeys(values, "5432"))["jobs"]["report"]["payload"]
    assert told == {"text": "5432", "from": 5432, "to": [5432], "size": 1.5}


def test_what_looks_like_a_value_of_the_deployment_stays_what_it_is(stack: cdk.Stack) -> None:
    queue = sqs.Queue(stack, "Orders")
    payload = {"schema": {"$ref": "t1"}, "more": [{"$ref": {"$ref": queue.queue_arn}}]}
    scheduler(stack).add_job("report", schedule="every 5m", target="report", payload=payload)
    content, values = document(synthesized(stack))
    told = with_values(content, values)["jobs"]["report"]["payload"]
    assert told == {"schema": {"$ref": "t1"}, "more": [{"$ref": {"$ref": values["t1"]}}]}


def test_without_jobs_the_resource_is_there_to_let_the_last_ones_go(stack: cdk.Stack) -> None:
    scheduler(stack, "from carillon.tasks import task")
    assert document(synthesized(stack))[0] == {"jobs": {}, "calendars": {}}


@pytest.mark.parametrize(("stage", "go"), [("production", "false"), ("dev", "true")])
def test_its_removal_prunes_only_where_tables_go_too(stack: cdk.Stack, stage: str, go: str) -> None:
    scheduler(stack, stage=stage)
    assert resource(synthesized(stack))["TablesGo"] == go


def test_a_manifest_is_added_whole(stack: cdk.Stack, tmp_path: Path) -> None:
    write(tmp_path, **{"jobs.yaml": MANIFEST.format("every 5m")})
    scheduler(stack).add_manifest(str(tmp_path / "jobs.yaml"))
    content, _ = document(synthesized(stack))
    assert content["jobs"].keys() == {"a", "nightly"}
    assert content["calendars"].keys() == {"h"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('"99 * * * *"', "jobs.py, line 4: job 'f': schedule: "),
        ('"every 5m", timezone="Mars"', "jobs.py, line 4: job 'f': timezone: "),
        ('"every 5m", retries=3', "jobs.py, line 4: job 'f': retries: "),
        ('"every 5m", target={}', "line 4: TaskRegistrationError: the job 'f' calls its own task"),
        ('"every 5m", name="a/b"', "line 4: TaskRegistrationError: 'a/b' is no name for a task"),
    ],
)
def test_a_wrong_decorator_fails_synthesis_with_its_line(
    tmp_path: Path, source: str, said: str
) -> None:
    text = f"from carillon.tasks import job\n\n\n@job(schedule={source})\ndef f(p, c): ...\n"
    with pytest.raises(ConfigurationError) as raised:
        declared(tmp_path, text)
    assert said in str(raised.value)


def test_a_wrong_job_of_a_manifest_fails_synthesis_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, **{"jobs.yaml": MANIFEST.format("often")})
    with pytest.raises(ConfigurationError, match=r"jobs\.yaml, line 3.*job 'a': schedule"):
        declared(tmp_path).add_manifest(tmp_path / "jobs.yaml")


def test_an_unknown_task_fails_synthesis(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no task 'reprot'; there are: nightly, report"):
        declared(tmp_path).add("a", {"schedule": "every 5m", "target": "reprot"}, "here")


def test_a_name_twice_fails_synthesis_with_both_places(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"here: .*'Nightly'.*jobs\.py, line 7"):
        declared(tmp_path).add("Nightly", {"schedule": "every 5m", "target": "report"}, "here")


def test_jobs_need_a_team(stack: cdk.Stack) -> None:
    with pytest.raises(ConfigurationError, match=r"team: must be set: jobs\.py, line 7"):
        scheduler(stack, team="")


def test_a_job_of_an_app_without_a_team_is_refused(stack: cdk.Stack) -> None:
    made = scheduler(stack, "from carillon.tasks import task", team="")
    with pytest.raises(ConfigurationError, match="team"):
        made.add_job("a", schedule="every 5m", target="report")


@pytest.mark.parametrize("team", ["Billing", "a/b", "-a", 64 * "a"])
def test_a_wrong_team_is_refused(team: str) -> None:
    with pytest.raises(ConfigurationError, match="team"):
        team_name(team)


def test_events_of_the_jobs_go_to_whom_they_are_sent(stack: cdk.Stack) -> None:
    """Also of jobs that are declared after that, beside the events that they ask for."""
    made = scheduler(stack, event_bus=True)
    made.on("run.dead", sns.Topic(stack, "OnCall"))
    made.add_job("a", schedule="every 5m", target="report", events=["run.succeeded"])
    template = synthesized(stack)
    jobs = document(template)[0]["jobs"]
    assert jobs["nightly"]["events"] == ["run.dead"]
    assert jobs["a"]["events"] == ["run.succeeded", "run.dead"]
    (rule,) = [
        each for each in template.properties("Events::Rule").values() if "EventPattern" in each
    ]
    assert rule["EventPattern"] == {"source": ["carillon"], "detail-type": ["run.dead"]}
    (topic,) = ids(template, "SNS::Topic")
    assert deployed(rule["Targets"][0]["Arn"]) == topic
    assert deployed(rule["EventBusName"]) in template.resources("Events::EventBus")


def test_a_role_may_manage_its_team_as_far_as_was_granted(stack: cdk.Stack) -> None:
    made = scheduler(stack)
    assumed_by = iam.AccountRootPrincipal()
    names = ("See", "Do", "Run")
    viewer, editor, admin = (iam.Role(stack, name, assumed_by=assumed_by) for name in names)
    made.grant_manage(viewer, role="viewer")
    made.grant_manage(editor)
    made.grant_manage(admin, role="admin")
    template = synthesized(stack)
    (api,) = template.resources("ApiGatewayV2::Api")
    routes = template.properties("ApiGatewayV2::Route").values()
    signed = [each["RouteKey"] for each in routes if each["AuthorizationType"] == "AWS_IAM"]
    assert sorted(signed) == ["ANY /aws-admin/{team}/{proxy+}", "ANY /aws/{team}/{proxy+}"]
    every = ("GET", "POST", "PUT", "PATCH", "DELETE")
    methods = {
        "See": [("GET", "aws")],
        "Do": [(each, "aws") for each in every],
        "Run": [(each, root) for root in ("aws", "aws-admin") for each in every],
    }
    for policy in template.properties("IAM::Policy").values():
        (role,) = map(referred, policy["Roles"]) if len(policy["Roles"]) == 1 else ("",)
        if role[:-8] in methods:
            (statement,) = policy["PolicyDocument"]["Statement"]
            begin = f"arn:aws:execute-api:{REGION}:{ACCOUNT}:{api}/$default"
            expected = [
                f"{begin}/{method}/{root}/billing/*" for method, root in methods.pop(role[:-8])
            ]
            assert list(map(deployed, listed(statement["Resource"]))) == expected
    assert methods == {}


def test_what_cannot_be_is_refused_by_name(stack: cdk.Stack) -> None:
    made = scheduler(stack)
    with pytest.raises(ConfigurationError, match="event_bus"):
        made.on("run.dead", sns.Topic(stack, "OnCall"))
    with pytest.raises(ConfigurationError, match="role: 'owner' is none"):
        made.grant_manage(iam.Role(stack, "R", assumed_by=iam.AccountRootPrincipal()), role="owner")
    with pytest.raises(ConfigurationError, match=r"'run.lost' is no event.*run\.dead"):
        event_name("run.lost")


def test_metrics_are_the_deployment_s_own(stack: cdk.Stack) -> None:
    made = scheduler(stack)
    metrics = [made.metric_lag(), made.metric_runs_dead(), made.metric_runs_missed()]
    told = [(each.namespace, each.metric_name, each.statistic) for each in metrics]
    name = "Billing-Scheduler-C16716F1"
    assert told == [(name, "RunLag", "p99"), (name, "RunsDead", "Sum"), (name, "RunsMissed", "Sum")]
