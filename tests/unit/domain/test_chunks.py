"""Chunks as values: what goes in them and where, their messages, their claims and ends."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from carillon.clock import SeededEntropy
from carillon.domain import message as single
from carillon.domain.calendar import CalendarUse
from carillon.domain.chunks.chunk import (
    Chunk,
    ClaimChunk,
    Disband,
    Ended,
    Follow,
    Outcome,
    dead_attempt,
    decide_chunk,
    decide_death,
    finished,
    never_begun,
    ref_of,
    run_under,
    success_of,
)
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, decode, encode
from carillon.domain.chunks.placing import Place, Plan, chunked_from, chunks_of
from carillon.domain.decisions import Claim, Defer, Drop, Leave
from carillon.domain.events import EventType
from carillon.domain.execution import transitions as running
from carillon.domain.execution.transitions import EXECUTOR_DIED, ClaimTerms
from carillon.domain.job import Generation, Lane
from carillon.domain.policies import (
    Backoff,
    CatchUp,
    Concurrency,
    OnComplete,
    Overlap,
    Rate,
    ResultKept,
    RetryPolicy,
)
from carillon.domain.run import RunKey, RunKind, RunStatus
from carillon.domain.spec.after import After
from carillon.domain.spec.after import Outcome as RunOutcome
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.targets import LambdaTarget, TaskTarget, WebhookTarget
from carillon.domain.wheel.entry import LAST_MINUTE, Slot, minute_of
from carillon.errors import MalformedMessageError
from carillon.schedules import CalendarRule, SlotKind, parse_schedule
from tests.unit.domain.samples import CURRENT, NOON, OLD, OLDER, job, message

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
TASK = TaskTarget(name="echo")
HOOK = WebhookTarget(url="https://example.com/hook")
ENDS_LATER = CompletionSpec.model_validate({"within": "2h"})

ALONE: dict[str, Sequence[Any]] = {
    "after": [After(job="other", when=RunOutcome.SUCCEEDED)],
    "overlap": [Overlap.SKIP, Overlap.QUEUE_ONE],
    "catch_up": [CatchUp.SKIP],
    "retry": [RetryPolicy(max_attempts=1)],
    "result": [ResultKept.FULL],
    "target": [HOOK.model_copy(update={"completion": ENDS_LATER})],
    "events": [(EventType.RUN_STARTED,), (EventType.RUN_DEAD, EventType.RUN_SUCCEEDED)],
    "tolerance": [0, 5],
    "grace": [600],
    "concurrency": [Concurrency("database", 5)],
    "rate": [Rate(100, 60, "partner")],
    "pause_after_failures": [3],
    "calendar": [CalendarUse("holidays", CalendarRule.SKIP)],
    "on_success": [HOOK],
}
"""Settings with which a job's occurrences go alone."""
TOGETHER: dict[str, Sequence[Any]] = {
    "name": ["another"],
    "description": ["text"],
    "target": [
        TASK,
        HOOK,
        LambdaTarget(function_arn="arn:aws:lambda:eu-west-1:123456789012:function:f"),
    ],
    "payload": ['{"a":1}'],
    "template": [True],
    "priority": [Lane.HIGH, Lane.LOW],
    "catch_up": [CatchUp.LATEST, CatchUp.ALL],
    "overlap": [Overlap.ALLOW],
    "retry": [RetryPolicy(2, Backoff(1), ("timeout",))],
    "timeout_seconds": [300],
    "expect_within": [600],
    "on_failure": [HOOK],
    "events": [(EventType.RUN_DEAD, EventType.JOB_PAUSED)],
    "result": [ResultKept.BEGINNING],
    "on_complete": [OnComplete.DELETE],
    "parent": ["channel/5"],
    "tags": [{"team": "billing"}],
    "window": ["10m"],
}
BY_SCHEDULE = {"schedule", "timezone", "start_at", "end_at", "max_runs", "dst", "except_"}
"""What decides by the schedule that it makes."""
AT_CREATION = {"initial_state"}


