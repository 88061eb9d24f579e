"""Alarms: what an operator must hear of. They notify nobody until an action is attached."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.lanes import Lane, Lanes

OLDEST_MESSAGE_SECONDS = 1200
"""A healthy lane holds messages that wait out SQS's longest delay (900 s); five minutes more."""

_MISSING = cloudwatch.TreatMissingData


class Observability(Construct):
    """Ten alarms are free of charge; there are eight."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        tick: lambda_.Function,
        failed_ticks: sqs.Queue,
        lanes: Lanes,
    ) -> None:
        super().__init__(scope, construct_id)
        self._alarm(
            "TicksMissing",
            tick.metric_invocations(period=Duration.minutes(1), statistic="Sum"),
            "No tick for five minutes: what is due waits until the clock goes again",
            threshold=1,
            minutes=5,
            below=True,
        )
        self._alarm(
            "TickErrors",
            tick.metric_errors(period=Duration.minutes(1), statistic="Sum"),
            "Ticks fail: what is due is late until one succeeds",
            threshold=1,
            minutes=3,
        )
        self._depth_alarm("FailedTicks", failed_ticks, "Ticks were not delivered, or died", 1)
        self._depth_alarm(
            "DeadLetters",
            lanes.dead_letter_queue,
            "Messages on which executors died are not being recorded",
            5,
        )
        for lane in lanes.by_name.values():
            self._lane_alarm(lane)

    def _lane_alarm(self, lane: Lane) -> None:
        self._alarm(
            f"{lane.name.capitalize()}OldestMessage",
            lane.queue.metric_approximate_age_of_oldest_message(
                period=Duration.minutes(1), statistic="Maximum"
            ),
            f"The {lane.name} lane is behind: raise its maximum concurrency",
            threshold=OLDEST_MESSAGE_SECONDS,
            minutes=5,
        )

    def _depth_alarm(
        self, construct_id: str, queue: sqs.Queue, description: str, minutes: int
    ) -> None:
        metric = queue.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum"
        )
        self._alarm(construct_id, metric, description, threshold=1, minutes=minutes)

    def _alarm(
        self,
        construct_id: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        threshold: int,
        minutes: int,
        below: bool = False,
    ) -> None:
        """An alarm that `minutes` successive minutes at the threshold (or `below` it) raise."""
        operators = cloudwatch.ComparisonOperator
        cloudwatch.Alarm(
            self,
            construct_id,
            metric=metric,
            alarm_description=description,
            threshold=threshold,
            evaluation_periods=minutes,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD
                if below
                else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            # A clock that stopped reports nothing at all; an idle queue, too, reports nothing.
            treat_missing_data=_MISSING.BREACHING if below else _MISSING.NOT_BREACHING,
        )
