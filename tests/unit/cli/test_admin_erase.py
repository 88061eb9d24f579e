"""`carillon admin erase` on moto: what it says, and what it refuses. tests/contract/test_erasing.py
has what it deletes."""

import json

import boto3
import pytest

from carillon.clock import SystemClock
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from tests.contract.samples import a_job, an_entry
from tests.unit.cli.conftest import Run
from tests.unit.cli.test_admin import deployment

__all__ = ["deployment"]

OWNER = "team/billing"


@pytest.fixture
def filled(deployment: Settings) -> Settings:
    """The tables have one job with an entry, and another's entry."""
    stores = open_stores(deployment, SystemClock())
    assert stores.jobs.create(a_job(OWNER))
    stores.wheel.put_entries([an_entry(OWNER, segment=0), an_entry("team/other", segment=1)])
    return deployment


def count(settings: Settings) -> int:
    tables = (settings.jobs_table, settings.wheel_table, settings.runs_table)
    dynamodb = boto3.client("dynamodb")
    return sum(dynamodb.scan(TableName=name, Select="COUNT")["Count"] for name in tables)


def test_it_counts_then_deletes_and_says_when_to_look_again(run: Run, filled: Settings) -> None:
    before = count(filled)
    rehearsed = run("admin", "erase", OWNER, "--dry-run", "--json")
    assert rehearsed.exit_code == 0, rehearsed.output
    planned = json.loads(rehearsed.stdout)
    assert planned["deleted"] == {"job": 1, "entry": 1, "change": 1}
    assert count(filled) == before

    erased = run("admin", "erase", OWNER, "--yes", "--json")
    assert erased.exit_code == 1, erased.output
    told = json.loads(erased.stdout)
    assert told["deleted"] == planned["deleted"]
    assert "repeat it after" in told["left"][0]
    assert count(filled) == before - 3 == 1

    again = run("admin", "erase", OWNER, "--yes")
    assert again.exit_code == 0, again.output
    assert again.stdout == "1 items read, 0 deleted\n"


def test_the_question_names_the_deployment(
    run: Run, filled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"in {filled.jobs_table} for good" in run("admin", "erase", OWNER).stderr
    monkeypatch.setenv("STACK_NAME", "Carillon-dev")
    assert "all that team/billing has in Carillon-dev for good" in (
        run("admin", "erase", OWNER).stderr
    )


def test_nobody_is_erased_by_mistake(run: Run, filled: Settings) -> None:
    before = count(filled)
    unasked = run("admin", "erase", OWNER)
    assert unasked.exit_code == 2
    assert "repeat with --yes" in unasked.stderr
    for owner in ("billing", "team/", "system/carillon"):
        refused = run("admin", "erase", owner, "--yes")
        assert refused.exit_code == 2
        assert "team/NAME or user/SUBJECT" in refused.stderr
    assert count(filled) == before
