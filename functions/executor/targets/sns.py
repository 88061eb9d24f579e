"""SNS topics: the payload is the message, the run's facts are message attributes."""

from typing import Any

from functions.executor.targets.aws import AwsCaller
from functions.executor.targets.call import Call, Outcome, Success
from functions.executor.targets.run_facts import message_attributes, order
from shared.clock import Clock
from shared.domain.targets import SnsTarget
from shared.settings import Settings


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
