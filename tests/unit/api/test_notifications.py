"""PUT, GET and DELETE of notifications, their state, and a test message."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.notifying.notification import MOST_NOTIFICATIONS, Told, delivery_key
from carillon.domain.notifying.window import Noted, after_event
from carillon.domain.run import Run, RunError, RunKind, RunStatus
from tests.unit.api.conftest import World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_activity import FIRED
from tests.unit.api.runs.test_runs import make_run

SLACK: Json = {"type": "slack", "url": {"secret": "slack-ops"}}
BODY: Json = {"on": ["run.dead", "run.recovered"], "to": SLACK}
TOPIC = "arn:aws:sns:eu-west-1:123456789012:ops"


def put(client: Client, name: str = "ops", **changes: Any) -> Any:
    answer = client.put(f"/notifications/{name}", BODY | changes)
    assert answer.status in (200, 201), answer.text
    return answer.json


def test_a_notification_is_answered_whole_with_its_state(client: Client) -> None:
    answer = client.put("/notifications/ops", BODY | {"tags": {"team": "x"}, "jobs": "Import *"})
    assert (answer.status, answer.headers["etag"]) == (201, '"1"')
    assert answer.json == {
        "name": "ops",
        "revision": 1,
        "on": ["run.dead", "run.recovered"],
        "to": SLACK,
        "jobs": "Import *",
        "tags": {"team": "x"},
        "at_most_every": "15m",
        "created_at": "2026-03-01T12:00:00.250Z",
        "updated_at": "2026-03-01T12:00:00.250Z",
        "last_delivery": None,
        "is_dead": False,
    }
    assert client.get("/notifications/ops").json == answer.json
    assert client.get("/notifications").json["items"] == [answer.json]


def test_an_equal_one_stays_and_another_one_is_the_next_revision(client: Client) -> None:
    first = put(client)
    assert put(client) == first
    assert put(client, at_most_every="1h")["revision"] == 2
    refused = client.put("/notifications/ops", BODY, **{"If-Match": '"1"'})
    assert refused.status == 412
    assert client.delete("/notifications/ops", if_match='"1"').status == 412
    assert client.delete("/notifications/ops", if_match='"2"').status == 204


def test_the_etag_of_one_that_was_deleted_is_none_of_the_next_of_its_name(client: Client) -> None:
    put(client)
    assert client.delete("/notifications/ops").status == 204
    assert put(client, at_most_every="1h")["revision"] == 3
    assert client.put("/notifications/ops", BODY, if_match='"1"').status == 412


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"on": []}, "on"),
        ({"on": ["run.succeeded"]}, "on[0]"),
        ({"on": ["quota.exceeded"]}, "on[0]"),
        ({"on": ["run.recovered"]}, "on"),
        ({"on": ["run.recovered", "job.slowed"]}, "on"),
        ({"at_most_every": "30s"}, "at_most_every"),
        ({"to": {"type": "pager"}}, "to.type"),
        ({"to": {"type": "slack", "url": "https://hooks.slack.com/x"}}, "to.url"),
        ({"to": {"type": "email", "address": "on-call@example.com"}}, "to.type"),
        ({"to": {"type": "sns", "topic_arn": TOPIC}}, "to.topic_arn"),
        ({"to": {"type": "webhook", "url": "https://169.254.169.254/"}}, "to.url"),
        ({"to": {"type": "webhook", "url": "https://x.example/", "method": "GET"}}, "to"),
        ({"to": {"type": "task", "name": "echo"}}, "to.type"),
        ({"tags": {"a b": "c"}}, "tags.a b"),
        ({"quiet": True}, "quiet"),
    ],
)
def test_what_cannot_be_told_is_refused(client: Client, changes: Json, field: str) -> None:
    answer = client.put("/notifications/ops", BODY | changes)
    assert (answer.status, answer.fields) == (422, [field]), answer.text


def test_the_fault_says_what_would_be_right(client: Client) -> None:
    quota = client.put("/notifications/ops", BODY | {"on": ["quota.exceeded"]})
    assert "'run.dead', 'run.missed', 'job.paused', 'job.slowed'" in quota.text
    alone = client.put("/notifications/ops", BODY | {"on": ["run.recovered"]})
    assert "needs one of job.paused, run.dead, run.missed beside it" in alone.text


def test_the_deployment_may_allow_mail_and_topics(world: World) -> None:
    world.settings = replace(world.settings, email_sender="a@b.example", target_arns=(TOPIC,))
    client = Client(world.api())
    assert put(client, to={"type": "email", "address": "x@y.example"})["to"]["type"] == "email"
    assert put(client, to={"type": "sns", "topic_arn": TOPIC})["to"]["topic_arn"] == TOPIC


@pytest.mark.parametrize("name", ["Ops", "a.b", "a_b", "-a", "a" * 49])
def test_names_fit_into_run_ids(client: Client, name: str) -> None:
    assert client.put(f"/notifications/{name}", BODY).fields == ["name"]


def test_a_dead_delivery_that_was_redriven_shows_what_became_of_it(
    client: Client, world: World
) -> None:
    put(client)
    key = delivery_key(OWNER, "ops", FIRED, 1)
    dead = make_run(key.job_id, FIRED, key=key, status=RunStatus.DEAD)
    again = replace(dead, key=key.redriven, status=RunStatus.SUCCEEDED)
    for run in (dead, again):
        assert world.runs.claim(run, None)
    read = client.get("/notifications/ops").json
    assert (read["is_dead"], read["last_delivery"]["run_id"]) == (False, again.key.run_id)
    assert client.get("/notifications").json["items"] == [read]


def test_a_dead_channel_shows_its_error(client: Client, world: World) -> None:
    put(client)
    now = world.clock.now()
    key = delivery_key(OWNER, "ops", now.replace(microsecond=0), 1)
    dead = Run(key, RunStatus.DEAD, 5, 1, "c", "", now, now + timedelta(days=30))
    error = RunError("http_404", "the endpoint answered 404: no_service")
    assert world.runs.claim(replace(dead, error=error, finished_at=now), None)
    read = client.get("/notifications/ops").json
    assert read["is_dead"] is True
    assert read["last_delivery"] == {
        "run_id": key.run_id,
        "status": "dead",
        "at": "2026-03-01T12:00:00.250Z",
        "attempt": 5,
        "error_kind": "http_404",
        "error_message": "the endpoint answered 404: no_service",
    }
    assert client.get("/notifications").json["items"] == [read]
    redriven = client.post(f"/dead-letters/{key.run_id}/redrive")
    assert redriven.status == 202, redriven.text
    (message,) = (each.message for each in world.queue.kept())
    assert message.key == key.redriven


def test_what_was_delivered_for_one_that_was_deleted_is_no_state_of_the_next_of_its_name(
    client: Client, world: World
) -> None:
    put(client)
    at = world.clock.now().replace(microsecond=0)
    key = delivery_key(OWNER, "ops", at, 1)
    dead = make_run(key.job_id, at, key=key, status=RunStatus.DEAD)
    assert world.runs.claim(replace(dead, finished_at=world.clock.now()), None)
    client.delete("/notifications/ops")
    world.clock.advance(60)
    made = put(client)
    assert (made["last_delivery"], made["is_dead"]) == (None, False)
    assert client.get("/notifications/ops").json == made
    assert client.get("/notifications").json["items"] == [made]


def test_the_dead_delivery_of_one_that_was_deleted_names_it(client: Client, world: World) -> None:
    key = delivery_key(OWNER, "ops", FIRED, 1)
    assert world.runs.claim(make_run(key.job_id, FIRED, key=key, status=RunStatus.DEAD), None)
    refused = client.post(f"/dead-letters/{key.run_id}/redrive")
    assert (refused.status, refused.json["type"]) == (409, "urn:carillon:problem:job-gone")
    assert refused.json["detail"].endswith("cannot be redriven: notification ops was deleted")


def test_a_test_is_a_run_of_its_own(client: Client, world: World) -> None:
    put(client)
    ordered = client.post("/notifications/ops/test")
    assert ordered.status == 202
    (message,) = (each.message for each in world.queue.kept())
    assert message.key.run_id == ordered.json["run_id"]
    assert message.key.kind is RunKind.NOTICE
    world.clock.advance(10)
    again = client.post("/notifications/ops/test")
    assert again.json["run_id"] != ordered.json["run_id"]


def test_tests_in_quick_succession_are_one(client: Client) -> None:
    put(client)
    ordered = [client.post("/notifications/ops/test").json["run_id"] for _ in range(3)]
    assert len(set(ordered)) == 1


def test_a_delivery_is_found_by_its_id_even_without_its_notification(
    client: Client, stranger: Client, world: World
) -> None:
    key = delivery_key(OWNER, "ops", FIRED, "1")
    world.runs.claim(make_run(key.job_id, FIRED, key=key), None)
    answer = client.get(f"/runs/{key.run_id}")
    assert (answer.status, answer.json["job_name"]) == (200, "notification ops")
    assert stranger.get(f"/runs/{key.run_id}").status == 404


def test_deleted_it_is_gone_with_its_window(client: Client, world: World) -> None:
    put(client)
    now = world.clock.now()
    notification = world.notifications.get(OWNER, "ops")
    assert notification is not None
    window = after_event(None, Noted(Told.RUN_DEAD, now, "j", "job", "r"), notification, now)
    assert world.windows.put(window, None)  # type: ignore[arg-type]
    assert client.delete("/notifications/ops").status == 204
    assert client.get("/notifications/ops").status == 404
    assert world.windows.get(OWNER, "ops") is None


def test_another_owner_s_cannot_be_told_from_none(client: Client, stranger: Client) -> None:
    put(client)
    assert stranger.get("/notifications").json["items"] == []
    for method, path in (
        ("GET", "/notifications/ops"),
        ("DELETE", "/notifications/ops"),
        ("POST", "/notifications/ops/test"),
    ):
        assert stranger.send(method, path).status == 404
    assert stranger.put("/notifications/ops", BODY).status == 201, "it is another one"
    assert client.get("/notifications/ops").json["revision"] == 1


def test_an_owner_has_a_bounded_number(client: Client) -> None:
    for number in range(MOST_NOTIFICATIONS):
        put(client, f"n{number}")
    refused = client.put("/notifications/another", BODY)
    assert refused.fields == ["name"]
