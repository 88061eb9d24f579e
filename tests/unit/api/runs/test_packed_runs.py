"""Runs that only chunks tell of, as the API answers them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.clock import SystemEntropy
from carillon.domain.chunks.chunk import Chunk, Ended, Outcome, finished, ref_of
from carillon.domain.chunks.history import left_by
from carillon.domain.chunks.looking import CLAIMED_WITHIN
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Plan
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.wheel.entry import minute_of
from tests.unit.api.conftest import BODY, NOW, World
from tests.unit.api.gateway import OWNER, Client

DUE_AT = NOW.replace(hour=15, minute=0, second=0, microsecond=0)
AFTER = timedelta(milliseconds=300)
SINCE = {"from": (DUE_AT - timedelta(minutes=30)).isoformat()}
RETRY = {"max_attempts": 3}


def claimed_at(world: World, job: Job, due_at: datetime) -> Chunk:
    """A chunk of one, claimed as it was due."""
    expires_at, second = due_at + world.settings.run_lifetime, due_at.second
    key = ChunkKey(job.segment, minute_of(due_at), second, Lane.NORMAL, 0)
    ref = ref_of(job.job_id, job.generation.generation_id, job.spread_seconds)
    plan = Plan(job.segment, key.minute, "salt", expires_at, {(second, Lane.NORMAL): 1})
    assert world.chunks.put_plan(plan)
    chunk = Chunk(key, "claim", due_at, due_at + timedelta(minutes=1), expires_at, (ref,))
    assert world.chunks.claim(chunk)
    return chunk


def succeeded_at(world: World, job: Job, due_at: datetime) -> None:
    chunk = claimed_at(world, job, due_at)
    end = Ended(Outcome.OK, due_at, due_at + AFTER, "12 rows")
    assert world.chunks.finish(finished(chunk, {chunk.refs[0]: end}))


class Packed:
    """One plain job of the client, due each hour, whose runs go in chunks of their own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = Client(world.api())
        made = self.client.post("/jobs", BODY | {"schedule": "0 * * * *", "retry": RETRY})
        assert made.status == 201, made.text
        self.path = f"/jobs/{made.json['job_id']}"
        job = world.jobs.get(OWNER, made.json["job_id"])
        assert isinstance(job, Job)
        assert job.is_plain
        self.job = job
        self.key = RunKey(OWNER, job.job_id, RunKind.SCHEDULED, DUE_AT)
        world.clock.set(DUE_AT + AFTER)

    def claimed(self) -> Chunk:
        return claimed_at(self.world, self.job, DUE_AT)

    def succeeded(self) -> None:
        succeeded_at(self.world, self.job, DUE_AT)

    @property
    def run_path(self) -> str:
        return f"{self.path}/runs/{self.key.run_id}"


@pytest.fixture
def packed(world: World) -> Packed:
    return Packed(world)


def shown(run: Mapping[str, object]) -> tuple[object, ...]:
    return run["run_id"], run["status"], run["result"]


def test_lists_pages_and_summaries_show_a_success(packed: Packed) -> None:
    packed.succeeded()
    success = packed.key.run_id, "succeeded", "12 rows"
    assert packed.world.runs.list(OWNER, packed.job.job_id, 10).items == ()
    assert shown(packed.client.get(packed.run_path).json) == success
    assert shown(packed.client.get(f"/runs/{packed.key.run_id}").json) == success
    (listed,) = packed.client.get(f"{packed.path}/runs").json["items"]
    assert shown(listed) == success
    summaries = packed.client.get("/jobs", view="summary", include="last_run")
    (summary,) = summaries.json["items"]
    assert summary["last_run"]["run_id"] == packed.key.run_id


def test_a_success_is_not_missed(packed: Packed) -> None:
    packed.succeeded()
    packed.world.clock.set(DUE_AT + timedelta(minutes=30))
    assert packed.client.get(f"{packed.path}/missed", **SINCE).json["items"] == []


