"""No request by one owner can read, change, run or infer another owner's jobs (invariant I5)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from carillon.api.jobs.service import JobService
from carillon.clock import SeededEntropy
from carillon.domain.canary import CANARY_OWNER
from carillon.domain.job import Job
from carillon.domain.run import RunKey, RunKind
from carillon.domain.spec.names import job_id_of
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import UNLIMITED
from carillon.stores.memory import MemoryJobStore
from carillon.telemetry import create_telemetry
from tests.unit.api.conftest import BODY, World, without_report
from tests.unit.api.gateway import OWNER, STRANGER, Answer, Client, Json
from tests.unit.api.runs.test_dead_letters import put_dead
from tests.unit.api.runs.test_runs import SECOND

Request = Callable[[Client, str], Answer]

OWNERS = {
    "persons": (OWNER, STRANGER),
    "teams": ("team/billing", "team/other"),
    "a team and its member": ("team/billing", OWNER),
    "a member and the team": (OWNER, "team/billing"),
}


@pytest.fixture(params=OWNERS)
def owners(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The owner of the job, and that of the requests about it."""
    return OWNERS[request.param]


def acting_for(world: World, owner: str) -> Client:
    """Requests for the owner, a team's by one who is an admin of both teams."""
    kind, _, name = owner.partition("/")
    groups = "[billing:admin other:admin]"
    is_team = kind == "team"
    return Client(world.api(), OWNER if is_team else owner, groups, team=name if is_team else "")


@pytest.fixture
def client(world: World, owners: tuple[str, str]) -> Client:
    return acting_for(world, owners[0])


@pytest.fixture
def stranger(world: World, owners: tuple[str, str]) -> Client:
    return acting_for(world, owners[1])


