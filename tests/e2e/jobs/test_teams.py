"""Teams by the groups of the user pool, through the gateway's own form of a list."""

import contextlib
import os
from contextlib import ExitStack

import pytest

from carillon.local.deployment import Deployment, create_user, sign_in
from tests.e2e.conftest import NEVER, Person

pytestmark = pytest.mark.e2e

TEAM = {"Carillon-Team": "billing"}


def in_groups(deployment: Deployment, name: str, *groups: str) -> Person:
    cognito = deployment.client("cognito-idp")
    pool_id = deployment.outputs["UserPoolId"]
    user = create_user(deployment, f"{name}-{os.getpid()}")
    for group in groups:
        with contextlib.suppress(cognito.exceptions.GroupExistsException):
            cognito.create_group(UserPoolId=pool_id, GroupName=group)
        cognito.admin_add_user_to_group(UserPoolId=pool_id, Username=user.name, GroupName=group)
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