class TestPlainJobs:
    def test_each_setting_is_decided_about(self) -> None:
        decided = ALONE.keys() | TOGETHER.keys() | BY_SCHEDULE | AT_CREATION
        assert decided == JobSpec.model_fields.keys()

    @pytest.mark.parametrize(("name", "value"), [(n, v) for n in ALONE for v in ALONE[n]], ids=str)
    def test_these_go_alone(self, name: str, value: Any) -> None:
        changed = job(**{name: value})
        assert not changed.is_plain
        assert changed.place is None

    @pytest.mark.parametrize(
        ("name", "value"), [(n, v) for n in TOGETHER for v in TOGETHER[n]], ids=str
    )
    def test_these_go_in_chunks(self, name: str, value: Any) -> None:
        assert job(**{name: value}).is_plain

    @pytest.mark.parametrize(
        ("text", "end_at", "is_plain"),
        [
            ("every 25m", None, True),
            ("0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *", None, True),
            ("every 25m", NOON + 365 * 24 * HOUR, False),
            ("at 2026-12-24T18:00:00", None, False),
            ("cron(0 9 1 1 ? 2027)", None, False),
            ("every 10m after finish", None, False),
        ],
    )
    def test_schedules_without_an_end_go_in_chunks(
        self, text: str, end_at: datetime | None, is_plain: bool
    ) -> None:
        assert job(schedule=parse_schedule(text, end_at=end_at)).is_plain is is_plain

    def test_its_place_is_that_of_its_entries(self) -> None:
        """A slow one's are in their own lane; executors find that its lane is another now."""
        plain = job(segment=3, spread_seconds=899, priority=Lane.HIGH)
        assert plain.place == Place(3, Lane.HIGH, 899)


class TestPlacing:
    @pytest.mark.parametrize(
        ("made_after", "minutes"),
        [(0 * SECOND, 60), (timedelta(milliseconds=1), 61), (59 * SECOND, 61), (60 * SECOND, 61)],
    )
    def test_a_generation_is_settled_after_an_hour(
        self, made_after: timedelta, minutes: int
    ) -> None:
        generation_id = SeededEntropy(1).new_id(NOON + made_after)
        assert chunked_from(generation_id) == minute_of(NOON) + minutes

    def test_a_job_is_chunked_once_its_generation_is_settled(self) -> None:
        plain = job(generation=Generation(SeededEntropy(1).new_id(NOON), NOON))
        assert not plain.is_chunked(NOON + HOUR - SECOND)
        assert plain.is_chunked(NOON + HOUR)
        assert not job(grace=5, generation=plain.generation).is_chunked(NOON + HOUR)

    @pytest.mark.parametrize(
        ("size", "count"),
        [(1, None), (2, None), (3, 1), (32, 1), (33, 2), (48, 2), (49, 3), (24_000, 1000)],
    )
    def test_chunks_have_about_24_runs(self, size: int, count: int | None) -> None:
        group = (0, Lane.NORMAL)
        assert chunks_of({group: size}).get(group) == count

    def test_runs_are_spread_over_the_chunks_of_their_own_group(self) -> None:
        group = (0, Lane.NORMAL)
        plan = Plan(3, minute_of(NOON), "salt", NOON, {group: 100, (1, Lane.NORMAL): 1})
        ids = [f"job-{number}" for number in range(2400)]
        buckets = {each: plan.bucket_of(group, each) for each in ids}
        sizes = Counter(buckets.values())
        assert set(sizes) == set(range(100))
        assert max(sizes.values()) < 50
        assert {plan.bucket_of((1, Lane.NORMAL), each) for each in ids} == {0}
        assert {plan.bucket_of((0, Lane.HIGH), each) for each in ids} == {None}
        assert {each: plan.bucket_of(group, each) for each in ids} == buckets
        others = {each: replace(plan, salt="other").bucket_of(group, each) for each in ids}
        assert sum(others[each] == buckets[each] for each in ids) < 100

    def test_versions_agree_where_a_run_is(self) -> None:
        """Or a new one would not find what one before has run."""
        group = (0, Lane.NORMAL)
        plan = Plan(3, minute_of(NOON), "salt", NOON, {group: 1000})
        assert plan.bucket_of(group, "job-1") == 533
        reference = ref_of("job", "01KAGZ7T2M9GQ4C5V0Y6N8XWRD", 899)
        assert reference.hex() == "628b4bac9e608afb0ec876a372"


