"""Logs and metrics: what they look like to those who build on them."""

import io
import json
import logging
import re
from pathlib import Path

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from carillon.telemetry import Action, Metric, Telemetry, create_telemetry
from tests.unit.api.conftest import BODY, World
from tests.unit.api.gateway import OWNER, Client, Json


def new_telemetry(service: str) -> tuple[Telemetry, io.StringIO]:
    stream = io.StringIO()
    metrics = Metrics(namespace="Carillon", service=service)
    return Telemetry(Logger(service=service, stream=stream), metrics), stream


def records(stream: io.StringIO) -> list[Json]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_carries_its_action_and_details() -> None:
    telemetry, stream = new_telemetry("records")
    telemetry.record(Action.RUN_DEAD, logging.ERROR, run_id="r", attempt=3)
    telemetry.record(Action.JOB_CREATED)

    dead, created = records(stream)
    assert dead.items() >= {"action": "run.dead", "level": "ERROR", "run_id": "r"}.items()
    assert (created["action"], created["level"]) == ("job.created", "INFO")


def test_a_failure_carries_its_trace() -> None:
    telemetry, stream = new_telemetry("failures")
    try:
        raise RuntimeError("broken")
    except RuntimeError as error:
        telemetry.failure(Action.REQUEST_FAILED, error)

    (record,) = records(stream)
    assert record["action"] == "request.failed"
    assert "RuntimeError: broken" in record["exception"]


def test_metrics_are_given_out_once_with_their_units() -> None:
    telemetry, stream = new_telemetry("metrics")
    telemetry.finish(Action.TICK_FINISHED)
    telemetry.measure(Metric.RUN_LAG, 0.2)
    telemetry.measure(Metric.RUNS_SUCCEEDED)
    telemetry.measure(Metric.RUNS_SUCCEEDED)
    telemetry.finish(Action.BATCH_FINISHED, ran=2)
    telemetry.finish(Action.TICK_FINISHED)

    before, blob, after = records(stream)
    assert "_aws" not in before | after
    (described,) = blob["_aws"]["CloudWatchMetrics"]
    assert (described["Namespace"], described["Dimensions"]) == ("Carillon", [["service"]])
    assert {metric["Name"]: metric["Unit"] for metric in described["Metrics"]} == {
        "RunLag": "Seconds",
        "RunsSucceeded": "Count",
    }
    told = (blob["action"], blob["ran"], blob["service"], blob["RunLag"], blob["RunsSucceeded"])
    assert told == ("batch.finished", 2, "metrics", [0.2], [2.0])


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERTOOLS_SERVICE_NAME", raising=False)
    assert create_telemetry("tick").logger.service == "tick"
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "dead-letter-consumer")
    assert create_telemetry("executor").logger.service == "dead-letter-consumer"


def test_the_metrics_of_a_stage_stand_in_a_namespace_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "Carillon-dev")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
    telemetry = create_telemetry("staged")
    telemetry.measure(Metric.WATERMARK_LAG, 1)
    telemetry.finish(Action.TICK_FINISHED)
    (described,) = json.loads(capsys.readouterr().out)["_aws"]["CloudWatchMetrics"]
    assert described["Namespace"] == "Carillon-dev"


@pytest.mark.parametrize("names", [Action, Metric])
def test_the_lists_hold_what_is_told_and_nothing_else(names: type[Action] | type[Metric]) -> None:
    root = Path(__file__).resolve().parents[4]
    code = "\n".join(path.read_text() for path in (root / "functions").rglob("*.py"))
    code += (
        (root / "shared" / "carillon" / "telemetry.py").read_text().partition("class Telemetry")[2]
    )
    told = set(re.findall(rf"\b{names.__name__}\.([A-Z_]+)\b", code))

    assert told == set(names.__members__)
    assert len({member.value for member in names}) == len(names.__members__)


def test_the_api_tells_what_it_did(world: World) -> None:
    client = Client(world.api())
    job_id = client.post("/jobs", BODY).json["job_id"]
    client.post(f"/jobs/{job_id}/run")
    client.delete(f"/jobs/{job_id}")
    client.put("/calendars/holidays", {})
    client.delete("/calendars/holidays")

    told = [(record["action"], record["owner"]) for record in records(world.log)]
    assert told == [
        ("job.created", OWNER),
        ("run.requested", OWNER),
        ("job.deleted", OWNER),
        ("calendar.put", OWNER),
        ("calendar.deleted", OWNER),
    ]
