"""Targets in requests: changes member by member, and hosts that can be."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.targets import WebhookTarget
from tests.support.jobs import job_with
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json

URL = "https://example.com/hook"


def hook(**members: Any) -> Json:
    return {"type": "webhook", "url": URL, **members}


def made(client: Client, **members: Any) -> str:
    """The path of a job whose target has these members."""
    answer = client.post("/jobs", BODY | {"target": hook(**members)})
    assert answer.status == 201, answer.text
    return f"/jobs/{answer.json['job_id']}"


@pytest.mark.parametrize("field", ["target", "on_success", "on_failure"])
@pytest.mark.parametrize("member", ["headrs", "headers.X-Key", "function_arn"])
def test_a_change_refuses_what_a_target_does_not_have(
    client: Client, field: str, member: str
) -> None:
    path = f"/jobs/{client.post('/jobs', BODY | {field: hook()}).json['job_id']}"

    for value in (None, "x"):
        answer = client.patch(path, {field: {member: value}}, "*")
        assert (answer.status, answer.fields) == (422, [f"{field}.{member}"])


@pytest.mark.parametrize(
    ("change", "headers"),
    [
        ({"X": {"secret": "s"}}, {"X": {"secret": "s"}, "Y": "1"}),
        ({"X": "text"}, {"X": "text", "Y": "1"}),
        ({"X": None}, {"Y": "1"}),
        ({"x": None}, {"Y": "1"}),
        ({"x": "text"}, {"x": "text", "Y": "1"}),
        ({"Z": None}, {"X": {"parameter": "p"}, "Y": "1"}),
        (None, {}),
    ],
)
def test_headers_are_merged_and_their_values_replaced_whole(
    client: Client, change: Any, headers: Json
) -> None:
    path = made(client, headers={"X": {"parameter": "p"}, "Y": "1"})

    answer = client.patch(path, {"target": {"headers": change}}, "*")

    assert answer.status == 200, answer.text
    assert answer.json["target"]["headers"] == headers
    assert answer.json["target"]["url"] == URL


def test_a_signing_secret_is_replaced_whole(client: Client) -> None:
    path = made(client, signing_secret={"secret": "old"})

    changed = client.patch(path, {"target": {"signing_secret": {"secret": "new"}}}, "*")
    assert changed.json["target"]["signing_secret"] == {"secret": "new"}
    cleared = client.patch(path, {"target": {"signing_secret": None}}, "*")
    assert cleared.json["target"]["signing_secret"] is None


@pytest.mark.parametrize(
    "host",
    [
        "exa mple.com",
        "a..b",
        ".",
        f"{'a' * 64}.com",
        "-a.com",
        "a." * 127 + "com",
        "faß.de",  # fass.de, by the rules of 2003, is somebody else's
    ],
)
def test_a_host_that_no_lookup_can_know_is_refused(client: Client, host: str) -> None:
    for field in ("target", "on_failure"):
        answer = client.post("/jobs", BODY | {field: hook(url=f"https://{host}/")})
        assert (answer.status, answer.fields) == (422, [f"{field}.url"])


@pytest.mark.parametrize(
    "host",
    [
        "example.com.",
        "münchen.example",
        "a_b.example",
        "8.8.8.8:8443",
        "[2606:4700::1]",
        "0x8.8.8.8",
    ],
)
def test_every_host_that_can_be_is_taken(client: Client, host: str) -> None:
    made(client, url=f"https://{host}/")


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:192.168.0.1]",
        "[64:ff9b::a00:1]",
        "2852039166",  # 169.254.169.254 to a resolver
        "0xa.1",
        "\uff11\uff10.0.0.1",  # in full-width digits
        "0.0.0.0",
    ],
)
def test_a_literal_address_that_is_not_public_is_refused(client: Client, host: str) -> None:
    for field in ("target", "on_success"):
        answer = client.post("/jobs", BODY | {field: hook(url=f"https://{host}/")})
        assert (answer.status, answer.fields) == (422, [f"{field}.url"]), answer.text
        assert "not public" in answer.json["detail"]


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "http://127.9.9.9:8000/", "https://0x7f.1/"])
def test_addresses_in_the_networks_that_the_operator_named_are_taken(
    client: Client, url: str
) -> None:
    made(client, url=url)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_method_without_a_body_takes_no_payload(client: Client, method: str) -> None:
    target = hook(method=method)
    refused = client.post("/jobs", BODY | {"target": target, "payload": {"a": 1}})
    assert (refused.status, refused.fields) == (422, ["payload"])
    assert method in refused.json["detail"]

    path = made(client, method=method)
    assert client.patch(path, {"payload": 0}, "*").fields == ["payload"]
    both = {"payload": {"a": 1}, "target": {"method": "POST"}}
    assert client.patch(path, both, "*").status == 200
    assert client.patch(path, {"target": {"method": method}}, "*").fields == ["payload"]
    assert client.post("/jobs", BODY | {"on_success": target, "payload": 1}).status == 201


def test_an_older_target_does_not_hinder_another_change(client: Client, world: World) -> None:
    path = made(client)
    job = world.jobs.get(OWNER, path.rpartition("/")[2])
    assert job is not None
    older = job_with(job, target=WebhookTarget(url="https://a..b/"), revision=2)
    assert world.jobs.replace(older, 1)

    assert client.patch(path, {"description": "renamed"}, "*").status == 200
    assert client.patch(path, {"target": {"method": "PUT"}}, "*").fields == ["target.url"]


def test_a_payload_is_weighed_before_it_is_looked_into(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(payload: Any) -> list[tuple[str, str]]:
        raise AssertionError("looked into")

    monkeypatch.setattr("carillon.api.jobs.validation.check_template", look)
    answer = client.post("/jobs", BODY | {"template": True, "payload": ["{{"] * 20_000})

    assert (answer.status, answer.fields) == (413, ["payload"])


def test_a_task_that_the_deployment_does_not_have_is_refused(world: World) -> None:
    """But not by a change of something else: the job was there before."""
    older = Client(world.api())
    path = f"/jobs/{older.post('/jobs', BODY).json['job_id']}"
    world.settings = replace(world.settings, task_names=("clean_up", "report"))
    client = Client(world.api())

    for field in ("target", "on_success", "on_failure"):
        answer = client.post("/jobs", BODY | {field: {"type": "task", "name": "echo"}})
        assert answer.status == 422
        assert f"{field}.name" in answer.fields
        assert "registered: clean_up, report" in answer.text
    known = BODY | {"target": {"type": "task", "name": "report"}, "name": "other"}
    assert client.post("/jobs", known).status == 201
    assert client.patch(path, {"description": "older"}, "*").status == 200
    assert client.patch(path, {"target": {"name": "eco"}}, "*").fields == ["target.name"]


# -- containers

AT = "eu-west-1:123456789012"
TASK = {
    "type": "ecs",
    "task_definition_arn": f"arn:aws:ecs:{AT}:task-definition/report",
    "launch_type": "EC2",
    "container": "main",
}
BATCH = {
    "type": "batch",
    "job_definition_arn": f"arn:aws:batch:{AT}:job-definition/report:3",
    "job_queue_arn": f"arn:aws:batch:{AT}:job-queue/nightly",
}


@pytest.fixture
def allowing(world: World) -> Client:
    """Of a deployment that lets jobs call everything of the account."""
    everything = tuple(f"arn:aws:{each}:{AT}:*" for each in ("ecs", "batch"))
    world.settings = replace(world.settings, target_arns=everything)
    return Client(world.api())


def test_settings_that_no_row_could_hold_are_refused_at_a_creation_and_a_change(
    allowing: Client,
) -> None:
    """DynamoDB takes rows of 400 KB, with what is noted of the job besides."""
    large = BATCH | {"parameters": {f"p{number}": 4096 * "x" for number in range(33)}}
    made = allowing.post("/jobs", BODY | {"name": "a", "target": large})
    assert made.status == 201, made.text
    path = f"/jobs/{made.json['job_id']}"
    for answer in (
        allowing.post("/jobs", BODY | {"name": "b", "target": large, "on_success": large}),
        allowing.patch(path, {"on_success": large}, "*"),
    ):
        assert (answer.status, answer.fields) == (413, ["body"]), answer.text
        assert "the limit is 262144 bytes" in answer.json["detail"]


@pytest.mark.parametrize("target", [TASK, BATCH], ids=lambda target: str(target["type"]))
def test_a_payload_that_its_container_could_not_get_is_refused(
    allowing: Client, target: Json
) -> None:
    """At creation, at a change, and for one run."""
    fitting, large = {"a": 6000 * "x"}, {"a": 9000 * "x"}
    made = allowing.post("/jobs", BODY | {"target": target, "payload": fitting})
    assert made.status == 201, made.text
    path = f"/jobs/{made.json['job_id']}"
    grown = {"tags": "{{tags}}", "of": 30 * "{{tags.t}}"}
    tags = {"t": 256 * "x"}
    for answer in (
        allowing.post("/jobs", BODY | {"name": "b", "target": target, "payload": large}),
        allowing.patch(path, {"payload": large}, "*"),
        allowing.patch(path, {"payload": grown, "template": True, "tags": tags}, "*"),
        allowing.post(f"{path}/run", {"payload": large}),
    ):
        assert (answer.status, answer.fields) == (422, ["payload"]), answer.text
        assert "AWS takes" in answer.json["errors"][0]["message"]
    assert allowing.post(f"{path}/run", {"payload": {"a": 1}}).status == 202


def test_so_is_one_that_tells_of_the_run_before(allowing: Client) -> None:
    allowing.post("/jobs", BODY | {"name": "first"})
    told = {"schedule": None, "after": "first", "template": True, "target": TASK}
    said = {"of": "{{after.run_id}}"}
    for payload, status in (({**said, "a": 9000 * "x"}, 422), (said, 201)):
        answer = allowing.post("/jobs", BODY | told | {"name": "next", "payload": payload})
        assert answer.status == status, answer.text


def test_a_payload_needs_a_container_that_gets_it(allowing: Client) -> None:
    bare = {name: value for name, value in TASK.items() if name != "container"}
    answer = allowing.post("/jobs", BODY | {"target": bare, "payload": {"a": 1}})
    assert (answer.status, answer.fields) == (422, ["payload"])
    assert "`target.container`" in answer.json["errors"][0]["message"]
    assert allowing.post("/jobs", BODY | {"target": bare, "payload": None}).status == 201


def test_a_template_that_is_none_is_not_filled_in(allowing: Client) -> None:
    many = {"target": TASK, "payload": 200 * "{{tags}}", "template": True}
    answer = allowing.post("/jobs", BODY | many | {"tags": {"a": 256 * "x"}})
    (told,) = answer.json["errors"]
    assert "more than 100 placeholders" in told["message"]


def test_each_resource_that_a_call_uses_must_be_allowed(world: World) -> None:
    listed = (f"arn:aws:ecs:{AT}:task-definition/report:*", f"arn:aws:batch:{AT}:job-definition/*")
    world.settings = replace(world.settings, target_arns=listed)
    client = Client(world.api())
    assert client.post("/jobs", BODY | {"target": TASK}).status == 201
    answer = client.post("/jobs", BODY | {"name": "b", "target": BATCH})
    assert (answer.status, answer.fields) == (422, ["target.job_queue_arn"])
    world.settings = replace(world.settings, target_arns=listed[1:])
    answer = Client(world.api()).post("/jobs", BODY | {"name": "c", "target": TASK})
    assert answer.fields == ["target.task_definition_arn"]
    assert "task-definition/report:* is not allowed" in answer.json["errors"][0]["message"]