def test_one_whose_chunk_says_nothing_is_missed(packed: Packed) -> None:
    packed.world.clock.set(DUE_AT + timedelta(minutes=30))
    (missed,) = packed.client.get(f"{packed.path}/missed", **SINCE).json["items"]
    assert missed["run_id"] is None


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_run_in_a_claimed_chunk_is_not_cancelled(packed: Packed, seconds: int) -> None:
    """Its chunk would record its success all the same. It has a row of its own before two seconds
    have passed, or has ended."""
    packed.claimed()
    packed.world.clock.advance(seconds)
    answer = packed.client.post(f"{packed.run_path}/cancel")
    assert answer.status == 409
    assert "again" in answer.json["detail"]
    assert answer.headers["retry-after"] == "2"
    assert packed.world.runs.list(OWNER, packed.job.job_id, 10).items == ()


def test_a_run_whose_executor_died_in_a_chunk_is_cancelled(packed: Packed) -> None:
    chunk = packed.claimed()
    packed.world.clock.set(chunk.lease_until)
    answer = packed.client.post(f"{packed.run_path}/cancel")
    assert answer.status == 200, answer.text
    assert answer.json["status"] == "cancelled"
    (attempt,) = answer.json["attempts"]
    assert attempt["error"]["kind"] == "executor_died"
    (told,) = packed.world.queue.kept()
    assert told.message.key == packed.key, "nobody else may tell of it for long"
    assert packed.client.get(packed.run_path).json == answer.json


def test_an_executor_that_had_only_stood_still_records_no_success_of_it(packed: Packed) -> None:
    chunk = packed.claimed()
    packed.world.clock.set(chunk.lease_until)
    cancelled = packed.client.post(f"{packed.run_path}/cancel").json
    end = Ended(Outcome.OK, DUE_AT, DUE_AT + AFTER)
    assert not packed.world.chunks.finish(finished(chunk, {chunk.refs[0]: end}))
    assert packed.client.get(packed.run_path).json == cancelled
    (listed,) = packed.client.get(f"{packed.path}/runs").json["items"]
    assert listed["status"] == "cancelled"


