"""ChunkStore, and what else the ports have for chunks: jobs read together, entries and replaced
generations that know of chunks."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.chunks.chunk import Chunk, Ended, Outcome, finished, ref_of
from carillon.domain.chunks.message import ChunkKey
from carillon.domain.chunks.placing import Place, Plan
from carillon.domain.job import Lane, PastGeneration
from carillon.domain.run import RESULT_LIMIT_BYTES
from carillon.domain.wheel.entry import Slot
from carillon.errors import UnreadableRowError
from carillon.schedules import SlotKind
from carillon.schedules.insight.cost import write_units
from carillon.stores.dynamo.attributes import item_size
from carillon.stores.dynamo.chunks import chunk_item_of, chunk_of, plan_item_of
from tests.contract.kit import Kit, contend
from tests.contract.samples import (
    CLAIM_ID,
    GENERATION_ID,
    NOW,
    a_job,
    an_entry,
    job_id,
    own_job_id,
)
from tests.contract.test_unreadable_rows import put_spoilt, settings_of
from tests.contract.wire import Wire

MINUTE = 29_730_240
EXPIRES_AT = NOW.replace(microsecond=0) + timedelta(days=30)
REFS = tuple(ref_of(job_id(number), GENERATION_ID) for number in range(24))


def a_chunk(kit: Kit, **changes: Any) -> Chunk:
    """A claim of 24 runs, in a segment of its own."""
    fields: dict[str, Any] = {
        "key": ChunkKey(kit.new_segment(), MINUTE, 0, Lane.NORMAL, 17),
        "claim_id": CLAIM_ID,
        "claimed_at": NOW,
        "lease_until": NOW + timedelta(seconds=61),
        "expires_at": EXPIRES_AT,
        "refs": REFS,
    }
    return Chunk(**{**fields, **changes})


def ok(number: int, result: str | None = None) -> Ended:
    started_at = NOW + timedelta(milliseconds=number)
    return Ended(Outcome.OK, started_at, started_at + timedelta(microseconds=1), result)


def all_ok(chunk: Chunk, result: str | None = None) -> Chunk:
    return finished(chunk, {ref: ok(number, result) for number, ref in enumerate(chunk.refs)})


class TestClaims:
    def test_an_unknown_chunk_is_none(self, kit: Kit) -> None:
        assert kit.chunks.get(a_chunk(kit).key) is None

    def test_a_claim_comes_back_whole(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        assert kit.chunks.claim(chunk)
        assert kit.chunks.get(chunk.key) == chunk

    def test_a_chunk_is_claimed_once(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        assert kit.chunks.claim(chunk)
        assert not kit.chunks.claim(replace(chunk, claim_id="another"))
        assert kit.chunks.claim(chunk), "its own"
        assert kit.chunks.get(chunk.key) == chunk

    def test_who_held_a_fenced_chunk_finishes_it_no_more(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        assert not kit.chunks.fence(chunk, "another"), "there is none"
        assert kit.chunks.claim(chunk)
        assert kit.chunks.fence(chunk, "another")
        assert kit.chunks.get(chunk.key) == replace(chunk, claim_id="another")
        assert not kit.chunks.fence(chunk, "a third")
        assert not kit.chunks.finish(all_ok(chunk))
        assert kit.chunks.finish(all_ok(replace(chunk, claim_id="another")))
        assert not kit.chunks.fence(replace(chunk, claim_id="another"), "a third")

    def test_a_final_chunk_is_not_claimed(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        final = all_ok(chunk)
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(final)
        assert not kit.chunks.claim(chunk), "not even by its own claim"
        assert kit.chunks.get(chunk.key) == final

    @pytest.mark.parametrize(
        "other",
        [{"segment": 0}, {"minute": 1}, {"second": 1}, {"lane": Lane.HIGH}, {"bucket": 1}],
        ids=str,
    )
    def test_each_part_of_its_key_tells_it_apart(self, kit: Kit, other: dict[str, Any]) -> None:
        chunk = a_chunk(kit)
        assert kit.chunks.claim(chunk)
        assert kit.chunks.get(replace(chunk.key, **other)) is None

    def test_one_of_many_claims_it(self, threaded_kit: Kit) -> None:
        chunk = a_chunk(threaded_kit)
        claims = [replace(chunk, claim_id=str(number)) for number in range(16)]
        won = contend(lambda number: threaded_kit.chunks.claim(claims[number]))
        assert won.count(True) == 1
        assert threaded_kit.chunks.get(chunk.key) == claims[won.index(True)]


class TestFinishes:
    def test_a_finish_is_repeated_by_its_writer_only(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        final = all_ok(chunk, "done")
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(final)
        assert kit.chunks.finish(final), "its own"
        assert not kit.chunks.finish(all_ok(chunk, "otherwise")), "a final one stays as it is"
        assert kit.chunks.get(chunk.key) == final

    def test_a_finish_needs_its_own_claim(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        assert not kit.chunks.finish(all_ok(chunk)), "there is none"
        assert kit.chunks.get(chunk.key) is None
        assert kit.chunks.claim(chunk)
        assert not kit.chunks.finish(all_ok(replace(chunk, claim_id="another")))
        assert kit.chunks.get(chunk.key) == chunk

    def test_a_lost_answer_is_no_refusal(self, aws_kit: Kit, wire: Wire) -> None:
        chunk = a_chunk(aws_kit)
        for write, row in ((aws_kit.chunks.claim, chunk), (aws_kit.chunks.finish, all_ok(chunk))):
            wire.lose_answers("PutItem")
            assert write(row)

    def test_either_its_holder_or_its_disbander_ends_it(self, threaded_kit: Kit) -> None:
        chunk = a_chunk(threaded_kit)
        assert threaded_kit.chunks.claim(chunk)
        ends = [all_ok(chunk), finished(chunk, dict.fromkeys(chunk.refs, Ended(Outcome.DIED)))]
        won = contend(lambda number: threaded_kit.chunks.finish(ends[number % 2]))
        final = threaded_kit.chunks.get(chunk.key)
        assert final in ends
        assert won == [ends[number % 2] == final for number in range(len(won))]

    @pytest.mark.parametrize(
        "results",
        [
            [None] * 24,
            ["done"] * 24,
            [str(number) for number in range(24)],
            ["ü" * (RESULT_LIMIT_BYTES // 2) + str(number) for number in range(24)],
            ["", None, '{"a":"ß"}', ""] * 6,
        ],
        ids=["none", "equal", "different", "long", "mixed"],
    )
    def test_results_come_back_to_their_runs(self, kit: Kit, results: list[str | None]) -> None:
        chunk = a_chunk(kit)
        listed = enumerate(zip(REFS, results, strict=True))
        ends = {ref: ok(number, result) for number, (ref, result) in listed}
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(finished(chunk, ends))
        assert kit.chunks.get(chunk.key) == finished(chunk, ends)

    def test_ends_of_every_kind_come_back(self, kit: Kit) -> None:
        chunk = a_chunk(kit)
        kinds = [ok(0, "done"), Ended(Outcome.ALONE), Ended(Outcome.DIED)] * 8
        final = finished(chunk, dict(zip(REFS, kinds, strict=True)))
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(final)
        assert kit.chunks.get(chunk.key) == final

    def test_it_may_end_with_fewer_runs_than_it_was_claimed_for(self, kit: Kit) -> None:
        """Readers go by what is listed."""
        chunk = a_chunk(kit)
        assert kit.chunks.claim(chunk)
        assert kit.chunks.finish(finished(chunk, {REFS[3]: ok(3)}))
        stored = kit.chunks.get(chunk.key)
        assert stored is not None
        assert stored.refs == (REFS[3],)


class TestItems:
    def test_each_write_of_24_runs_with_one_short_result_is_one_write_unit(self) -> None:
        key = ChunkKey(255, MINUTE, 59, Lane.NORMAL, 9999)
        lease_until = NOW + timedelta(seconds=61)
        chunk = Chunk(key, CLAIM_ID, NOW, lease_until, EXPIRES_AT, REFS)
        assert item_size(chunk_item_of(chunk)) <= 512
        final = chunk_item_of(all_ok(chunk, '{"rows":12,"seconds":0.25}'))
        assert write_units(item_size(final)) == 1

    def test_what_is_empty_takes_no_room(self) -> None:
        chunk = Chunk(ChunkKey(1, MINUTE, 0, Lane.NORMAL, 0), CLAIM_ID, NOW, NOW, EXPIRES_AT, REFS)
        plan = Plan(1, MINUTE, CLAIM_ID, EXPIRES_AT)
        assert chunk_item_of(chunk).keys().isdisjoint("re")
        assert chunk_item_of(finished(chunk, {})).keys().isdisjoint("rm")
        assert "k" not in plan_item_of(plan)

    def test_a_run_whose_clock_was_set_back_has_lasted_no_time(self) -> None:
        """One such run must not cost the others of its chunk their finish."""
        key = ChunkKey(1, MINUTE, 0, Lane.NORMAL, 0)
        chunk = Chunk(key, CLAIM_ID, NOW, NOW, EXPIRES_AT, REFS[:1])
        back = Ended(Outcome.OK, NOW, NOW - timedelta(milliseconds=3))
        stored = chunk_of(key, chunk_item_of(finished(chunk, {REFS[0]: back})))
        assert stored.ends == {REFS[0]: replace(back, finished_at=NOW)}

    def test_it_expires(self, aws_kit: Kit) -> None:
        late = NOW + timedelta(days=30)
        chunk, plan = a_chunk(aws_kit, expires_at=late), a_plan(aws_kit, expires_at=late)
        assert aws_kit.chunks.claim(chunk)
        assert aws_kit.chunks.put_plan(plan)
        table = settings_of(aws_kit).runs_table
        partitions = [f"~chunk#{chunk.key.name}", f"~plan#{plan.segment}#{MINUTE}"]
        items = [aws_kit.raw_items(table, job_key=partition) for partition in partitions]
        second = {"N": str(int(late.timestamp()) + 1)}
        assert [item["ttl"] for (item,) in items] == [second, second]

    @pytest.mark.parametrize("spoilt", [{"e": {"B": b"x" * 13}}, {"l": {"S": "soon"}}], ids=str)
    def test_a_chunk_that_cannot_be_read_is_an_unreadable_row(
        self, aws_kit: Kit, spoilt: dict[str, Any]
    ) -> None:
        chunk = a_chunk(aws_kit)
        assert aws_kit.chunks.claim(chunk)
        table = settings_of(aws_kit).runs_table
        (item,) = aws_kit.raw_items(table, job_key=f"~chunk#{chunk.key.name}")
        put_spoilt(table, item, spoilt)
        with pytest.raises(UnreadableRowError, match=chunk.key.name):
            aws_kit.chunks.get(chunk.key)


def a_plan(kit: Kit, **changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "salt": CLAIM_ID,
        "expires_at": EXPIRES_AT,
        "chunks": {(0, Lane.NORMAL): 42, (59, Lane.HIGH): 1},
    }
    return Plan(kit.new_segment(), MINUTE, **{**fields, **changes})


class TestPlans:
    def test_an_unknown_plan_is_none(self, kit: Kit) -> None:
        assert kit.chunks.get_plan(kit.new_segment(), MINUTE) is None

    @pytest.mark.parametrize("changes", [{}, {"chunks": {}}], ids=["chunks", "all alone"])
    def test_a_plan_is_put_once(self, kit: Kit, changes: dict[str, Any]) -> None:
        plan = a_plan(kit, **changes)
        assert kit.chunks.put_plan(plan)
        assert not kit.chunks.put_plan(replace(plan, salt="another", chunks={(1, Lane.LOW): 3}))
        assert kit.chunks.get_plan(plan.segment, MINUTE) == plan
        assert kit.chunks.get_plan(plan.segment, MINUTE + 1) is None

    def test_a_lost_answer_is_no_refusal(self, aws_kit: Kit, wire: Wire) -> None:
        wire.lose_answers("PutItem")
        assert aws_kit.chunks.put_plan(a_plan(aws_kit))

    def test_all_obey_one_plan(self, threaded_kit: Kit) -> None:
        plan = a_plan(threaded_kit)
        plans = [replace(plan, salt=str(number)) for number in range(16)]
        won = contend(lambda number: threaded_kit.chunks.put_plan(plans[number]))
        assert won.count(True) == 1
        assert threaded_kit.chunks.get_plan(plan.segment, MINUTE) == plans[won.index(True)]

    def test_a_plan_that_cannot_be_read_is_an_unreadable_row(self, aws_kit: Kit) -> None:
        plan = a_plan(aws_kit)
        assert aws_kit.chunks.put_plan(plan)
        table = settings_of(aws_kit).runs_table
        (item,) = aws_kit.raw_items(table, job_key=f"~plan#{plan.segment}#{MINUTE}")
        put_spoilt(table, item, {"k": {"S": '[[0,"express",1]]'}})
        with pytest.raises(UnreadableRowError, match=f"segment {plan.segment}"):
            aws_kit.chunks.get_plan(plan.segment, MINUTE)


class TestJobsReadTogether:
    @pytest.mark.parametrize("count", [0, 1, 120])
    def test_all_are_read(self, kit: Kit, count: int) -> None:
        owner = kit.new_owner()
        jobs = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(count)]
        assert all(map(kit.jobs.create, jobs))
        found = kit.jobs.get_all([(owner, job.job_id) for job in jobs])
        assert found == {job.job_id: job for job in jobs}

    def test_a_herd_takes_a_request_for_each_hundred(self, aws_kit: Kit, wire: Wire) -> None:
        keys = [(aws_kit.new_owner(), job_id(number)) for number in range(120)]
        assert aws_kit.jobs.get_all(keys) == {}
        assert wire.operations() == ["BatchGetItem"] * 2
        (table,) = wire.calls[0].body["RequestItems"].values()
        assert table["ConsistentRead"]

    def test_it_leaves_out_what_is_not_there(self, kit: Kit) -> None:
        """One job is asked for twice: two generations of it are in one chunk."""
        owner, stranger = kit.new_owner(), kit.new_owner()
        mine, other = a_job(owner), a_job(stranger)
        gone = a_job(owner, job_id=own_job_id(owner, 1)).deleted(NOW, EXPIRES_AT)
        assert all(map(kit.jobs.create, (mine, other, gone)))
        keys = [(owner, each.job_id) for each in (mine, mine, other, gone)]
        found = kit.jobs.get_all([*keys, (owner, own_job_id(owner, 2))])
        assert found == {mine.job_id: mine, gone.job_id: gone}, "another owner's is none"
        assert kit.jobs.get_all([(owner, other.job_id), (stranger, other.job_id)]) == {
            other.job_id: other
        }

    def test_it_leaves_out_what_cannot_be_read(self, aws_kit: Kit) -> None:
        owner = aws_kit.new_owner()
        jobs = [a_job(owner, job_id=own_job_id(owner, number)) for number in range(3)]
        assert all(map(aws_kit.jobs.create, jobs))
        table = settings_of(aws_kit).jobs_table
        (item,) = aws_kit.raw_items(table, pk=jobs[1].job_id)
        put_spoilt(table, item, {"state": {"S": "archived"}})
        found = aws_kit.jobs.get_all([(owner, job.job_id) for job in jobs])
        assert found == {job.job_id: job for job in (jobs[0], jobs[2])}


class TestOtherRows:
    def test_an_entry_knows_from_when_on_it_goes_in_chunks(self, kit: Kit) -> None:
        owner, segment = kit.new_owner(), kit.new_segment()
        entries = [
            an_entry(owner, segment, number, chunked_from=minute)
            for number, minute in enumerate((0, MINUTE))
        ]
        kit.wheel.put_entries(entries)
        found = kit.wheel.query(segment, Slot(SlotKind.HOURLY, 17)).items
        assert sorted(each.chunked_from for each in found) == [0, MINUTE]
        assert set(found) == set(entries)

    def test_a_job_knows_where_its_generations_went_in_chunks(self, kit: Kit) -> None:
        def past(number: int, place: Place | None) -> PastGeneration:
            day = timedelta(days=number)
            return PastGeneration(GENERATION_ID, NOW - day - timedelta(days=1), NOW - day, place)

        job = a_job(
            kit.new_owner(),
            previous=past(0, Place(3, Lane.HIGH, 899)),
            earlier=(past(1, None), past(2, Place(0, Lane.NORMAL, 0))),
        )
        assert kit.jobs.create(job)
        assert kit.jobs.get(job.owner, job.job_id) == job
