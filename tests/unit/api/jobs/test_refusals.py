"""Requests that are refused for one field, which the answer names; nothing comes of them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.settings import FUNCTION
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import Answer, Client

FROM = "2026-03-02T00:00:00Z"
BACKWARDS = {"from": "2026-03-01T11:30:00Z", "to": "2026-03-01T11:00:00Z"}
SPAN = {"from": "2026-02-28T00:00:00Z", "to": "2026-03-01T11:00:00Z"}
QUEUE = {"type": "sqs", "queue_arn": "arn:aws:sqs:eu-west-1:123456789012:orders"}
CHOOSE_JOBS = ("GET /jobs", "POST /jobs/pause", "POST /jobs/resume", "DELETE /jobs")
SETTLE = ("POST /dead-letters/redrive", "POST /dead-letters/discard")
LISTS = ("/jobs", "/jobs/{job}/runs", "/calendars", "/dead-letters", "/operations")
YEAR = {"from": "2026-01-01", "to": "2026-12-31"}

# The request, what follows its path, and the field.
QUERIES: list[tuple[str, dict[str, str], str]] = [
    *(
        (choose, query, field)
        for choose in CHOOSE_JOBS
        for query, field in (
            ({"tag": "team"}, "tag"),
            ({"tag": ":x"}, "tag"),
            ({"tag": "team:x,"}, "tag"),
            ({"tag": "a b:x"}, "tag"),
            ({"tag": "team:x,team:y"}, "tag"),
            ({"tag": ",".join(f"k{n}:" for n in range(21))}, "tag"),
            ({"tag": ""}, "tag"),
            ({"parent": ""}, "parent"),
            ({"parent": "p" * 129}, "parent"),
            ({"parent": "p", "colour": "red"}, "colour"),
            ({"parent": "p", "cursor": "nonsense"}, "cursor"),
        )
    ),
    *((choose, {}, "parent") for choose in CHOOSE_JOBS[1:]),
    *((f"GET {path}", {"cursor": "x"}, "cursor") for path in LISTS),
    ("GET /jobs/{job}/runs", BACKWARDS, "to"),
    ("GET /upcoming", {"count": "0"}, "count"),
    ("GET /upcoming", {"count": "101"}, "count"),
    ("GET /upcoming", {"until": "tomorrow"}, "until"),
    ("GET /upcoming", {"until": "2026-03-01T12:00:00 02:00"}, "until"),
    ("GET /upcoming", {"from": "2026-03-01T12:00:00Z"}, "from"),
    ("GET /forecast", {"from": "x"}, "from"),
    ("GET /forecast", {"to": "x"}, "to"),
    ("GET /forecast", {"from": "2026-03-02T00:00:00"}, "from"),
    ("GET /forecast", {"to": "2026-03-01T12:00:00Z"}, "to"),
    ("GET /forecast", {"from": FROM, "to": FROM}, "to"),
    ("GET /forecast", {"from": FROM, "to": "2026-03-09T00:00:01Z"}, "to"),
    ("GET /forecast", {"from_at": FROM}, "from_at"),
    ("GET /forecast", {"count": "5"}, "count"),
    ("GET /dead-letters", {"reason": "unlucky"}, "reason"),
    ("GET /dead-letters", {"job_id": "x"}, "job_id"),
    ("GET /dead-letters", {"from": "yesterday"}, "from"),
    ("GET /dead-letters", BACKWARDS, "to"),
    ("GET /dead-letters", {"error": ""}, "error"),
    ("GET /dead-letters", {"status": "dead"}, "status"),
    ("GET /jobs/{job}/missed", BACKWARDS, "to"),
    ("GET /jobs/{job}/missed", {"from": "yesterday"}, "from"),
    ("GET /jobs/{job}/missed", {"limit": "1001"}, "limit"),
    ("GET /jobs/{job}/missed", {"cursor": "x"}, "cursor"),
]


def _members(request_line: str, *rows: tuple[Any, str]) -> list[tuple[str, Any, str]]:
    return [(request_line, *row) for row in rows]


# The request, its body, and the field.
BODIES: list[tuple[str, Any, str]] = [
    *((f"POST /jobs/{{job}}/{action}", {"now": True}, "now") for action in ("pause", "run")),
    ("POST /jobs/{job}/resume", {"now": True}, "now"),
    *_members(
        "POST /jobs",
        ({"bogus": None}, "bogus"),
        ({"lane": "high"}, "lane"),
        ({"job_id": "mine"}, "job_id"),
        ({"except_": ["* * 25 12 *"]}, "except_"),
        ({"end_at": "2026-02-28T00:00:00Z"}, "end_at"),
        ({"start_at": "2026-12-01T00:00:00Z", "end_at": "2026-11-01T00:00:00Z"}, "end_at"),
        ({"max_runs": 3, "schedule": "every 5m after finish"}, "max_runs"),
        ({"window": "50%", "schedule": "at 2026-03-02T12:00:00Z"}, "window"),
        ({"calendar": {"name": "holidays"}}, "calendar.name"),
        ({"schedule": "at 2026-03-01T12:00:00Z"}, "schedule"),
        ({"target": {"type": "webhook", "url": "http://example.com/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://localhost/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://10.0.0.1/"}}, "target.url"),
        ({"target": {"type": "webhook", "url": "http://167772161/"}}, "target.url"),
        ({"target": QUEUE}, "target.queue_arn"),
        ({"on_failure": {"type": "webhook", "url": "http://example.com/"}}, "on_failure.url"),
        ({"on_failure": QUEUE}, "on_failure.queue_arn"),
        ({"timeout_seconds": 56}, "timeout_seconds"),
        ({"grace": "1m", "catch_up": "all"}, "grace"),
        ({"tolerance": "5m"}, "tolerance"),
        ({"tolerance": "1s", "schedule": "* * * * *"}, "tolerance"),
        ({"tolerance": "1s", "schedule": "every 5m after finish"}, "tolerance"),
        ({"expect_within": "5m", "schedule": "every 5m after finish"}, "expect_within"),
        ({"template": True, "payload": {"a": ["{{now}}"]}}, "payload.a[0]"),
    ),
    *_members(
        "POST /jobs/bulk",
        ({}, "items"),
        ({"items": []}, "items"),
        ({"items": {}}, "items"),
        ({"items": [{}] * 1001}, "items"),
        ({"items": [BODY], "dry": True}, "dry"),
    ),
    *_members(
        "POST /schedules/preview",
        ({"schedule": "x"}, "schedule"),
        ({"schedule": {"cron": "x"}}, "schedule.cron"),
        ({"timezone": "x"}, "timezone"),
        ({"start_at": "x"}, "start_at"),
        ({"after": "2026-01-01T00:00:00"}, "after"),
        ({"after": "0001-01-01T00:00:00+14:00"}, "after"),
        ({"after": "9999-12-31T23:59:59Z"}, "after"),
        ({"after": "9997-12-31T23:00:00-12:00"}, "after"),
        ({"after": "1971-01-01T00:00:00+14:00"}, "after"),
        ({"after": 0}, "after"),
        ({"count": 0}, "count"),
        ({"count": 101}, "count"),
        ({"count": "5"}, "count"),
        ({"name": "x"}, "name"),
        ({"except": ["x"]}, "except[0]"),
        ({"end_at": "x"}, "end_at"),
        ({"max_runs": 0}, "max_runs"),
        ({"window": "x"}, "window"),
        ({"dst": {"gap": "x"}}, "dst.gap"),
        ({"calendar": {"name": "nowhere"}}, "calendar.name"),
        ({"calendar": {"name": "x", "weekdays": ["sat"]}}, "calendar"),
        ({"calendar": {"weekdays": ["caturday"]}}, "calendar.weekdays[0]"),
        ({"calendar": {"dates": ["2026-12-25", "x"]}}, "calendar.dates[1]"),
        ({"calendar": {"icalendar": "x"}}, "calendar.icalendar"),
    ),
    *_members(
        "PUT /calendars/holidays",
        ({"weekdays": ["caturday"]}, "weekdays[0]"),
        ({"weekdays": "sat"}, "weekdays"),
        ({"dates": ["2026-12-25", "2026-02-30"]}, "dates[1]"),
        ({"dates": ["2026-12-25T00:00:00Z"]}, "dates[0]"),
        ({"dates": [20_261_225]}, "dates[0]"),
        ({"dates": ["1970-12-31"]}, "dates[0]"),
        ({"dates": ["9998-01-01"]}, "dates[0]"),
        ({"ranges": [{"from": "2026-01-01"}]}, "ranges[0].to"),
        ({"ranges": [{"from": "x", "to": "2026-01-01"}]}, "ranges[0].from"),
        ({"ranges": [{"from": "2026-01-01", "to": "2025-12-31"}]}, "ranges[0].to"),
        ({"ranges": [YEAR, YEAR, YEAR, YEAR | {"to": "no"}]}, "ranges[3].to"),
        ({"ranges": ["2026-01-01"]}, "ranges[0]"),
        ({"ranges": [YEAR | {"why": ""}]}, "ranges[0].why"),
        ({"description": "x" * 513}, "description"),
        ({"description": None}, "description"),
        ({"days": []}, "days"),
        ({"name": "other"}, "name"),
    ),
    *(
        row
        for settle in SETTLE
        for row in _members(
            settle,
            ({}, "body"),
            ({"per_minute": 5}, "body"),
            ({"all": True, "reason": "refused"}, "body"),
            ({"all": False}, "all"),
            ({"all": None}, "all"),
            ({"all": 1}, "all"),
            ({"per_minute": 0}, "per_minute"),
            ({"per_minute": 1001}, "per_minute"),
            ({"per_minute": "60"}, "per_minute"),
            ({"per_minute": None}, "per_minute"),
            ({"job_id": "x"}, "job_id"),
            ({"job_id": None}, "job_id"),
            ({"reason": "dead"}, "reason"),
            ({"reason": None}, "reason"),
            ({"error": ""}, "error"),
            ({"error": None}, "error"),
            ({"from": "2026-03-01T00:00:00"}, "from"),
            ({"from": None}, "from"),
            (BACKWARDS, "to"),
            ({"to": None}, "to"),
            ({"status": "dead"}, "status"),
        )
    ),
    *_members(
        "POST /jobs/{job}/backfill",
        (SPAN | {"from": "2026-03-01T12:00:00Z"}, "to"),
        (SPAN | {"to": "2026-03-01T12:00:01Z"}, "to"),
        (SPAN | {"from": "2025-02-27T00:00:00Z"}, "to"),
        (SPAN | {"from": None}, "from"),
        (SPAN | {"to": "now"}, "to"),
        (SPAN | {"only": "failed"}, "only"),
        (SPAN | {"per_minute": 0}, "per_minute"),
        (SPAN | {"per_minute": 1001}, "per_minute"),
        (SPAN | {"until": "2026-03-01T00:00:00Z"}, "until"),
    ),
]
DEFAULTS = {"POST /jobs": BODY, "POST /schedules/preview": {"schedule": "every 5m"}}


@pytest.fixture
def client(world: World) -> Client:
    """Of a deployment with an event bus that may call one function."""
    world.settings = replace(world.settings, event_bus="bus", target_arns=(FUNCTION,))
    return Client(world.api())


def assert_refused(
    client: Client, world: World, request_line: str, field: str, **sent: Any
) -> None:
    """There is one job when this is asked."""
    job = client.get("/jobs").json["items"][0]
    method, _, path = request_line.partition(" ")

    answer: Answer = client.send(method, path.replace("{job}", job["job_id"]), **sent)

    assert (answer.status, answer.fields) == (422, [field]), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["errors"][0]["message"]
    assert field in answer.json["detail"]
    assert client.get("/jobs").json["items"] == [job]
    for made in ("/calendars", "/operations"):
        assert client.get(made).json["items"] == []
    assert world.queue.kept() == []


@pytest.mark.parametrize(("request_line", "query", "field"), QUERIES)
def test_a_bad_query_is_named(
    client: Client, world: World, job: Any, request_line: str, query: dict[str, str], field: str
) -> None:
    assert_refused(client, world, request_line, field, query=query or None)


@pytest.mark.parametrize(("request_line", "body", "field"), BODIES)
def test_a_bad_member_is_named(
    client: Client, world: World, job: Any, request_line: str, body: Any, field: str
) -> None:
    body = DEFAULTS.get(request_line, {}) | body
    assert_refused(client, world, request_line, field, body=body)


def test_a_filter_is_no_member_of_a_body(client: Client, world: World, job: Any) -> None:
    chosen = {"body": {"parent": "channel"}, "query": {"tag": "team:x"}}
    assert_refused(client, world, "POST /jobs/pause", "parent", **chosen)


def test_the_description_says_that_null_settles_nothing(client: Client) -> None:
    schema = client.get("/openapi.json").json["components"]["schemas"]["DeadLetterBody"]
    for member in ("job_id", "reason", "error", "from", "to", "per_minute"):
        assert "null" not in str(schema["properties"][member].get("anyOf"))
