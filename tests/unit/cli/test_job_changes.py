"""`carillon jobs create` and `change`: policies, targets and labels as options."""

import json
from typing import Any

import pytest

from tests.unit.cli.conftest import FakeApi, Run

JOB: dict[str, Any] = {"job_id": "j1", "revision": 2}
TOPIC = "arn:aws:sns:eu-north-1:123456789012:alarms"


def test_options_go_over_the_file_member_by_member(signed_in: Run, api: FakeApi) -> None:
    api.answer("POST", "/jobs", JOB, status=201)
    body = {
        "retry": {"max_attempts": 2, "backoff": {"base_seconds": 1, "cap_seconds": 9}},
        "tags": {"team": "billing"},
        "rate": {"limit": 1, "per": "1h", "key": "old"},
    }

    result = signed_in(
        "jobs", "create", "--file", "-", "--backoff-cap", "30", "--tag", "team=sales",
        "--tag", "area=eu", "--rate", "5/1m", "--no-template", stdin=json.dumps(body),
    )  # fmt: skip

    assert result.exit_code == 0
    assert api.requests[0].body == {
        "retry": {"max_attempts": 2, "backoff": {"base_seconds": 1, "cap_seconds": 30}},
        "tags": {"team": "sales", "area": "eu"},
        "rate": {"limit": 5, "per": "1m", "key": ""},
        "template": False,
    }


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("samples.echo", {"type": "task", "name": "samples.echo"}),
        ("https://a.test/h", {"type": "webhook", "url": "https://a.test/h"}),
        (
            "arn:aws:lambda:eu-north-1:123456789012:function:f",
            {
                "type": "lambda",
                "function_arn": "arn:aws:lambda:eu-north-1:123456789012:function:f",
            },
        ),
        (
            "arn:aws-cn:sqs:cn-north-1:123456789012:q.fifo",
            {"type": "sqs", "queue_arn": "arn:aws-cn:sqs:cn-north-1:123456789012:q.fifo"},
        ),
        (TOPIC, {"type": "sns", "topic_arn": TOPIC}),
        (
            "arn:aws:states:eu-north-1:123456789012:stateMachine:m",
            {
                "type": "stepfunctions",
                "state_machine_arn": "arn:aws:states:eu-north-1:123456789012:stateMachine:m",
            },
        ),
        (
            ' {"type": "webhook", "url": "https://a.test", "method": "PUT"}',
            {"type": "webhook", "url": "https://a.test", "method": "PUT"},
        ),
    ],
)
def test_a_target_is_told_by_its_form(
    signed_in: Run, api: FakeApi, text: str, target: dict[str, Any]
) -> None:
    api.answer("PATCH", "/jobs/j1", JOB)

    assert signed_in("jobs", "change", "j1", "--target", text).exit_code == 0
    assert api.requests[0].body == {"target": target}


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ("ecs:eu-north-1:123456789012:task-definition/t", '"task_definition_arn": ...'),
        ("batch:eu-north-1:123456789012:job-definition/j", '"job_queue_arn": ...'),
        ("events:eu-north-1:123456789012:event-bus/b", '"detail_type": ...'),
        ("s3:::bucket", "is of none of lambda, sqs, sns, states, batch, ecs, events"),
    ],
)
def test_an_arn_that_is_no_target_alone_is_refused_with_what_would_be(
    signed_in: Run, api: FakeApi, resource: str, said: str
) -> None:
    result = signed_in("jobs", "change", "j1", "--target", f"arn:aws:{resource}")

    assert result.exit_code != 0
    assert said in result.stderr
    assert api.requests == []


@pytest.mark.parametrize(("options", "condition"), [([], "*"), (["--revision", "3"], '"3"')])
def test_change_sends_what_is_given_and_its_condition(
    signed_in: Run, api: FakeApi, options: list[str], condition: str
) -> None:
    warning = {"code": "many_fires", "message": "fires 86,400 times a day"}
    api.answer("PATCH", "/jobs/j1", {**JOB, "warnings": [warning]})

    result = signed_in(
        "jobs", "change", "j1", "--schedule", "every 1s", "--clear", "grace",
        "--clear", "pause-after-failures", "--add-tag", "a=b", "--remove-tag", "old-one", *options,
    )  # fmt: skip

    assert result.stderr == "Warning: fires 86,400 times a day\n"
    assert result.stdout.splitlines() == ["job_id    j1", "revision  2"]
    (request,) = api.requests
    assert request.headers["if-match"] == condition
    assert request.body == {
        "schedule": "every 1s",
        "tags": {"a": "b", "old-one": None},
        "grace": None,
        "pause_after_failures": None,
    }


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--clear", "retry.backoff.type"], {"retry": {"backoff": {"type": None}}}),
        (
            ["--backoff-base", "9", "--clear", "retry.backoff.type", "--clear", "retry.retry_on"],
            {"retry": {"backoff": {"base_seconds": 9, "type": None}, "retry_on": None}},
        ),
        (["--clear", "target.headers.X-A"], {"target": {"headers": {"X-A": None}}}),
        (["--clear", "target.headers.a.b"], {"target": {"headers": {"a.b": None}}}),
        (
            ["--clear", "on-failure.headers.a", "--clear", "on-failure.headers.b"],
            {"on_failure": {"headers": {"a": None, "b": None}}},
        ),
        (["--clear", "target.headers"], {"target": {"headers": None}}),
        (["--clear", "target.signing_secret"], {"target": {"signing_secret": None}}),
        (["--clear", "tags.a.b"], {"tags": {"a.b": None}}),
        (["--clear", "tags"], {"tags": None}),
    ],
)
def test_what_is_cleared_is_nested_as_the_api_nests_it(
    signed_in: Run, api: FakeApi, options: list[str], body: dict[str, Any]
) -> None:
    api.answer("PATCH", "/jobs/j1", JOB)

    assert signed_in("jobs", "change", "j1", *options).exit_code == 0
    assert api.requests[0].body == body


def test_labels_and_targets_are_one_line_each(signed_in: Run, api: FakeApi) -> None:
    job = {
        **JOB,
        "target": {"type": "sns", "topic_arn": TOPIC, "subject": None},
        "tags": {"team": "billing", "area": "eu"},
        "events": ["run.dead", "run.missed"],
        "rate": {"limit": 5, "per": "1m", "key": ""},
    }
    api.answer("GET", "/jobs/j1", job)

    lines = signed_in("jobs", "show", "j1").stdout.splitlines()

    assert lines[3:] == [
        "tags      team=billing area=eu",
        "events    run.dead run.missed",
        "rate      limit=5 per=1m",
    ]
    assert f"sns {TOPIC}" in lines[2]
