"""A program that signs in by its own client, beside the people of its team."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from carillon.client import Client, Machine
from carillon.local.deployment import MACHINE, MACHINE_TEAM, Deployment, aws_environment
from tests.e2e.conftest import COMMAND, NEVER, Json, Person
from tests.e2e.jobs.test_teams import in_groups

pytestmark = pytest.mark.e2e


class Program:
    """The command in the environment that `carillon admin machine-clients` exports."""

    def __init__(self, deployment: Deployment, home: Path) -> None:
        self._environment = {
            **aws_environment(deployment.endpoint_url, os.environ),
            "XDG_CONFIG_HOME": str(home),
        }
        told: Json = json.loads(
            self("admin", "machine-clients", MACHINE, "--secret", "--json").stdout
        )
        self.machine = Machine(told["client_id"], told["client_secret"])
        self._environment |= {
            "CARILLON_API_URL": deployment.api_url,
            "CARILLON_CLIENT_ID": self.machine.client_id,
            "CARILLON_CLIENT_SECRET": self.machine.secret,
            "CARILLON_TEAM": MACHINE_TEAM,
        }

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            env=self._environment | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def program(deployment: Deployment, tmp_path: Path) -> Program:
    return Program(deployment, tmp_path)


@pytest.fixture
def colleague(deployment: Deployment) -> Iterator[Person]:
    with in_groups(deployment, "ann", f"{MACHINE_TEAM}:editor") as person:
        yield person


def test_its_team_s_people_see_and_pause_what_it_applies(
    program: Program, colleague: Person, tmp_path: Path, deployment: Deployment
) -> None:
    name = f"deployed {uuid4().hex[:8]}"
    job = {"schedule": NEVER, "target": {"type": "task", "name": "echo"}}
    file = tmp_path / "jobs.yaml"
    file.write_text(json.dumps({"manifest": f"m-{uuid4().hex[:8]}", "jobs": {name: job}}))
    applied = program("apply", str(file))
    assert applied.returncode == 0, applied.stderr

    def as_colleague(*arguments: str) -> str:
        done = colleague.carillon(*arguments, "--team", MACHINE_TEAM)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert name in as_colleague("jobs", "list")
    history = json.loads(as_colleague("changes", name, "--json"))
    assert (history[-1]["by"]["kind"], history[-1]["by"]["name"]) == ("machine", MACHINE)
    assert history[-1]["action"] == "create"
    with Client(deployment.api_url, program.machine, team=MACHINE_TEAM) as client:
        assert client.jobs[name].get()["state"] == "active"
    as_colleague("jobs", "pause", name)
    assert json.loads(program("jobs", "show", name, "--json").stdout)["state"] == "paused"
    # One token for all of these, which nobody else can read.
    (kept,) = (tmp_path / "carillon").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_it_is_told_who_it_is(program: Program) -> None:
    told = json.loads(program("whoami", "--json").stdout)
    assert (told["name"], told["owner"]) == (MACHINE, None)
    assert told["teams"] == {MACHINE_TEAM: "editor"}


def test_what_it_was_not_granted_is_refused(program: Program, tmp_path: Path) -> None:
    more = program("jobs", "list", CARILLON_CLIENT_SCOPE=f"carillon/{MACHINE_TEAM}:admin")
    assert more.returncode == 5
    assert "the client has no such scope" in more.stderr
    wrong = program("jobs", "list", CARILLON_CLIENT_SECRET="wrong")
    assert (wrong.returncode, "check CARILLON_CLIENT_ID" in wrong.stderr) == (5, True)
    other = program("jobs", "list", CARILLON_TEAM="shipping")
    assert (other.returncode, "is no team of yours" in other.stderr) == (5, True)
    alone = program("jobs", "list", CARILLON_TEAM="")
    assert (alone.returncode, "a machine has no jobs of its own" in alone.stderr) == (5, True)
    admins = program("jobs", "delete", "--tag", "a=b", "--yes")
    assert (admins.returncode, "this takes admin" in admins.stderr) == (5, True)
