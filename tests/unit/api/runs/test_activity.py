"""GET /runs: what has run, across jobs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SeededEntropy, utc_text
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.errors import StoreUnavailableError
from carillon.services.activity import ActivityWriter
from carillon.stores.memory import MemoryActivityStore
from tests.unit.api.conftest import NOW, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_runs import make_run, put

MINUTE = timedelta(minutes=1)
FIRED = NOW.replace(microsecond=0)
JOBS = ["0" * 25 + each for each in "0123456789abcdef"]
_IDS = SeededEntropy(5)


def result(job: int = 0, status: RunStatus = RunStatus.DEAD, **changes: Any) -> Result:
    fire_at: datetime = changes.pop("fire_at", FIRED)
    key = RunKey(OWNER, JOBS[job], RunKind.SCHEDULED, fire_at)
    made = Result(key, status, 1, fire_at + timedelta(seconds=1), f"job {job}", (), 0.5, 1.0)
    return replace(made, **changes)


def record(world: World, *results: Result, ago: timedelta = timedelta()) -> None:
    """Write the results as a batch that ended so long ago."""
    clock = type(world.clock)(world.clock.now() - ago)
    assert ActivityWriter(world.activity, clock, _IDS, timedelta(days=7)).write(results) == []


def listed(client: Client, **query: str) -> list[tuple[str, int]]:
    """Job name and attempt of what `GET /runs` answers, over all pages."""
    found, cursor = [], ""
    while True:
        answer = client.get("/runs", **query, **({"cursor": cursor} if cursor else {}))
        assert answer.status == 200, answer.text
        found += [(each["job_name"], each["attempt"]) for each in answer.json["items"]]
        cursor = answer.json["next_cursor"] or ""
        if not cursor:
            return found


def test_a_record_outlives_the_period_of_every_digest(world: World) -> None:
    """Of a feed of one day the first failures of a day's period would be gone by its end."""
    clock = type(world.clock)(FIRED)
    assert ActivityWriter(world.activity, clock, _IDS, timedelta(days=1)).write([result()]) == []
    (kept,) = world.activity.read(OWNER, FIRED.replace(hour=0, minute=0, second=0))
    assert kept.expires_at > FIRED + timedelta(days=1, hours=1)


def test_a_result_as_the_answer_has_it(client: Client, world: World) -> None:
    dead = result(reason="exhausted", error_kind="http_503", tags=(("team", "billing"),))
    record(world, dead)

    answer = client.get("/runs", **{"from": "2026-03-01T11:00:00Z"})

    assert answer.json == {
        "items": [
            {
                "run_id": dead.key.run_id,
                "job_id": JOBS[0],
                "job_name": "job 0",
                "kind": "scheduled",
                "status": "dead",
                "attempt": 1,
                "fire_at": "2026-03-01T12:00:00Z",
                "at": "2026-03-01T12:00:01Z",
                "lag_seconds": 0.5,
                "duration_seconds": 1.0,
                "reason": "exhausted",
                "error_kind": "http_503",
                "tags": {"team": "billing"},
            }
        ],
        "next_cursor": None,
        "unreadable": [],
        "as_of": "2026-03-01T12:00:00.250Z",
        "successes": "counted",
    }


def test_what_was_recorded_last_comes_first_over_pages_and_days(
    client: Client, world: World
) -> None:
    for job in range(8):
        record(world, result(job), ago=job * 25 * MINUTE)
    assert listed(client, limit="3") == [(f"job {job}", 1) for job in range(8)]


def test_doubles_are_dropped_and_the_end_stands_for_the_attempt(
    client: Client, world: World
) -> None:
    record(world, result(0, RunStatus.CANCELLED), ago=2 * MINUTE)
    record(world, result(0, RunStatus.RETRYING), result(1), ago=MINUTE)
    record(world, result(1))
    answer = client.get("/runs").json["items"]
    assert [(each["job_name"], each["status"]) for each in answer] == [
        ("job 1", "dead"),
        ("job 0", "cancelled"),
    ]


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ({"status": "dead,timed_out"}, [0, 1]),
        ({"kind": "manual"}, [2]),
        ({"status": "dead", "kind": "manual"}, []),
        ({"tag": "team:billing"}, [1, 2]),
        ({"tag": "team:billing,env:prod"}, [2]),
        ({"from": "2026-03-01T11:59:30Z"}, [0]),
        ({"to": "2026-03-01T11:59:30Z"}, [1, 2]),
        ({"from": "2026-03-01T11:57:30Z", "to": "2026-03-01T11:58:30Z"}, [2]),
    ],
)
def test_filters(client: Client, world: World, query: dict[str, str], jobs: list[int]) -> None:
    billing, prod = ("team", "billing"), ("env", "prod")
    record(world, result(0))
    record(world, result(1, RunStatus.TIMED_OUT, tags=(billing,)), ago=MINUTE)
    manual = replace(result(2).key, kind=RunKind.MANUAL)
    done = result(2, RunStatus.SUCCEEDED, key=manual, tags=(prod, billing))
    record(world, done, ago=2 * MINUTE)
    assert listed(client, **query) == [(f"job {job}", 1) for job in jobs]


def test_after_reads_what_came_since_and_a_little_more(client: Client, world: World) -> None:
    record(world, result(0), ago=MINUTE)
    record(world, result(1))
    as_of = client.get("/runs").json["as_of"]
    assert listed(client, after=as_of) == [("job 1", 1)]
    world.clock.advance(30)
    assert listed(client, after=utc_text(world.clock.now())) == []
    record(world, result(2))
    assert listed(client, after=utc_text(world.clock.now())) == [("job 2", 1)]


