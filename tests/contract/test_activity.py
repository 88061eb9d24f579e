"""ActivityStore."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.clock import SeededEntropy
from carillon.domain.activity.results import Result
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.stores.activity import Record
from tests.contract.kit import Kit
from tests.contract.samples import own_job_id

DAY = datetime(2026, 11, 20, tzinfo=UTC)
_IDS = SeededEntropy(7)


def a_result(owner: str, number: int = 0, **changes: object) -> Result:
    key = RunKey(owner, own_job_id(owner, number), RunKind.SCHEDULED, DAY)
    at = DAY + timedelta(milliseconds=1340)
    result = Result(key, RunStatus.SUCCEEDED, 1, at, "nightly", (), 0.02, 1.1)
    return replace(result, **changes)  # type: ignore[arg-type]


def a_record(owner: str, seconds: int, *results: Result) -> Record:
    at = DAY + timedelta(seconds=seconds)
    held = results or (a_result(owner),)
    return Record(owner, at, _IDS.new_id(at), held, at + timedelta(days=7))


def put(kit: Kit, owner: str, *seconds: int) -> list[Record]:
    """Records of these seconds of the day, newest first."""
    records = [a_record(owner, each) for each in seconds]
    for record in records:
        kit.activity.put(record)
    return sorted(records, key=lambda record: record.position, reverse=True)


def test_a_record_comes_back_whole(kit: Kit) -> None:
    owner = kit.new_owner()
    whole = a_result(
        owner,
        1,
        key=RunKey(owner, own_job_id(owner, 1), RunKind.MANUAL, DAY, "by#hand", 2),
        status=RunStatus.SKIPPED,
        attempt=0,
        job_name="Bericht — später",
        tags=(("mode", "a=b"), ("team", "ü")),
        reason="catch_up",
        error_kind="http_503",
        covers_from=DAY - timedelta(hours=3),
        covers_count=3,
    )
    bare = a_result(owner, 2, lag_seconds=None, duration_seconds=None, job_name="", at=DAY)
    exact = a_result(owner, 3, lag_seconds=0.0, duration_seconds=0.0, covers_count=0)
    on_time = a_result(owner, 4, lag_seconds=0.0, duration_seconds=None)
    record = a_record(owner, 5, whole, bare, exact, on_time, a_result(owner))
    kit.activity.put(record)
    kit.activity.put(record)  # the same again
    assert list(kit.activity.read(owner, DAY)) == [record]


def test_records_are_read_newest_first_and_go_on_anywhere(kit: Kit) -> None:
    owner = kit.new_owner()
    records = put(kit, owner, *range(0, 36_000, 157), 35_999)  # more than a part of each shard
    assert list(kit.activity.read(owner, DAY)) == records
    for place in (0, 1, 117, len(records) - 1):
        before = records[place].position
        assert list(kit.activity.read(owner, DAY, before)) == records[place + 1 :]


@pytest.mark.parametrize(
    ("before", "since", "expected"),
    [
        ("", "", [3599, 600, 60, 0]),
        ("", "00:01:00", [3599, 600, 60]),
        ("00:10:00", "", [60, 0]),
        ("00:10:00$", "00:01:00", [600, 60]),
        ("00:00:30", "00:01:00", []),
        ("", "00:59:59", [3599]),
        ("~~~", "", [3599, 600, 60, 0]),  # of a forged cursor
        ("~~~", "00:10:00", [3599, 600]),
        (" ", "", []),
    ],
)
def test_a_part_of_a_day(kit: Kit, before: str, since: str, expected: list[int]) -> None:
    owner = kit.new_owner()
    put(kit, owner, 0, 60, 600, 3599)
    found = kit.activity.read(owner, DAY, before, since)
    assert [int((record.recorded_at - DAY).total_seconds()) for record in found] == expected


def test_days_and_owners_are_apart(kit: Kit) -> None:
    owner, other = kit.new_owner(), kit.new_owner()
    (record,) = put(kit, owner, 86_399)
    put(kit, other, 10)
    assert list(kit.activity.read(owner, DAY)) == [record]
    assert list(kit.activity.read(owner, DAY + timedelta(days=1))) == []
    assert list(kit.activity.read(owner, DAY - timedelta(days=1))) == []
