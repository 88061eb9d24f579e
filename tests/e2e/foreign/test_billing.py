"""The example app, deployed from nothing but the wheel, in a folder of its own."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from carillon.local import foreign
from carillon.local.deployment import Deployment
from carillon.local.emulator import REGION, REPOSITORY
from tests.e2e.conftest import Json, instant, until
from tests.support.wheel import Project, built, installed

EXAMPLE = REPOSITORY / "examples" / "billing"
MOST_LINES = 20
FIRST_TICK_SECONDS = 150
"""A new stack's first tick comes within a minute, and all of its functions are cold then."""


@dataclass(frozen=True)
class Billing:
    """The app in its folder, and the emulator that it is deployed to."""

    project: Project
    deployment: Deployment

    def deploy(self) -> "subprocess.CompletedProcess[str]":
        endpoint_url = self.deployment.endpoint_url
        # Nothing of this checkout's own environment is on the path.
        variables = foreign.variables(endpoint_url, {"PATH": "/usr/bin:/bin"})
        command = foreign.cdk_command(*foreign.deploy_words())
        return self.project.run(*command, variables=variables)

    def change(self, name: str, before: str, after: str) -> None:
        path = self.project.folder / name
        text = path.read_text()
        assert before in text
        path.write_text(text.replace(before, after))

    def get(self, path: str) -> Json:
        """What the team's API answers to a signed request."""
        cloudformation = self.deployment.client("cloudformation")
        outputs = cloudformation.describe_stacks(StackName="Billing")["Stacks"][0]["Outputs"]
        (api_id,) = [each["OutputValue"] for each in outputs if each["OutputKey"].endswith("ApiId")]
        base = Deployment(self.deployment.endpoint_url, {"ApiId": api_id}).api_url
        url = f"{base}/aws/billing{path}"
        signed = AWSRequest("GET", url)
        SigV4Auth(Credentials("test", "test"), "execute-api", REGION).add_auth(signed)
        answer = httpx2.get(url, headers=dict(signed.headers.items()), timeout=60)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def jobs(self) -> dict[str, str]:
        """The schedule of each job of the team."""
        return {job["name"]: job["schedule"] for job in self.get("/jobs")["items"]}

    def runs(self, name: str) -> list[Json]:
        job = self.get(f"/jobs/named/{name}")
        items: list[Json] = self.get(f"/jobs/{job['job_id']}/runs")["items"]
        return items

    def succeeded(self, name: str) -> Json:
        """The first run that succeeds."""

        def look() -> Any:
            return [run for run in self.runs(name) if run["status"] == "succeeded"]

        found: Json = until(look, FIRST_TICK_SECONDS)[-1]
        return found

    def named(self, service: str, kind: str) -> str:
        """The name of the app's own resource, whose id begins with its kind."""
        resources = self.deployment.client("cloudformation").describe_stack_resources(
            StackName="Billing"
        )["StackResources"]
        (found,) = [
            each["PhysicalResourceId"]
            for each in resources
            if each["ResourceType"] == service and each["LogicalResourceId"].startswith(kind)
        ]
        return str(found)


@pytest.fixture(scope="module")
def billing(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Billing]:
    folder = tmp_path_factory.mktemp("billing")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    wheel = built(tmp_path_factory.mktemp("dist"))
    app = Billing(installed(folder, f"carillon[cdk] @ {wheel.as_uri()}"), deployment)
    done = app.deploy()
    assert done.returncode == 0, done.stdout + done.stderr
    yield app
    deployment.client("cloudformation").delete_stack(StackName="Billing")


def test_the_app_is_short() -> None:
    lines = [line for line in (EXAMPLE / "app.py").read_text().splitlines() if line]
    assert len(lines) <= MOST_LINES


def test_its_jobs_are_those_of_its_team(billing: Billing) -> None:
    assert billing.jobs() == {
        "check": "every 5s",
        "month-end": "0 6 1 * *",
        "remind": "every 5s",
        "report": "every 5s",
    }
    assert billing.get("/jobs/named/month-end")["calendar"]["name"] == "holidays"


def test_its_queue_gets_messages(billing: Billing) -> None:
    sqs = billing.deployment.client("sqs")
    url = billing.named("AWS::SQS::Queue", "Reminders")

    def look() -> Any:
        return sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2).get("Messages")

    assert json.loads(until(look, FIRST_TICK_SECONDS)[0]["Body"]) == {"kind": "reminder"}


def test_its_task_fires_with_its_requirement_and_its_role(billing: Billing) -> None:
    run = billing.succeeded("report")
    key = f"{instant(run['fire_at']):%Y-%m-%d/%H%M%S}.txt"
    assert json.loads(run["result"]) == key
    s3 = billing.deployment.client("s3")
    bucket = billing.named("AWS::S3::Bucket", "Reports")
    text = s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    assert "Ieva" in text
    assert "━" in text, "drawn by what it requires"
    assert json.loads(billing.succeeded("check")["result"]) == "nothing is overdue"


def test_jobs_follow_their_declarations_and_a_refused_one_changes_nothing(
    billing: Billing,
) -> None:
    before = billing.jobs()
    job = '@job(schedule="every 5s", description="Looks for what is overdue")'
    billing.change("billing/jobs.py", job, "@task")
    billing.change("jobs.yaml", '"0 6 1 * *"', "at 2020-01-01T00:00:00")
    refused = billing.deploy()
    assert refused.returncode != 0
    assert (
        "job 'month-end': schedule: has no occurrence after now" in refused.stdout + refused.stderr
    )
    assert billing.jobs() == before

    billing.change("jobs.yaml", "at 2020-01-01T00:00:00", '"0 7 1 * *"')
    done = billing.deploy()
    assert done.returncode == 0, done.stdout + done.stderr
    changed = {**before, "month-end": "0 7 1 * *"}
    assert billing.jobs() == {name: changed[name] for name in changed if name != "check"}
