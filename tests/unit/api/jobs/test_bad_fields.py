"""POST /jobs: what is refused, and how it says so."""

from typing import Any

import pytest

from carillon.domain.job import PAYLOAD_LIMIT_BYTES
from tests.unit.api.conftest import BODY
from tests.unit.api.gateway import Answer, Client


def refused(client: Client, **changes: Any) -> Answer:
    """The answer to a body with these changes, which must be a refusal that stores nothing."""
    body = {name: value for name, value in (BODY | changes).items() if value is not ...}
    answer = client.post("/jobs", body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/jobs").json["items"] == []
    return answer


@pytest.mark.parametrize("field", ["target", "retry", "dst", "calendar"])
def test_a_refusal_speaks_of_json(client: Client, field: str) -> None:
    assert refused(client, **{field: 5}).json["detail"] == f"{field} must be an object"


def test_every_bad_field_is_named_at_once(client: Client) -> None:
    answer = refused(client, name=..., priority="urgent", colour="red", size=1)

    assert sorted(answer.fields) == ["colour", "name", "priority", "size"]
    assert "and 1 more" in answer.json["detail"]


def test_a_body_of_ten_thousand_unknown_fields_is_answered_briefly(client: Client) -> None:
    answer = refused(client, **{f"field_{n}": n for n in range(10_000)})

    assert answer.status == 422
    assert len(answer.fields) == 50


def test_a_past_one_shot_is_told_so(client: Client) -> None:
    answer = refused(client, schedule="at 2026-02-28T09:00:00", timezone="Europe/Riga")

    message = answer.json["errors"][0]["message"]
    assert message == "has no occurrence after now: the only one, 2026-02-28T07:00:00Z, is past"


def test_an_unknown_zone_gets_a_suggestion(client: Client) -> None:
    assert "Europe/Riga" in refused(client, timezone="Europe/Rigga").json["errors"][0]["message"]


def test_plain_http_is_for_allowed_addresses(client: Client) -> None:
    target = {"type": "webhook", "url": "http://127.0.0.1:8080/hook"}

    assert client.post("/jobs", BODY | {"target": target}).status == 201


def test_a_payload_up_to_the_limit_is_taken(client: Client) -> None:
    # The limit counts UTF-8 bytes of compact JSON: two quotes, and two bytes for each ž.
    payload = "ž" * ((PAYLOAD_LIMIT_BYTES - 2) // 2)
    answer = client.post("/jobs", BODY | {"payload": payload})

    assert answer.status == 201
    assert answer.json["payload"] == payload


def test_a_larger_payload_is_refused_with_both_sizes(client: Client) -> None:
    answer = refused(client, payload="x" * (PAYLOAD_LIMIT_BYTES - 1))

    assert answer.status == 413
    assert answer.fields == ["payload"]
    assert "65537 bytes; the limit is 65536 bytes" in answer.json["detail"]


def test_all_that_is_wrong_with_a_body_is_said_in_one_round(client: Client) -> None:
    answer = refused(
        client,
        schedule="61 * * * *",
        timezone="Mars/Olympus",
        priority="urgent",
        window="soon",
        retry={"max_attempts": 0},
        end_at="2026-12-01T00:00:00.5Z",
        target={"type": "webhook", "url": "nowhere"},
        **{"except": ["every 5m", "0 25 * * *"]},
    )

    assert set(answer.fields) == {
        "schedule", "timezone", "priority", "window", "retry.max_attempts", "end_at", "target.url",
        "except[1]",
    }  # fmt: skip


def test_a_bad_schedule_s_own_errors_are_said_together_and_once(client: Client) -> None:
    both = refused(client, schedule="every now and then", timezone="Mars/Olympus")
    assert sorted(both.fields) == ["schedule", "timezone"]
    assert refused(client, schedule=5, timezone="Mars/Olympus", priority="x").fields == [
        "schedule", "priority", "timezone",
    ]  # fmt: skip
    missing = refused(client, schedule=..., end_at="2026-12-01T00:00:00.5Z")
    assert sorted(missing.fields) == ["end_at", "schedule"]


def test_what_the_deployment_does_not_allow_is_said_together(client: Client) -> None:
    answer = refused(
        client,
        target={"type": "sqs", "queue_arn": "arn:aws:sqs:eu-west-1:123456789012:name"},
        on_failure={"type": "webhook", "url": "https://10.0.0.1/"},
        timeout_seconds=600,
        events=["run.dead"],
        tolerance="10m",
    )

    assert sorted(answer.fields) == [
        "events", "on_failure.url", "target.queue_arn", "timeout_seconds", "tolerance",
    ]  # fmt: skip