KEY = ChunkKey(3, minute_of(NOON), 17, Lane.HIGH, 5)
DUE_AT = NOON + 17 * SECOND
MEMBERS = (
    Member("ann", "job", CURRENT, SlotKind.HOURLY),
    Member("bob ü", "job-2", OLD, SlotKind.DAILY, 899),
    Member("ann", "job-3", OLD, SlotKind.HOURLY),
)
ORDER = ChunkMessage(KEY, MEMBERS)


class TestMessages:
    @pytest.mark.parametrize("order", [ORDER, replace(ORDER, store_waits=3, unreadable_since=NOON)])
    def test_a_message_comes_back_whole(self, order: ChunkMessage) -> None:
        assert decode(encode(order)) == order

    def test_a_message_is_small(self) -> None:
        """An owner is written once."""
        owner = "user/d4c8f4a8-10b1-70aa-5c3e-9f1e2d3c4b5a"
        members = [Member(owner, f"{n:026}", CURRENT, SlotKind.HOURLY) for n in range(24)]
        assert len(encode(ChunkMessage(KEY, tuple(members)))) < 100 + 24 * 70

    def test_messages_of_single_runs_are_as_before(self) -> None:
        alone = message()
        assert encode(alone) == single.encode(alone)
        assert decode(encode(alone)) == alone

    def test_it_starts_at_its_second_in_its_lane(self) -> None:
        assert (ORDER.lane, ORDER.starts_at) == (Lane.HIGH, DUE_AT)
        assert ORDER.delay_seconds(DUE_AT - 2.5 * SECOND) == 2.5
        assert ORDER.delay_seconds(DUE_AT + SECOND) == 0
        assert ORDER.delay_seconds(DUE_AT - HOUR) == 900

    def test_each_run_has_the_message_that_its_entry_would_have_made(self) -> None:
        first, second, _ = map(ORDER.alone, MEMBERS)
        assert first.key == RunKey("ann", "job", RunKind.SCHEDULED, DUE_AT)
        assert second.key.fire_at == DUE_AT - 899 * SECOND
        assert (first.due_at, second.due_at) == (DUE_AT, DUE_AT)
        assert (first.segment, first.lane, first.attempt) == (3, Lane.HIGH, 1)
        assert (first.generation_id, second.generation_id) == (CURRENT, OLD)
        slots = [Slot(SlotKind.HOURLY, 0).key, Slot(SlotKind.DAILY, 12 * 60).key]
        assert [first.slot_key, second.slot_key] == slots

    @pytest.mark.parametrize(
        "spoilt",
        [
            {"chunk": [3, 10**6, 17, "high"]},
            {"chunk": [3, 10**6, 17, "express", 5]},
            {"chunk": [3, 10**6, 60, "high", 5]},
            {"chunk": [3, 10**6, -1, "high", 5]},
            {"chunk": [3, -1, 17, "high", 5], "runs": [["job", CURRENT, 0, "h"]]},
            {"chunk": [3, 10**10, 17, "high", 5]},
            {"chunk": ["x", 10**6, 17, "high", 5]},
            {"runs": []},
            {"runs": None},
            {"runs": [["job", CURRENT, 2, "h"]]},
            {"runs": [["job", CURRENT, -1, "h"]]},
            {"runs": [["job", CURRENT, 0, "m"]]},
            {"runs": [["job", CURRENT, 0, "h", -1]]},
            {"chunk": [3, 15, 0, "high", 5], "runs": [["job", CURRENT, 0, "h", 901]]},
            {"runs": [["job", "no id", 0, "h"]]},
            {"runs": [["job", CURRENT, 0]]},
            {"runs": [["\ud800", CURRENT, 0, "h"]]},
            {"runs": [[7, CURRENT, 0, "h"]]},
            {"owners": ["\ud800", "bob"]},
            {"owners": []},
            {"store_waits": "many"},
            {"unreadable_since": "long ago"},
        ],
        ids=str,
    )
    def test_bodies_that_nobody_can_read(self, spoilt: dict[str, Any]) -> None:
        body = json.loads(encode(ORDER)) | spoilt
        with pytest.raises(MalformedMessageError):
            decode(json.dumps(body, separators=(",", ":")))

    @pytest.mark.parametrize(
        ("minute", "second", "spread_seconds"),
        [(0, 0, 0), (15, 0, 900), (LAST_MINUTE, 59, 0)],
    )
    def test_bodies_at_the_ends_of_time(
        self, minute: int, second: int, spread_seconds: int
    ) -> None:
        key = replace(KEY, minute=minute, second=second)
        order = ChunkMessage(key, (replace(MEMBERS[0], spread_seconds=spread_seconds),))
        assert decode(encode(order)) == order

    def test_what_is_usual_takes_no_room(self) -> None:
        body = json.loads(encode(ORDER))
        assert body.keys() == {"v", "chunk", "owners", "runs"}
        assert [len(each) for each in body["runs"]] == [
            5 if each.spread_seconds else 4 for each in MEMBERS
        ]

    @pytest.mark.parametrize("body", ["", "{", '{"v":2,', '{"v":3,"chunk":[]}', '{"v":2}', "2"])
    def test_what_is_no_message(self, body: str) -> None:
        with pytest.raises(MalformedMessageError):
            decode(body)


