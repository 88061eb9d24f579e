"""SQS queues: the payload is the message's body, the run's facts are message attributes."""

from threading import Lock
from typing import Any

from functions.executor.targets.aws import AwsCaller
from functions.executor.targets.call import Call, Outcome, Success
from functions.executor.targets.run_facts import message_attributes, order
from shared.clock import Clock
from shared.domain.targets import SqsTarget
from shared.settings import Settings


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("sqs", QueueSender().send)


class QueueSender:
    """Sends to queues by their ARNs; each one's URL is asked for once."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._lock = Lock()

    def send(self, client: Any, target: SqsTarget, call: Call) -> Outcome:
        answer = client.send_message(
            QueueUrl=self._url(client, target.queue_arn),
            MessageBody=call.payload,
            MessageAttributes=message_attributes(call),
            **order(target.queue_arn, target.message_group_id, call),
        )
        return Success(f"message {answer['MessageId']}")

    def _url(self, client: Any, arn: str) -> str:
        with self._lock:
            known = self._urls.get(arn)
        if known is not None:
            return known
        account, name = arn.split(":")[4:6]
        answer = client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
        url = str(answer["QueueUrl"])
        with self._lock:
            self._urls[arn] = url
        return url
