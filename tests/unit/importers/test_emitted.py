"""What importers emit, whatever they are given: JobSpec takes it, and the reader reads it equal."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carillon import tasks
from carillon.importers.celery import CelerySchedule, celery_entries
from carillon.importers.crontab import CrontabOptions, crontab_entries
from carillon.importers.document import report_text
from carillon.importers.entries import Entry, Stub
from carillon.importers.eventbridge.schedules import entry_of
from carillon.importers.importing import Imported
from carillon.importers.kubernetes import KubernetesOptions, kubernetes_entries
from carillon.importers.stubs import Stubs, skeleton
from carillon.manifest.manifest import Manifest
from carillon.simulation.workload import Workload
from tests.unit.importers.kit import made_of, read_back

TEXT = st.text(max_size=12)
ODD = st.one_of(
    TEXT, st.none(), st.booleans(), st.integers(), st.floats(), st.just({}), st.just([])
)
JSON = st.recursive(ODD, lambda inner: st.dictionaries(TEXT, inner, max_size=3), max_leaves=5)
ZONES = st.sampled_from(["UTC", "Europe/Riga", "America/New_York", "Mars/Olympus", ""])
CRON = st.sampled_from(
    ["0 3 * * *", "*/7 1-5 1,15 * 5", "@daily", "@reboot", "0 0 */3 * mon", "0 0 30 2 *", "x"]
)
DATES = st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)).map(
    lambda found: found.replace(tzinfo=UTC)
)


def sometimes(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


def assert_taken(entries: Sequence[Entry]) -> Imported:
    found = made_of(entries)

    assert len(found.lines) == len(entries)
    assert all(line.entry.notes for line in found.lines if line.job is None)
    manifest = read_back(found) if found.jobs else Manifest()
    assert manifest.jobs == found.jobs
    if found.jobs:
        assert len(Workload.of(manifest).definitions) == len(found.jobs)
    report_text(found)
    exec(compile(skeleton([]), "tasks", "exec"), {})
    compile(skeleton(found.stubs), "tasks", "exec")
    return found


OVERRIDE = sometimes(
    name=TEXT,
    command=st.lists(TEXT),
    environment=st.lists(st.fixed_dictionaries({"name": TEXT, "value": TEXT}), max_size=2),
    cpu=st.just(5),
)
TASKS = sometimes(
    TaskDefinitionArn=st.just("arn:aws:ecs:us-east-1:123456789012:task-definition/t"),
    TaskCount=st.integers(1, 2),
    LaunchType=st.sampled_from(["FARGATE", "EC2"]),
    CapacityProviderStrategy=st.lists(
        st.fixed_dictionaries({"capacityProvider": TEXT}), max_size=2
    ),
    NetworkConfiguration=st.just({"awsvpcConfiguration": {"Subnets": ["subnet-0a1b2c3d"]}}),
    Group=TEXT,
)
SCHEDULES = st.lists(
    st.fixed_dictionaries(
        {
            "Name": st.text("abcAB-_.019", min_size=1, max_size=26),
            "ScheduleExpression": st.sampled_from(
                [
                    "cron(0 10 * * ? *)",
                    "cron(0/30 20-2 ? * 6L *)",
                    "rate(5 minutes)",
                    "rate(1 day)",
                    "at(2030-01-01T00:00:00)",
                    "at(2020-01-01T00:00:00)",
                    "cron(0 0 31 2 ? *)",
                    "rate(x)",
                ]
            ),
            "Target": st.fixed_dictionaries(
                {
                    "Arn": st.sampled_from(
                        [
                            "arn:aws:lambda:us-east-1:123456789012:function:f",
                            "arn:aws:sqs:us-east-1:123456789012:q",
                            "arn:aws:events:us-east-1:123456789012:event-bus/b",
                            "arn:aws:states:us-east-1:123456789012:stateMachine:m",
                            "arn:aws:ecs:us-east-1:123456789012:cluster/c",
                            "arn:aws:scheduler:::aws-sdk:a:b",
                            "x",
                        ]
                    )
                },
                optional={
                    "Input": TEXT
                    | st.just('{"a": "<aws.scheduler.scheduled-time> {{"}')
                    | st.builds(
                        json.dumps,
                        st.fixed_dictionaries({"containerOverrides": st.lists(OVERRIDE | JSON)}),
                    ),
                    "RoleArn": TEXT,
                    "SqsParameters": sometimes(MessageGroupId=TEXT),
                    "EventBridgeParameters": sometimes(Source=TEXT, DetailType=TEXT),
                    "RetryPolicy": sometimes(
                        MaximumRetryAttempts=st.integers(0, 185),
                        MaximumEventAgeInSeconds=st.integers(60, 86_400),
                    ),
                    "EcsParameters": TASKS,
                },
            ),
        },
        optional={
            "GroupName": st.sampled_from(["default", "billing", "B.1"]),
            "ScheduleExpressionTimezone": ZONES,
            "StartDate": DATES,
            "EndDate": DATES,
            "CreationDate": DATES,
            "Description": TEXT,
            "State": st.sampled_from(["ENABLED", "DISABLED"]),
            "ActionAfterCompletion": st.sampled_from(["NONE", "DELETE"]),
            "FlexibleTimeWindow": st.sampled_from(
                [{"Mode": "OFF"}, {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 1440}]
            ),
        },
    ),
    max_size=4,
)


@settings(deadline=None)
@given(SCHEDULES)
def test_of_eventbridge(schedules: list[dict[str, Any]]) -> None:
    assert_taken([entry_of(each) for each in schedules])


LINE = st.one_of(
    TEXT,
    st.builds("# {}".format, TEXT),
    st.builds("{} {}".format, CRON, st.text(max_size=30)),
    st.builds("{}={}".format, st.sampled_from(["CRON_TZ", "TZ", "PATH", "'A'"]), ZONES),
)


@settings(deadline=None)
@given(st.lists(LINE, max_size=8), st.booleans(), st.none() | st.just("https://example.com/run"))
def test_of_a_crontab(lines: list[str], has_user: bool, webhook: str | None) -> None:
    options = CrontabOptions("Asia/Tokyo", has_user, Stubs("p.", webhook))
    assert_taken(list(crontab_entries("\n".join(lines), options)))


CRON_JOB = st.fixed_dictionaries(
    {"kind": st.just("CronJob"), "metadata": sometimes(name=TEXT, namespace=TEXT, labels=JSON)},
    optional={
        "spec": ODD
        | sometimes(
            schedule=CRON | ODD,
            timeZone=ZONES,
            suspend=st.booleans(),
            concurrencyPolicy=st.sampled_from(["Allow", "Forbid", "Replace", "x"]),
            startingDeadlineSeconds=st.integers(),
            jobTemplate=ODD
            | sometimes(
                spec=sometimes(
                    backoffLimit=st.integers(),
                    activeDeadlineSeconds=st.integers(),
                    template=ODD | sometimes(spec=sometimes(containers=JSON)),
                )
            ),
            more=JSON,
        )
    },
)


LIST = st.fixed_dictionaries({"items": st.lists(CRON_JOB | JSON, max_size=3) | JSON})


@settings(deadline=None)
@given(st.lists(CRON_JOB | LIST | JSON, max_size=4))
def test_of_kubernetes(objects: list[Any]) -> None:
    text = "\n---\n".join(json.dumps(each).replace("\x7f", "?") for each in objects)
    assert_taken(list(kubernetes_entries("jobs.yaml", text, KubernetesOptions())))


BEAT = st.dictionaries(
    TEXT,
    sometimes(
        task=TEXT,
        schedule=st.one_of(ODD, st.timedeltas(timedelta(0), timedelta(days=9999))),
        args=st.lists(JSON, max_size=2).map(tuple),
        kwargs=st.dictionaries(TEXT, JSON, max_size=2),
        options=st.dictionaries(TEXT, JSON, max_size=2),
        relative=st.booleans(),
    ),
    max_size=4,
)


@settings(deadline=None)
@given(BEAT, ZONES)
def test_of_celery(beat: dict[str, Any], zone: str) -> None:
    assert_taken(list(celery_entries(CelerySchedule(beat, zone), Stubs())))


def test_the_skeleton_is_a_module_of_tasks() -> None:
    """Each fails until it is written, and shows what it is to do."""
    stubs = [
        Stub("proj.add", "the Celery task proj.add"),
        Stub("proj_add", "line\nbreak"),
        Stub("task", "a"),
        Stub("class", 'echo """ \\'),
        Stub("proj.add", "the Celery task proj.add"),
    ]
    text = skeleton(stubs)
    registry = tasks.TaskRegistry()
    scope: dict[str, Any] = {}
    before, tasks.registered_tasks = tasks.registered_tasks, registry
    try:
        exec(compile(text, "tasks", "exec"), scope)
    finally:
        tasks.registered_tasks = before

    assert registry.names == ("class", "proj.add", "proj_add", "task")
    assert "# was: line\\nbreak\n" in text
    with pytest.raises(tasks.Fail, match="class is not written yet"):
        scope["class_2"](None, None)
