"""`carillon import`: a manifest on stdout, the report on stderr, and what is refused."""

import json
import sys
from pathlib import Path

import boto3
import pytest

from carillon.manifest.manifest import Manifest
from carillon.manifest.yaml_text import document_of
from tests.unit.cli.conftest import Run

CRONTAB = "# Nightly\n0 2 * * * /bin/backup --all\n@reboot /bin/warm\n"
CRONJOB = """
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: 0 2 * * *
  suspend: true
  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: example.com/a}]}}}}
"""
MODULE = """
beat_schedule = {"add": {"task": "proj.add", "schedule": 30, "args": (1,)}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own folder, which the command is called in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "crontab").write_text(CRONTAB)
    (tmp_path / "cronjob.yaml").write_text(CRONJOB)
    (tmp_path / "beat_of_mine.py").write_text(MODULE)
    return tmp_path


def test_the_manifest_and_the_report_are_apart(run: Run) -> None:
    result = run("import", "crontab", "crontab", "--timezone", "Europe/Riga")

    assert result.exit_code == 0
    assert result.stdout == (
        "# An attempt ends after half of its interval, or 10 s, unless timeout_seconds says "
        "otherwise.\n"
        "manifest: imported\n"
        "jobs:\n"
        "  # line 2\n"
        "  #   target: the task nightly is to be written; before it was: /bin/backup --all\n"
        "  Nightly:\n"
        "    schedule: 0 2 * * *\n"
        "    timezone: Europe/Riga\n"
        "    target:\n"
        "      type: task\n"
        "      name: nightly\n"
        "    catch_up: skip\n"
        "    retry:\n"
        "      max_attempts: 1\n"
        "# line 3, left out:\n"
        "#   @reboot: nothing here boots; it ran: /bin/warm\n"
    )
    assert result.stderr == (
        "entries 2, jobs 1, left out 1\n"
        "\n"
        "line 2: job Nightly\n"
        "  target: the task nightly is to be written; before it was: /bin/backup --all\n"
        "\n"
        "line 3: LEFT OUT\n"
        "  @reboot: nothing here boots; it ran: /bin/warm\n"
        "\n"
        "An attempt ends after half of its interval, or 10 s, unless timeout_seconds says "
        "otherwise.\n"
    )


def test_json_has_both(run: Run) -> None:
    result = run("import", "crontab", "-", "--json", "--manifest", "old", stdin=CRONTAB)

    assert (result.exit_code, result.stderr) == (0, "")
    told = json.loads(result.stdout)
    assert told["manifest"]["manifest"] == "old"
    assert list(told["manifest"]["jobs"]) == ["Nightly"]
    assert [(line["entry"], line["job"]) for line in told["report"]] == [
        ("line 2", "Nightly"), ("line 3", None),
    ]  # fmt: skip
    assert told["report"][1]["notes"] == [
        {"field": "@reboot", "message": "nothing here boots; it ran: /bin/warm"}
    ]
    assert (
        told["remarks"][0] == "Times that state no zone are taken as UTC: --timezone names another."
    )


def test_tasks_are_written_to_a_new_file(run: Run, here: Path) -> None:
    options = ("--task-prefix", "ops.", "--tasks", "tasks_of_mine.py")
    assert run("import", "crontab", "crontab", *options).exit_code == 0

    text = (here / "tasks_of_mine.py").read_text()
    assert '@task(name="ops.nightly")\ndef ops_nightly(' in text
    assert "# was: /bin/backup --all" in text

    again = run("import", "crontab", "crontab", *options)
    assert again.exit_code == 3
    assert "tasks_of_mine.py exists: name a new file" in again.stderr
    assert (again.stdout, (here / "tasks_of_mine.py").read_text()) == ("", text)


def test_a_place_where_no_file_can_be_is_told_and_nothing_is_written(run: Run, here: Path) -> None:
    asked = run("import", "crontab", "crontab", "--tasks", "nowhere/tasks.py")

    assert (asked.exit_code, asked.stdout) == (3, "")
    assert "tasks: nowhere/tasks.py cannot be written: " in asked.stderr


def test_cron_jobs_of_several_files(run: Run, here: Path) -> None:
    (here / "more.yaml").write_text(CRONJOB.replace("nightly", "Nightly"))

    result = run("import", "k8s", "cronjob.yaml", "more.yaml", "--webhook", "https://example.com/r")

    jobs = Manifest.of(document_of(result.stdout)).jobs
    assert list(jobs) == ["nightly", "Nightly-2"]
    assert jobs["nightly"]["initial_state"] == "paused"
    assert jobs["nightly"]["payload"] == {"task": "nightly"}


def test_a_beat_schedule_of_this_folder(run: Run) -> None:
    result = run("import", "celery", "beat_of_mine:beat_schedule")

    assert result.exit_code == 0, result.stderr
    jobs = Manifest.of(document_of(result.stdout)).jobs
    assert jobs["add"]["target"]["name"] == "proj.add"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("sqlite:///jobs.db", "source: jobs.db is no file"),
        ("sqlite:///empty.db", "source: has no table mine: name it by --table"),
    ],
)
def test_a_database_or_table_of_apscheduler_that_is_not_there(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.db").touch()
    result = run("import", "apscheduler", source, "--table", "mine")

    assert result.exit_code == 3
    assert message in result.stderr


@pytest.mark.usefixtures("moto")
def test_schedules_of_an_account(run: Run) -> None:
    client = boto3.client("scheduler")
    target = {
        "Arn": "arn:aws:sqs:us-east-1:123456789012:orders",
        "RoleArn": "arn:aws:iam::123456789012:role/scheduler",
        "Input": "{}",
    }
    window = {"Mode": "OFF"}
    client.create_schedule(
        Name="hourly",
        ScheduleExpression="cron(0 * * * ? *)",
        FlexibleTimeWindow=window,  # type: ignore[arg-type]
        Target=target,  # type: ignore[arg-type]
    )

    result = run("import", "eventbridge")
    assert result.exit_code == 0, result.stderr
    jobs = Manifest.of(document_of(result.stdout)).jobs
    assert jobs["hourly"]["schedule"] == "cron(0 * * * ? *)"
    assert "target_arns" in result.stderr

    missing = run("import", "eventbridge", "--group", "bliling")
    assert missing.exit_code == 5
    assert "The schedules cannot be read" in missing.stderr
    assert run("import", "eventbridge", "--region", "eu-west-1").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["crontab", "nowhere"], "nowhere cannot be read"),
        (["crontab", "empty"], "the source has no entry"),
        (["crontab", "hopeless"], "every entry is left out"),
        (["crontab", "crontab", "--tasks", "t.py", "--webhook", "https://a.b"], "none are to be"),
        (["k8s", "bad.yaml"], "bad.yaml is not YAML"),
        (["celery", "nowhere_at_all:app"], "nowhere_at_all cannot be imported"),
        (["celery", "beat_of_mine:missing"], "beat_of_mine has no missing"),
        (["apscheduler", "beat_of_mine:beat_schedule"], "is no scheduler of APScheduler 3"),
        (["crontab", "crontab", "--manifest", "a b"], "manifest: must have letters, digits"),
    ],
)
def test_what_is_refused(run: Run, here: Path, arguments: list[str], said: str) -> None:
    (here / "empty").write_text("# nothing\n")
    (here / "hopeless").write_text("@reboot /bin/warm\n")
    (here / "bad.yaml").write_text("a: {{ b }}: c\n")

    result = run("import", *arguments)

    assert (result.exit_code, result.stdout) == (3, "")
    assert said in result.stderr
