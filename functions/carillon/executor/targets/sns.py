"""SNS topics: the payload is the message, the run's facts are message attributes."""

from typing import Any

from carillon.clock import Clock
from carillon.domain.targets import SnsTarget
from carillon.executor.targets.aws_client import AwsCaller
from carillon.executor.targets.call import Call, Outcome, Success
from carillon.executor.targets.run_facts import message_attributes, order
from carillon.settings import Settings


def create_caller(settings: Settings, clock: Clock) -> AwsCaller:
    return AwsCaller("sns", send)


def send(client: Any, target: SnsTarget, call: Call) -> Outcome:
    subject = {} if target.subject is None else {"Subject": target.subject}
    answer = client.publish(
        TopicArn=target.topic_arn,
        Message=call.payload,
        MessageAttributes=message_attributes(call),
        **subject,
        **order(target.topic_arn, target.message_group_id, call),
    )
    return Success(f"message {answer['MessageId']}")
