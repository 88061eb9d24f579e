"""What every function tells of alike."""

import io
import json
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics

from carillon.telemetry import Action, Metric, Telemetry, create_telemetry


def test_lost_events_are_logged_and_none_are_not_told() -> None:
    stream = io.StringIO()
    telemetry = Telemetry(Logger(service="losing", stream=stream), Metrics("Carillon", "losing"))
    telemetry.events_lost(0)
    assert stream.getvalue() == ""
    telemetry.events_lost(3)
    record = json.loads(stream.getvalue())
    assert (record["action"], record["level"], record["count"]) == ("events.lost", "WARNING", 3)


def test_one_invocation_gives_out_one_record_with_all_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """However much is told: powertools would give out another one every hundred values."""
    stream = io.StringIO()
    telemetry = Telemetry(Logger(service="busy", stream=stream), Metrics("Carillon", "busy"))
    for _ in range(250):
        telemetry.measure(Metric.ENTRIES_SET_ASIDE)
    for seconds in (0.1, 0.3):
        telemetry.measure(Metric.RUN_LAG, seconds)
    telemetry.finish(Action.BATCH_FINISHED)
    record = json.loads(stream.getvalue())
    assert (record["EntriesSetAside"], record["RunLag"]) == ([250.0], [0.1, 0.3])
    assert capsys.readouterr().out == ""


def test_of_very_many_times_the_longest_are_among_those_given_out() -> None:
    """A batch of chunks has more than the hundred of a record."""
    stream = io.StringIO()
    telemetry = Telemetry(Logger(service="herd", stream=stream), Metrics("Carillon", "herd"))
    for number in range(1, 241):
        telemetry.measure(Metric.RUN_LAG, number / 100)
    telemetry.finish(Action.BATCH_FINISHED)
    given = json.loads(stream.getvalue())["RunLag"]
    assert (len(given), max(given)) == (99, 2.4)
    assert sum(given) / len(given) == pytest.approx(1.2, abs=0.02)


def test_each_metric_is_looked_at() -> None:
    """By an alarm or the dashboard: each costs $0.30 a month (CloudWatch's price list)."""
    root = Path(__file__).resolve().parents[2] / "infra" / "carillon" / "cdk" / "constructs"
    code = "\n".join((root / f"{name}.py").read_text() for name in ("observability", "dashboard"))
    assert set(re.findall(r"\bMetric\.([A-Z_]+)\b", code)) == set(Metric.__members__)


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
