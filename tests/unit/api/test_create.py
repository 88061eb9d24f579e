"""POST /jobs: what is stored, what is sent, and what is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.api.app import Api
from shared.clock import SeededEntropy
from shared.domain.job import PAYLOAD_LIMIT_BYTES, Job, Lane, job_id_of
from shared.domain.segment import first_control
from shared.domain.wheel import minute_of, slots_of_minute
from shared.stores.memory import MemoryJobStore
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, Answer, Client

FULL_BODY: dict[str, Any] = {
    "name": "Zieme ❄",
    "schedule": {"cron": "*/15 8-17 * * mon-fri"},
    "timezone": "Europe/Riga",
    "start_at": "2026-03-01T15:00:00",
    "target": {"type": "webhook", "url": "https://example.com/hook?a=1"},
    "payload": {"deep": [1, 2.5, None, "ž"], "big": 12345678901234567890},
    "lane": "high",
    "catch_up": "all",
    "retry": {
        "max_attempts": 7,
        "backoff": {"base_seconds": 3, "factor": 1.5, "cap_seconds": 60},
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


def refused(client: Client, **changes: Any) -> Answer:
    """The answer to a body with these changes, which must be a refusal that stores nothing."""
    body = {name: value for name, value in (BODY | changes).items() if value is not ...}
    answer = client.post("/jobs", body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/jobs").json["items"] == []
    return answer


def test_a_minimal_job_gets_the_documented_defaults(client: Client, world: World) -> None:
    answer = client.post("/jobs", BODY)

    assert answer.status == 201
    job_id = answer.json["job_id"]
    assert answer.headers["location"] == f"/jobs/{job_id}"
    assert answer.headers["etag"] == '"1"'
    assert answer.json == {
        "job_id": job_id,
        "name": "nightly report",
        "state": "active",
        "revision": 1,
        "description": "every 5 minutes",
        "schedule": "every 5m",
        "except": [],
        "timezone": "UTC",
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "on_complete": "keep",
        "dst": {"gap": None, "fold": None},
        "window": None,
        "spread_seconds": 0,
        "calendar": None,
        "target": {"type": "task", "name": "echo"},
        "payload": None,
        "lane": "normal",
        "catch_up": "latest",
        "retry": {
            "max_attempts": 3,
            "backoff": {"base_seconds": 2, "factor": 2.0, "cap_seconds": 3600},
        },
        "timeout_seconds": 10,
        "next_fire_at": "2026-03-01T12:05:00Z",
        "next_effective_at": "2026-03-01T12:05:00Z",
        "last_fire_at": None,
        "created_at": "2026-03-01T12:00:00.250Z",
        "updated_at": "2026-03-01T12:00:00.250Z",
        "warnings": [],
        "transitions": [],
    }
    assert stored(world, answer).filing.from_at == NOW.replace(microsecond=0)
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
    assert stored(world, answer).lane is Lane.HIGH
    assert stored(world, answer).payload == ('{"deep":[1,2.5,null,"ž"],"big":12345678901234567890}')


def test_the_job_is_put_on_the_wheel(client: Client, world: World) -> None:
    job = stored(world, client.post("/jobs", BODY))

    hourly, _, _ = slots_of_minute(minute_of(NOW) + 5)
    (entry,) = world.wheel.query(job.segment, hourly).entries
    assert (entry.job_id, entry.filing_id) == (job.job_id, job.filing.filing_id)


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
    assert first.message.filing_id == job.filing.filing_id
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
    first = client.post("/jobs", BODY, key="a key, with a comma")
    world.clock.advance(3600)
    again = client.post("/jobs", dict(reversed(BODY.items())), key='"a key, with a comma"')

    assert (first.status, again.status) == (201, 200)
    assert again.json["job_id"] == first.json["job_id"] == job_id_of(OWNER, "a key, with a comma")
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
    answer = client.post("/jobs", BODY | {"name": "another"}, key="k")

    assert answer.status == 422
    assert answer.json["type"] == "urn:carillon:problem:idempotency-key-reused"
    assert answer.fields == ["Idempotency-Key"]


def test_a_changed_job_still_answers_its_key(client: Client) -> None:
    job_id = client.post("/jobs", BODY, key="k").json["job_id"]
    client.patch(f"/jobs/{job_id}", {"name": "changed"}, 1)

    again = client.post("/jobs", BODY, key="k")

    assert again.status == 200
    assert again.json["name"] == "changed"
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


def test_jobs_without_a_key_are_different_jobs_in_order_of_time(
    client: Client, world: World
) -> None:
    ids = []
    for _ in range(3):
        ids.append(client.post("/jobs", BODY).json["job_id"])
        world.clock.advance(1)

    assert len(set(ids)) == 3
    assert [job["job_id"] for job in client.get("/jobs").json["items"]] == ids


@pytest.mark.parametrize("key", ["", " ", '""', "ž", "a" * 256, "a\tb"])
def test_a_key_that_cannot_be_one_is_refused(client: Client, key: str) -> None:
    answer = client.post("/jobs", BODY, key=key)

    assert answer.status == 400
    assert answer.fields == ["Idempotency-Key"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ...}, "name"),
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": 5}, "name"),
        ({"schedule": ...}, "schedule"),
        ({"schedule": 5}, "schedule"),
        ({"schedule": None}, "schedule"),
        ({"schedule": []}, "schedule"),
        ({"schedule": ["every 5m"] * 21}, "schedule"),
        ({"schedule": ["every 5m", 5]}, "schedule"),
        ({"schedule": ["every 5m", "61 * * * *"]}, "schedule[1]"),
        ({"schedule": ["every 5m", {"cron": "61 * * * *"}]}, "schedule[1].cron"),
        ({"schedule": ["every 5m", "every 5m after finish"]}, "schedule"),
        ({"except": "* * 25 12 *"}, "except"),
        ({"except": ["* * 25 12 *"] * 21}, "except"),
        ({"except": [5]}, "except"),
        ({"except": ["61 * * * *"]}, "except[0]"),
        ({"except": ["every 5m"]}, "except"),
        ({"except_": ["* * 25 12 *"]}, "except_"),
        ({"end_at": "tomorrow"}, "end_at"),
        ({"end_at": "2026-02-28T00:00:00Z"}, "end_at"),
        ({"start_at": "2026-12-01T00:00:00Z", "end_at": "2026-11-01T00:00:00Z"}, "end_at"),
        ({"max_runs": 0}, "max_runs"),
        ({"max_runs": 10_001}, "max_runs"),
        ({"max_runs": "3"}, "max_runs"),
        ({"max_runs": 3, "schedule": "every 5m after finish"}, "max_runs"),
        ({"on_complete": "explode"}, "on_complete"),
        ({"dst": "skip"}, "dst"),
        ({"dst": {"gap": "jump"}}, "dst.gap"),
        ({"dst": {"fold": "third"}}, "dst.fold"),
        ({"dst": {"when": "now"}}, "dst.when"),
        ({"window": ""}, "window"),
        ({"window": 15}, "window"),
        ({"window": "soon"}, "window"),
        ({"window": "0s"}, "window"),
        ({"window": "25h"}, "window"),
        ({"window": "101%"}, "window"),
        ({"window": "50%", "schedule": "at 2026-03-02T12:00:00Z"}, "window"),
        ({"calendar": "holidays"}, "calendar"),
        ({"calendar": {}}, "calendar.name"),
        ({"calendar": {"name": "Holidays"}}, "calendar.name"),
        ({"calendar": {"name": "holidays"}}, "calendar.name"),
        ({"calendar": {"name": "x", "rule": "sometimes"}}, "calendar.rule"),
        ({"calendar": {"name": "x", "weekdays": []}}, "calendar.weekdays"),
        ({"schedule": "every now and then"}, "schedule"),
        ({"schedule": "61 * * * *"}, "schedule"),
        ({"schedule": {"every": "x"}}, "schedule.every"),
        ({"schedule": {"every": "5m", "offset": "5m"}}, "schedule.offset"),
        ({"schedule": {"every": "5m", "timezone": "UTC"}}, "schedule.timezone"),
        ({"schedule": {}}, "schedule"),
        ({"schedule": {"any": []}}, "schedule"),
        ({"schedule": "at 2026-03-01T12:00:00Z"}, "schedule"),
        ({"timezone": "Europe/Rigga"}, "timezone"),
        ({"timezone": None}, "timezone"),
        ({"start_at": "tomorrow"}, "start_at"),
        ({"start_at": 1_767_225_600}, "start_at"),
        ({"start_at": "2026-12-01"}, "start_at"),
        ({"start_at": "2026-12-01T00:00:00.5Z"}, "start_at"),
        ({"start_at": "0001-01-01T00:00:00+14:00"}, "start_at"),
        ({"target": ...}, "target"),
        ({"target": "echo"}, "target"),
        ({"target": {"name": "echo"}}, "target.type"),
        ({"target": {"type": "lambda", "name": "echo"}}, "target.type"),
        ({"target": {"type": "task"}}, "target.name"),
        ({"target": {"type": "task", "name": "a b"}}, "target.name"),
        ({"target": {"type": "task", "name": "echo", "url": "https://a.test/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "ftp://example.com/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "https://u:p@example.com/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://example.com/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://localhost/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://10.0.0.1/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://2130706433/"}}, "target.url"),
        ({"lane": "urgent"}, "lane"),
        ({"catch_up": "some"}, "catch_up"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": 101}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": "3"}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": True}}, "retry.max_attempts"),
        ({"retry": {"attempts": 3}}, "retry.attempts"),
        ({"retry": {"backoff": {"base_seconds": 0}}}, "retry.backoff.base_seconds"),
        ({"retry": {"backoff": {"factor": 0.5}}}, "retry.backoff.factor"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": 1.5}, "timeout_seconds"),
        ({"timeout_seconds": 56}, "timeout_seconds"),
        ({"colour": "red"}, "colour"),
        ({"job_id": "mine"}, "job_id"),
    ],
)
def test_a_bad_field_is_named(client: Client, changes: dict[str, Any], field: str) -> None:
    answer = refused(client, **changes)

    assert answer.status == 422, answer.text
    assert answer.fields == [field]
    assert answer.json["errors"][0]["message"]
    assert field in answer.json["detail"]


@pytest.mark.parametrize("field", ["target", "retry", "dst", "calendar"])
def test_a_refusal_speaks_of_json(client: Client, field: str) -> None:
    assert refused(client, **{field: 5}).json["detail"] == f"{field} must be an object"


def test_null_stands_for_the_defaults_of_optional_fields(client: Client) -> None:
    fields = ("except", "dst", "start_at", "end_at", "max_runs", "window", "calendar")
    answer = client.post("/jobs", BODY | dict.fromkeys(fields))

    assert answer.status == 201, answer.text
    assert answer.json["except"] == []
    assert answer.json["dst"] == {"gap": None, "fold": None}


def test_every_bad_field_is_named_at_once(client: Client) -> None:
    answer = refused(client, name=..., lane="urgent", colour="red", size=1)

    assert sorted(answer.fields) == ["colour", "lane", "name", "size"]
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


def test_the_default_time_limit_is_within_a_short_function_s(world: World) -> None:
    world.settings = replace(world.settings, function_timeout_seconds=10)
    client = Client(world.api())

    assert client.post("/jobs", BODY).json["timeout_seconds"] == 5
    assert client.post("/jobs", BODY | {"timeout_seconds": 6}).fields == ["timeout_seconds"]


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


def test_a_job_created_in_the_last_millisecond_of_a_second_counts_from_that_second(
    world: World,
) -> None:
    world.clock.set(datetime(2026, 3, 1, 12, 4, 59, 999_999, tzinfo=UTC))
    answer = Client(world.api()).post("/jobs", BODY)

    assert answer.json["next_fire_at"] == "2026-03-01T12:05:00Z"
    assert stored(world, answer).filing.from_at == datetime(2026, 3, 1, 12, 4, 59, tzinfo=UTC)
