import pytest

from carillon.cdk.target_arns import actions_of, target_pattern
from tests.infra.stacks import TARGETS


@pytest.mark.parametrize(
    "text",
    [
        *TARGETS,
        "arn:aws:lambda:*:*:function:*",
        "arn:aws:lambda:eu-*:12345678901?:function:a?c:$LATEST",
        "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders.fifo",
        "arn:aws-cn:sns:cn-north-1:123456789012:*",
        "arn:aws:events:eu-west-1:123456789012:event-bus/aws.partner/shop/*",
        "arn:aws:states:eu-west-1:123456789012:stateMachine:close:1",
        "arn:aws:ecs:eu-west-1:123456789012:task-definition/report-*",
        "arn:aws:ecs:eu-west-1:123456789012:task-definition/*:*",
        "arn:aws:batch:eu-west-1:123456789012:job-definition/*",
        "arn:aws:batch:eu-west-1:123456789012:job-queue/night*",
    ],
)
def test_patterns_of_what_jobs_can_call(text: str) -> None:
    assert target_pattern(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("*", "is no ARN"),
        ("arn:aws:lambda:*", "is no ARN"),
        ("arn:*:lambda:eu-west-1:123456789012:function:a", "is no ARN"),
        ("arn:aws:*:eu-west-1:123456789012:a", "of service '\\*'"),
        ("arn:aws:s3:::bucket", "of service 's3'"),
        ("arn:aws:sqs::123456789012:orders", "for a region"),
        ("arn:aws:sqs:eu-west-1::orders", "for an account"),
        ("arn:aws:sqs:eu-west-1:1234567890123:orders", "for an account"),
        ("arn:aws:lambda:eu-west-1:123456789012:*", "expected function:NAME"),
        ("arn:aws:lambda:eu-west-1:123456789012:layer:a", "expected function:NAME"),
        ("arn:aws:lambda:eu-west-1:123456789012:function:${aws:username}", "expected function"),
        ("arn:aws:events:eu-west-1:123456789012:rule/a", "expected event-bus/NAME"),
        ("arn:aws:states:eu-west-1:123456789012:execution:a", "expected stateMachine:NAME"),
        ("arn:aws:sns:eu-west-1:123456789012:topic:6a0d", "expected TOPIC"),
        # Without a revision IAM would match nothing.
        ("arn:aws:ecs:eu-west-1:123456789012:task-definition/a", r"expected .*FAMILY:\*"),
        ("arn:aws:ecs:eu-west-1:123456789012:cluster/a", "expected task-definition"),
        ("arn:aws:batch:eu-west-1:123456789012:job-definition/a", "expected job-queue"),
        ("arn:aws:batch:eu-west-1:123456789012:job/a", "expected job-queue"),
    ],
)
def test_an_error_says_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        target_pattern(text)


@pytest.mark.parametrize(
    ("service", "actions"),
    [
        ("batch", ("batch:SubmitJob",)),
        ("ecs", ("ecs:RunTask",)),
        ("events", ("events:PutEvents",)),
        ("lambda", ("lambda:InvokeFunction",)),
        ("sns", ("sns:Publish",)),
        ("sqs", ("sqs:GetQueueUrl", "sqs:SendMessage")),
        ("states", ("states:StartExecution",)),
    ],
)
def test_every_service_gets_what_its_target_calls_and_no_more(
    service: str, actions: tuple[str, ...]
) -> None:
    assert actions_of(service) == actions
