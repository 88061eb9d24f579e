"""The clock: a minutely EventBridge rule on the tick."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.acknowledgments import acknowledge
from infra.options import Options

MAX_EVENT_AGE_SECONDS = 60
"""A minute later comes the next tick, which works off whatever this one left."""

DEAD_LETTER_RETENTION_DAYS = 14


class Clock(Construct):
    """The rule with one target per tick worker, and the queue of the ticks that failed."""

    def __init__(
        self, scope: Construct, construct_id: str, options: Options, tick: lambda_.Alias
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letter_queue = self._dead_letter_queue()
        # A failed tick is not repeated: the next one knows from the watermark what is missing.
        tick.configure_async_invoke(
            retry_attempts=0,
            max_event_age=Duration.seconds(MAX_EVENT_AGE_SECONDS),
            on_failure=destinations.SqsDestination(self.dead_letter_queue),
        )
        self.rule = events.Rule(
            self,
            "EveryMinute",
            description="Ticks of Carillon",
            schedule=events.Schedule.expression("cron(* * * * ? *)"),
        )
        for worker in range(options.tick_workers):
            self.rule.add_target(self._target(tick, worker))

    def _target(self, tick: lambda_.Alias, worker: int) -> targets.LambdaFunction:
        return targets.LambdaFunction(
            tick,
            event=events.RuleTargetInput.from_object({"worker": worker}),
            retry_attempts=1,
            max_event_age=Duration.seconds(MAX_EVENT_AGE_SECONDS),
            dead_letter_queue=self.dead_letter_queue,
        )

    def _dead_letter_queue(self) -> sqs.Queue:
        queue = sqs.Queue(
            self,
            "FailedTicks",
            retention_period=Duration.days(DEAD_LETTER_RETENTION_DAYS),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(queue, "AwsSolutions-SQS3", "it is the dead-letter queue of the tick itself")
        return queue
