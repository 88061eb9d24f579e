"""SQS queues: the payload is the message's body, the run's facts are message attributes."""

from typing import Any

from carillon.clock import Clock
from carillon.domain.targets import SqsTarget
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Call, Outcome, Success
from carillon.executor.targets.recent import Recent
from carillon.executor.targets.run_facts import message_attributes, order
from carillon.settings import Settings

MOST_URLS = 1000
"""Of queues that were sent to lately, so that each message does not ask for its queue's."""


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("sqs", QueueSender().send)


class QueueSender:
    """Sends to queues by their ARNs; each one's URL is asked for once in a while."""

    def __init__(self) -> None:
        self._urls: Recent[str, str] = Recent(MOST_URLS)

    def send(self, client: Any, target: SqsTarget, call: Call) -> Outcome:
        answer = client.send_message(
            QueueUrl=self._url(client, target.queue_arn),
            MessageBody=call.payload,
            MessageAttributes=message_attributes(call),
            **order(target.queue_arn, target.message_group_id, call),
        )
        return Success(f"message {answer['MessageId']}")

    def _url(self, client: Any, arn: str) -> str:
        known = self._urls.get(arn)
        if known is not None:
            return known
        account, name = arn.split(":")[4:6]
        answer = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        return self._urls.keep(arn, str(answer["QueueUrl"]))
