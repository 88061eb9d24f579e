"""What each command is answered, and the ids and names that it must then show whole."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from carillon.domain.run import RunKey, RunKind

JOB_ID = "e5vqzve7xs7cfr6w7dlxrjm3pj"
RUN_ID = f"{JOB_ID}_20260101T110000Z_scheduled_0"
REQUEST = "p2k7d3hxqe0c4n5m6p7r8s9t0va"
"""Of a manual run with a payload of its own."""
FIRST = RunKey("user/ada", JOB_ID, RunKind.MANUAL, datetime(2026, 1, 1, 11, tzinfo=UTC), REQUEST)
MANUAL = FIRST.run_id
LONGEST = replace(FIRST, redrive=10).successor(JOB_ID).callback.redriven.run_id
"""A call back about a run after a manual one: 127 characters."""
NAME = "nightly report of the whole of northern Europe"
OTHER = "weekly report of the whole of northern Europe"
OPERATION_ID = "01ktpx4cq8g1v2z9e7m5b3n6ha"
LONG = "connection refused by upstream " * 9
AT = "2026-01-01T11:00:00Z"

JOB = {
    "job_id": JOB_ID, "name": NAME, "state": "active", "schedule": "0 9 * * 1-5 | every 90m",
    "timezone": "America/Argentina/ComodRivadavia", "next_fire_at": AT, "tags": {"team": "billing"},
}  # fmt: skip
RUN = {
    "run_id": RUN_ID, "job_name": NAME, "fire_at": AT, "effective_at": "2026-01-01T11:00:03Z",
    "kind": "scheduled", "status": "timed_out", "attempt": 3, "lag_seconds": 12.345,
    "duration_seconds": 3.2, "error": {"kind": "http_503", "message": LONG}, "result": None,
    "finished_at": AT, "at": AT, "reason": "exhausted", "job_id": JOB_ID,
}  # fmt: skip
RUN_IDS = [RUN_ID, MANUAL, LONGEST]
RUNS = [RUN | {"run_id": run_id} for run_id in RUN_IDS]
OPERATION = {
    "operation_id": OPERATION_ID, "kind": "redrive", "state": "succeeded", "job_id": JOB_ID,
    "done": 12_000, "passed_over": 3, "reached": AT, "created_at": AT, "note": LONG,
}  # fmt: skip
OCCURRENCE = {
    "job_id": JOB_ID, "name": NAME, "fire_at": AT, "local": "2026-01-01T13:00:00+02:00",
    "effective_at": None, "note": "moved from 2025-12-31",
}  # fmt: skip
CALENDAR = {
    "name": "latvia-and-estonia-bank-holidays", "weekdays": ["sat", "sun"], "dates": ["x"] * 30,
    "ranges": [], "description": LONG, "updated_at": AT,
}  # fmt: skip
NOTIFICATION = {
    "name": "latvia-and-estonia-on-call-of-the-week", "jobs": f"{NAME}*", "at_most_every": "15m",
    "on": ["run.dead", "run.missed", "job.paused", "run.recovered", "quota.exceeded"],
    "to": {"type": "slack"}, "last_delivery": {"status": "timed_out", "error_kind": "http_503"},
}  # fmt: skip
SEGMENT = {
    "segment": 3, "watermark_at": AT, "lag_minutes": 1, "backlog_minutes": 0, "horizon_at": AT,
    "lease_until": AT, "unreadable": LONG,
}  # fmt: skip
LANES = [{"lane": "normal", "waiting": 12_000, "in_flight": 300, "dead_letters": 1}]
FORECAST = {
    "from": AT, "to": "2026-01-01T12:00:00Z", "complete": True, "total": 7, "peak": 7,
    "minutes": [{"minute": AT, "fires": 7}],
    "peaks": [{"minute": AT, "fires": 7, "jobs": [NAME, OTHER]}],
}  # fmt: skip
BUCKET = {"key": JOB_ID, "counts": {"succeeded": 12_000, "dead": 1}, "lag": {
    "p50": 0.1, "p99": 12.25, "max": 3_600.0
}}  # fmt: skip
Case = tuple[str, Any, list[str]]
"""A request, as a path or as `METHOD path`; its answer; and the ids and names in what is told."""

TABLES: dict[str, Case] = {
    "jobs list": ("/jobs", {"items": [JOB]}, [NAME]),
    "runs list": ("/runs", {"items": RUNS}, [*RUN_IDS, NAME]),
    "runs list j1": ("/jobs/j1/runs", {"items": RUNS}, RUN_IDS),
    "dead-letters list": ("/dead-letters", {"items": RUNS}, [*RUN_IDS, NAME]),
    "operations list": ("/operations", {"items": [OPERATION]}, [OPERATION_ID]),
    "jobs missed j1": ("/jobs/j1/missed", {"items": RUNS}, RUN_IDS),
    "upcoming": ("/upcoming", {"items": [OCCURRENCE]}, [NAME]),
    "calendars list": ("/calendars", {"items": [CALENDAR]}, [str(CALENDAR["name"])]),
    "notifications list": (
        "/notifications", {"items": [NOTIFICATION]}, [str(NOTIFICATION["name"])]
    ),
    "status": ("/status", {"as_of": AT, "segments": [SEGMENT], "lanes": LANES}, []),
    "tasks": ("/deployment", {"tasks": [NAME.replace(" ", "_")]}, [NAME.replace(" ", "_")]),
    "forecast": ("/forecast", FORECAST, [NAME, OTHER]),
    "report --by job": ("/runs/summary", {"buckets": [BUCKET]}, [NAME]),
    "top": ("/runs", {"items": RUNS}, [NAME]),
    "logs " + RUN_ID: (
        f"/runs/{RUN_ID}/logs", {"items": [{"at": AT, "level": "INFO", "message": LONG}]}, []
    ),
}  # fmt: skip
RUN_PATH = f"/jobs/{JOB_ID}/runs/{RUN_ID}"
RECORDS: dict[str, Case] = {
    "runs show " + RUN_ID: (RUN_PATH, RUN | {"attempts": [RUN]}, [RUN_ID]),
    "runs cancel " + RUN_ID: (f"POST {RUN_PATH}/cancel", RUN, [RUN_ID]),
    "dead-letters redrive " + RUN_ID: (
        f"POST /dead-letters/{RUN_ID}/redrive", RUN | {"run_id": LONGEST}, [LONGEST]
    ),
    "dead-letters discard --yes " + RUN_ID: (f"DELETE /dead-letters/{RUN_ID}", {}, [RUN_ID]),
    "jobs show j1": ("/jobs/j1", JOB, [JOB_ID, NAME]),
    "jobs create --name n --schedule every-1h --task t": ("POST /jobs", JOB, [JOB_ID, NAME]),
    "jobs change j1 --grace 5m": ("PATCH /jobs/j1", JOB, [JOB_ID, NAME]),
    "jobs pause j1": ("POST /jobs/j1/pause", JOB, [NAME]),
    "jobs resume j1": ("POST /jobs/j1/resume", JOB, [NAME]),
    "jobs run j1": ("POST /jobs/j1/run", RUN | {"run_id": MANUAL}, [MANUAL]),
    f"jobs delete --yes {JOB_ID}": (f"DELETE /jobs/{JOB_ID}", {}, [JOB_ID]),
    f"jobs backfill j1 --from {AT} --to {AT}": (
        "POST /jobs/j1/backfill", OPERATION, [OPERATION_ID, JOB_ID]
    ),
    "operations show o1": ("/operations/o1", OPERATION, [OPERATION_ID, JOB_ID]),
    "operations cancel o1": ("POST /operations/o1/cancel", OPERATION, [OPERATION_ID, JOB_ID]),
    "calendars show c": ("/calendars/c", CALENDAR, [str(CALENDAR["name"])]),
    "calendars put c --weekday sat": ("PUT /calendars/c", CALENDAR, [str(CALENDAR["name"])]),
    "calendars delete c-1 --yes": ("DELETE /calendars/c-1", {}, ["c-1"]),
    "notifications show n": ("/notifications/n", NOTIFICATION, [str(NOTIFICATION["name"])]),
    "notifications test n-1": ("POST /notifications/n-1/test", RUN, [RUN_ID]),
    "notifications delete n-1 --yes": ("DELETE /notifications/n-1", {}, ["n-1"]),
}  # fmt: skip
ELSEWHERE = {
    "hand-over", "export-data", "quota show", "quota set", "changes",
    "admin add-to-team", "admin machine-clients", "admin remove-from-team", "admin users",
    "admin add-user", "admin audit", "admin erase", "admin mend-segment", "admin reindex",
    "admin release", "admin smoke", "admin spread", "apply", "completion", "console", "diff",
    "doctor", "export", "import apscheduler", "import celery", "import crontab",
    "import eventbridge", "import k8s", "jobs import", "login", "logout", "notifications put",
    "open", "preview", "simulate", "whoami",
}  # fmt: skip
"""What prints lines that no terminal changes: of AWS, of files, of the sign-in. Their own tests
read them."""
