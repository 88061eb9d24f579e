"""POST /jobs: what is stored and what is sent."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.api.app import Api
from carillon.clock import SeededEntropy
from carillon.domain.job import Job, Lane
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of, slots_of_minute
from carillon.domain.wheel.segment import first_control
from carillon.stores.memory import MemoryJobStore
from tests.settings import SETTINGS
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, Answer, Client

FULL_BODY: dict[str, Any] = {
    "name": "Zieme ❄",
    "schedule": {"cron": "*/15 8-17 * * mon-fri"},
    "timezone": "Europe/Riga",
    "start_at": "2026-03-01T15:00:00",
    "target": {
        "type": "webhook",
        "url": "https://example.com/hook?a=1",
        "method": "PUT",
        "headers": {"X-Key": {"secret": "key"}},
        "signing_secret": None,
        "completion": None,
    },
    "payload": {"deep": [1, 2.5, None, "ž"], "big": 12345678901234567890},
    "priority": "high",
    "catch_up": "all",
    "retry": {
        "max_attempts": 7,
        "backoff": {"type": "fixed", "base_seconds": 3, "factor": 1.5, "cap_seconds": 60},
        "retry_on": ["timeout", "http_5xx"],
    },
    "timeout_seconds": 55,
}


def announce(world: World, minutes_ahead: int = 2) -> None:
    """Every segment's tick has announced the next minutes."""
    for segment in range(world.settings.segments):
        control = first_control(segment, world.clock.now())
        horizon = minute_of(world.clock.now()) + minutes_ahead
        assert world.wheel.put_control(replace(control, horizon=horizon), None)


def stored(world: World, answer: Answer) -> Job:
    job = world.jobs.get(OWNER, answer.json["job_id"])
    assert job is not None
    return job


def test_a_minimal_job_gets_the_documented_defaults(client: Client, world: World) -> None:
    answer = client.post("/jobs", BODY)

    assert answer.status == 201
    job_id = answer.json["job_id"]
    assert answer.headers["location"] == f"/jobs/{job_id}"
    assert answer.headers["etag"] == '"1"'
    assert answer.json == {
        **{name: setting.default for name, setting in SETTINGS.items()},
        "job_id": job_id,
        "name": "nightly report",
        "state": "active",
        "note": None,
        "resume_at": None,
        "managed_by": None,
        "renamed_from": None,
        "handed_over_from": None,
        "successors": [],
        "changed_by": {"kind": "person", "id": "owner-1", "name": "", "via": "api"},
        "revision": 1,
        "sentence": "every 5 minutes",
        "schedule": "every 5m",
        "target": {"type": "task", "name": "echo"},
        "spread_seconds": 0,
        "lane": "normal",
        "slow": None,
        "time_limit_seconds": 55,
        "next_fire_at": "2026-03-01T12:05:00Z",
        "next_effective_at": "2026-03-01T12:05:00Z",
        "ends_at": None,
        "created_at": "2026-03-01T12:00:00.250Z",
        "updated_at": "2026-03-01T12:00:00.250Z",
        "warnings": [],
        "transitions": [],
    }
    assert stored(world, answer).generation.from_at == NOW.replace(microsecond=0)
    assert 0 <= stored(world, answer).segment < world.settings.segments


def test_every_field_is_stored_and_answered(client: Client, world: World) -> None:
    answer = client.post("/jobs", FULL_BODY)

    assert answer.status == 201, answer.text
    said = {name: answer.json[name] for name in FULL_BODY}
    expected = FULL_BODY | {
        "schedule": "*/15 8-17 * * MON-FRI",
        "start_at": "2026-03-01T13:00:00Z",  # Riga was two hours ahead
    }
    assert said == expected
    assert answer.json["next_fire_at"] == "2026-03-02T06:00:00Z"
    assert stored(world, answer).spec.priority is Lane.HIGH
    assert stored(world, answer).spec.payload == (
        '{"deep":[1,2.5,null,"ž"],"big":12345678901234567890}'
    )


def test_the_job_is_put_on_the_wheel(client: Client, world: World) -> None:
    job = stored(world, client.post("/jobs", BODY))

    hourly, _, _ = slots_of_minute(minute_of(NOW) + 5)
    (entry,) = world.wheel.query(job.segment, hourly).items
    assert (entry.job_id, entry.generation_id) == (job.job_id, job.generation.generation_id)


def test_a_job_due_in_five_seconds_is_sent_to_fire_in_five_seconds(
    client: Client, world: World
) -> None:
    announce(world)
    fire_at = NOW.replace(microsecond=0) + timedelta(seconds=5)

    answer = client.post("/jobs", BODY | {"schedule": f"at {fire_at:%Y-%m-%dT%H:%M:%SZ}"})

    assert answer.status == 201
    job = stored(world, answer)
    first = world.queue.kept()[0]
    assert first.message.key.fire_at == fire_at
    assert first.message.generation_id == job.generation.generation_id
    assert first.visible_at <= fire_at


