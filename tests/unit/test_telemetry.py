"""What every function tells of alike."""

import io
import json

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from shared.telemetry import Telemetry


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