def test_lone_successes_are_not_in_the_feed_and_ten_are(client: Client, world: World) -> None:
    record(world, *(result(job, RunStatus.SUCCEEDED) for job in range(9)))
    assert listed(client) == []
    record(world, *(result(job, RunStatus.SUCCEEDED) for job in range(10)))
    assert len(listed(client)) == 10
    record(world, result(10, RunStatus.SUCCEEDED), result(11), ago=MINUTE)
    assert len(listed(client)) == 12


def test_a_job_s_own_history_has_every_success(client: Client, world: World, job: Json) -> None:
    job_id = job["job_id"]
    for minutes in range(5):
        fire_at = FIRED - minutes * MINUTE
        status = RunStatus.SKIPPED if minutes == 3 else RunStatus.SUCCEEDED
        put(world, make_run(job_id, fire_at, status=status, finished_at=fire_at))

    answer = client.get("/runs", job=job_id, limit="2").json
    assert (answer["successes"], len(answer["items"])) == ("all", 2)
    assert listed(client, job=job_id, limit="2") == [(job["name"], 1)] * 5
    assert listed(client, job=job_id, status="skipped", limit="1") == [(job["name"], 1)]
    assert client.get("/runs", job="0" * 26).status == 404


def test_after_ends_where_a_job_s_long_history_has_not_changed(
    client: Client, world: World, job: Json
) -> None:
    job_id, before = job["job_id"], FIRED - 60 * MINUTE
    for minutes in range(600):
        fire_at = before - minutes * MINUTE
        put(world, make_run(job_id, fire_at, updated_at=before, finished_at=before))
    newest = put(world, make_run(job_id, FIRED, updated_at=FIRED, finished_at=FIRED))

    answer = client.get("/runs", job=job_id, after=utc_text(FIRED)).json

    assert [each["run_id"] for each in answer["items"]] == [newest.key.run_id]
    assert answer["next_cursor"] is None


def test_a_run_is_found_by_its_id_alone(client: Client, world: World, job: Json) -> None:
    run = put(world, make_run(job["job_id"], FIRED))
    answer = client.get(f"/runs/{run.key.run_id}")
    whole = client.get(f"/jobs/{job['job_id']}/runs/{run.key.run_id}").json
    assert answer.json == whole | {"job_name": job["name"]}
    for unknown in ("x", run.key.run_id + "1", f"{'0' * 26}_20260301T120000Z_scheduled_0"):
        assert client.get(f"/runs/{unknown}").status == 404


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"status": "dead,failed"}, "status"),
        ({"kind": "cron"}, "kind"),
        ({"tag": "billing"}, "tag"),
        ({"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T11:00:00Z"}, "to"),
        ({"cursor": "YQ"}, "cursor"),
        ({"state": "dead"}, "state"),
    ],
)
def test_what_cannot_be_asked_is_named(client: Client, query: dict[str, str], field: str) -> None:
    answer = client.get("/runs", **query)
    assert (answer.status, answer.fields) == (422, [field])


def test_the_feed_reaches_back_as_far_as_it_is_kept(client: Client, world: World) -> None:
    record(world, result(0), ago=timedelta(days=6, hours=23))
    record(world, result(1), ago=timedelta(days=7, minutes=1))  # DynamoDB removes it some day
    assert listed(client) == [("job 0", 1)]


def test_an_end_in_the_future_is_now(client: Client, world: World) -> None:
    record(world, result(0))
    answer = client.get("/runs", to="2036-03-01T12:00:00Z")
    # One page sees the seven days for which it is kept.
    assert (len(answer.json["items"]), answer.json["next_cursor"]) == (1, None)


def test_a_store_that_does_not_answer_is_a_503(world: World) -> None:
    class Away(MemoryActivityStore):
        def read(self, *args: Any, **kwargs: Any) -> Any:
            raise StoreUnavailableError("away")

    world.activity = Away()
    assert Client(world.api()).get("/runs").status == 503


ASKED: dict[str, Callable[[Client, str, str], Any]] = {
    "feed": lambda client, job_id, run_id: client.get("/runs").json["items"],
    "by status": lambda client, job_id, run_id: client.get("/runs", status="dead").json["items"],
    "run": lambda client, job_id, run_id: client.get(f"/runs/{run_id}").status,
    "job's": lambda client, job_id, run_id: client.get("/runs", job=job_id).status,
}


@pytest.mark.parametrize(("asked", "nothing"), [*zip(ASKED, [[], [], 404, 404], strict=True)])
def test_another_owner_sees_nothing_of_it(
    client: Client, stranger: Client, world: World, job: Json, asked: str, nothing: Any
) -> None:
    run = put(world, make_run(job["job_id"], FIRED))
    record(world, result(0))
    assert ASKED[asked](client, job["job_id"], run.key.run_id) != nothing
    assert ASKED[asked](stranger, job["job_id"], run.key.run_id) == nothing


def test_a_cursor_of_another_owner_is_refused(
    client: Client, stranger: Client, world: World
) -> None:
    record(world, result(0))
    record(world, result(1), ago=MINUTE)
    cursor = client.get("/runs", limit="1").json["next_cursor"]
    assert stranger.get("/runs", cursor=cursor).fields == ["cursor"]