ROUTES: dict[str, Request] = {
    "get": lambda client, path: client.get(path),
    "patch": lambda client, path: client.patch(path, {"description": "stolen"}, 1),
    "patch whatever revision": lambda client, path: client.patch(path, {"priority": "low"}, "*"),
    "patch a wrong revision": lambda client, path: client.patch(path, {"description": "stolen"}, 7),
    "delete": lambda client, path: client.delete(path),
    "pause": lambda client, path: client.post(f"{path}/pause"),
    "resume": lambda client, path: client.post(f"{path}/resume"),
    "run": lambda client, path: client.post(f"{path}/run"),
    "run by key": lambda client, path: client.post(f"{path}/run", key="k"),
    "runs": lambda client, path: client.get(f"{path}/runs"),
    "upcoming": lambda client, path: client.get(f"{path}/upcoming"),
    "missed": lambda client, path: client.get(f"{path}/missed"),
    "backfill": lambda client, path: client.post(
        f"{path}/backfill", {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T01:00:00Z"}
    ),
}


def without_id(answer: Answer, job_id: str) -> tuple[int, dict[str, str], str]:
    return answer.status, answer.headers, answer.text.replace(job_id, "ID")


@pytest.mark.parametrize("route", ROUTES)
def test_another_owner_s_job_cannot_be_told_from_none(
    client: Client, stranger: Client, world: World, job: Json, route: str
) -> None:
    client.post(f"/jobs/{job['job_id']}/run", key="k")
    sent = world.queue.kept()
    nothing = "0" * 26

    answer = ROUTES[route](stranger, f"/jobs/{job['job_id']}")
    missing = ROUTES[route](stranger, f"/jobs/{nothing}")

    assert answer.status == 404
    assert without_id(answer, job["job_id"]) == without_id(missing, nothing)
    assert without_report(client.get(f"/jobs/{job['job_id']}").json) == job
    assert world.queue.kept() == sent


def test_another_owner_s_run_cannot_be_told_from_none(
    client: Client, stranger: Client, job: Json
) -> None:
    run_path = client.post(f"/jobs/{job['job_id']}/run").headers["location"]
    own = stranger.post("/jobs", BODY).json["job_id"]
    run_id = run_path.rpartition("/")[2]

    assert client.get(run_path).status == 200
    assert stranger.get(run_path).status == 404
    assert stranger.get(f"/jobs/{own}/runs/{run_id}").status == 404


def test_lists_hold_only_the_caller_s(
    client: Client, stranger: Client, world: World, job: Json, owners: tuple[str, str]
) -> None:
    client.post(f"/jobs/{job['job_id']}/run")
    own = stranger.post("/jobs", BODY | {"name": "theirs", "schedule": "every 1h"}).json

    put_dead(world, job["job_id"], key=RunKey(owners[0], job["job_id"], RunKind.SCHEDULED, SECOND))
    client.post("/dead-letters/discard", {"all": True})

    assert [found["job_id"] for found in stranger.get("/jobs").json["items"]] == [own["job_id"]]
    for path in ("/dead-letters", "/operations"):
        assert len(client.get(path).json["items"]) == 1
        assert stranger.get(path).json["items"] == []
    upcoming = stranger.get("/upcoming", count="100").json["items"]
    assert {found["job_id"] for found in upcoming} == {own["job_id"]}
    status = stranger.get("/status").json
    assert (status["state"], status["active_jobs"]) == ("idle", 1)


def test_another_owner_s_dead_letter_or_waiting_run_cannot_be_told_from_none(
    client: Client, stranger: Client, world: World, job: Json
) -> None:
    run_id = client.post(f"/jobs/{job['job_id']}/run").json["run_id"]
    sent = world.queue.kept()
    for method, path in (
        ("POST", f"/jobs/{job['job_id']}/runs/{run_id}/cancel"),
        ("POST", f"/dead-letters/{run_id}/redrive"),
        ("DELETE", f"/dead-letters/{run_id}"),
    ):
        other = run_id.replace(job["job_id"], "0" * 26)
        answer = stranger.send(method, path)
        missing = stranger.send(method, path.replace(job["job_id"], "0" * 26))
        assert answer.status == 404, path
        assert answer.text.replace(run_id, other).replace(job["job_id"], "0" * 26) == missing.text
    assert client.get(f"/jobs/{job['job_id']}/runs/{run_id}").json["status"] == "scheduled"
    assert world.queue.kept() == sent


def test_another_owner_s_operation_cannot_be_told_from_none(
    client: Client, stranger: Client
) -> None:
    started = client.post("/dead-letters/discard", {"all": True})
    assert started.status == 202, started.text
    path = f"/operations/{started.json['operation_id']}"

    assert stranger.get(path).status == 404
    assert stranger.post(f"{path}/cancel").status == 404
    for nothing in ("0" * 26, "x", "A" * 26):
        assert client.get(f"/operations/{nothing}").status == 404
    assert client.get(path).json["state"] == "running"


def test_a_cursor_of_another_owner_is_refused(client: Client, stranger: Client) -> None:
    for n in range(3):
        client.post("/jobs", BODY, key=str(n))
    cursor = client.get("/jobs", limit="1").json["next_cursor"]

    assert client.get("/jobs", cursor=cursor).status == 200
    assert stranger.get("/jobs", cursor=cursor).fields == ["cursor"]


def test_no_cache_keeps_an_answer(client: Client, stranger: Client, job: Json) -> None:
    """One address has another answer for each owner, and for each team of a person."""
    for answer in (
        client.get("/jobs"),
        client.get(f"/jobs/{job['job_id']}"),
        stranger.get(f"/jobs/{job['job_id']}"),
        client.send("GET", "/jobs", headers={"Carillon-Team": "no/team"}),
        client.send("POST", "/jobs", "no json"),
    ):
        assert answer.headers["cache-control"] == "no-store", answer


def test_the_same_key_is_another_job_for_another_owner(client: Client, stranger: Client) -> None:
    mine = client.post("/jobs", BODY, key="k")
    theirs = stranger.post("/jobs", BODY | {"name": "theirs"}, key="k")

    assert (mine.status, theirs.status) == (201, 201)
    assert mine.json["job_id"] != theirs.json["job_id"]


def test_the_owner_is_the_subject_and_nothing_else_of_the_request(world: World, job: Json) -> None:
    pretender = Client(world.api(), owner="owner-3")
    for name in ("X-Owner", "Authorization", "X-Amzn-Oidc-Identity"):
        answer = pretender.send("GET", f"/jobs/{job['job_id']}", headers={name: OWNER})
        assert answer.status == 404
    assert pretender.get("/jobs", owner=OWNER).fields == ["owner"]


def test_no_token_can_name_the_deployment_s_own_owners(world: World) -> None:
    """The canary's jobs and runs, and those of teams, are nobody's to read, change or make."""
    for subject in (CANARY_OWNER, "system/", "team/billing", "user/owner-1"):
        pretender = Client(world.api())
        pretender._claims["sub"] = subject
        created = pretender.post("/jobs", BODY)
        assert created.json["job_id"] == job_id_of(f"user/{subject}", BODY["name"])
        assert pretender.get("/jobs").json["items"][0]["job_id"] == created.json["job_id"]


@pytest.mark.parametrize(
    "job_id", ["owner-2#x", "0" * 25, "0" * 27, "0" * 25 + "#", "0" * 26 + "\n"]
)
def test_no_store_is_asked_for_text_that_is_no_job_id(world: World, job_id: str) -> None:
    """Run keys join owner and job id by `#`: an id that carries one could reach other rows."""

    class Unasked(MemoryJobStore):
        def get(self, owner: str, job_id: str) -> Job | None:
            raise AssertionError(f"asked for {job_id!r}")

    stores: Any = replace(world, jobs=Unasked())
    clock, entropy = world.clock, SeededEntropy(1)
    service = JobService(
        stores,
        Indexer.of(stores, clock),
        JobQuotas(UNLIMITED, stores.jobs, stores.uses, clock, entropy),
        clock,
        entropy,
        world.settings,
        create_telemetry("api"),
    )

    assert service.find("owner", job_id) is None