def test_nor_is_one_cancelled_whose_success_comes_meanwhile(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk, fence = packed.claimed(), packed.world.chunks.fence
    packed.world.clock.set(chunk.lease_until)
    end = Ended(Outcome.OK, DUE_AT, DUE_AT + AFTER)

    def too_late(seen: Chunk, claim_id: str) -> bool:
        assert packed.world.chunks.finish(finished(chunk, {chunk.refs[0]: end}))
        return fence(seen, claim_id)

    monkeypatch.setattr(packed.world.chunks, "fence", too_late)
    assert packed.client.post(f"{packed.run_path}/cancel").status == 409
    assert packed.client.get(packed.run_path).json["status"] == "succeeded"


def test_nor_one_that_another_generations_chunk_may_yet_have(packed: Packed) -> None:
    """It has still to come, as its plan says. A minute late it would run nothing."""
    world, job = packed.world, packed.job
    made_at = DUE_AT - timedelta(hours=5)
    older = Generation(SystemEntropy().new_id(made_at), made_at)
    replaced = replace(job, generation=older, segment=job.segment + 1)
    record = left_by(replaced, job, world.settings.run_lifetime)
    assert record is not None
    world.chunks.put_record(replace(record, until_at=DUE_AT))
    chunk = claimed_at(world, replaced, DUE_AT)
    one = {(0, Lane.NORMAL): 1}
    assert world.chunks.put_plan(Plan(job.segment, chunk.key.minute, "", chunk.expires_at, one))
    world.clock.set(chunk.lease_until)
    assert packed.client.post(f"{packed.run_path}/cancel").status == 409
    world.clock.set(DUE_AT + CLAIMED_WITHIN)
    assert packed.client.post(f"{packed.run_path}/cancel").status == 200


def test_what_was_a_claim_that_is_withdrawn_meanwhile_is_not_cancelled(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was for an instant that is none, perhaps."""
    runs, clock = packed.world.runs, packed.world.clock
    now, lapses_at = clock.now(), clock.now() + timedelta(minutes=1)
    fields = packed.key, RunStatus.RUNNING, 1, 1, "claim", "of none", now, now + timedelta(days=1)
    row = Run(*fields, lease_until=lapses_at)
    assert runs.claim(row, None)
    clock.set(lapses_at)
    claim = runs.claim

    def withdrawn(run: Run, over: Run | None) -> bool:
        return runs.discard_claim(row) and claim(run, over)

    monkeypatch.setattr(runs, "claim", withdrawn)
    assert packed.client.post(f"{packed.run_path}/cancel").status == 409
    assert packed.client.get(packed.run_path).status == 404


def test_what_dies_in_a_chunk_beside_such_a_claim_is_cancelled_as_what_it_is(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its call was not stopped: nobody had begun it (9980003177)."""
    runs, clock, chunk = packed.world.runs, packed.world.clock, packed.claimed()
    clock.set(chunk.lease_until)
    now, generation_id = clock.now(), packed.job.generation.generation_id
    fields = packed.key, RunStatus.RUNNING, 1, 1, "claim", generation_id, now
    row = Run(*fields, now + timedelta(days=1), now + timedelta(minutes=1), started_at=now)
    assert runs.claim(row, None)
    clock.advance(10)
    claim = runs.claim

    def withdrawn(run: Run, over: Run | None) -> bool:
        runs.discard_claim(row)
        return claim(run, over)

    monkeypatch.setattr(runs, "claim", withdrawn)
    answer = packed.client.post(f"{packed.run_path}/cancel")
    assert (answer.status, answer.json["status"]) == (200, "cancelled")
    (attempt,) = answer.json["attempts"]
    assert attempt["error"]["kind"] == "executor_died"


def test_nor_one_whose_chunk_was_held_when_it_was_seen(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the time its chunk is taken its executor has died: no call was stopped (9979053889)."""
    chunk, runs, clock = packed.claimed(), packed.world.runs, packed.world.clock
    clock.set(chunk.lease_until - timedelta(seconds=1))
    claim = runs.claim

    def slowly(run: Run, over: Run | None) -> bool:
        clock.set(chunk.lease_until)
        return claim(run, over)

    monkeypatch.setattr(runs, "claim", slowly)
    assert packed.client.post(f"{packed.run_path}/cancel").status == 409
    (attempt,) = packed.client.post(f"{packed.run_path}/cancel").json["attempts"]
    assert attempt["error"]["kind"] == "executor_died"


def test_nor_is_the_chunk_taken_that_has_another_run_of_its_instant(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk, runs, clock = packed.claimed(), packed.world.runs, packed.world.clock
    clock.set(chunk.lease_until)
    now, claim = clock.now(), runs.claim
    key = replace(packed.key, kind=RunKind.MANUAL, request_id="r")
    fields = key, RunStatus.RUNNING, 1, 1, "claim", "of none", now, now + timedelta(days=1)
    row = Run(*fields, lease_until=now)
    assert runs.claim(row, None)

    def withdrawn(run: Run, over: Run | None) -> bool:
        return (over is None or runs.discard_claim(row)) and claim(run, over)

    monkeypatch.setattr(runs, "claim", withdrawn)
    assert packed.client.post(f"{packed.path}/runs/{key.run_id}/cancel").status == 409
    assert packed.world.chunks.get(chunk.key) == chunk


def test_a_success_is_neither_cancelled_nor_redriven(packed: Packed) -> None:
    packed.succeeded()
    assert packed.client.post(f"{packed.run_path}/cancel").status == 409
    answer = packed.client.post(f"/dead-letters/{packed.key.run_id}/redrive")
    assert answer.status == 409, answer.text
    assert "succeeded" in answer.json["detail"]


def test_another_owner_sees_nothing_of_it(packed: Packed) -> None:
    packed.succeeded()
    stranger = Client(packed.world.api(), owner="stranger")
    assert stranger.get(packed.run_path).status == 404
    assert stranger.get(f"/runs/{packed.key.run_id}").status == 404
