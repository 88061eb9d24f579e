"""Teams by the groups of the user pool, through the gateway's own form of a list; and the first
sign-in of somebody in one, by the lines of docs/teams.md."""

import json
import os
import re
import shlex
import stat
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from carillon.local.deployment import Deployment, aws_environment, create_user, sign_in
from carillon.local.emulator import REPOSITORY
from tests.e2e.conftest import COMMAND, NEVER, Json, Person

pytestmark = pytest.mark.e2e

TEAM = {"Carillon-Team": "billing"}


def in_groups(deployment: Deployment, name: str, *groups: str) -> Person:
    user = create_user(deployment, f"{name}-{os.getpid()}", groups=groups)
    return Person(deployment.api_url, sign_in(deployment, user).access_token)


def test_two_people_of_a_team_see_one_list_and_a_third_nothing(deployment: Deployment) -> None:
    with ExitStack() as stack:
        ann, ben, eve = (
            stack.enter_context(in_groups(deployment, *each))
            for each in (
                ("ann", "billing:editor", "shipping:viewer"),
                ("ben", "billing:viewer"),
                ("eve", "shipping:admin"),
            )
        )
        body = {"name": "teams", "schedule": NEVER, "target": {"type": "task", "name": "echo"}}
        created = ann.http.post("/jobs", json=body, headers=TEAM)
        assert created.status_code == 201, created.text
        path = f"/jobs/{created.json()['job_id']}"

        listed = ben.http.get("/jobs", headers=TEAM).json()["items"]
        assert [job["name"] for job in listed] == ["teams"]
        assert ben.http.delete(path, headers=TEAM).status_code == 403
        assert eve.http.get("/jobs", headers=TEAM).status_code == 403
        for headers in ({}, {"Carillon-Team": "shipping"}):
            assert eve.http.get(path, headers=headers).status_code == 404
        assert ben.carillon("jobs", "show", "teams", "--team", "billing").returncode == 0
        assert ann.http.delete(path, headers=TEAM).status_code == 204


def lines_of_the_page() -> list[str]:
    page = (REPOSITORY / "docs" / "teams.md").read_text()
    (block,) = re.findall(r"^```sh\n(carillon admin add-user.*?)^```", page, re.M | re.S)
    lines: list[str] = block.splitlines()
    return lines


class Shell:
    """A shell of somebody's own, with the password that the first line prints."""

    def __init__(self, deployment: Deployment, home: Path) -> None:
        self.environment = {
            **aws_environment(deployment.endpoint_url, os.environ),
            "CARILLON_COGNITO_ENDPOINT": deployment.endpoint_url,
            "CARILLON_NEW_PASSWORD": "a-New-passw0rd!",
            "XDG_CONFIG_HOME": str(home),
        }

    def __call__(self, line: str) -> str:
        words = shlex.split(line, comments=True)
        if words[0] == "export":
            self.environment |= dict([words[1].split("=")])
            return ""
        done = subprocess.run(
            [COMMAND, *words[1:]],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
        if told := re.search(r"^temporary_password: (.+)$", done.stdout, re.M):
            self.environment["CARILLON_PASSWORD"] = told[1]
        return done.stdout

    def first_success(self, line: str) -> Json:
        """The first run that succeeds, of a command that follows them."""
        words = [str(COMMAND), *shlex.split(line, comments=True)[1:], "--json"]
        with subprocess.Popen(
            words, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as running:
            assert running.stdout is not None
            try:
                runs: Iterator[Json] = map(json.loads, running.stdout)
                return next(each for each in runs if each["status"] == "succeeded")
            finally:
                running.kill()


@pytest.fixture
def shell(deployment: Deployment, tmp_path: Path) -> Shell:
    return Shell(deployment, tmp_path)


def test_a_team_s_first_job_by_the_lines_of_the_page(deployment: Deployment, shell: Shell) -> None:
    team, user = f"t{uuid4().hex[:8]}", f"ieva-{uuid4().hex[:8]}"
    *lines, follow = lines_of_the_page()
    assert len(lines) == 5
    for name, value in (("API_URL", deployment.api_url), ("ieva", user), ("billing", team)):
        lines = [line.replace(name, value) for line in lines]
    added, _, _, who, _ = map(shell, lines)
    assert f"groups: {team}:editor" in added
    assert re.search(rf"^teams +.*{team}.*editor", who, re.M), who
    assert shell.first_success(follow)["kind"] == "scheduled"
    with in_groups(deployment, "zane", f"{team}:editor") as colleague:
        assert colleague.carillon("jobs", "delete", "first", "--team", team).returncode == 0


def test_a_sign_in_is_renewed_and_then_has_the_teams_of_that_moment(
    deployment: Deployment, shell: Shell, tmp_path: Path
) -> None:
    user = f"ilze-{uuid4().hex[:8]}"
    shell(f"carillon admin add-user {user} --team first --role viewer")
    shell(f"carillon login --api-url {deployment.api_url} --username {user}")
    shell(f"carillon admin add-to-team {user} --team second --role admin")
    shell(f"carillon admin remove-from-team {user} --team first")
    assert json.loads(shell("carillon whoami --json"))["teams"] == {"first": "viewer"}

    file = tmp_path / "carillon" / "credentials.json"
    stored = json.loads(file.read_text())
    ended = urlsafe_b64encode(b'{"exp": 1}').decode().rstrip("=")
    file.write_text(json.dumps(stored | {"token": f"e30.{ended}.x"}))
    told = json.loads(shell("carillon whoami --json"))

    assert (told["name"], told["teams"]) == (user, {"second": "admin"})
    assert json.loads(file.read_text())["token"] not in (stored["token"], f"e30.{ended}.x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    listed = {each["name"]: each for each in json.loads(shell("carillon admin users --json"))}
    assert (listed[user]["status"], listed[user]["teams"]) == ("confirmed", ["second:admin"])
