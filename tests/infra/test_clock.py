import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.infra.stacks import SynthesizedStack, referred


def rule(stack: SynthesizedStack) -> Mapping[str, Any]:
    (properties,) = stack.properties("Events::Rule").values()
    return properties


def test_it_goes_every_minute(production: SynthesizedStack) -> None:
    assert rule(production)["ScheduleExpression"] == "cron(* * * * ? *)"
    assert rule(production)["State"] == "ENABLED"


@pytest.mark.parametrize("stack_name", ["production", "unusual"])
def test_its_one_target_is_the_root_however_many_ticks_may_share_a_minute(
    request: pytest.FixtureRequest, stack_name: str
) -> None:
    stack: SynthesizedStack = request.getfixturevalue(stack_name)
    (target,) = rule(stack)["Targets"]
    assert json.loads(target["Input"]) == {}
    assert referred(target["Arn"]) == stack.output("TickFunction")
    assert stack.called(target["Arn"]) == "tick"


def test_a_late_tick_is_dropped_because_the_next_one_makes_up_for_it(
    production: SynthesizedStack,
) -> None:
    (target,) = rule(production)["Targets"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 1}
    (invocation,) = production.properties("Lambda::EventInvokeConfig").values()
    live = production.output("TickFunction")
    assert referred(invocation["FunctionName"]) == production.aliased(live)
    # Of the alias: a version or the bare function would be invoked twice more, for six hours.
    _, split = invocation["Qualifier"]["Fn::Select"]
    assert referred(split["Fn::Split"][1]) == live
    assert invocation["MaximumRetryAttempts"] == 0
    assert invocation["MaximumEventAgeInSeconds"] == 60


def test_a_tick_that_failed_is_kept_nowhere(production: SynthesizedStack) -> None:
    """Nobody would consume it: an alarm on such a queue is red for as long as it keeps messages."""
    (target,) = rule(production)["Targets"]
    (invocation,) = production.properties("Lambda::EventInvokeConfig").values()
    assert "DeadLetterConfig" not in target
    assert "DestinationConfig" not in invocation


def test_the_tick_has_the_timeout_that_was_chosen(
    production: SynthesizedStack, unusual: SynthesizedStack
) -> None:
    assert production.functions()["tick"]["Timeout"] == 58
    assert unusual.functions()["tick"]["Timeout"] == 20
