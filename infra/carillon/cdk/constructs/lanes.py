"""The lanes: a queue for each, and one dead-letter queue behind all of them."""

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from carillon.cdk.constructs.helpers import acknowledge
from carillon.cdk.options import Options
from carillon.domain.job import Lane

QUEUE_RETENTION_DAYS = 10
DEAD_LETTER_RETENTION_DAYS = 14
"""SQS's longest. It counts from the first sending, so a message that spent the queue's whole
retention there still has four days in the dead-letter queue."""

MAX_RECEIVE_COUNT = 20
"""Receptions that find no free executor count, too; crashes are bounded by a run's attempts."""
VISIBILITY_FACTOR = 6
"""Visibility timeout over the function's timeout, as Lambda asks of an event source."""


class Lanes(Construct):
    """All lanes' queues. A message names its lane, so one dead-letter queue serves them all: each
    queue more would be polled all month (docs/cost.md). Those of production outlive the stack, with
    the messages in them."""

    def __init__(self, scope: Construct, construct_id: str, options: Options) -> None:
        super().__init__(scope, construct_id)
        self._removal_policy = options.data_policy
        self._visibility_timeout = Duration.seconds(
            VISIBILITY_FACTOR * options.executor_timeout_seconds
        )
        self.dead_letter_queue = self._queue("DeadLetters", DEAD_LETTER_RETENTION_DAYS, None)
        reason = "it is the dead-letter queue of the others"
        acknowledge(self.dead_letter_queue, "Serverless-SQSRedrivePolicy", reason)
        redrive = sqs.DeadLetterQueue(
            queue=self.dead_letter_queue, max_receive_count=MAX_RECEIVE_COUNT
        )
        self.queues: Mapping[Lane, sqs.Queue] = {
            lane: self._queue(lane.capitalize(), QUEUE_RETENTION_DAYS, redrive) for lane in Lane
        }

    def _queue(
        self, construct_id: str, retention_days: int, redrive: sqs.DeadLetterQueue | None
    ) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            # Also of the dead-letter queue: its consumer has the executor's timeout.
            visibility_timeout=self._visibility_timeout,
            retention_period=Duration.days(retention_days),
            dead_letter_queue=redrive,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            removal_policy=self._removal_policy,
        )
