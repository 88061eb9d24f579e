"""The clock: a minutely EventBridge rule on the tick."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options

MAX_EVENT_AGE_SECONDS = 60
"""A minute later comes the next tick, which works off whatever this one left."""


class Clock(Construct):
    """The rule with one target per tick worker."""

    def __init__(
        self, scope: Construct, construct_id: str, options: Options, tick: lambda_.Alias
    ) -> None:
        super().__init__(scope, construct_id)
        # A failed tick is neither repeated nor kept: the next one knows from the watermark what is
        # missing, and nobody could do anything with it.
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
        for worker in range(options.tick_workers):
            self.rule.add_target(self._target(tick, worker))

    def _target(self, tick: lambda_.Alias, worker: int) -> targets.LambdaFunction:
        return targets.LambdaFunction(
            tick,
            event=events.RuleTargetInput.from_object({"worker": worker}),
            retry_attempts=1,
            max_event_age=Duration.seconds(MAX_EVENT_AGE_SECONDS),
        )
