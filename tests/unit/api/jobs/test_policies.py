"""What is done about failures, lateness, overlap and load: members of a job, and their limits."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.job import Slow
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Client, Json
from tests.unit.api.jobs.test_jobs import row

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:work"
POLICIES: Json = {
    "payload": {"at": "{{fire_at}}"},
    "template": True,
    "grace": "10m",
    "overlap": "queue_one",
    "tolerance": "30s",
    "concurrency": {"key": "printer / 3", "limit": 2},
    "rate": {"limit": 5, "per": "1m", "key": "mail"},
    "pause_after_failures": 3,
    "expect_within": "2m",
    "on_success": {"type": "task", "name": "thank"},
    "on_failure": {"type": "lambda", "function_arn": FUNCTION, "invocation": "event"},
    "events": ["run.dead", "job.paused"],
    "parent": "channel 7",
    "tags": {"team": "billing", "a.b-c_D": ""},
}
"""Each member as it is answered."""


@pytest.fixture
def client(world: World) -> Client:
    """Of a deployment with an event bus that may call one function."""
    world.settings = replace(world.settings, event_bus="bus", target_arns=(FUNCTION,))
    return Client(world.api())


@pytest.mark.parametrize("rule", ["next_business_day", "previous_business_day"])
def test_no_watch_where_a_calendar_moves_fire_times(client: Client, rule: str) -> None:
    client.put("/calendars/holidays", {})
    body = BODY | {"expect_within": "5m"}

    refused = client.post("/jobs", body | {"calendar": {"name": "holidays", "rule": rule}})

    assert refused.fields == ["expect_within"]
    assert client.post("/jobs", body | {"calendar": {"name": "holidays"}}).status == 201


def test_a_refusal_says_what_would_be_right(client: Client, world: World) -> None:
    def message(api: Client, **changes: Any) -> str:
        (error,) = api.post("/jobs", BODY | changes).json["errors"]
        return str(error["message"])

    assert message(client, tolerance="10m") == "must be less than the interval, 5m"
    assert message(client, grace="15d") == "must be from 1s to 14d"
    assert "omit it" in message(client, grace="1m", catch_up="all")
    assert "run.dead" in message(client, events=["dead"])
    assert message(client, target={"type": "sqs", "queue_arn": QUEUE}) == (
        f"{QUEUE} is not allowed in this deployment: add it to `target_arns` in the CDK context"
    )
    world.settings = replace(world.settings, event_bus="")
    assert message(Client(world.api()), events=["run.dead"]) == (
        "this deployment has no event bus: set `event_bus` in the CDK context"
    )


def test_limits_of_the_deployment_hold_for_what_is_new(client: Client, world: World) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | POLICIES).json['job_id']}"
    world.settings = replace(world.settings, event_bus="", target_arns=())
    later = Client(world.api())

    assert later.patch(path, {"description": "renamed"}, 1).status == 200
    assert later.patch(path, {"events": ["run.dead"]}, 2).fields == ["events"]
    assert later.patch(path, {"events": None}, 2).json["events"] == []
    change = {"on_failure": {"invocation": "sync"}}
    assert later.patch(path, change, 3).fields == ["on_failure.function_arn"]


def test_members_of_objects_are_merged(client: Client) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | POLICIES).json['job_id']}"
    change = {
        "concurrency": {"limit": 9},
        "rate": {"per": "2h", "key": None},
        "tags": {"team": None, "city": "Riga"},
        "on_failure": {"invocation": None},
        "on_success": {"type": "webhook", "url": "https://example.com/"},
        "retry": {"backoff": {"type": "fixed"}, "retry_on": ["timeout"]},
    }

    changed = client.patch(path, change, 1)

    assert changed.status == 200, changed.text
    job = changed.json
    assert job["concurrency"] == {"key": "printer / 3", "limit": 9}
    assert job["rate"] == {"limit": 5, "per": "2h", "key": ""}
    assert job["tags"] == {"a.b-c_D": "", "city": "Riga"}
    assert job["on_failure"]["invocation"] == "sync"
    assert job["on_success"]["url"] == "https://example.com/"
    assert job["retry"]["backoff"]["type"] == "fixed"
    assert job["retry"]["retry_on"] == ["timeout"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"schedule": "* * * * *"}, "tolerance"),
        ({"schedule": "every 20s"}, "tolerance"),
        ({"catch_up": "all"}, "grace"),
        ({"concurrency": {"key": None}}, "concurrency.key"),
        ({"payload": "{{nothing}}"}, "payload"),
        ({"tags": {"b:c": "x"}}, "tags.b:c"),
        ({"tags": {str(n): "" for n in range(19)}}, "tags"),
    ],
)
def test_a_change_that_contradicts_the_rest_is_refused(
    client: Client, change: Json, field: str
) -> None:
    job = client.post("/jobs", BODY | POLICIES).json

    answer = client.patch(f"/jobs/{job['job_id']}", change, 1)

    assert (answer.status, answer.fields) == (422, [field]), answer.text


def test_a_job_tells_since_when_and_why_it_is_served_in_lane_slow(
    client: Client, world: World
) -> None:
    """Under the revision that its owner knows; his changes leave the mark, and the priority his."""
    created = client.post("/jobs", BODY | {"priority": "high"})
    job_id = created.json["job_id"]
    slow = Slow(world.clock.now(), "attempts keep lasting longer than 2 s")
    marked = replace(row(world, job_id), slow=slow)
    assert world.jobs.replace(marked, 1)

    told = client.get(f"/jobs/{job_id}")
    assert told.headers["etag"] == '"1"'
    assert (told.json["priority"], told.json["lane"]) == ("high", "slow")
    assert told.json["slow"] == {"since": "2026-03-01T12:00:00.250Z", "reason": slow.reason}

    patched = client.patch(f"/jobs/{job_id}", {"priority": "low", "description": "other"}, 1)
    assert (patched.status, patched.json["priority"], patched.json["lane"]) == (200, "low", "slow")
    resumed = [client.post(f"/jobs/{job_id}/{what}").json["lane"] for what in ("pause", "resume")]
    assert resumed == ["slow", "slow"]
    refused = client.post("/jobs", BODY | {"priority": "slow"})
    assert refused.status == 422


def test_a_job_tells_why_it_was_paused(client: Client, world: World) -> None:
    job_id = client.post("/jobs", BODY).json["job_id"]
    job = row(world, job_id)
    assert world.jobs.replace(job.paused(world.clock.now(), "3 runs failed in a row"), 1)

    assert client.get(f"/jobs/{job_id}").json["note"] == "3 runs failed in a row"
    assert client.post(f"/jobs/{job_id}/resume").json["note"] is None
