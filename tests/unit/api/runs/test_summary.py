"""GET /runs/summary: what became of all that fired."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.domain.notifying.notification import notification_id
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.services import summing
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json
from tests.unit.api.runs.test_activity import FIRED, JOBS, MINUTE, record, result
from tests.unit.api.runs.test_runs import make_run, put

HOUR = timedelta(hours=1)
AT = "2026-03-01T12:00:00Z"


def sums(client: Client, **query: str) -> tuple[list[dict[str, int]], bool]:
    """The counts that are not 0 of each bucket since 12:00, and whether they are complete."""
    answer = client.get("/runs/summary", **{"from": AT, **query})
    assert answer.status == 200, answer.text
    counts = [
        {name: count for name, count in bucket["counts"].items() if count}
        for bucket in answer.json["buckets"]
    ]
    return counts, answer.json["complete"]


def ran(world: World, job: Json, minutes: int, **values: Any) -> None:
    """Put the row of the run that fired so many minutes after 12:00."""
    fire_at = FIRED + minutes * MINUTE
    values = {"finished_at": fire_at, "started_at": fire_at} | values
    put(world, make_run(job["job_id"], fire_at, **values))


def test_hours_without_executors_are_not_green_then_or_later(
    client: Client, world: World, job: Json
) -> None:
    world.clock.advance(2 * 3600 - 1)
    assert sums(client) == ([{"unknown": 11}, {"unknown": 9, "pending": 3}], True)
    world.clock.advance(7200)
    assert sums(client, to="2026-03-01T13:59:00Z") == ([{"unknown": 11}, {"unknown": 12}], True)

    # Executors are back, and skip what is late: the row may cover it, and still nothing succeeded.
    row = make_run(job["job_id"], FIRED + 2 * HOUR, status=RunStatus.SKIPPED)
    key = RunKey(OWNER, job["job_id"], RunKind.MISSED, FIRED + 2 * HOUR)
    covers = {"covers_from": FIRED + 5 * MINUTE, "covers_count": 24, "attempt": 0}
    skipped = result(0, RunStatus.SKIPPED, key=key, at=row.updated_at, **covers)
    record(world, skipped, ago=HOUR)
    assert sums(client, to="2026-03-01T13:59:00Z") == ([{"skipped": 11}, {"skipped": 12}], True)


def test_successes_are_counted_from_the_history_where_the_feed_has_none(
    client: Client, world: World, job: Json
) -> None:
    for minutes in range(5, 60, 5):
        ran(world, job, minutes)
    world.clock.advance(3600 + 5)
    assert sums(client) == ([{"succeeded": 11}, {"pending": 1}], True)


def test_a_redrive_that_has_yet_to_begin_takes_no_dead_run_away(
    client: Client, world: World, job: Json
) -> None:
    """Seed 9979060281: who asked for it died behind its row, which the feed would not show."""
    ran(world, job, 5, status=RunStatus.DEAD, attempt=3)
    dead = RunKey(OWNER, job["job_id"], RunKind.SCHEDULED, FIRED + 5 * MINUTE)
    ran(world, job, 5, key=replace(dead, redrive=1), status=RunStatus.SCHEDULED, attempt=0)
    world.clock.advance(600)
    assert sums(client) == ([{"dead": 1, "pending": 1}], True)


def test_what_a_calendar_moves_from_before_the_job_was_made_is_not_due(
    client: Client, world: World
) -> None:
    """It is a Sunday, and noon: 09:00 is over, and 15:00 is moved to Monday."""
    client.put("/calendars/sundays", {"weekdays": ["sun"]})
    use = {"name": "sundays", "rule": "next_business_day"}
    timing = {"schedule": "0 9,15 * * 0", "timezone": "UTC", "calendar": use}
    client.post("/jobs", BODY | {"name": "by calendar", **timing})
    world.clock.advance(86_400 + 4 * 3600)
    found = [bucket for bucket in sums(client, by="hour")[0] if bucket]
    assert found == [{"unknown": 1}], "15:00 alone"


def test_a_day_that_is_closed_later_takes_no_success_away(client: Client, world: World) -> None:
    client.put("/calendars/holidays", {"dates": []})
    body = BODY | {"name": "by calendar", "schedule": "every 5m", "calendar": {"name": "holidays"}}
    job = client.post("/jobs", body).json
    ran(world, job, 5)
    world.clock.advance(300)
    assert sums(client)[0] == [{"succeeded": 1}]
    client.put("/calendars/holidays", {"dates": ["2026-03-01"]})
    assert sums(client) == ([{"succeeded": 1}], True)


def test_successes_are_counted_from_the_feed(client: Client, world: World, job: Json) -> None:
    fired = [FIRED + minutes * MINUTE for minutes in range(5, 60, 5)]
    keys = [RunKey(OWNER, job["job_id"], RunKind.SCHEDULED, at) for at in fired]
    world.clock.advance(3599)
    batch = [
        result(key=key, status=RunStatus.SUCCEEDED, lag_seconds=n) for n, key in enumerate(keys)
    ]
    record(world, *batch)
    record(world, *batch)  # a double
    (bucket,) = client.get("/runs/summary", **{"from": AT}).json["buckets"]
    assert bucket["counts"]["succeeded"] == 11
    assert bucket["lag"] == {"p50": 5, "p95": 10, "p99": 10, "max": 10}


def test_each_outcome_is_counted_once(client: Client, world: World, job: Json) -> None:
    def key(minutes: int, kind: RunKind = RunKind.SCHEDULED, redrive: int = 0) -> RunKey:
        return RunKey(OWNER, job["job_id"], kind, FIRED + minutes * MINUTE, "", redrive)

    batch = [
        result(key=key(5)),
        result(key=key(5, redrive=1), status=RunStatus.SUCCEEDED),
        result(key=key(10), status=RunStatus.TIMED_OUT),
        result(key=key(10, RunKind.WATCH), status=RunStatus.MISSED, attempt=0),
        result(key=key(15, RunKind.WATCH), status=RunStatus.MISSED, attempt=0),
        result(key=key(20), status=RunStatus.RETRYING),
        result(key=key(20), status=RunStatus.CANCELLED),
        result(key=key(25), status=RunStatus.RETRYING),
        result(key=key(30, RunKind.CALLBACK), status=RunStatus.SUCCEEDED),
        result(key=key(31, RunKind.MANUAL)),
    ]
    ran(world, job, 30, status=RunStatus.RUNNING, finished_at=None)
    world.clock.advance(30 * 60 + 59)
    record(world, *batch)
    assert sums(client) == (
        [
            {
                "succeeded": 1,
                "timed_out": 1,
                "missed": 1,
                "cancelled": 1,
                "retrying": 1,
                "pending": 1,
                "dead": 1,
            }
        ],
        True,
    )


@pytest.mark.parametrize("group", ["status", "job"])
def test_deliveries_of_notifications_are_no_runs_of_jobs(
    client: Client, world: World, group: str
) -> None:
    key = RunKey(OWNER, notification_id(OWNER, "ops"), RunKind.NOTICE, FIRED, "1-ops")
    record(world, result(key=key, status=RunStatus.SUCCEEDED, lag_seconds=9))
    answer = client.get("/runs/summary", **{"from": AT, "group": group}).json
    assert answer["complete"]
    assert all(each["lag"] is None for each in answer["buckets"])
    assert sum(sum(each["counts"].values()) for each in answer["buckets"]) == 0


def test_a_run_that_ends_long_after_its_hour_counts_by_its_row(
    client: Client, world: World, job: Json
) -> None:
    key = RunKey(OWNER, job["job_id"], RunKind.MANUAL, FIRED + MINUTE, "x")
    world.clock.advance(120)
    record(world, result(key=key, status=RunStatus.RETRYING))
    put(world, make_run(job["job_id"], FIRED, key=key, status=RunStatus.DEAD))
    assert sums(client) == ([{"dead": 1}], True)


def test_what_was_not_read_is_pending_and_never_a_success(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [client.post("/jobs", BODY | {"name": f"job {n}"}).json for n in range(3)]
    world.clock.advance(5400)
    for job in made:
        ran(world, job, 5)
    monkeypatch.setattr(summing, "MOST_JOBS_READ", 1)
    counts, is_complete = sums(client, to="2026-03-01T12:59:00Z")
    assert counts == [{"succeeded": 1, "unknown": 10, "pending": 22}]
    assert not is_complete
    monkeypatch.setattr(summing, "MOST_DUE", 5)
    assert not sums(client)[1]


def test_nothing_is_due_in_a_pause_or_before_the_last_change(
    client: Client, world: World, job: Json
) -> None:
    path = f"/jobs/{job['job_id']}"
    world.clock.advance(1800)
    assert client.patch(path, {"schedule": "every 10m"}, job["revision"]).status == 200
    world.clock.advance(1800)
    assert client.post(f"{path}/pause").status == 200
    world.clock.advance(3600)
    counts, is_complete = sums(client)
    assert (counts, is_complete) == ([{"unknown": 2}, {"unknown": 1}, {}], True)


def test_nothing_was_due_by_a_schedule_that_a_paused_job_got_later(
    client: Client, world: World, job: Json
) -> None:
    for minutes in range(5, 30, 5):
        ran(world, job, minutes)
    path = f"/jobs/{job['job_id']}"
    world.clock.advance(1800 - 1)
    paused = client.post(f"{path}/pause").json
    world.clock.advance(600)
    assert client.patch(path, {"schedule": "every 1m"}, paused["revision"]).status == 200
    assert sums(client) == ([{"succeeded": 5}], True)


def test_groups_and_lengths(client: Client, world: World) -> None:
    team = {"team": "billing"}
    for number, tags in enumerate(({}, team, team)):
        client.post("/jobs", BODY | {"name": f"job {number}", "tags": tags})
    world.clock.advance(600)
    query = {"from": AT, "by": "minute"}
    by_tag = client.get("/runs/summary", group="tag", **query).json["buckets"]
    assert [(each["at"], each["key"], each["counts"]["pending"]) for each in by_tag] == [
        (f"2026-03-01T12:{minute}:00Z", key, count)
        for minute in ("05", "10")
        for key, count in (("", 1), ("team:billing", 2))
    ]
    by_job = client.get("/runs/summary", group="job", by="day").json["buckets"]
    assert {each["key"] for each in by_job} == {
        each["job_id"] for each in client.get("/jobs").json["items"]
    }
    assert {each["counts"]["pending"] for each in by_job} == {2}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T11:00:00Z"}, "to"),
        ({"from": "2026-02-28T12:00:00Z", "by": "minute"}, "by"),
        ({"from": "2026-02-20T12:00:00Z", "to": "2026-02-21T12:00:00Z"}, "to"),
        ({"by": "week"}, "by"),
        ({"group": "kind"}, "group"),
    ],
)
def test_what_cannot_be_summed_is_named(client: Client, query: dict[str, str], field: str) -> None:
    answer = client.get("/runs/summary", **query)
    assert (answer.status, answer.fields) == (422, [field])


def test_a_span_before_the_feed_is_read_only_as_far_as_there_is_something(
    client: Client,
    stranger: Client,
    world: World,
    job: Json,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days: list[datetime] = []
    read = world.activity.read

    def counting(owner: str, day: datetime, *others: Any) -> Any:
        days.append(day)
        return read(owner, day, *others)

    monkeypatch.setattr(world.activity, "read", counting)
    world.clock.advance(40 * 86400)  # 10 April, 12:00
    query = {"from": "2025-10-01T00:00:00Z", "by": "day"}
    answer = client.get("/runs/summary", **query).json
    assert not answer["complete"]
    assert min(days) == datetime.fromisoformat("2026-04-02T00:00:00Z")
    assert len(days) <= 9
    # Rows of before may be gone: no day is shown that would say so of each of its runs.
    assert answer["buckets"][0]["at"] == "2026-03-12T00:00:00Z"
    query["from"] = "2026-04-03T12:00:00Z"
    assert stranger.get("/runs/summary", **query).json["complete"]
    query["from"] = "2026-04-02T11:00:00Z"
    assert not stranger.get("/runs/summary", **query).json["complete"]


def test_another_owner_s_runs_are_not_summed(
    client: Client, stranger: Client, world: World, job: Json
) -> None:
    world.clock.advance(600)
    record(world, result(0))
    assert sums(client)[0] == [{"dead": 1, "pending": 2}]
    assert sums(stranger) == ([{}], True)
    assert stranger.get("/runs/summary", group="job").json["buckets"] == []


def test_the_lag_of_nothing_is_null(client: Client) -> None:
    (bucket,) = client.get("/runs/summary", **{"from": AT}).json["buckets"]
    assert (bucket["lag"], bucket["key"], JOBS[0] in str(bucket)) == (None, None, False)


def test_a_bucket_begins_at_its_own_begin(client: Client, world: World, job: Json) -> None:
    world.clock.advance(3600)
    answer = client.get("/runs/summary", **{"from": "2026-03-01T12:47:11Z"})
    begins = [datetime.fromisoformat(each["at"]) for each in answer.json["buckets"]]
    assert begins == [FIRED, FIRED + HOUR]


@pytest.mark.parametrize("how", ["change", "resume"])
def test_successes_of_before_a_change_or_a_resume_are_counted(
    client: Client, world: World, job: Json, how: str
) -> None:
    for minutes in range(5, 60, 5):
        ran(world, job, minutes)
    path = f"/jobs/{job['job_id']}"
    world.clock.advance(3600)
    if how == "change":
        assert client.patch(path, {"schedule": "every 10m"}, job["revision"]).status == 200
    else:
        assert client.post(f"{path}/pause").status == 200
        world.clock.advance(60)
        assert client.post(f"{path}/resume").status == 200
    counts, is_complete = sums(client)
    assert (counts[0], is_complete) == ({"succeeded": 11}, True)


def test_what_ran_before_a_change_was_committed_is_counted(client: Client, world: World) -> None:
    """Its executor had read the job, which changed from a second before on."""
    body = BODY | {"name": "delayed", "schedule": "every 1m after finish"}
    delayed = client.post("/jobs", body).json
    world.clock.advance(600)
    path = f"/jobs/{delayed['job_id']}"
    assert client.patch(path, {"schedule": "every 10m"}, delayed["revision"]).status == 200
    fire_at = FIRED + 10 * MINUTE + timedelta(seconds=1)
    values = {"started_at": fire_at, "finished_at": fire_at}
    put(world, make_run(delayed["job_id"], fire_at, **values))
    world.clock.advance(60)
    assert sums(client) == ([{"succeeded": 1}], True)


def test_a_job_that_is_gone_leaves_the_sums_incomplete_where_the_feed_tells_of_it(
    client: Client, world: World, job: Json
) -> None:
    world.clock.advance(600)
    key = RunKey(OWNER, job["job_id"], RunKind.SCHEDULED, FIRED + 5 * MINUTE)
    record(world, result(key=key))
    assert client.delete(f"/jobs/{job['job_id']}").status == 204
    assert sums(client) == ([{"dead": 1}], False)


def covering(job: Json, begin: datetime, end: datetime, count: int | None) -> Any:
    key = RunKey(OWNER, job["job_id"], RunKind.MISSED, end)
    covers = {"covers_from": begin, "covers_count": count, "attempt": 0}
    return result(0, RunStatus.SKIPPED, key=key, at=end, **covers)


def test_a_cover_that_begins_before_the_span_is_counted_once(
    client: Client, world: World, job: Json
) -> None:
    world.clock.advance(2 * 3600 - 1)
    end = FIRED + HOUR + 55 * MINUTE
    record(world, covering(job, FIRED + 5 * MINUTE, end, 23))
    later = {"from": "2026-03-01T13:00:00Z"}
    assert sums(client, **later) == ([{"skipped": 12}], True)
    assert sums(client) == ([{"skipped": 11}, {"skipped": 12}], True)


def test_a_cover_that_is_recorded_long_after_the_span_is_counted(
    client: Client, world: World, job: Json
) -> None:
    """The outage goes on for hours: its row comes, and ends, behind the span."""
    world.clock.advance(5 * 3600)
    record(world, covering(job, FIRED + 5 * MINUTE, FIRED + 5 * HOUR, 60))
    assert sums(client, to="2026-03-01T12:59:00Z") == ([{"skipped": 11}], True)
    assert sums(client)[0][0] == {"skipped": 11}


def test_what_the_feed_had_at_the_begin_of_the_first_day_is_counted(
    client: Client, world: World, job: Json
) -> None:
    """The span is the feed's seven days, whose first bucket begins before them."""
    key = RunKey(OWNER, job["job_id"], RunKind.MANUAL, FIRED + MINUTE, "x")
    world.clock.advance(120)
    record(world, result(key=key))
    world.clock.advance(7 * 86_400 + 3 * 3600)
    query = {"from": "2026-03-01T15:02:00Z", "by": "day"}
    first = client.get("/runs/summary", **query).json["buckets"][0]
    assert first["counts"]["dead"] == 1