TERMS = ClaimTerms("claim-2", DUE_AT + 61 * SECOND, DUE_AT + 720 * HOUR)
REFS = tuple(ref_of(m.job_id, m.generation_id, m.spread_seconds) for m in MEMBERS)
CLAIMED = Chunk(KEY, "claim-1", DUE_AT + SECOND, DUE_AT + 30 * SECOND, TERMS.expires_at, REFS)
LAPSED_AT = CLAIMED.lease_until
ENDED = finished(CLAIMED, dict.fromkeys(REFS, Ended(Outcome.ALONE)))


class TestClaims:
    def test_a_chunk_that_nobody_has_is_claimed(self) -> None:
        twice = replace(ORDER, members=(*MEMBERS, MEMBERS[0]))
        decision = decide_chunk(None, twice, DUE_AT, TERMS)
        expires_at = TERMS.expires_at
        chunk = Chunk(KEY, "claim-2", DUE_AT, TERMS.lease_until, expires_at, REFS)
        assert decision == ClaimChunk(chunk)

    def test_a_living_lease_is_left_alone(self) -> None:
        now = LAPSED_AT - timedelta(microseconds=1)
        assert isinstance(decide_chunk(CLAIMED, ORDER, now, TERMS), Leave)

    def test_a_chunk_whose_lease_has_lapsed_is_disbanded(self) -> None:
        """By what it was claimed for, whatever this message lists."""
        other = replace(ORDER, members=MEMBERS[:1])
        died = finished(CLAIMED, dict.fromkeys(REFS, Ended(Outcome.DIED)))
        assert decide_chunk(CLAIMED, other, LAPSED_AT, TERMS) == Disband(died)
        assert died.claim_id == CLAIMED.claim_id, "the late finish is refused by its end"

    @pytest.mark.parametrize("seen", [None, CLAIMED])
    def test_a_process_past_its_end_claims_and_disbands_nothing(self, seen: Chunk | None) -> None:
        decision = decide_chunk(seen, ORDER, TERMS.lease_until, TERMS)
        assert isinstance(decision, Defer)

    @pytest.mark.parametrize("now", [DUE_AT, LAPSED_AT, TERMS.lease_until])
    def test_a_final_chunk_is_followed(self, now: datetime) -> None:
        assert decide_chunk(ENDED, ORDER, now, TERMS) == Follow(ENDED)

    def test_of_a_dead_letter_that_nobody_claimed_each_run_goes_alone(self) -> None:
        chunk = never_begun(ORDER, DUE_AT, TERMS)
        assert chunk.refs == REFS
        assert chunk.ends == dict.fromkeys(REFS, Ended(Outcome.ALONE))

    def test_a_run_has_an_end_if_it_is_listed(self) -> None:
        stranger = replace(MEMBERS[0], generation_id=OLDER)
        assert ENDED.end_of(MEMBERS[0]) == Ended(Outcome.ALONE)
        assert ENDED.end_of(stranger) is None
        assert CLAIMED.end_of(MEMBERS[0]) is None

    def test_each_generation_of_a_job_has_a_reference_of_its_own(self) -> None:
        assert len({ref_of(name, each) for name in "ab" for each in (OLD, CURRENT)}) == 4


