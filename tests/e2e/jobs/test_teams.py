"""Teams by the groups of the user pool, through the gateway's own form of a list; and the first
sign-in of somebody in one, by the lines of docs/teams.md."""

import json
import os
import re
import shlex
import subprocess
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from carillon.local.deployment import Deployment, aws_environment, create_user, sign_in
from carillon.local.emulator import REPOSITORY
from tests.e2e.conftest import COMMAND, NEVER, Person

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


def test_a_team_s_first_job_by_the_lines_of_the_page(
    deployment: Deployment, tmp_path: Path
) -> None:
    team, user = f"t{uuid4().hex[:8]}", f"ieva-{uuid4().hex[:8]}"
    named = {"API_URL": deployment.api_url, "ieva": user, "billing": team}
    environment = {
        **aws_environment(deployment.endpoint_url, os.environ),
        "CARILLON_COGNITO_ENDPOINT": deployment.endpoint_url,
        "CARILLON_NEW_PASSWORD": "a-New-passw0rd!",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    *before, follow = lines_of_the_page()
    assert len(before) == 5
    said = []
    for line in before:
        for name, value in named.items():
            line = line.replace(name, value)
        words = shlex.split(line, comments=True)
        if words[0] == "export":
            environment |= dict([words[1].split("=")])
            continue
        done = subprocess.run(
            [COMMAND, *words[1:]], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, (line, done.stderr)
        said.append(done.stdout)
        told = re.search(r"^temporary_password: (.+)$", done.stdout, re.M)
        environment |= {"CARILLON_PASSWORD": told[1]} if told else {}
    added, _, who, _ = said
    assert f"groups: {team}:editor" in added
    assert re.search(rf"^teams +.*{team}.*editor", who, re.M), who

    words = shlex.split(follow, comments=True)[1:]
    with subprocess.Popen(
        [COMMAND, *words, "--json"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            run = next(
                each for each in map(json.loads, running.stdout) if each["status"] == "succeeded"
            )
        finally:
            running.kill()
    assert run["kind"] == "scheduled"
    with in_groups(deployment, "zane", f"{team}:editor") as colleague:
        assert colleague.carillon("jobs", "delete", "first", "--team", team).returncode == 0
