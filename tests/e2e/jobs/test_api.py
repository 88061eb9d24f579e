"""The API as deployed: who may do what, and how wrong requests are answered."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from carillon.local.deployment import Deployment, aws_environment
from tests.e2e.conftest import COMMAND, NEVER, SEGMENTS, Person, seconds_ahead, until

pytestmark = pytest.mark.e2e


def test_without_a_token_the_gateway_answers_401(deployment: Deployment) -> None:
    with Person(deployment.api_url, None) as nobody:
        assert nobody.http.get("/jobs").status_code == 401
        assert nobody.http.get("/openapi.json").json()["openapi"].startswith("3.1")
    with Person(deployment.api_url, "e30.e30.c2ln") as forger:
        assert forger.http.get("/jobs").status_code == 401


def test_another_owners_job_is_not_found_by_any_route(alice: Person, bob: Person) -> None:
    job = alice.create(NEVER)
    path = f"/jobs/{job['job_id']}"
    for method, suffix in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/runs"),
        ("GET", "/upcoming"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/run"),
    ):
        answer = bob.http.request(method, path + suffix)
        assert answer.status_code == 404, (method, suffix, answer.text)
    changed = bob.http.patch(path, json={"description": "mine"}, headers={"If-Match": '"1"'})
    assert changed.status_code == 404
    assert job["job_id"] not in bob.http.get("/jobs").text
    assert alice.http.get(path).json()["state"] == "active"


def test_a_change_needs_the_revision_it_is_for(alice: Person) -> None:
    job = alice.create(NEVER)
    path = f"/jobs/{job['job_id']}"
    assert alice.http.patch(path, json={"description": "new"}).status_code == 428
    stale = alice.http.patch(path, json={"description": "new"}, headers={"If-Match": '"7"'})
    assert stale.status_code == 412
    changed = alice.http.patch(path, json={"description": "new"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["revision"]) == (200, 2)


def test_upcoming_preview_and_status(alice: Person, operator: Person) -> None:
    job = alice.create("every 1h", name="hourly")
    own = alice.http.get(f"/jobs/{job['job_id']}/upcoming", params={"count": 3}).json()["items"]
    assert len(own) == 3
    assert own[0]["fire_at"] == job["next_fire_at"]
    everything = alice.http.get("/upcoming", params={"count": 50}).json()["items"]
    assert own[0]["fire_at"] in {item["fire_at"] for item in everything}
    preview = alice.http.post(
        "/schedules/preview",
        json={"schedule": "17 * * * *", "timezone": "Europe/Riga", "count": 2},
    )
    assert len(preview.json()["occurrences"]) == 2
    assert alice.http.get("/status").json()["segments"] is None
    segments = operator.http.get("/status").json()["segments"]
    assert len(segments) == SEGMENTS
    assert all(segment["lag_minutes"] <= 1 for segment in segments)


def test_the_command_line_does_the_same(alice: Person, deployment: Deployment) -> None:
    created = alice.carillon(
        "jobs", "create", "--json", "--name", "cli", "--schedule", "every 2s",
        "--task", "echo", "--payload", '{"by": "cli"}',
    )  # fmt: skip
    assert created.returncode == 0, created.stderr
    job = json.loads(created.stdout)
    runs = alice.ended_runs(job, 2)
    shown = alice.carillon("runs", "list", job["job_id"], "--json", "--limit", "50")
    assert {run["run_id"] for run in runs} <= {run["run_id"] for run in json.loads(shown.stdout)}
    assert alice.carillon("jobs", "delete", job["job_id"]).returncode == 0
    assert alice.carillon("jobs", "show", job["job_id"]).returncode == 4
    bad = alice.carillon("jobs", "create", "--name", "x", "--schedule", "99 * * * *", "--task", "e")
    assert bad.returncode == 3
    assert "schedule" in bad.stderr
    with Person(deployment.api_url, "wrong") as stranger:
        assert stranger.carillon("jobs", "list").returncode == 5


def test_a_first_sign_in_with_a_temporary_password(deployment: Deployment, tmp_path: Path) -> None:
    """Add a user, sign in, create a job, see it run (docs/deploy.md#the-first-time)."""
    environment = {
        **aws_environment(deployment.endpoint_url, os.environ),
        "CARILLON_COGNITO_ENDPOINT": deployment.endpoint_url,
        "XDG_CONFIG_HOME": str(tmp_path),
    }

    def carillon(*arguments: str, **variables: str) -> Any:
        said = subprocess.run(
            [str(COMMAND), *arguments, "--json"],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    name = f"operator-{uuid4().hex[:8]}"
    added = carillon("admin", "add-user", name, "--operator")
    carillon(
        "login", "--api-url", deployment.api_url, "--username", name,
        CARILLON_PASSWORD=added["temporary_password"], CARILLON_NEW_PASSWORD="a-New-passw0rd!",
    )  # fmt: skip
    assert carillon("status")["segments"]
    assert carillon("whoami")["name"] == name
    soon = seconds_ahead(20)
    job = carillon("jobs", "create", "--name", "first", "--schedule", soon, "--task", "echo")

    def has_run() -> bool:
        return [run["status"] for run in carillon("runs", "list", job["job_id"])] == ["succeeded"]

    until(has_run, 90)


def test_an_unknown_method_or_path_is_a_problem(alice: Person) -> None:
    for method, path, status in (("PUT", "/jobs", 405), ("GET", "/nothing", 404)):
        answer: httpx2.Response = alice.http.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("application/problem+json")
