"""ChunkStore as history reads it: chunks and plans by many keys, and the records of generations."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.chunks.chunk import Chunk, finished
from carillon.domain.chunks.history import GenerationRecord
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Place
from carillon.domain.job import Lane
from carillon.schedules import parse_schedule
from carillon.schedules.insight.cost import write_units
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.dynamo.chunks import chunk_item_of, record_item_of
from tests.contract.kit import Kit
from tests.contract.samples import (
    FIRE_AT,
    GENERATION_ID,
    NOW,
    a_bounded_schedule,
    a_combined_schedule,
    job_id,
)
from tests.contract.test_chunks import EXPIRES_AT, MINUTE, REFS, a_chunk, a_plan, all_ok, ok
from tests.contract.test_unreadable_rows import put_spoilt, settings_of
from tests.contract.wire import Wire


def a_record(owner: str, **changes: Any) -> GenerationRecord:
    fields: dict[str, Any] = {
        "owner": owner,
        "job_id": job_id(),
        "revision": 7,
        "generation_id": GENERATION_ID,
        "from_at": NOW,
        "until_at": NOW + timedelta(days=2),
        "schedule": parse_schedule("17 * * * *", "Europe/Riga"),
        "place": Place(3, Lane.HIGH, 899),
        "expires_at": EXPIRES_AT,
    }
    return GenerationRecord(**{**fields, **changes})


class TestChunksReadTogether:
    @pytest.mark.parametrize("count", [0, 1, 120])
    def test_all_that_there_are_are_read(self, kit: Kit, count: int) -> None:
        chunk = a_chunk(kit)
        chunks = [
            replace(chunk, key=replace(chunk.key, bucket=number), refs=REFS[:1])
            for number in range(count)
        ]
        assert all(map(kit.chunks.claim, chunks))
        keys = [each.key for each in chunks] + [replace(chunk.key, second=59)]
        for consistent in (False, True):
            read = kit.chunks.get_all(keys, consistent=consistent)
            assert (read.rows, read.unreadable) == ({each.key: each for each in chunks}, {})

    def test_a_final_one_comes_back_whole(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(all_ok(chunk, "done"))
        assert kit.chunks.get_all([chunk.key], consistent=True).rows == {
            chunk.key: all_ok(chunk, "done")
        }

    def test_one_that_cannot_be_read_is_named_and_hides_no_other(self, aws_kit: Kit) -> None:
        good, bad = a_chunk(aws_kit), a_chunk(aws_kit)
        assert all(map(aws_kit.chunks.claim, (good, bad)))
        table = settings_of(aws_kit).runs_table
        (item,) = aws_kit.raw_items(table, job_key=f"~chunk#{bad.key.name}")
        put_spoilt(table, item, {"l": {"S": "soon"}})
        read = aws_kit.chunks.get_all([good.key, bad.key], consistent=False)
        assert read.rows == {good.key: good}
        assert bad.key.name in read.unreadable[bad.key]

    @pytest.mark.parametrize("consistent", [True, False])
    def test_a_hundred_take_one_request(
        self, aws_kit: Kit, wire: Wire, *, consistent: bool
    ) -> None:
        segment = aws_kit.new_segment()
        keys = [ChunkKey(segment, MINUTE, 0, Lane.NORMAL, number) for number in range(120)]
        minutes = [(segment, number) for number in range(120)]
        assert aws_kit.chunks.get_all(keys, consistent=consistent).rows == {}
        assert aws_kit.chunks.get_plans(minutes, consistent=consistent).rows == {}
        assert wire.operations() == ["BatchGetItem"] * 4
        for call in wire.calls:
            (table,) = call.body["RequestItems"].values()
            assert table.get("ConsistentRead", False) is consistent

    def test_nothing_costs_nothing(self, aws_kit: Kit, wire: Wire) -> None:
        aws_kit.chunks.get_all([], consistent=False)
        aws_kit.chunks.get_plans([], consistent=False)
        assert wire.calls == []


class TestPlansReadTogether:
    def test_all_that_there_are_are_read(self, kit: Kit) -> None:
        plans = [a_plan(kit), a_plan(kit, chunks={})]
        assert all(map(kit.chunks.put_plan, plans))
        minutes = [(each.segment, each.minute) for each in plans]
        read = kit.chunks.get_plans([*minutes, (minutes[0][0], MINUTE + 1)], consistent=False)
        assert read.rows == dict(zip(minutes, plans, strict=True))
        assert read.unreadable == {}

    def test_one_that_cannot_be_read_is_named(self, aws_kit: Kit) -> None:
        good, bad = a_plan(aws_kit), a_plan(aws_kit)
        assert all(map(aws_kit.chunks.put_plan, (good, bad)))
        table = settings_of(aws_kit).runs_table
        (item,) = aws_kit.raw_items(table, job_key=f"~plan#{bad.segment}#{MINUTE}")
        put_spoilt(table, item, {"k": {"S": '[[0,"express",1]]'}})
        minutes = [(each.segment, MINUTE) for each in (good, bad)]
        read = aws_kit.chunks.get_plans(minutes, consistent=True)
        assert read.rows == {minutes[0]: good}
        assert read.unreadable.keys() == {minutes[1]}


class TestRecords:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"schedule": a_bounded_schedule()},
            {"schedule": a_combined_schedule()},
            {"schedule": parse_schedule("every 90s", start_at=FIRE_AT)},
            {"place": Place(0, Lane.NORMAL, 0)},
        ],
        ids=["plain", "bounded", "combined", "anchored", "usual place"],
    )
    def test_a_record_comes_back_whole(self, kit: Kit, changes: dict[str, Any]) -> None:
        record = a_record(kit.new_owner(), **changes)
        kit.chunks.put_record(record)
        for consistent in (False, True):
            read = kit.chunks.get_records(record.owner, record.job_id, consistent=consistent)
            assert (read.rows, read.unreadable) == ({7: record}, {})

    def test_those_of_a_job_are_apart_from_all_others(self, kit: Kit) -> None:
        owner, stranger = kit.new_owner(), kit.new_owner()
        mine = [a_record(owner, revision=number) for number in (9, 10, 11_000)]
        for each in (*mine, a_record(owner, job_id=job_id(1)), a_record(stranger)):
            kit.chunks.put_record(each)
        read = kit.chunks.get_records(owner, job_id(), consistent=True)
        assert read.rows == {each.revision: each for each in mine}
        assert kit.chunks.get_records(kit.new_owner(), job_id(), consistent=True).rows == {}

    @pytest.mark.parametrize("is_later_first", [False, True])
    def test_of_a_revision_that_which_covers_most_stays(
        self, kit: Kit, *, is_later_first: bool
    ) -> None:
        """The commit of one of them was lost."""
        record = a_record(kit.new_owner())
        later = replace(record, until_at=NOW + timedelta(days=3))
        for each in (later, record) if is_later_first else (record, later):
            kit.chunks.put_record(each)
        read = kit.chunks.get_records(record.owner, record.job_id, consistent=True)
        assert read.rows == {7: later}

    def test_runs_of_the_job_are_not_in_its_way(self, kit: Kit) -> None:
        record = a_record(kit.new_owner())
        kit.chunks.put_record(record)
        assert kit.runs.list(record.owner, record.job_id, 10).items == ()

    def test_one_that_cannot_be_read_is_named_and_hides_no_other(self, aws_kit: Kit) -> None:
        good = a_record(aws_kit.new_owner())
        bad = replace(good, revision=8)
        for each in (good, bad):
            aws_kit.chunks.put_record(each)
        table = settings_of(aws_kit).runs_table
        partition = f"~generations#{good.owner}#{good.job_id}"
        item = next(
            each
            for each in aws_kit.raw_items(table, job_key=partition)
            if each["run_key"]["S"] == "0000000008"
        )
        put_spoilt(table, item, {"s": {"S": "whenever"}})
        read = aws_kit.chunks.get_records(good.owner, good.job_id, consistent=True)
        assert read.rows == {7: good}
        assert "revision 0000000008" in read.unreadable[8]

    def test_it_expires(self, aws_kit: Kit) -> None:
        record = a_record(aws_kit.new_owner(), expires_at=NOW)
        aws_kit.chunks.put_record(record)
        table = settings_of(aws_kit).runs_table
        partition = f"~generations#{record.owner}#{record.job_id}"
        (item,) = aws_kit.raw_items(table, job_key=partition)
        assert item["ttl"] == {"N": str(int(NOW.timestamp()) + 1)}


class TestSizes:
    """CHUNKS, section 4: what each item is to take."""

    def test_a_record_is_one_write_unit(self) -> None:
        owner = "user/7c9e6679-7425-40de-944b-e07fc1f90ae7"
        size = item_size(record_item_of(a_record(owner)))
        assert size <= 320
        assert write_units(size) == 1

    @pytest.mark.parametrize(
        ("results", "most"),
        [(["done"] * 24, 900), ([f"{number:>24}" for number in range(24)], 1500)],
        ids=["one short result", "24 results of 24 bytes"],
    )
    def test_a_final_chunk_of_24(self, results: list[str], most: int) -> None:
        key = ChunkKey(255, MINUTE, 59, Lane.NORMAL, 9999)
        chunk = Chunk(key, GENERATION_ID, NOW, NOW + timedelta(seconds=61), EXPIRES_AT, REFS)
        listed = enumerate(zip(REFS, results, strict=True))
        final = finished(chunk, {ref: ok(number, result) for number, (ref, result) in listed})
        assert item_size(chunk_item_of(final)) <= most
