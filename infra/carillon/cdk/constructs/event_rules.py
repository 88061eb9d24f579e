"""Rules of EventBridge: the clock, and those on the bus of lifecycle events."""

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.domain.events import JOB_EVENTS, SOURCE
from carillon.errors import ConfigurationError

MAX_EVENT_AGE_SECONDS = 60
"""A minute later comes the next tick, which works off whatever this one left."""


class Clock(Construct):
    """The rule whose one target is the root of each minute's ticks."""

    def __init__(self, scope: Construct, construct_id: str, tick: lambda_.Alias) -> None:
        super().__init__(scope, construct_id)
        # A failed tick is neither repeated nor kept: the next one knows from the watermark what is
        # missing, and nobody could do anything with it. That is true of shares, too, which the root
        # invokes by this alias.
        tick.configure_async_invoke(
            retry_attempts=0,
            max_event_age=Duration.seconds(MAX_EVENT_AGE_SECONDS),
        )
        self.rule = events.Rule(
            self,
            "EveryMinute",
            description="Ticks of Carillon",
            schedule=events.Schedule.expression("cron(* * * * ? *)"),
        )
        reason = (
            "the next tick makes up for one that failed; alarms tell of failed and missing ones"
        )
        acknowledge(tick, "Serverless-LambdaAsyncFailureDestination", reason)
        acknowledge(self.rule, "Serverless-EventBusDLQ", reason)
        self.rule.add_target(
            targets.LambdaFunction(
                tick,
                event=events.RuleTargetInput.from_object({}),
                retry_attempts=1,
                max_event_age=Duration.seconds(MAX_EVENT_AGE_SECONDS),
            )
        )


def event_name(name: str) -> str:
    """The name, if it is of an event that jobs can ask for; raises ConfigurationError."""
    known = [each.value for each in JOB_EVENTS]
    if name not in known:
        message = f"{name!r} is no event of jobs: expected one of {', '.join(known)}"
        raise ConfigurationError("events", message)
    return name


def add_rule(
    scope: Construct, construct_id: str, bus: events.EventBus, event: str, to: Any
) -> None:
    """Send events of that name to a topic, queue, function, or other target of rules."""
    pattern = events.EventPattern(source=[SOURCE], detail_type=[event])
    rule = events.Rule(
        scope,
        construct_id,
        event_bus=bus,
        event_pattern=pattern,
        targets=[_target(to)],
        description=f"Tells of {event}",
    )
    reason = "EventBridge repeats for a day; the history of runs has what an event tells"
    acknowledge(rule, "Serverless-EventBusDLQ", reason)


def _target(to: Any) -> events.IRuleTarget:
    known = {
        "topic_arn": targets.SnsTopic,
        "queue_arn": targets.SqsQueue,
        "function_arn": targets.LambdaFunction,
    }
    made = next((make for name, make in known.items() if hasattr(to, name)), None)
    target: events.IRuleTarget = to if made is None else made(to)
    return target