class TestRows:
    @pytest.mark.parametrize("member", MEMBERS[:2], ids=["at once", "in its window"])
    def test_a_run_under_a_chunk_is_as_if_claimed_by_its_own_message(self, member: Member) -> None:
        alone = ORDER.alone(member)
        terms = ClaimTerms(CLAIMED.claim_id, CLAIMED.lease_until, CLAIMED.expires_at)
        claim = running.decide_claim(None, alone, CLAIMED.claimed_at, terms)
        assert isinstance(claim, Claim)
        assert run_under(CLAIMED, alone) == claim.run

    def test_a_success_is_as_its_own_finish_would_have_left_it(self) -> None:
        alone, began, ended = ORDER.alone(MEMBERS[1]), DUE_AT + SECOND, DUE_AT + 2 * SECOND
        end = Ended(Outcome.OK, began, ended, "done")
        run = running.begun(run_under(CLAIMED, alone), began)
        assert success_of(CLAIMED, alone, end) == running.succeeded(run, "done", ended)

    @pytest.mark.parametrize("now", [LAPSED_AT - SECOND, LAPSED_AT + HOUR])
    def test_an_attempt_that_died_counts_when_its_message_comes(self, now: datetime) -> None:
        alone = ORDER.alone(MEMBERS[0])
        dead = dead_attempt(CLAIMED, alone, now)
        assert dead.lease_until == min(now, LAPSED_AT), "or who is a little behind waits for it"
        terms = replace(TERMS, lease_until=now + SECOND)
        claim = running.decide_claim(dead, alone, now, terms)
        assert isinstance(claim, Claim)
        assert (claim.run.attempt, claim.run.token, claim.over) == (2, 2, dead)
        assert [each.error for each in claim.run.attempts] == [EXECUTOR_DIED]

    def test_the_first_row_of_a_dead_attempt_is_put(self) -> None:
        dead = dead_attempt(CLAIMED, ORDER.alone(MEMBERS[0]), LAPSED_AT)
        assert decide_death(None, dead, LAPSED_AT) == Claim(dead, None)

    @pytest.mark.parametrize(
        ("waits", "lease", "attempt"),
        [(1, None, 1), (0, timedelta(0), 2), (0, timedelta(microseconds=1), None)],
        ids=["it waits", "its holder has died", "it is held"],
    )
    def test_a_dead_attempt_is_counted_in_the_row_of_another_generation(
        self, waits: int, lease: timedelta | None, attempt: int | None
    ) -> None:
        """Or by what stands there once its claim has ended: that may leave no row."""
        alone = ORDER.alone(MEMBERS[0])
        dead = dead_attempt(CLAIMED, alone, LAPSED_AT)
        seen = replace(run_under(CLAIMED, alone), generation_id=OLDER, claim_id="other", token=3)
        seen = replace(seen, attempt=2, waits=waits, other_generations=("a",))
        seen = replace(seen, lease_until=None if lease is None else LAPSED_AT + lease)
        if lease is None:
            seen = replace(seen, status=RunStatus.SCHEDULED, attempt=0)
        decision = decide_death(seen, dead, LAPSED_AT)
        if attempt is None:
            assert isinstance(decision, Leave)
            return
        assert isinstance(decision, Claim)
        row = decision.run
        assert (row.status, row.attempt, row.token) == (RunStatus.RUNNING, attempt, 4)
        assert (row.generation_id, row.waits) == (alone.generation_id, waits)
        assert row.other_generations == (OLDER, "a")
        terms = replace(TERMS, lease_until=LAPSED_AT + HOUR)
        taken_over = running.decide_claim(row, replace(alone, waits=waits), LAPSED_AT, terms)
        assert isinstance(taken_over, Claim)
        assert taken_over.run.attempt == attempt + 1
        other = replace(alone, generation_id=OLDER)
        assert not running.was_made_by(row, other), "it does not take the row along"

    @pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.RETRYING, RunStatus.DEAD])
    def test_a_dead_attempt_counts_by_its_own_row_or_that_of_one_which_ended(
        self, status: RunStatus
    ) -> None:
        alone = ORDER.alone(MEMBERS[0])
        dead = dead_attempt(CLAIMED, alone, LAPSED_AT)
        seen = replace(run_under(CLAIMED, alone), status=status, claim_id="other", token=2)
        if status is not RunStatus.RUNNING:
            seen = replace(seen, generation_id=OLDER)
        assert isinstance(decide_death(seen, dead, LAPSED_AT), Drop)
        named = replace(seen, generation_id=OLDER, other_generations=(alone.generation_id,))
        assert isinstance(decide_death(named, dead, LAPSED_AT), Drop)
