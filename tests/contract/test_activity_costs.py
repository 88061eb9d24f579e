"""The activity feed's write units, counted at the client."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from random import Random
from string import ascii_letters

import pytest

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.services.activity import MOST_RECORDS, Activity, ActivityFilter, ActivityWriter
from carillon.stores.activity import Record
from carillon.stores.dynamo import open_stores
from tests.contract.kit import moto_kit
from tests.contract.samples import FIRE_AT, NOW
from tests.support.counting import ClientMeter

RUNS = 3_000
BATCH = 10
DEVIATE = 0.03
MOST_UNITS = 0.1
Tags = tuple[tuple[str, str], ...]
LONG_NAME = " of the northern region, by the hour"


@dataclass(frozen=True)
class Load:
    """`tags` of each job beside two ordinary ones, all of `letters` that repeat nothing."""

    owners: int = 1
    deviate: float = DEVIATE
    suffix: str = ""
    tags: int = 0
    letters: int = 0


def batches(load: Load) -> Iterator[list[Result]]:
    """Batches as full ones come."""
    chance, owners = Random(3), load.owners
    for batch in range(RUNS // BATCH):
        results = []
        for place in range(BATCH):
            number = batch * BATCH + place
            owner = f"user/9f4c1c1e-6d3a-4b52-8f5e-{number % owners:012d}"
            name = f"sync invoices of customer {number % 800}{load.suffix}"
            fire_at = FIRE_AT + timedelta(seconds=batch)
            key = RunKey(owner, job_id_of(owner, name), RunKind.SCHEDULED, fire_at)
            lag, took = round(chance.uniform(0, 0.3), 3), round(chance.uniform(0.1, 4), 3)
            tags: Tags = (("env", "production"), ("team", chance.choice(["billing", "ops", "web"])))
            words = ("".join(chance.choices(ascii_letters, k=load.letters)) for _ in range(20))
            tags += tuple((f"tag-{place}", next(words)) for place in range(load.tags))
            at = fire_at + timedelta(seconds=lag + took)
            result = Result(key, RunStatus.SUCCEEDED, 1, at, name, tags, lag, took)
            if chance.random() < load.deviate:
                result = replace(result, status=RunStatus.RETRYING, error_kind="http_503")
            results.append(result)
        yield results


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> ClientMeter:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return ClientMeter()


@pytest.mark.parametrize(
    ("load", "least", "most"),
    [
        (Load(), 0.09, MOST_UNITS),
        (Load(owners=1_000), 0.02, MOST_UNITS),
        # Rows of ten would be two units: deviations are told, and successes counted.
        (Load(suffix=LONG_NAME, tags=2, letters=30), 0.02, MOST_UNITS),
        (Load(suffix=LONG_NAME, tags=2, letters=30, owners=1_000), 0.02, MOST_UNITS),
        (Load(deviate=0, tags=18, letters=256), 0, 0),
        # Such a deviation alone is 4 units of tags, beside the 2 and more of its run.
        (Load(tags=18, letters=256), 0.09, 0.15),
    ],
)
def test_the_feed_costs_at_most_a_tenth_of_a_unit_a_run(
    load: Load, least: float, most: float, meter: ClientMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moto_kit() as kit:
        assert kit.settings is not None
        meter.attach(monkeypatch)
        clock, entropy = ManualClock(NOW), SeededEntropy(1)
        stores = open_stores(kit.settings, clock)
        writer = ActivityWriter(stores.activity, clock, entropy, timedelta(days=7))
        deviations = set()
        for results in batches(load):
            assert writer.write(results) == []
            deviations |= {each.identity for each in results if each.is_deviation}
        units = meter.writes["runs"] / RUNS
        told, is_whole = Activity(stores.activity).all(
            "user/9f4c1c1e-6d3a-4b52-8f5e-000000000000", NOW, NOW
        )
    assert least <= units <= most, units
    assert is_whole
    assert load.owners > 1 or deviations <= {each.identity for each in told}
    assert load.letters or max(meter.rows.values()) <= 1024


def test_deviations_that_no_row_could_hold_are_told_in_several(
    meter: ClientMeter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a host fails that all runs of a batch of chunks call."""
    with moto_kit() as kit:
        assert kit.settings is not None
        meter.attach(monkeypatch)
        clock, entropy = ManualClock(NOW), SeededEntropy(1)
        stores = open_stores(kit.settings, clock)
        writer = ActivityWriter(stores.activity, clock, entropy, timedelta(days=7))
        some = islice(batches(Load(deviate=1, tags=18, letters=256)), 24)
        failed = [result for batch in some for result in batch]
        assert writer.write(failed) == []
        told, _ = Activity(stores.activity).all(failed[0].key.owner, NOW, NOW)
    assert Counter(each.identity for each in told) == Counter(each.identity for each in failed)


@pytest.mark.parametrize(
    ("limit", "only", "most_records"),
    [
        (25, ActivityFilter(), 160),
        (25, ActivityFilter(kinds=frozenset({"manual"})), 1.35 * MOST_RECORDS),
    ],
)
def test_a_page_reads_hardly_more_of_the_feed_than_it_looks_at(
    limit: int,
    only: ActivityFilter,
    most_records: float,
    meter: ClientMeter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moto_kit() as kit:
        assert kit.settings is not None
        meter.attach(monkeypatch)
        stores = open_stores(kit.settings, ManualClock(NOW))
        ids = SeededEntropy(1)
        (batch, *_) = batches(Load())
        owner, begin = batch[0].key.owner, NOW.replace(hour=0, minute=0)
        for second in range(2_500):
            at = begin + timedelta(seconds=second)
            stores.activity.put(Record(owner, at, ids.new_id(at), tuple(batch[:1]), NOW))
        size = max(meter.rows.values())
        meter.clear()
        Activity(stores.activity).read(owner, only, begin, begin + timedelta(hours=1), limit)
    # Each request rounds up to half a unit.
    rounded = 0.5 * meter.requests["Query"]
    assert meter.reads["runs"] <= most_records * size / 8_192 + rounded, meter.reads
    assert meter.requests["Query"] <= 64
