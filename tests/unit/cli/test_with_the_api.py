"""The command against the Api itself, on memory stores: names and forms are the same on both sides.

What each command does with an answer is the other tests' matter.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.run import DeadReason, Run, RunError, RunKey, RunKind, RunStatus
from tests.unit.api.conftest import NOW, SETTINGS, World, new_world
from tests.unit.api.gateway import OWNER
from tests.unit.api.wsgi import serving
from tests.unit.cli.conftest import Run as RunCommand

Command = Callable[..., Any]

POLICIES = [
    "--schedule", "every 5m", "--task", "echo", "--payload", '{"id": "{{run_id}}"}', "--template",
    "--priority", "low", "--overlap", "queue_one", "--tolerance", "30s", "--grace", "5m",
    "--expect-within", "PT10M", "--pause-after-failures", "3", "--concurrency", "database=2",
    "--rate", "supplier=60/1m", "--max-attempts", "5", "--backoff", "fixed", "--backoff-base",
    "10", "--backoff-factor", "1.5", "--backoff-cap", "60", "--retry-on", "http_5xx",
    "--timeout", "20", "--on-success", "notify", "--on-failure", "https://a.test/hook",
    "--parent", "channel-7", "--tag", "team=billing", "--event", "run.dead",
]  # fmt: skip
SPAN = ["--from", "2026-03-01", "--to", "2026-03-01T11:00:00"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    # They are written to stdout, which here is the command's.
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    made = new_world(NOW - timedelta(hours=12))
    made.settings = replace(SETTINGS, event_bus="bus")
    yield made
    assert "request.failed" not in made.log.getvalue()


@pytest.fixture
def carillon(world: World, run: RunCommand) -> Iterator[Command]:
    """Runs a command with --json and gives what it printed; it must end well."""
    with serving(world) as url:

        def command(*arguments: str, stdin: str | None = None) -> Any:
            result = run("--json", "--api-url", url, "--token", "t", *arguments, stdin=stdin)
            assert result.exit_code == 0, result.output
            return json.loads(result.stdout)

        yield command


@pytest.fixture
def dead_run_id(world: World, carillon: Command) -> str:
    """A dead letter of a job that fires daily, and was created at midnight."""
    job = carillon("jobs", "create", "--name", "a", "--schedule", "0 9 * * *", "--task", "echo")
    world.clock.set(NOW)
    fire_at = datetime(2026, 3, 1, 9, tzinfo=UTC)
    dead = Run(
        key=RunKey(OWNER, job["job_id"], RunKind.SCHEDULED, fire_at),
        status=RunStatus.DEAD,
        attempt=1,
        token=1,
        claim_id="c",
        generation_id="f",
        updated_at=NOW,
        expires_at=NOW + timedelta(days=40),
        started_at=fire_at,
        attempt_started_at=fire_at,
        finished_at=fire_at,
        error=RunError("http_404", "not there", permanent=True),
        reason=DeadReason.REFUSED,
    )
    assert world.runs.claim(dead, None)
    return dead.key.run_id


def test_a_change_merges_and_clears(carillon: Command) -> None:
    job_id = carillon("jobs", "create", "--name", "a", *POLICIES)["job_id"]

    changed = carillon(
        "jobs", "change", job_id, "--revision", "1", "--rate", "5/1h", "--add-tag", "area=eu",
        "--remove-tag", "team", "--clear", "on-failure", "--clear", "grace", "--task", "other",
    )  # fmt: skip

    assert changed["rate"] == {"limit": 5, "per": "1h", "key": ""}
    assert changed["tags"] == {"area": "eu"}
    assert (changed["on_failure"], changed["grace"]) == (None, None)
    assert changed["target"]["name"] == "other"
    assert changed["revision"] == 2


def test_many_jobs_by_parent_and_tags(carillon: Command) -> None:
    lines = "\n".join(
        json.dumps({
            "name": f"{number}",
            "schedule": "0 9 * * *",
            "target": {"type": "task", "name": "echo"},
            "parent": "even" if number % 2 == 0 else "odd",
            "tags": {"team": "billing"},
        })
        for number in range(5)
    )  # fmt: skip

    imported = [
        carillon("jobs", "import", "-", "--idempotency-key", "k", stdin=lines) for _ in range(2)
    ]

    assert [(each["created"], each["existing"]) for each in imported] == [(5, 0), (0, 5)]
    assert len(carillon("jobs", "list", "--parent", "odd", "--tag", "team=billing")) == 2
    assert carillon("jobs", "pause", "--parent", "odd") == {"changed": 2, "managed": 0}
    assert carillon("jobs", "resume", "--tag", "team=billing") == {"changed": 2, "managed": 0}
    assert carillon("jobs", "delete", "--parent", "even", "--yes") == {"changed": 3, "managed": 0}
    assert {job["state"] for job in carillon("jobs", "list")} == {"active"}
    assert len(carillon("jobs", "list")) == 2


def test_a_dead_letter_is_redriven_and_that_run_cancelled(
    carillon: Command, dead_run_id: str
) -> None:
    filters = ["--reason", "refused", "--error", "http_404", "--job", dead_run_id[:26], *SPAN]
    assert [run["run_id"] for run in carillon("dead-letters", "list", *filters)] == [dead_run_id]

    new = carillon("dead-letters", "redrive", dead_run_id)
    cancelled = carillon("runs", "cancel", new["run_id"])

    assert (new["redrive"], cancelled["status"]) == (1, "cancelled")
    old = carillon("runs", "show", dead_run_id)
    assert old["settled"] == "redriven"
    assert [attempt["error"]["kind"] for attempt in old["attempts"]] == ["http_404"]
    assert carillon("dead-letters", "list") == []
    assert len(carillon("runs", "list", dead_run_id[:26], *SPAN)) == 2
    assert carillon("runs", "list", dead_run_id[:26], "--from", "2026-03-01T09:00:01") == []


def test_a_dead_letter_is_discarded(carillon: Command, dead_run_id: str) -> None:
    carillon("dead-letters", "discard", dead_run_id)

    assert carillon("runs", "show", dead_run_id)["settled"] == "discarded"


@pytest.mark.parametrize("command", ["redrive", "discard"])
@pytest.mark.parametrize("which", [["--all"], ["--reason", "refused", *SPAN]])
def test_many_dead_letters_are_an_operation(
    carillon: Command, command: str, which: list[str]
) -> None:
    yes = ["--yes"] if command == "discard" else []
    told = carillon("dead-letters", command, *which, "--per-minute", "60", "--no-wait", *yes)

    assert (told["kind"], told["state"], told["per_minute"]) == (command, "running", 60)
    assert carillon("operations", "show", told["operation_id"]) == told
    assert carillon("operations", "list") == [told]
    assert carillon("operations", "cancel", told["operation_id"])["state"] == "cancelled"


def test_what_was_missed_is_listed_and_run(carillon: Command, dead_run_id: str) -> None:
    job_id = dead_run_id[:26]

    missed = carillon("jobs", "missed", job_id, *SPAN)
    told = carillon("jobs", "backfill", job_id, *SPAN, "--only", "missed", "--per-minute", "6")

    assert missed == [
        {
            "fire_at": "2026-03-01T09:00:00Z",
            "status": "dead",
            "reason": "refused",
            "run_id": dead_run_id,
        }
    ]
    assert (told["kind"], told["only"], told["per_minute"]) == ("backfill", "missed", 6)
    assert (told["from"], told["to"]) == ("2026-03-01T00:00:00Z", "2026-03-01T11:00:00Z")


def test_changes_name_who_made_them(world: World, carillon: Command) -> None:
    carillon("jobs", "create", "--name", "a", "--schedule", "every 5m", "--task", "echo")
    carillon("jobs", "pause", "a")

    shown = carillon("changes", "a")
    assert [each["action"] for each in shown] == ["pause", "create"]
    assert shown[0]["by"]["id"] == OWNER.removeprefix("user/")
    assert carillon("changes", "--by", "somebody", *SPAN) == []
    assert carillon("changes", "--action", "pause") == shown[:1]
