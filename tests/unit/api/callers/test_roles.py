"""Requests that a role of IAM has signed: they are the team's in their path."""

from typing import Any

import pytest

from carillon.domain.spec.names import job_id_of
from carillon.domain.spec.owners import AuthorKind
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Answer, Client, Json, answer_of, event

ARN = "arn:aws:sts::123456789012:assumed-role/deployer/session-1"


def signed(world: World, method: str, path: str, body: str | None = None, **iam: Any) -> Answer:
    made = event(method, path, body=body, headers={"content-type": "application/json"})
    made["requestContext"]["authorizer"] = {"iam": {"userArn": ARN, **iam}}
    return answer_of(world.api(), made)


JOB = '{"name": "nightly", "schedule": "every 5m", "target": {"type": "task", "name": "echo"}}'


def test_a_role_acts_for_the_team_in_its_path(world: World) -> None:
    created = signed(world, "POST", "/aws/billing/jobs", JOB)
    path = created.headers["location"]
    assert path == f"/aws/billing/jobs/{created.json['job_id']}"
    assert signed(world, "GET", path).json["name"] == "nightly"
    redriving = signed(world, "POST", "/aws/billing/dead-letters/redrive", '{"all": true}')
    operation = redriving.headers["location"]
    assert operation.startswith("/aws/billing/operations/")
    assert signed(world, "GET", operation).status == 200
    assert created.status == 201, created.text
    job = world.jobs.get("team/billing", job_id_of("team/billing", "nightly"))
    assert job is not None
    assert (job.author.kind, job.author.id, job.author.name) == (AuthorKind.ROLE, ARN, "deployer")
    assert names(signed(world, "GET", "/aws/billing/jobs")) == ["nightly"]
    assert signed(world, "GET", "/aws/billing/jobs/named/nightly").status == 200
    assert names(signed(world, "GET", "/aws/other/jobs")) == []


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.text
    items: list[Json] = answer.json["items"]
    return [item["name"] for item in items]


@pytest.mark.parametrize("path", ["/jobs", "/aws/Billing/jobs", "/aws/billing", "/aws//jobs", "/"])
def test_a_role_without_a_team_is_nobody(world: World, path: str) -> None:
    assert signed(world, "GET", path).status == 401


@pytest.mark.parametrize("path", ["/aws/billing/../other/jobs", "/aws/billing//aws/other/jobs"])
def test_no_path_leads_to_another_team(world: World, path: str) -> None:
    assert signed(world, "GET", path).status == 404


def test_words_of_the_sender_name_no_team(world: World) -> None:
    signed(world, "POST", "/aws/billing/jobs", JOB)
    assert names(signed(world, "GET", "/aws/other/jobs", team="billing")) == []


def test_a_token_opens_no_team_s_path(client: Client) -> None:
    assert client.post("/aws/billing/jobs", BODY).status == 404