def test_the_row_is_the_commit_nothing_is_sent_undelayed_before_it(world: World) -> None:
    announce(world)

    class Losing(MemoryJobStore):
        def create(self, job: Job) -> bool:
            assert all(kept.visible_at >= NOW + timedelta(seconds=5) for kept in world.queue.kept())
            return super().create(job)

    world.jobs = Losing()
    assert Client(world.api()).post("/jobs", BODY | {"schedule": "every 1s"}).status == 201
    assert world.queue.kept()[0].visible_at == NOW


def test_a_repetition_under_the_same_key_answers_the_same_job(client: Client, world: World) -> None:
    body = BODY | {"name": "mine"}
    first = client.post("/jobs", body, key="a key, with a comma")
    world.clock.advance(3600)
    again = client.post("/jobs", dict(reversed(body.items())), key='"a key, with a comma"')

    assert (first.status, again.status) == (201, 200)
    assert again.json["job_id"] == first.json["job_id"] == job_id_of(OWNER, "mine")
    assert again.headers["location"] == first.headers["location"]
    assert again.json["created_at"] == first.json["created_at"]
    assert len(client.get("/jobs").json["items"]) == 1


def test_a_repetition_after_the_one_shot_has_fired_is_no_error(
    client: Client, world: World
) -> None:
    body = BODY | {"schedule": "at 2026-03-01T12:01:00Z"}
    assert client.post("/jobs", body, key="k").status == 201
    world.clock.advance(3600)

    again = client.post("/jobs", body, key="k")

    assert again.status == 200
    assert again.json["next_fire_at"] is None


def test_a_key_with_another_body_is_refused(client: Client) -> None:
    client.post("/jobs", BODY, key="k")
    answer = client.post("/jobs", BODY | {"payload": 1}, key="k")

    assert answer.status == 422
    assert answer.json["type"] == "urn:carillon:problem:idempotency-key-reused"
    assert answer.fields == ["Idempotency-Key"]


def test_a_changed_job_still_answers_its_key(client: Client) -> None:
    job_id = client.post("/jobs", BODY, key="k").json["job_id"]
    client.patch(f"/jobs/{job_id}", {"description": "changed"}, 1)

    again = client.post("/jobs", BODY, key="k")

    assert again.status == 200
    assert again.json["description"] == "changed"
    assert again.headers["etag"] == '"2"'


def test_the_key_of_a_deleted_job_is_gone(client: Client) -> None:
    job_id = client.post("/jobs", BODY, key="k").json["job_id"]
    client.delete(f"/jobs/{job_id}")

    answer = client.post("/jobs", BODY, key="k")

    assert answer.status == 410
    assert answer.fields == ["Idempotency-Key"]


def test_two_creators_at_once_make_one_job(world: World) -> None:
    """The loser finds the winner's row when its own conditional put is refused."""

    class Racing(MemoryJobStore):
        rival: Api | None = None

        def create(self, job: Job) -> bool:
            rival, self.rival = self.rival, None
            if rival is not None:
                assert Client(rival).post("/jobs", BODY, key="k").status == 201
            return super().create(job)

    racing = Racing()
    world.jobs = racing
    racing.rival = world.api(entropy=SeededEntropy(2))

    answer = Client(world.api()).post("/jobs", BODY, key="k")

    assert answer.status == 200
    assert len(Client(world.api()).get("/jobs").json["items"]) == 1


@pytest.mark.parametrize("key", ["", " ", '""', "ž", "a" * 256, "a\tb"])
def test_a_key_that_cannot_be_one_is_refused(client: Client, key: str) -> None:
    answer = client.post("/jobs", BODY, key=key)

    assert answer.status == 400
    assert answer.fields == ["Idempotency-Key"]


def test_the_default_time_limit_is_within_a_short_function_s(world: World) -> None:
    world.settings = replace(world.settings, executor_timeout_seconds=10)
    client = Client(world.api())

    answered = client.post("/jobs", BODY).json
    assert (answered["timeout_seconds"], answered["time_limit_seconds"]) == (None, 5)
    assert client.post("/jobs", BODY | {"timeout_seconds": 6}).fields == ["timeout_seconds"]


@pytest.mark.parametrize(
    ("schedule", "seconds"), [("every 15s", 7), ("every 5m", 55), ("*/15 * * * * *", 10)]
)
def test_half_an_interval_is_the_default_time_limit(
    client: Client, schedule: str, seconds: int
) -> None:
    answered = client.post("/jobs", BODY | {"schedule": schedule}).json

    assert (answered["timeout_seconds"], answered["time_limit_seconds"]) == (None, seconds)


def test_a_job_created_in_the_last_millisecond_of_a_second_counts_from_that_second(
    world: World,
) -> None:
    world.clock.set(datetime(2026, 3, 1, 12, 4, 59, 999_999, tzinfo=UTC))
    answer = Client(world.api()).post("/jobs", BODY)

    assert answer.json["next_fire_at"] == "2026-03-01T12:05:00Z"
    assert stored(world, answer).generation.from_at == datetime(2026, 3, 1, 12, 4, 59, tzinfo=UTC)
