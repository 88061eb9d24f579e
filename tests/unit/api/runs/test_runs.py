"""Manual runs, and the history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.chunks.message import Order
from carillon.domain.message import Message
from carillon.domain.run import AttemptRecord, Run, RunError, RunKey, RunKind, RunStatus
from carillon.errors import QueueUnavailableError
from carillon.stores.memory import MemoryQueue
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, STRANGER, Client, Json

SECOND = NOW.replace(microsecond=0)


class FailingQueue(MemoryQueue):
    """Refuses everything while `is_down`."""

    is_down = True

    def send(self, messages: Sequence[Order], delays: Sequence[float], *until: Any) -> None:
        if self.is_down and messages:
            raise QueueUnavailableError(len(messages), "down")
        super().send(messages, delays)


def make_run(job_id: str, fire_at: datetime, **values: Any) -> Run:
    run = Run(
        key=RunKey(OWNER, job_id, RunKind.SCHEDULED, fire_at),
        status=RunStatus.SUCCEEDED,
        attempt=1,
        token=1,
        claim_id="claim",
        generation_id="generation",
        updated_at=fire_at,
        expires_at=fire_at + timedelta(days=30),
    )
    return replace(run, **values)


def put(world: World, run: Run) -> Run:
    assert world.runs.claim(run, None)
    return run


def stored(world: World, run: Run) -> Run:
    found = world.runs.get(run.key)
    assert found is not None
    return found


def only_run(world: World, run_id: str) -> Run:
    run = world.runs.get(RunKey.from_run_id(OWNER, run_id))
    assert run is not None
    return run


def test_a_manual_run_is_recorded_and_sent(client: Client, world: World, job: Json) -> None:
    answer = client.post(f"/jobs/{job['job_id']}/run")

    assert answer.status == 202
    run_id = answer.json["run_id"]
    assert answer.headers["location"] == f"/jobs/{job['job_id']}/runs/{run_id}"
    assert (answer.json["kind"], answer.json["status"]) == ("manual", "scheduled")
    assert answer.json["fire_at"] == "2026-03-01T12:00:00Z"
    assert client.get(answer.headers["location"]).json == answer.json
    (kept,) = world.queue.kept()
    assert kept.visible_at == NOW
    message = kept.message
    assert (message.key.run_id, message.due_at, message.attempt) == (run_id, SECOND, 1)
    assert message.generation_id == only_run(world, run_id).generation_id
    assert message.key.request_id.isalnum()


def test_each_request_without_a_key_is_another_run(client: Client, world: World, job: Json) -> None:
    ids = {client.post(f"/jobs/{job['job_id']}/run").json["run_id"] for _ in range(3)}

    assert len(ids) == len(world.queue.kept()) == 3


def test_a_repetition_under_the_key_is_the_same_run_at_any_later_time(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}/run"
    first = client.post(path, key="k").json
    world.clock.advance(7200)
    again = client.post(path, key="k").json
    other = client.post(path, key="l").json

    assert again == first
    assert other["run_id"] != first["run_id"]
    listed = client.get(f"/jobs/{job['job_id']}/runs").json["items"]
    assert [run["run_id"] for run in listed] == [other["run_id"], first["run_id"]]
    # It had not started, so it was sent again: the claim absorbs the duplicate.
    sent = [kept.message.key.run_id for kept in world.queue.kept()]
    assert sent == [first["run_id"], first["run_id"], other["run_id"]]


@pytest.mark.parametrize("body", [{}, {"payload": 1}])
def test_a_key_that_has_expired_makes_a_run_of_now(
    client: Client, world: World, job: Json, body: Json
) -> None:
    """As long as a run is kept after its request: then nobody can tell what it was."""
    path = f"/jobs/{job['job_id']}/run"
    first = client.post(path, body, key="k").json
    world.clock.advance(timedelta(days=31).total_seconds())
    world.runs.expire(world.clock.now())

    later = [client.post(path, body, key="k").json for _ in range(2)]

    assert later[0]["fire_at"] == "2026-04-01T12:00:00Z"
    assert [run["run_id"] == first["run_id"] for run in later] == [False, False]
    assert later[0] == later[1]


def test_a_repetition_of_a_started_run_sends_nothing(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}/run"
    run = only_run(world, client.post(path, key="k").json["run_id"])
    running = replace(run, status=RunStatus.RUNNING, attempt=1, token=1, claim_id="other")
    assert world.runs.claim(running, run)

    again = client.post(path, key="k")

    assert (again.status, again.json["status"]) == (202, "running")
    assert len(world.queue.kept()) == 1


def test_the_key_is_the_job_s_own(client: Client, job: Json) -> None:
    other = client.post("/jobs", BODY).json
    runs = [client.post(f"/jobs/{j['job_id']}/run", key="k").json for j in (job, other)]

    assert [run["job_id"] for run in runs] == [job["job_id"], other["job_id"]]


def test_a_failed_send_can_be_repeated_under_its_key(world: World) -> None:
    queue = FailingQueue(world.clock)
    client = Client(world.api(queue=queue))
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}"

    refused = client.post(f"{path}/run", key="k")
    assert (refused.status, refused.headers["retry-after"]) == (503, "2")
    world.clock.advance(5)
    queue.is_down = False
    accepted = client.post(f"{path}/run", key="k")

    assert accepted.status == 202
    (run,) = client.get(f"{path}/runs").json["items"]
    assert (run["run_id"], run["status"]) == (accepted.json["run_id"], "scheduled")
    assert [kept.message.key.run_id for kept in queue.kept()] == [run["run_id"]]


def test_a_failed_send_without_a_key_leaves_no_run_waiting(world: World) -> None:
    client = Client(world.api(queue=FailingQueue(world.clock)))
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}"

    assert client.post(f"{path}/run").status == 503

    assert client.get(f"{path}/runs").json["items"] == []


@pytest.mark.parametrize("key", [None, "k"])
def test_a_row_is_put_only_when_its_message_is_sent(world: World, key: str | None) -> None:
    """Found by the simulation: an api that died in between left a row that was scheduled for
    ever."""

    class Dying(MemoryQueue):
        def send(self, messages: Sequence[Order], delays: Sequence[float], *until: Any) -> None:
            manual = [
                m.key for m in messages if isinstance(m, Message) and m.key.kind is RunKind.MANUAL
            ]
            for key in manual:
                rows = world.runs.list(OWNER, key.job_id, limit=10).items
                assert rows == ()
            super().send(messages, delays)

    client = Client(world.api(queue=Dying(world.clock)))
    path = f"/jobs/{client.post('/jobs', BODY).json['job_id']}/run"
    assert client.post(path, key=key).json["status"] == "scheduled"


def test_an_executor_may_be_quicker_than_the_row(world: World) -> None:
    class Quick(MemoryQueue):
        def send(self, messages: Sequence[Order], delays: Sequence[float], *until: Any) -> None:
            for message in messages:
                if isinstance(message, Message) and message.key.kind is RunKind.MANUAL:
                    put(world, make_run(message.key.job_id, SECOND, key=message.key))

    client = Client(world.api(queue=Quick(world.clock)))
    answer = client.post(f"/jobs/{client.post('/jobs', BODY).json['job_id']}/run")
    assert (answer.status, answer.json["status"]) == (202, "succeeded")


def test_a_paused_job_can_be_run(client: Client, job: Json) -> None:
    client.post(f"/jobs/{job['job_id']}/pause")

    assert client.post(f"/jobs/{job['job_id']}/run").status == 202


def test_history_is_newest_first_and_paged(client: Client, world: World, job: Json) -> None:
    for minute in (1, 3, 2, 5, 4):
        put(world, make_run(job["job_id"], SECOND + timedelta(minutes=minute)))
    path = f"/jobs/{job['job_id']}/runs"

    first = client.get(path, limit="3").json
    rest = client.get(path, limit="3", cursor=first["next_cursor"]).json

    minutes = [run["fire_at"][14:16] for run in first["items"] + rest["items"]]
    assert minutes == ["05", "04", "03", "02", "01"]
    assert rest["next_cursor"] is None
    assert client.get(path, cursor="x").fields == ["cursor"]
    assert client.get("/jobs", cursor=first["next_cursor"]).fields == ["cursor"]


def test_history_outlives_its_job(client: Client, world: World, job: Json) -> None:
    run = put(world, make_run(job["job_id"], SECOND))
    client.delete(f"/jobs/{job['job_id']}")
    path = f"/jobs/{job['job_id']}/runs"

    assert [found["run_id"] for found in client.get(path).json["items"]] == [run.key.run_id]
    assert client.get(f"{path}/{run.key.run_id}").status == 200


ERROR_FORM = {"kind": "http_503", "message": "no answer", "permanent": False}
RETRYING_FORM = {
    "kind": "scheduled",
    "fire_at": "2026-03-01T12:00:00Z",
    "effective_at": "2026-03-01T12:01:30Z",
    "redrive": 0,
    "status": "retrying",
    "attempt": 2,
    "lag_seconds": 0.123,
    "started_at": "2026-03-01T12:01:30.123Z",
    "finished_at": None,
    "next_attempt_at": "2026-03-01T12:00:30Z",
    "updated_at": "2026-03-01T12:00:00Z",
    "result": None,
    "result_bytes": None,
    "error": ERROR_FORM,
    "reason": None,
    "note": "moved from 2026-02-28",
    "settled": None,
    "covers_from": None,
    "covers_count": None,
}
ATTEMPT_FORM = {
    "attempt": 1,
    "started_at": "2026-03-01T12:00:00Z",
    "finished_at": "2026-03-01T12:00:01Z",
    "error": ERROR_FORM,
}


def test_a_run_is_told_whole(client: Client, world: World, job: Json) -> None:
    error = RunError("http_503", "no answer", permanent=False)
    run = make_run(
        job["job_id"],
        SECOND,
        status=RunStatus.RETRYING,
        attempt=2,
        effective_at=SECOND + timedelta(seconds=90),
        started_at=SECOND + timedelta(seconds=90.1234),
        note="moved from 2026-02-28",
        next_attempt_at=SECOND + timedelta(seconds=30),
        error=error,
        attempts=(AttemptRecord(1, SECOND, SECOND + timedelta(seconds=1), error),),
    )
    put(world, run)
    ids = {"job_id": job["job_id"], "run_id": f"{job['job_id']}_20260301T120000Z_scheduled_0"}

    told = client.get(f"/jobs/{job['job_id']}/runs/{run.key.run_id}").json
    (listed,) = client.get(f"/jobs/{job['job_id']}/runs").json["items"]

    assert listed == RETRYING_FORM | ids
    asked = {"payload_overridden": False, "request_note": None}
    assert told == listed | {"attempts": [ATTEMPT_FORM]} | asked


def test_a_skip_row_tells_what_it_covers(client: Client, world: World, job: Json) -> None:
    covers_from = SECOND - timedelta(minutes=10)
    skipped = {"status": RunStatus.SKIPPED, "reason": "catch_up"}
    row = make_run(job["job_id"], SECOND, covers_from=covers_from, covers_count=3, **skipped)
    put(world, replace(row, key=replace(row.key, kind=RunKind.MISSED)))

    (listed,) = client.get(f"/jobs/{job['job_id']}/runs").json["items"]

    assert (listed["kind"], listed["status"], listed["reason"]) == ("missed", "skipped", "catch_up")
    assert (listed["covers_from"], listed["covers_count"]) == ("2026-03-01T11:50:00Z", 3)


@pytest.mark.parametrize(
    "run_id",
    [
        "{job}_20260301T120000Z_scheduled_1",
        "{job}_20260301T120000Z_scheduled_00",
        "{job}_20260301T120000Z_scheduled_-0",
        "{job}_20260301T120000Z_scheduled- _0",
        "{job}_20260301T120000Z_often_0",
        "{job}_2026-03-01_scheduled_0",
        "{job}_00010101T000000Z_scheduled_0",
        "{job}_99991231T235959Z_scheduled_0",
        "other_20260301T120000Z_scheduled_0",
        "nonsense",
        "____",
        "{job}_20260301T120000Z_scheduled_" + "9" * 5000,
    ],
)
def test_text_that_is_no_run_of_the_job_is_not_found(
    client: Client, world: World, job: Json, run_id: str
) -> None:
    put(world, make_run(job["job_id"], SECOND))
    other = client.post("/jobs", BODY).json["job_id"]
    put(world, make_run(other, SECOND))
    run_id = run_id.replace("{job}", job["job_id"]).replace("other", other)

    assert client.get(f"/jobs/{job['job_id']}/runs/{run_id}").status == 404


def test_no_path_leads_into_the_rows_of_another_owner(world: World) -> None:
    """Run keys join owner and job id by `#`: neither may smuggle one in."""
    crossing = Client(world.api(), owner=OWNER.partition("-")[0])
    put(world, make_run("0" * 26, SECOND))

    for job_id in (f"{OWNER}#{'0' * 26}", f"%23{'0' * 26}", f"{STRANGER}~requests"):
        assert crossing.get(f"/jobs/{job_id}/runs").status == 404
        assert crossing.post(f"/jobs/{job_id}/run").status == 404
