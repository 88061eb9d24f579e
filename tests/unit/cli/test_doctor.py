"""`carillon doctor` on moto: what it prints, and what it ends with."""

import json

import pytest

from carillon.settings import Settings
from tests.unit.cli.conftest import Run, name_deployment
from tests.unit.doctor.test_collecting import account

__all__ = ["account"]


@pytest.fixture(autouse=True)
def environment(account: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    name_deployment(monkeypatch, account, 2)
    monkeypatch.setenv("CARILLON_STACK", "Carillon")


def test_a_line_for_each_check_with_what_to_do(run: Run) -> None:
    told = run("doctor")
    assert told.exit_code == 1
    lines = told.stdout.splitlines()
    assert any(line.startswith("wrong") and "enable-rule" in line for line in lines), told.stdout
    assert any(line.startswith("ok") and "tzdata" in line for line in lines)
    wrong = sum(line.startswith("wrong") for line in lines)
    assert lines[-1] == f"Carillon: {len(lines) - 1} checks, {wrong} wrong"


def test_as_json(run: Run) -> None:
    told = run("doctor", "--json")
    assert told.exit_code == 1
    verdicts = json.loads(told.stdout)
    assert {"check", "level", "text", "advice"} == set(verdicts[0])
    assert "rule" in [each["check"] for each in verdicts if each["level"] == "wrong"]


def test_a_stack_that_is_not_there_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("doctor", "--stack", "Nowhere")
    assert told.exit_code == 5
    assert "Nowhere" in told.stderr
