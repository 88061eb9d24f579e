"""What every function tells of alike."""

import io
import json
from datetime import datetime, timedelta

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from shared.telemetry import Action, Telemetry, create_telemetry


def test_lost_events_are_logged_and_counted_and_none_are_not_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    metrics = Metrics(namespace="Carillon", service="losing")
    telemetry = Telemetry(Logger(service="losing", stream=stream), metrics)
    telemetry.events_lost(0)
    telemetry.flush()
    assert (stream.getvalue(), capsys.readouterr().out) == ("", "")
    telemetry.events_lost(3)
    telemetry.flush()
    record = json.loads(stream.getvalue())
    assert (record["action"], record["level"], record["count"]) == ("events.lost", "WARNING", 3)
    assert json.loads(capsys.readouterr().out)["EventsLost"] == [3.0]


def test_a_line_has_what_lambda_tells_levels_by(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a JSON line without a level and an RFC 3339 timestamp Lambda takes the level for INFO
    (Lambda: log-level filtering)."""
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "INFO")
    create_telemetry("timed").record(Action.TICK_FINISHED, messages=3)
    record = json.loads(capsys.readouterr().out)
    at = datetime.fromisoformat(record["timestamp"])
    assert at.utcoffset() == timedelta(0)
    assert "T" in record["timestamp"]
    assert (record["level"], record["action"]) == ("INFO", "tick.finished")
