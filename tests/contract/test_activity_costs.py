"""The activity feed's write units, counted at the client."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.services.activity import ActivityWriter
from carillon.stores.dynamo import open_stores
from tests.contract.kit import moto_kit
from tests.contract.samples import FIRE_AT, NOW
from tests.support.counting import ClientMeter

RUNS = 3_000
BATCH = 10
DEVIATE = 0.03
MOST_UNITS = 0.1


def batches(owners: int) -> Iterator[list[Result]]:
    """Batches as full ones come, of jobs with names and tags of an ordinary length."""
    chance = Random(3)
    for batch in range(RUNS // BATCH):
        results = []
        for place in range(BATCH):
            number = batch * BATCH + place
            owner = f"user/9f4c1c1e-6d3a-4b52-8f5e-{number % owners:012d}"
            name = f"sync invoices of customer {number % 800}"
            fire_at = FIRE_AT + timedelta(seconds=batch)
            key = RunKey(owner, job_id_of(owner, name), RunKind.SCHEDULED, fire_at)
            lag, took = round(chance.uniform(0, 0.3), 3), round(chance.uniform(0.1, 4), 3)
            tags = (("env", "production"), ("team", chance.choice(["billing", "ops", "web"])))
            at = fire_at + timedelta(seconds=lag + took)
            result = Result(key, RunStatus.SUCCEEDED, 1, at, name, tags, lag, took)
            if chance.random() < DEVIATE:
                result = replace(result, status=RunStatus.RETRYING, error_kind="http_503")
            results.append(result)
        yield results


@pytest.mark.parametrize(("owners", "least"), [(1, 0.09), (1_000, 0.02)])
def test_the_feed_costs_at_most_a_tenth_of_a_unit_a_run(
    owners: int, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    meter = ClientMeter()
    with moto_kit() as kit:
        assert kit.settings is not None
        meter.attach(monkeypatch)
        clock, entropy = ManualClock(NOW), SeededEntropy(1)
        stores = open_stores(kit.settings, clock)
        writer = ActivityWriter(stores.activity, clock, entropy, timedelta(days=7))
        for results in batches(owners):
            assert writer.write(results) == []
        units = meter.writes["runs"] / RUNS
    assert least <= units <= MOST_UNITS, units
    assert max(meter.rows.values()) <= 1024
