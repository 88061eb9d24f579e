"""GET /deployment."""

from dataclasses import replace

import pytest

from tests.unit.api.conftest import World
from tests.unit.api.gateway import OWNER, Client


@pytest.mark.parametrize("groups", [[], ["operators"]])
def test_a_deployment_says_what_it_offers_and_whom_it_serves(
    world: World, groups: list[str]
) -> None:
    world.settings = replace(
        world.settings,
        task_names=("b", "a"),
        target_arns=("arn:aws:sqs:*:*:jobs-*",),
        event_bus="bus",
        owner_concurrent_runs=7,
    )
    answer = Client(world.api(), groups=groups).get("/deployment")

    assert answer.status == 200, answer.text
    said = answer.json
    assert said["tasks"] == ["a", "b"]
    assert said["lanes"] == ["high", "normal", "low"]
    assert said["target_patterns"] == ["arn:aws:sqs:*:*:jobs-*"]
    assert said["features"] == {"events": True, "private_webhooks": True, "personal_jobs": True}
    assert (said["limits"]["owner_concurrent_runs"], said["limits"]["result_bytes"]) == (7, 512)
    caller = said["caller"]
    assert (caller["owner"], caller["is_operator"]) == (OWNER, bool(groups))
