"""The specifications of targets: what is taken, what is refused and with which words."""

from typing import Any

import pytest
from pydantic import ValidationError

from carillon.domain.spec.arns import region_of
from carillon.domain.targets import WebhookTarget, target_adapter

ACCOUNT = "123456789012"
HOOK = {"type": "webhook", "url": "https://example.com/hook"}
SQS = {"type": "sqs", "queue_arn": f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders.fifo"}
SNS = {"type": "sns", "topic_arn": f"arn:aws:sns:eu-west-1:{ACCOUNT}:orders"}
BUS = {
    "type": "eventbridge",
    "bus_arn": f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/default",
    "source": "shop",
    "detail_type": "PreparedCall",
}


def refusal(members: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        target_adapter.validate_python(members)
    return "; ".join(f"{error['loc']}: {error['msg']}" for error in caught.value.errors())


@pytest.mark.parametrize(
    ("members", "arn"),
    [
        ({"type": "task", "name": "close"}, None),
        (HOOK, None),
        ({**HOOK, "signing_secret": {"parameter": "key"}}, None),
        (
            {
                **HOOK,
                "method": "PUT",
                "headers": {"A": "b", "C": {"secret": "d"}, "E": {"parameter": "f.g-h_i"}},
                "signing_secret": {"secret": "key"},
            },
            None,
        ),
        ({**SQS, "message_group_id": "shop"}, SQS["queue_arn"]),
        ({**SNS, "subject": "An order"}, SNS["topic_arn"]),
        (BUS, BUS["bus_arn"]),
        *(
            ({"type": "lambda", "function_arn": arn}, arn)
            for arn in (
                f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:name",
                f"arn:aws-cn:lambda:cn-north-1:{ACCOUNT}:function:name:live",
                f"arn:aws-us-gov:lambda:us-gov-west-1:{ACCOUNT}:function:name:$LATEST",
                f"arn:aws-iso-b:lambda:us-isob-east-1:{ACCOUNT}:function:name:12",
                "arn:aws:lambda:us-east-1:000000000000:function:a_b-c",
                f"arn:aws:lambda:eu-{'w' * 20}-1:{ACCOUNT}:function:name",
            )
        ),
        *(
            ({"type": "stepfunctions", "state_machine_arn": arn}, arn)
            for arn in (
                f"arn:aws:states:ap-southeast-2:{ACCOUNT}:stateMachine:Close",
                f"arn:aws:states:ap-southeast-2:{ACCOUNT}:stateMachine:Close:live",
            )
        ),
    ],
)
def test_targets_are_read_and_written(members: dict[str, Any], arn: str | None) -> None:
    target = target_adapter.validate_python(members)
    assert target.resource_arn == arn
    assert target_adapter.validate_json(target_adapter.dump_json(target)) == target
    assert members.items() <= target.model_dump().items()


def test_the_row_of_an_older_webhook_is_still_read() -> None:
    target = target_adapter.validate_json('{"type":"webhook","url":"https://example.com/hook"}')
    assert target == WebhookTarget(url="https://example.com/hook", method="POST", headers={})


@pytest.mark.parametrize(
    ("target_type", "member", "arn", "told"),
    [
        ("lambda", "function_arn", "name", "a Lambda function"),
        ("lambda", "function_arn", SQS["queue_arn"], "a Lambda function"),
        ("lambda", "function_arn", f"arn:aws:lambda:*:{ACCOUNT}:function:x", "such as arn:aws:"),
        ("lambda", "function_arn", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:*", "Lambda"),
        ("lambda", "function_arn", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:layer:x", "Lambda"),
        ("lambda", "function_arn", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:x\n", "Lambda"),
        ("lambda", "function_arn", f"arn:aws:lambda:eu-west-1:{ACCOUNT[:-1]}:function:x", "Lam"),
        ("lambda", "function_arn", f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:x:y:z", "Lambda"),
        ("sqs", "queue_arn", "https://sqs.eu-west-1.amazonaws.com/1/q", "an SQS queue"),
        ("sqs", "queue_arn", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:a.b", "an SQS queue"),
        ("sqs", "queue_arn", f"arn:aws:sqs:eu-{'w' * 21}-1:{ACCOUNT}:q", "an SQS queue"),
        ("sns", "topic_arn", f"arn:aws:sns:eu-west-1:{ACCOUNT}:a:b", "an SNS topic"),
        (
            "stepfunctions",
            "state_machine_arn",
            f"arn:aws:states:eu-west-1:{ACCOUNT}:execution:x:y",
            "a Step",
        ),
    ],
)
def test_other_arns_are_refused_with_an_example(
    target_type: str, member: str, arn: str, told: str
) -> None:
    said = refusal({"type": target_type, member: arn})
    assert member in said
    assert told in said


def test_a_bus_has_its_own_form_and_sources() -> None:
    assert "an EventBridge bus" in refusal({**BUS, "bus_arn": "default"})
    assert "must not begin with 'aws.'" in refusal({**BUS, "source": "AWS.ec2"})
    assert "detail_type" in refusal({**BUS, "detail_type": ""})


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Content-Type",
        "TRANSFER-ENCODING",
        "Connection",
        "webhook-id",
        "Webhook-Signature",
        "Idempotency-Key",
        "Carillon-Job-Id",
        "carillon-anything",
        "Proxy-Authorization",
        "User-Agent",
        "Traceparent",
        "tracestate",
    ],
)
def test_a_header_that_is_not_the_owners_is_refused(name: str) -> None:
    assert f"must not set {name!r}" in refusal({**HOOK, "headers": {name: "x"}})


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ü", "x" * 129])
def test_what_is_no_name_of_a_header_is_refused(name: str) -> None:
    assert "no name of a header" in refusal({**HOOK, "headers": {name: "x"}})


@pytest.mark.parametrize("value", ["a\r\nHost: b", "a\nb", " a", "a ", "ü", "\x00", "x" * 1025])
def test_a_header_cannot_carry_another_line(value: str) -> None:
    assert "must be printable ASCII" in refusal({**HOOK, "headers": {"A": value}})


@pytest.mark.parametrize("value", [5, None, {}, {"secrets": "x"}, ["x"]])
def test_a_header_is_text_or_a_reference(value: Any) -> None:
    said = refusal({**HOOK, "headers": {"A": value}})
    assert 'must be text, {"secret": name} or {"parameter": name}' in said


@pytest.mark.parametrize(
    "name", ["", "../other/token", "a/b", "arn:aws:x", "name:3", "a b", "ü", "x" * 129, "a\n"]
)
def test_a_reference_names_nothing_but_the_owners_secrets(name: str) -> None:
    assert "secret" in refusal({**HOOK, "headers": {"A": {"secret": name}}})
    assert "parameter" in refusal({**HOOK, "headers": {"A": {"parameter": name}}})
    assert "signing_secret" in refusal({**HOOK, "signing_secret": {"secret": name}})
    assert "signing_secret" in refusal({**HOOK, "signing_secret": {"parameter": name}})


@pytest.mark.parametrize("value", ["whsec_c2VjcmV0", 5, {}, {"key": "x"}])
def test_a_signing_secret_is_a_reference(value: Any) -> None:
    said = refusal({**HOOK, "signing_secret": value})
    assert 'must be {"secret": name} or {"parameter": name}' in said


def test_a_reference_has_one_member() -> None:
    both = {"secret": "a", "parameter": "b"}
    assert "not permitted" in refusal({**HOOK, "headers": {"A": both}})


def test_headers_are_few_and_named_once() -> None:
    assert "twice" in refusal({**HOOK, "headers": {"X-A": "1", "x-a": "2"}})
    many = {f"X-{number}": "1" for number in range(21)}
    assert "at most 20" in refusal({**HOOK, "headers": many})


def test_unknown_methods_and_members_are_refused() -> None:
    assert "method" in refusal({**HOOK, "method": "TRACE"})
    assert "not permitted" in refusal({**SQS, "delay_seconds": 5})
    assert "invocation" in refusal(
        {
            "type": "lambda",
            "function_arn": f"arn:aws:lambda:eu-west-1:{ACCOUNT}:function:x",
            "invocation": "dry-run",
        }
    )


@pytest.mark.parametrize("subject", ["", "two\nlines", " x", "ü", "x" * 101])
def test_a_subject_is_what_sns_takes(subject: str) -> None:
    assert "at most 100 characters" in refusal({**SNS, "subject": subject})


def test_the_region_is_the_arns() -> None:
    assert region_of(BUS["bus_arn"]) == "eu-west-1"
