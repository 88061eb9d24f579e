"""Null in requests: a default, or refused where it would choose more than was meant."""

import pytest

from tests.unit.api.conftest import BODY
from tests.unit.api.gateway import Client


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
