"""Null in requests: a default, or refused where it would choose more than was meant."""

from typing import Any

import pytest

from carillon.domain.spec.job_spec import JobSpec
from tests.unit.api.conftest import BODY
from tests.unit.api.gateway import Client

REQUIRED = {"name", "schedule", "target"}
OPTIONAL = sorted({field.alias or name for name, field in JobSpec.model_fields.items()} - REQUIRED)


def shown(answered: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answered.items() if name != "job_id"}


@pytest.mark.parametrize("member", OPTIONAL)
def test_null_is_the_default_of_what_need_not_be_said(client: Client, member: str) -> None:
    answer = client.post("/jobs", BODY | {member: None})

    assert answer.status == 201, answer.text
    assert shown(answer.json) == shown(client.post("/jobs", BODY).json)


@pytest.mark.parametrize("member", sorted(REQUIRED))
def test_what_is_required_is_not_null(client: Client, member: str) -> None:
    answer = client.post("/jobs", BODY | {member: None})

    assert (answer.status, answer.fields) == (422, [member])


def test_null_is_the_default_within_members_too(client: Client) -> None:
    backoff = {"type": None, "base_seconds": 7, "factor": None, "cap_seconds": None}
    retry = {"max_attempts": None, "backoff": backoff, "retry_on": None}
    rate = {"limit": 3, "per": "1m", "key": None}

    said = client.post("/jobs", BODY | {"retry": retry, "rate": rate}).json
    unsaid = client.post(
        "/jobs",
        BODY | {"retry": {"backoff": {"base_seconds": 7}}, "rate": {"limit": 3, "per": "1m"}},
    ).json

    assert shown(said) == shown(unsaid)


def test_an_unknown_member_is_refused_with_null_too(client: Client) -> None:
    answer = client.post("/jobs", BODY | {"bogus": None})

    assert (answer.status, answer.fields) == (422, ["bogus"])


@pytest.mark.parametrize("kind", ["redrive", "discard"])
@pytest.mark.parametrize("member", ["job_id", "reason", "error", "from", "to", "per_minute"])
def test_null_does_not_widen_what_is_settled(client: Client, kind: str, member: str) -> None:
    answer = client.post(f"/dead-letters/{kind}", {member: None})

    assert (answer.status, answer.fields) == (422, [member])
    assert client.get("/operations").json["items"] == []
    schema = client.get("/openapi.json").json["components"]["schemas"]["DeadLetterBody"]
    assert "null" not in str(schema["properties"][member].get("anyOf"))
