"""A job changes hands while it fires, through the deployed template: each run has the secrets of
the owner that it is of."""

import os
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise

import pytest

from carillon.local.deployment import Deployment
from tests.e2e.conftest import NEVER, Person, instant, post, task, until
from tests.e2e.jobs.test_teams import in_groups
from tests.integration.executor.endpoints import endpoint

pytestmark = pytest.mark.e2e

FROM, TO = f"old-{os.getpid()}", f"new-{os.getpid()}"
OLD, NEW = {"Carillon-Team": FROM}, {"Carillon-Team": TO}


def put_secrets(deployment: Deployment) -> None:
    secrets = deployment.client("secretsmanager")
    for team in (FROM, TO):
        secrets.create_secret(
            Name=f"carillon-local/team/{team}/api", SecretString=f"Bearer of {team}"
        )


def test_a_job_moves_while_it_fires_and_each_run_has_its_owner_s_secret(
    deployment: Deployment,
) -> None:
    put_secrets(deployment)
    with ExitStack() as stack:
        ann = stack.enter_context(in_groups(deployment, "mover", f"{FROM}:admin", f"{TO}:admin"))
        ben = stack.enter_context(in_groups(deployment, "stayer", f"{FROM}:admin"))
        hook = stack.enter_context(endpoint())
        headers = {"Authorization": {"secret": "api"}}
        body = {
            "name": "moving",
            "schedule": "every 2s",
            "target": {"type": "webhook", "url": hook.url, "headers": headers},
            "payload": {"at": "{{fire_at}}"},
            "template": True,
            "catch_up": "all",
        }
        created = ann.http.post("/jobs", json=body, headers=OLD)
        assert created.status_code == 201, created.text
        old = created.json()["job_id"]
        until(lambda: len(hook.received) >= 3)
        refused = ben.http.post("/jobs/hand-over", json={"to": TO, "all": True}, headers=OLD)
        assert refused.status_code == 403, refused.text

        told = ann.carillon("hand-over", "moving", "--to", TO, "--team", FROM, "--wait", "--json")
        assert told.returncode == 0, told.stderr
        assert '"done":1' in told.stdout.replace(" ", ""), told.stdout

        job = ann.http.get("/jobs/named/moving", headers=NEW).json()
        assert (job["renamed_from"], job["handed_over_from"]) == (old, f"team/{FROM}")
        assert ann.http.get("/jobs/named/moving", headers=OLD).status_code == 404

        def complete() -> list[list[dict[str, str]]]:
            """The runs of both, once none is missing between the first and the last."""
            both = [runs_of(ann, old, OLD), runs_of(ann, job["job_id"], NEW)]
            times = sorted(instant(run["fire_at"]) for run in (*both[0], *both[1]))
            steps = {later - sooner for sooner, later in pairwise(times)}
            return both if len(both[1]) >= 4 and steps == {timedelta(seconds=2)} else []

        before, after = until(complete, 120)  # late ones catch up, on a busy machine
        paused = ann.http.post(f"/jobs/{job['job_id']}/pause", headers=NEW)
        assert paused.status_code == 200, paused.text

        query = {"action": "hand_over"}
        (change,) = ann.http.get("/changes", params=query, headers=NEW).json()["items"]
        moved_at = instant(change["at"]).replace(microsecond=0)
        # It was ended just before the change that has begun it.
        assert max(instant(run["fire_at"]) for run in before) <= moved_at
        assert min(instant(run["fire_at"]) for run in after) >= moved_at
        meant = {run["run_id"]: f"Bearer of {FROM}" for run in before}
        meant |= {run["run_id"]: f"Bearer of {TO}" for run in after}
        sent = {each.headers["webhook-id"]: each.headers["authorization"] for each in hook.received}
        assert meant.items() <= sent.items()


def runs_of(person: Person, job_id: str, team: dict[str, str]) -> list[dict[str, str]]:
    """The runs of the job that have ended well."""
    answer = person.http.get(f"/jobs/{job_id}/runs", params={"limit": 100}, headers=team)
    assert answer.status_code == 200, answer.text
    return [run for run in answer.json()["items"] if run["status"] == "succeeded"]


def test_jobs_that_cannot_move_stay_and_are_told(deployment: Deployment) -> None:
    with in_groups(deployment, "leaver", f"{FROM}:admin", f"{TO}:admin") as ann:
        body = {"name": "taken", "schedule": NEVER, "target": task("echo")}
        for headers in (OLD, NEW):
            assert ann.http.post("/jobs", json=body, headers=headers).status_code == 201
        ann.http.headers.update(OLD)
        operation = post(ann, "/jobs/hand-over", {"to": TO, "all": True})
        path = f"/operations/{operation['operation_id']}"
        until(lambda: ann.http.get(path).json()["state"] != "running", 60)
        ended = ann.http.get(path).json()
        assert (ended["state"], ended["done"], ended["passed_over"]) == ("succeeded", 0, 1)
        assert ended["left"] == [f"taken: team/{TO} has a job 'taken'"]
        assert ann.http.get("/jobs/named/taken").status_code == 200
