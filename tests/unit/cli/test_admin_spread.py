"""`carillon admin spread` on moto: what it says, and that the audit finds all where it is to be."""

import json
import zoneinfo
from dataclasses import replace
from datetime import timedelta
from importlib.metadata import version

import pytest

from carillon.clock import SystemClock
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from tests.unit.audit.planting import an_hour
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_admin import deployment
from tests.unit.cli.test_admin_audit import SPAN, copied, later

__all__ = ["deployment", "later"]


@pytest.fixture
def raised(deployment: Settings, later: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of an hour with one segment, of which there are sixteen now."""
    monkeypatch.setenv("SEGMENTS", "16")
    copied(an_hour(), deployment)


def test_jobs_are_moved_once_and_the_audit_finds_them(run: Run, raised: None) -> None:
    rehearsed = run("admin", "spread", "--dry-run", "--json")
    assert rehearsed.exit_code == 0, rehearsed.output
    planned = json.loads(rehearsed.stdout)
    told = run("admin", "spread", "--json")
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer == planned | {"dry_run": False}
    assert answer["jobs"] == 7
    assert answer["left"] == []
    assert {move["from"] for move in answer["moved"]} == {0}
    assert sum(move["jobs"] for move in answer["moved"]) > 3
    audited = run("admin", "audit", *SPAN)
    assert "indexed nowhere" not in audited.stdout, audited.stdout
    again = run("admin", "spread")
    assert again.exit_code == 0, again.output
    assert again.stdout == "7 jobs read, 0 moved\n"


def test_it_says_from_where_to_where(run: Run, raised: None) -> None:
    told = run("admin", "spread", "--dry-run")
    first, *moves = told.stdout.splitlines()
    assert first.startswith("7 jobs read, ")
    assert first.endswith(" to be moved")
    assert len(moves) > 1
    assert all(move.startswith("from segment 0 to ") for move in moves), moves


def test_what_cannot_be_reached_is_to_be_repeated(
    run: Run, raised: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBS_TABLE", "none")
    told = run("admin", "spread")
    assert told.exit_code == 7
    assert "so far " in told.stderr
    assert ": repeat it" in told.stderr


@pytest.mark.parametrize(("seconds", "told_as"), [(-82, "82.5 s behind"), (3, "2.5 s ahead of")])
def test_nothing_is_moved_by_a_clock_that_is_off(
    run: Run, raised: None, monkeypatch: pytest.MonkeyPatch, seconds: int, told_as: str
) -> None:
    to_be_moved = run("admin", "spread", "--dry-run").stdout
    now = SystemClock().now() + timedelta(seconds=seconds)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(SystemClock, "now", lambda clock: now)
        told = run("admin", "spread")
    assert told.exit_code == 3
    assert f"{told_as} the database's: set it" in told.stderr
    assert run("admin", "spread", "--dry-run").stdout == to_be_moved


def test_a_second_or_two_are_no_matter(
    run: Run, raised: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = SystemClock().now() + timedelta(seconds=2)
    monkeypatch.setattr(SystemClock, "now", lambda clock: now)
    assert run("admin", "spread").exit_code == 0


@pytest.mark.parametrize("command", ["spread", "reindex", "audit"])
def test_no_job_is_put_or_judged_by_other_time_zones_than_those_of_ticks(
    run: Run, raised: None, deployment: Settings, command: str
) -> None:
    to_be_moved = run("admin", "spread", "--dry-run").stdout
    wheel = open_stores(deployment, SystemClock()).wheel
    seen = wheel.get_control(0)
    assert seen is not None
    assert wheel.put_control(replace(seen, tzdata="2020.1"), over=seen)
    told = run("admin", command)
    assert told.exit_code == 3
    assert "2020.1 in the deployment: pip install tzdata==2020.1" in told.stderr
    own = replace(seen, tzdata=version("tzdata"))
    assert wheel.put_control(own, over=replace(seen, tzdata="2020.1"))
    assert run("admin", "spread", "--dry-run").stdout == to_be_moved


def test_zones_are_those_of_the_package(run: Run, raised: None) -> None:
    assert run("admin", "spread", "--dry-run").exit_code == 0
    assert zoneinfo.TZPATH == ()
