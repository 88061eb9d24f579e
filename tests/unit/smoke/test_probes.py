"""The API takes every probe's job as it is."""

import json
from dataclasses import replace
from itertools import chain

import pytest

from carillon.smoke.probes import (
    Probe,
    job_of,
    long_probes,
    quick_probes,
    target_probes,
    untried_types,
    webhook_probe,
)
from tests.unit.api.conftest import NOW, SETTINGS, new_world
from tests.unit.api.gateway import Client

ARNS = (
    "arn:aws:sqs:eu-west-1:123456789012:queue",
    "arn:aws:lambda:eu-west-1:123456789012:function:f",
    "arn:aws:events:eu-west-1:123456789012:event-bus/b",
    "arn:aws:states:eu-west-1:123456789012:stateMachine:m",
    "arn:aws:sns:eu-west-1:123456789012:topic",
)
AT = "eu-west-1:123456789012"
TASK = {
    "type": "ecs",
    "task_definition_arn": f"arn:aws:ecs:{AT}:task-definition/t:1",
    "subnets": ["subnet-0a1b2c3d"],
    "container": "main",
}
JOB = {
    "type": "batch",
    "job_definition_arn": f"arn:aws:batch:{AT}:job-definition/j:1",
    "job_queue_arn": f"arn:aws:batch:{AT}:job-queue/q",
}
IN_JSON = (json.dumps(TASK), json.dumps(JOB))
CONTAINERS = tuple(f"arn:aws:{each}:{AT}:*" for each in ("ecs", "batch"))
HERE = replace(SETTINGS, target_arns=(*ARNS, *CONTAINERS), longest_delay_seconds=60)
PROBES = tuple(
    chain(
        quick_probes(),
        long_probes(NOW, HERE),
        target_probes((*ARNS, *IN_JSON)),
        (webhook_probe("https://example.com/hook", "POST"),),
        (replace(webhook_probe("https://example.com/openapi.json", "GET"), name="GET"),),
    )
)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_the_api_creates_it(probe: Probe) -> None:
    client = Client(new_world().api(settings=HERE))
    body = job_of(probe, NOW, "smoke-20261201T120000")
    answer = client.post("/jobs", body, key=f"smoke-20261201T120000-{probe.name}")
    assert answer.status == 201, answer.json


def test_names_tell_them_apart() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)


def test_a_retry_by_the_wheel_needs_a_short_delay() -> None:
    names = [probe.name for probe in long_probes(NOW, SETTINGS)]
    assert "retry by the wheel" not in names
    assert "retry by the wheel" in [probe.name for probe in long_probes(NOW, HERE)]


def test_what_is_not_called_is_said() -> None:
    assert untried_types(HERE, ARNS[:2]) == [
        "batch",
        "ecs",
        "events",
        "sns",
        "states",
    ]
    assert untried_types(HERE, (*ARNS[:4], *IN_JSON)) == ["sns"]
    assert untried_types(SETTINGS, ()) == []
