"""The clients against the Api itself, on memory stores: both sides mean the same names."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
import pytest

from carillon.client import (
    Batch,
    Client,
    Conflict,
    Ecs,
    EventBridge,
    Lambda,
    Managed,
    NotFound,
    Refused,
    Sns,
    Sqs,
    StepFunctions,
    Task,
    Webhook,
)
from carillon.client.paths import split_job
from carillon.client.types.requests import SecretReference
from carillon.domain.run import DeadReason, Run, RunError, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import is_job_id, job_id_of
from carillon.errors import InvalidFieldError
from tests.unit.api.conftest import World
from tests.unit.api.gateway import OWNER
from tests.unit.client.conftest import NOON, FakeClock, New, Script

ECHO = Task("echo")
HOOK = Webhook("https://example.com/x")


def run(
    world: World,
    job_id: str,
    fire_at: datetime,
    status: RunStatus = RunStatus.DEAD,
    kind: str = "http_404",
) -> str:
    """Puts a run of a job into the history; its id."""
    is_dead = status is RunStatus.DEAD
    made = Run(
        key=RunKey(OWNER, job_id, RunKind.SCHEDULED, fire_at),
        status=status,
        attempt=1,
        token=1,
        claim_id="c",
        generation_id="g",
        updated_at=NOON,
        expires_at=NOON + timedelta(days=40),
        started_at=fire_at,
        attempt_started_at=fire_at,
        finished_at=fire_at,
        error=RunError(kind, "not there", permanent=True) if is_dead else None,
        reason=DeadReason.REFUSED if is_dead else None,
    )
    assert world.runs.claim(made, None)
    return made.key.run_id


def before(minutes: int) -> datetime:
    return NOON - timedelta(minutes=minutes)


def test_a_job_is_made_run_and_followed(client: Any, world: World) -> None:
    put = client.jobs.put("nightly", schedule="0 3 * * *", target=HOOK)
    again = client.jobs.put("nightly", schedule="0 3 * * *", target=HOOK)
    started = client.jobs["nightly"].run(idempotency_key="d1")
    repeated = client.jobs["nightly"].run(idempotency_key="d1")
    dead = run(world, put["job"]["job_id"], before(5))

    assert (put["action"], again["action"], again["changes"]) == ("create", "none", [])
    assert started["run_id"] == repeated["run_id"]
    followed = client.jobs["nightly"].runs(status=["dead"], follow=True)
    assert next(followed)["run_id"] == dead


def test_a_job_by_its_name_and_by_its_id(client: Any) -> None:
    job_id = client.jobs.create(name="Nightly", schedule="every 5m", target=ECHO)["job_id"]

    for text in ("nightly", "name:NIGHTLY", job_id, f"id:{job_id}"):
        job = client.jobs[text]
        assert (job.id(), job.get()["name"]) == (job_id, "Nightly")
        assert job.pause()["state"] == "paused"
        assert job.resume()["state"] == "active"
    assert client.jobs[job_id].delete() is None
    for text in ("nightly", job_id):
        with pytest.raises(NotFound):
            client.jobs[text].delete()
    with pytest.raises(NotFound):
        client.jobs["nightly"].pause()


def test_a_payload_a_note_and_reasons_go_along(client: Any) -> None:
    client.jobs.put("a", schedule="every 5m", target=ECHO, payload={"day": 0})
    job = client.jobs["a"]

    run = job.run(payload={"day": 1}, note="again", idempotency_key="d1")

    assert (run["payload_overridden"], run["request_note"]) == (True, "again")
    assert job.run(payload=None)["payload_overridden"]
    assert not job.run()["payload_overridden"]
    with pytest.raises(Refused):
        job.run(payload={"day": 2}, idempotency_key="d1")
    assert "holidays" in job.pause(reason="holidays")["note"]
    assert client.jobs.resume(all=True) == {"changed": 1, "managed": 0}
    assert client.jobs.pause(all=True, reason="moving") == {"changed": 1, "managed": 0}
    assert "moving" in job.get()["note"]


def test_ids_are_told_from_names_as_the_api_tells_them() -> None:
    for text in (job_id_of("owner", "a"), "a" * 26, "w" * 26, "A" * 26, "a" * 25, "nightly"):
        assert (split_job(text)[0] is not None) == is_job_id(text)


def test_changes_and_conditions(client: Any) -> None:
    client.jobs.put("a", only_new=True, schedule="every 5m", target=ECHO, tags={"team": "x"})
    job = client.jobs["a"]

    changed = job.change(grace="5m", tags={"team": None}, revision=1)

    assert (changed["grace"], changed["tags"], changed["revision"]) == ("5m", {}, 2)
    assert job.change(grace=None)["grace"] is None
    refused: tuple[Callable[[], Any], ...] = (
        lambda: job.change(grace="6m", revision=1),
        lambda: job.delete(revision=1),
        lambda: client.jobs.put("a", revision=1, schedule="every 5m", target=ECHO),
        lambda: client.jobs.put("a", only_new=True, schedule="every 5m", target=ECHO),
        lambda: client.jobs.create(name="a", schedule="every 5m", target=ECHO),
    )
    for act in refused:
        with pytest.raises(Conflict):
            act()
    told = client.jobs.put("a", dry_run=True, schedule="every 6m", target=ECHO)
    assert {"path": "schedule", "before": "every 5m", "after": "every 6m"} in told["changes"]
    assert job.get()["schedule"] == "every 5m"


def test_a_refusal_names_each_field(client: Any) -> None:
    with pytest.raises(Refused) as caught:
        client.jobs.put("a", schedule="never", target={"type": "task", "name": ""})

    assert {error["field"] for error in caught.value.errors} == {"schedule", "target.name"}


def test_many_jobs(client: Any) -> None:
    jobs = [
        {
            "name": f"job {number:03}", "schedule": "every 5m", "target": ECHO,
            "parent": "even" if number % 2 == 0 else "odd", "tags": {"team": "billing"},
        }
        for number in range(130)
    ]  # fmt: skip

    made = [client.jobs.create_many(jobs, idempotency_key="k") for _ in range(2)]

    assert [(one["created"], one["existing"]) for one in made] == [(130, 0), (0, 130)]
    assert [job["name"] for job in client.jobs.list()] == [job["name"] for job in jobs]
    assert len(list(client.jobs.list(limit=103))) == 103
    assert len(list(client.jobs.list(name="JOB 10"))) == 10
    assert len(list(client.jobs.list(parent="odd", tags={"team": "billing"}))) == 65
    assert client.jobs.pause(parent="odd") == {"changed": 65, "managed": 0}
    assert client.jobs.resume(tags={"team": "billing"})["changed"] == 65
    assert client.jobs.delete(parent="even")["changed"] == 65
    assert len(list(client.jobs.list())) == 65
    with pytest.raises(Refused):
        client.jobs.delete()


def test_an_empty_parent_chooses_no_more_jobs(client: Any) -> None:
    """As of a script whose variable is unset."""
    client.jobs.create_many(
        [{"name": "a", "schedule": "every 5m", "target": ECHO, "tags": {"team": "billing"}}]
    )
    chosen: Any = {"parent": "", "tags": {"team": "billing"}}
    hand_over = partial(client.jobs.hand_over, "growth")
    for act in (client.jobs.pause, client.jobs.delete, hand_over):
        with pytest.raises(Refused):
            act(**chosen)
    assert [job["state"] for job in client.jobs.list()] == ["active"]


def test_every_target_is_taken(client: Any) -> None:
    arn = "arn:aws:{}:eu-west-1:123456789012:{}"
    secret: SecretReference = {"secret": "key"}
    targets = [
        Task("echo"),
        Webhook("https://a.test", method="PUT", headers={"X": secret}, signing_secret=secret),
        Lambda(arn.format("lambda", "function:f"), invocation="event"),
        Sqs(arn.format("sqs", "q.fifo"), message_group_id="g"),
        Sns(arn.format("sns", "t"), subject="s"),
        EventBridge(arn.format("events", "event-bus/b"), source="s", detail_type="d"),
        StepFunctions(arn.format("states", "stateMachine:m")),
        Ecs(
            arn.format("ecs", "task-definition/t:1"),
            subnets=["subnet-0a1b2c3d"],
            container="main",
            command=["a"],
        ),
        Batch(arn.format("batch", "job-definition/j"), arn.format("batch", "job-queue/q")),
    ]
    # The deployment of this test allows no ARN; nothing else may be wrong with them.
    refused = [refused_fields(client, target) for target in targets]
    arns = ["function_arn", "queue_arn", "topic_arn", "bus_arn", "state_machine_arn"]
    arns += ["task_definition_arn", "job_definition_arn"]
    assert refused == [set(), set(), *({f"target.{arn}"} for arn in arns)]


def refused_fields(client: Any, target: Any) -> set[str]:
    try:
        client.jobs.put("a", schedule="every 5m", target=target)
    except Refused as error:
        return {one["field"] for one in error.errors}
    return set()


def test_runs_and_dead_letters(client: Any, world: World) -> None:
    job_id = client.jobs.put("a", schedule="every 5m", target=ECHO)["job"]["job_id"]
    job = client.jobs["a"]
    dead = [run(world, job_id, before(minute)) for minute in (5, 10, 15)]
    done = run(world, job_id, before(20), RunStatus.SUCCEEDED)

    assert [one["run_id"] for one in job.runs()] == [*dead, done]
    assert [one["run_id"] for one in job.runs(limit=2)] == dead[:2]
    assert [one["run_id"] for one in job.runs(status={"succeeded"})] == [done]
    span = {"from_at": NOON - timedelta(minutes=15), "to": "2026-12-01T11:50:00Z"}
    assert [one["run_id"] for one in job.runs(**span)] == dead[1:]
    assert client.runs.get(dead[0])["attempts"][0]["error"]["kind"] == "http_404"
    letters = client.dead_letters
    assert [one["run_id"] for one in letters.list(job="a", reason="refused", **span)] == dead[1:]
    assert list(letters.list(error="http_500")) == []
    again = letters.redrive(dead[0])
    assert client.runs.cancel(again["run_id"])["status"] == "cancelled"
    assert letters.discard(dead[1]) is None
    assert [one["run_id"] for one in letters.list()] == [dead[2]]
    with pytest.raises(InvalidFieldError, match="time zone"):
        list(job.runs(to=datetime(2026, 12, 1)))
    with pytest.raises(InvalidFieldError, match="follow"):
        next(job.runs(follow=True, **span))


def test_changes(client: Any) -> None:
    job_id = client.jobs.create(name="Nightly", schedule="every 5m", target=ECHO)["job_id"]
    client.jobs["nightly"].pause()

    both = list(client.changes.list(job="nightly"))
    assert [each["action"] for each in both] == ["pause", "create"]
    assert list(client.changes.list()) == list(client.changes.list(job=job_id)) == both
    assert list(client.changes.list(action="create", by=both[0]["by"]["id"])) == both[1:]
    assert list(client.changes.list(to="2020-01-01T00:00:00Z")) == []


def test_operations(client: Any, world: World) -> None:
    job_id = client.jobs.put("a", schedule="every 5m", target=ECHO)["job"]["job_id"]
    job = client.jobs["a"]
    run(world, job_id, before(5))

    many = client.dead_letters.redrive_many(reason="refused", per_minute=6)
    some = client.dead_letters.discard_many(job="a", idempotency_key="k")
    world.clock.advance(3600)
    filled = job.backfill(from_at=NOON, to=NOON + timedelta(minutes=30), only="missed")

    assert (many["kind"], many["per_minute"]) == ("redrive", 6)
    assert client.dead_letters.discard_many(job="a", idempotency_key="k") == some
    assert (filled["kind"], filled["only"]) == ("backfill", "missed")
    ids = [one["operation_id"] for one in client.operations.list()]
    assert set(ids) == {one["operation_id"] for one in (many, some, filled)}
    assert client.operations.get(ids[0])["state"] == "running"
    assert client.operations.outcomes(filled["operation_id"]) == {}
    assert client.operations.cancel(ids[0])["state"] == "cancelled"
    missed = job.missed(from_at=NOON, limit=2)["items"]
    assert [one["fire_at"] for one in missed] == ["2026-12-01T12:55:00Z", "2026-12-01T12:50:00Z"]


def test_a_manifest_is_applied_and_manages_its_jobs(client: Any) -> None:
    jobs = {"a": {"schedule": "every 5m", "target": ECHO}}

    plan = client.apply(manifest="billing", jobs=jobs, dry_run=True)
    assert (plan["counts"]["create"], plan["written"], list(client.jobs.list())) == (1, False, [])
    done = client.apply(manifest="billing", jobs=jobs, expect=plan["digest"])

    assert (done["written"], done["complete"]) == (True, True)
    assert [job["name"] for job in client.jobs.list(managed_by="manifest/billing")] == ["a"]
    job = client.jobs["a"]
    for act in (job.delete, partial(job.change, grace="5m")):
        with pytest.raises(Managed):
            act()
    with pytest.raises(Managed):
        client.jobs.put("a", schedule="every 6m", target=ECHO)
    assert client.jobs.put("a", force=True, schedule="every 6m", target=ECHO)["action"] == "change"
    assert job.change(force=True, parent="p")["parent"] == "p"
    assert client.jobs.delete(parent="p") == {"changed": 0, "managed": 1}
    assert client.jobs.delete(parent="p", force=True) == {"changed": 1, "managed": 0}
    client.apply(manifest="billing", jobs=jobs)
    assert job.delete(force=True) is None


def test_calendars(client: Any) -> None:
    client.calendars.put("holidays", only_new=True, weekdays=["sat"], ranges=[])
    put = client.calendars.put("holidays", revision=1, dates=["2026-12-25"])

    assert (put["weekdays"], put["dates"]) == ([], ["2026-12-25"])
    assert client.calendars.get("holidays") == put
    assert [one["name"] for one in client.calendars.list()] == ["holidays"]
    client.jobs.put("a", schedule="0 9 * * *", target=ECHO, calendar={"name": "holidays"})
    with pytest.raises(Conflict, match="followed by 1 of your jobs"):
        client.calendars.delete("holidays")
    client.jobs["a"].delete()
    assert client.calendars.delete("holidays") is None


def test_what_comes(client: Any) -> None:
    client.jobs.put("a", schedule="0 * * * *", target=ECHO)

    preview = client.preview(schedule="0 9 * * *", **{"except": ["* * 2 12 *"]}, count=2)
    forecast = client.forecast(to=NOON + timedelta(hours=3, minutes=1))

    assert [one["fire_at"] for one in preview["occurrences"]] == [
        "2026-12-03T09:00:00Z", "2026-12-04T09:00:00Z"
    ]  # fmt: skip
    assert forecast["total"] == 3
    assert client.jobs["a"].upcoming(count=1)[0]["fire_at"] == "2026-12-01T13:00:00Z"
    until = datetime(2026, 12, 1, 14, tzinfo=UTC)
    assert [one["name"] for one in client.upcoming(until=until)["items"]] == ["a", "a"]
    assert client.status()["active_jobs"] == 1
    assert client.request("GET", "/.well-known/carillon")["sign_in"] == "oidc"


def test_a_name_is_looked_up_once(scripted: Any, script: Script) -> None:
    script.then(200, {"job_id": "j" * 26})
    job = scripted.jobs["nightly"]

    job.pause()
    job.resume()

    assert [request.url.path for request in script.requests] == [
        "/jobs/named/nightly", f"/jobs/{'j' * 26}/pause", f"/jobs/{'j' * 26}/resume"
    ]  # fmt: skip


def test_any_other_request_may_have_its_query_in_its_path(scripted: Any, script: Script) -> None:
    script.then(200, {})

    scripted.request("GET", "/jobs?limit=1")

    assert script.requests[0].url.query == b"limit=1"
    script.answers = [httpx2.Response(204)]
    assert scripted.request("DELETE", "/dead-letters/r") is None


def test_a_change_is_noted_as_made_by_a_client(scripted: Any, script: Script) -> None:
    script.then(200, {})

    scripted.jobs.put("a", schedule="every 5m", target=ECHO)

    assert script.requests[0].headers["user-agent"] == "carillon-client"


def test_following_waits_between_looks(scripted: Any, script: Script, clock: FakeClock) -> None:
    def page(*runs: tuple[str, str]) -> dict[str, Any]:
        items = [
            {
                "run_id": name,
                "fire_at": f"2026-12-01T12:00:0{name}Z",
                "status": status,
                "attempt": 1,
            }
            for name, status in runs
        ]
        return {"items": items, "next_cursor": None}

    script.then(200, page(("2", "running"), ("1", "succeeded")))
    script.then(200, page(("3", "running"), ("2", "succeeded"), ("1", "succeeded")))

    seen = itertools.islice(scripted.jobs["j" * 26].runs(follow=True, interval_seconds=7), 4)

    assert [(one["run_id"], one["status"]) for one in seen] == [
        ("1", "succeeded"), ("2", "running"), ("2", "succeeded"), ("3", "running")
    ]  # fmt: skip
    assert clock.waits == [7]
    assert [request.url.params["limit"] for request in script.requests] == ["20", "100"]


def test_following_a_job_that_has_not_run_yet_leaves_none_out(
    scripted: Any, script: Script
) -> None:
    def page(*names: str) -> dict[str, Any]:
        items = [
            {
                "run_id": name,
                "fire_at": f"2026-12-01T12:00:0{name}Z",
                "status": "dead",
                "attempt": 1,
            }
            for name in names
        ]
        return {"items": items, "next_cursor": None}

    script.then(200, page()).then(200, page("3", "2", "1"))

    seen = itertools.islice(scripted.jobs["j" * 26].runs(follow=True, limit=1), 3)

    assert [one["run_id"] for one in seen] == ["1", "2", "3"]


def test_a_list_is_read_as_it_is_used(new_client: New, script: Script) -> None:
    script.then(200, {"items": [{"name": "a"}, {"name": "b"}], "next_cursor": "c"})
    script.then(200, {"items": [], "next_cursor": None})
    jobs = new_client(script).jobs.list()

    assert script.requests == []
    next(jobs)
    assert len(script.requests) == 1
    assert list(jobs) == [{"name": "b"}]
    assert script.requests[1].url.params["cursor"] == "c"


def test_a_client_is_closed_after_its_block(script: Script) -> None:
    with Client("https://api.example", "t", transport=httpx2.MockTransport(script)) as client:
        script.then(200, {})
        client.status()
    with pytest.raises(RuntimeError, match="closed"):
        client.status()
