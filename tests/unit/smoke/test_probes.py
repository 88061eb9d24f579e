"""The API takes every probe's job as it is."""

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
HERE = replace(SETTINGS, target_arns=ARNS, longest_delay_seconds=60)
PROBES = tuple(
    chain(
        quick_probes(),
        long_probes(NOW, HERE),
        target_probes(ARNS),
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
    assert untried_types(HERE, ARNS[:2]) == ["events", "sns", "states"]
    assert untried_types(SETTINGS, ()) == []