def test_a_cover_of_more_than_are_counted_is_not_one(
    client: Client, world: World, job: Json
) -> None:
    world.clock.advance(3600)
    record(world, covering(job, FIRED + 5 * MINUTE, FIRED + 55 * MINUTE, None))
    path = f"/jobs/{job['job_id']}"
    assert client.patch(path, {"schedule": "every 10m"}, job["revision"]).status == 200
    assert sums(client) == ([{"skipped": 10_000}, {}], False)


def test_a_fixed_delay_that_ran_more_often_than_is_read_is_incomplete(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = client.post("/jobs", BODY | {"name": "after", "schedule": "every 1m after finish"}).json
    for minutes in range(1, 31):
        ran(world, made, minutes)
    world.clock.advance(1860)
    monkeypatch.setattr(summing, "PAGE", 7)
    assert sums(client) == ([{"succeeded": 30}], True)
    monkeypatch.setattr(summing, "MOST_OF_A_SPAN", 14)
    assert sums(client) == ([{"succeeded": 14}], False)


def test_runs_whose_end_is_not_read_leave_the_sums_incomplete(
    client: Client, world: World, job: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = (("team", "billing"),)
    keys = [RunKey(OWNER, job["job_id"], RunKind.MANUAL, FIRED + MINUTE, each) for each in "abc"]
    record(world, *(result(key=key, status=RunStatus.RETRYING, tags=tags) for key in keys))
    for key in keys:
        put(world, make_run(job["job_id"], FIRED, key=key, status=RunStatus.DEAD))
    world.clock.advance(120)
    by_tag = client.get("/runs/summary", group="tag", **{"from": AT}).json["buckets"]
    assert [(each["key"], each["counts"]["dead"]) for each in by_tag] == [("team:billing", 3)]
    monkeypatch.setattr(summing, "MOST_ROWS", 2)
    assert sums(client) == ([{"dead": 2, "retrying": 1}], False)
