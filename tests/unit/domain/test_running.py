"""Decisions of the run protocol, one table row at a time."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.decisions import (
    LONGEST_BRIEF_WAIT,
    Claim,
    Defer,
    Drop,
    Leave,
    Proceed,
    Repeat,
    Skip,
    SkipReason,
)
from carillon.domain.execution import transitions as running
from carillon.domain.execution.start_decision import decide_start
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.job import MOST_REPLACED, Generation, JobState, PastGeneration
from carillon.domain.message import RateSlot, decode, encode
from carillon.domain.policies import Rate, RetryPolicy
from carillon.domain.run import TRANSITIONS, RunError, RunKey, RunKind, RunStatus
from carillon.domain.wheel.delaying import whole_delay
from carillon.errors import MalformedMessageError
from carillon.schedules import parse_schedule
from tests.unit.domain.samples import (
    CURRENT,
    KEY,
    NEWER_STALE,
    NEWER_YOUNG,
    NOON,
    OLD,
    OLDER,
    job,
    message,
    run,
)

TERMS = ClaimTerms("claim-2", NOON + timedelta(seconds=61), NOON + timedelta(days=30))


class TestBegun:
    CLAIMED = run(RunStatus.RUNNING, started_at=NOON, attempt_started_at=NOON)

    def test_at_once_it_is_the_run_as_it_was_claimed(self) -> None:
        assert running.begun(self.CLAIMED, NOON + timedelta(microseconds=999)) is self.CLAIMED

    def test_where_gates_took_their_time_it_began_when_they_let_it_pass(self) -> None:
        now = NOON + timedelta(milliseconds=1)
        began = running.begun(self.CLAIMED, now)
        assert (began.started_at, began.attempt_started_at) == (now, now)

    def test_the_start_of_the_run_is_that_of_its_first_attempt(self) -> None:
        earlier, now = NOON - timedelta(minutes=5), NOON + timedelta(seconds=1)
        began = running.begun(replace(self.CLAIMED, attempt=2, started_at=earlier), now)
        assert (began.started_at, began.attempt_started_at) == (earlier, now)


class TestClaim:
    def test_an_absent_run_is_claimed_by_a_first_attempt_only(self) -> None:
        claim = running.decide_claim(None, message(), NOON, TERMS)
        assert isinstance(claim, Claim)
        assert claim.over is None
        assert (claim.run.attempt, claim.run.token, claim.run.claim_id) == (1, 1, "claim-2")
        assert isinstance(running.decide_claim(None, message(attempt=2), NOON, TERMS), Drop)

    @pytest.mark.parametrize(("age", "wait"), [(0, 1), (1, 1), (8, 8), (20, 10), (29, 1)])
    def test_a_live_lease_is_looked_at_soon_then_less_often_up_to_its_end(
        self, age: int, wait: int
    ) -> None:
        now = NOON + timedelta(seconds=age)
        until = NOON + timedelta(seconds=30)
        held = run(RunStatus.RUNNING, lease_until=until, attempt_started_at=NOON)
        for ahead in (message(generation_id=OLD), message(attempt=2), message(waits=1)):
            decision = running.decide_claim(held, ahead, now, TERMS)
            assert isinstance(decision, Defer)
            assert decision.at == now + timedelta(seconds=wait)

    def test_a_late_message_that_meets_a_new_claim_again_and_again_comes_ever_less_often(
        self,
    ) -> None:
        now = NOON + timedelta(seconds=40)
        held = run(RunStatus.RUNNING, lease_until=TERMS.lease_until, attempt_started_at=now)
        decision = running.decide_claim(held, message(generation_id=OLD), now, TERMS)
        assert isinstance(decision, Defer)
        assert decision.at == TERMS.lease_until, "40 s later, but for the lease"

    @pytest.mark.parametrize("waits", [0, 1, 2])
    def test_a_duplicate_that_meets_a_live_lease_is_left_with_the_queue(self, waits: int) -> None:
        until = NOON + timedelta(seconds=30)
        held = run(RunStatus.RUNNING, attempt=2, waits=2, lease_until=until)
        for attempt in (1, 2):
            duplicate = message(attempt=attempt, waits=waits)
            assert isinstance(running.decide_claim(held, duplicate, NOON, TERMS), Leave)

    @pytest.mark.parametrize(("waits", "claims"), [(0, False), (1, False), (2, True), (3, True)])
    @pytest.mark.parametrize("status", [RunStatus.SCHEDULED, RunStatus.RETRYING])
    def test_of_the_messages_for_a_run_that_waits_the_current_one_claims_it(
        self, status: RunStatus, waits: int, claims: bool
    ) -> None:
        attempt = 0 if status is RunStatus.SCHEDULED else 1
        waiting = run(status, attempt=attempt, waits=2)
        decision = running.decide_claim(
            waiting, message(attempt=attempt + 1, waits=waits), NOON, TERMS
        )
        assert isinstance(decision, Claim if claims else Drop)
        if isinstance(decision, Claim):
            assert decision.run.waits == max(2, waits)

    def test_another_filings_message_claims_a_run_that_waits(self) -> None:
        """Whoever waits may be noise, whose message is dropped: then nobody else would come."""
        waiting = run(RunStatus.SCHEDULED, attempt=0, waits=2)
        decision = running.decide_claim(waiting, message(generation_id=OLD), NOON, TERMS)
        assert isinstance(decision, Claim)

    def test_a_lease_has_lapsed_at_its_very_instant(self) -> None:
        lapsed = run(RunStatus.RUNNING, lease_until=NOON, attempt_started_at=NOON)
        claim = running.decide_claim(lapsed, message(), NOON, TERMS)
        assert isinstance(claim, Claim)
        assert claim.over == lapsed
        assert (claim.run.attempt, claim.run.token) == (2, 2), "a takeover counts as an attempt"
        assert [record.error for record in claim.run.attempts] == [running.EXECUTOR_DIED]

    def test_a_retry_is_claimed_by_the_attempt_that_follows_and_not_before_its_time(self) -> None:
        waiting = run(RunStatus.RETRYING, next_attempt_at=NOON + timedelta(seconds=1))
        early = running.decide_claim(waiting, message(attempt=2), NOON, TERMS)
        assert isinstance(early, Defer)
        at = NOON + timedelta(seconds=1)
        claim = running.decide_claim(waiting, message(attempt=2), at, TERMS)
        assert isinstance(claim, Claim)
        assert claim.run.attempt == 2
        assert isinstance(running.decide_claim(waiting, message(attempt=3), at, TERMS), Drop)
        assert running.decide_claim(waiting, message(attempt=1), at, TERMS) == Repeat(waiting)

    @pytest.mark.parametrize("status", [s for s, following in TRANSITIONS.items() if not following])
    def test_a_final_run_is_never_claimed(self, status: RunStatus) -> None:
        final = run(status)
        assert running.decide_claim(final, message(), NOON, TERMS) == Repeat(final)

    def test_only_the_first_claim_says_when_the_run_was_to_start(self) -> None:
        late = NOON + timedelta(seconds=90)
        terms = replace(TERMS, lease_until=late + timedelta(minutes=10))
        first = running.decide_claim(None, message(due_at=late), late, terms)
        assert isinstance(first, Claim)
        assert first.run.effective_at == late
        plain = running.decide_claim(None, message(), NOON, terms)
        assert isinstance(plain, Claim)
        assert plain.run.effective_at is None, "without a window it is the fire time"
        waiting = replace(first.run, status=RunStatus.RETRYING, note="moved")
        retry = message(attempt=2, due_at=late + timedelta(minutes=5))
        again = running.decide_claim(waiting, retry, retry.due_at, terms)
        assert isinstance(again, Claim)
        assert (again.run.effective_at, again.run.note) == (late, "moved")

    def test_a_process_past_its_end_claims_nothing(self) -> None:
        """Found by the exploration: two that were frozen took over from each other until no
        attempt was left, and the target was never called."""
        past = replace(TERMS, lease_until=NOON)
        lapsed = run(RunStatus.RUNNING, lease_until=NOON - timedelta(seconds=5))
        for seen in (None, lapsed, run(RunStatus.SCHEDULED)):
            decision = running.decide_claim(seen, message(), NOON, past)
            assert decision == Defer(NOON, "this process is past its end")
        ended = run(RunStatus.SUCCEEDED)
        assert running.decide_claim(ended, message(), NOON, past) == Repeat(ended)

    def test_every_claim_is_a_transition_of_the_table(self) -> None:
        for status in RunStatus:
            seen = run(status, lease_until=NOON, next_attempt_at=NOON)
            decision = running.decide_claim(seen, message(attempt=2), NOON, TERMS)
            assert isinstance(decision, Claim) == (RunStatus.RUNNING in TRANSITIONS[status])


class TestDefer:
    @pytest.mark.parametrize(("late", "wait"), [(-3, 1), (0, 1), (7, 7), (30, 30), (3600, 30)])
    def test_twice_as_late_within_bounds(self, late: int, wait: int) -> None:
        now = NOON + timedelta(seconds=late)
        again = Defer.twice_as_late(NOON, now, "why", longest=LONGEST_BRIEF_WAIT)
        assert again == Defer(now + timedelta(seconds=wait), "why")


class TestStart:
    def test_an_occurrence_of_the_current_filing_runs(self) -> None:
        assert decide_start(job(), message(), NOON) == Proceed()

    def test_without_a_job_a_young_filing_waits_for_its_commit(self) -> None:
        assert isinstance(decide_start(None, message(NEWER_YOUNG), NOON), Defer)
        assert isinstance(decide_start(None, message(NEWER_STALE), NOON), Drop)

    @pytest.mark.parametrize(
        ("state", "reason"),
        [(JobState.PAUSED, SkipReason.PAUSED), (JobState.DELETED, SkipReason.DELETED)],
    )
    def test_a_paused_or_deleted_job_does_not_run(
        self, state: JobState, reason: SkipReason
    ) -> None:
        stopped = job(state=state, paused_at=NOON)
        assert decide_start(stopped, message(), NOON) == Skip(reason)
        retry = message(attempt=2)
        assert decide_start(stopped, retry, NOON) == Skip(reason), "nor is it retried"

    def test_a_completed_job_runs_what_still_waits(self) -> None:
        completed = job(state=JobState.COMPLETED)
        assert decide_start(completed, message(), NOON) == Proceed()
        assert decide_start(completed, message(attempt=2), NOON) == Proceed()

    @pytest.mark.parametrize(
        ("key", "runs"),
        [
            (replace(KEY, kind=RunKind.MANUAL, request_id="r"), True),
            (KEY.redriven, True),
            (KEY.callback, True),
            (replace(KEY, kind=RunKind.BACKFILL, request_id="o"), False),
            (replace(KEY, kind=RunKind.BACKFILL, request_id="o", redrive=1), True),
        ],
    )
    def test_a_paused_job_runs_what_somebody_asks_for_and_calls_back(
        self, key: RunKey, runs: bool
    ) -> None:
        paused = job(state=JobState.PAUSED, paused_at=NOON - timedelta(hours=1))
        start = Proceed() if runs else Skip(SkipReason.PAUSED)
        assert decide_start(paused, message(key=key), NOON) == start
        deleted = job(state=JobState.DELETED)
        assert decide_start(deleted, message(key=key), NOON) == Skip(SkipReason.DELETED)

    @pytest.mark.parametrize("state", [JobState.PAUSED, JobState.DELETED])
    def test_of_a_stopped_job_a_resume_or_revival_in_the_making_waits(
        self, state: JobState
    ) -> None:
        """Found by the race "revive against dispatch": its messages come before its commit."""
        stopped = job(state=state, paused_at=NOON - timedelta(hours=1))
        assert isinstance(decide_start(stopped, message(NEWER_YOUNG), NOON), Defer)

    @pytest.mark.parametrize("state", [JobState.PAUSED, JobState.DELETED])
    def test_of_a_stopped_job_noise_leaves_no_record(self, state: JobState) -> None:
        """Found by seed 61005697: a change that lost against a pause left skips in the history, at
        instants that no schedule of the job had."""
        known = PastGeneration(OLD, NOON - timedelta(days=1), NOON - timedelta(hours=2))
        stopped = job(state=state, paused_at=NOON - timedelta(minutes=6), previous=known)
        assert decide_start(stopped, message(NEWER_STALE), NOON) == Drop(
            "its generation does not count"
        )
        assert decide_start(stopped, message(OLDER), NOON) == Drop("its generation does not count")
        assert isinstance(decide_start(stopped, message(OLD), NOON), Skip)
        often = replace(stopped, earlier=(known,) * (MOST_REPLACED - 1))
        assert isinstance(decide_start(often, message(OLDER), NOON), Skip), "it may have counted"

    def test_another_filings_message_runs_when_the_schedule_yields_its_time(self) -> None:
        assert decide_start(job(), message(NEWER_STALE), NOON) == Proceed()
        off = message(NEWER_STALE, key=replace(KEY, fire_at=NOON + timedelta(minutes=1)))
        assert isinstance(decide_start(job(), off, NOON), Drop)

    def test_what_the_previous_filing_covers_runs(self) -> None:
        refiled_at = NOON + timedelta(minutes=1)
        changed = job(
            schedule=parse_schedule("5 * * * *"),
            generation=Generation(CURRENT, refiled_at),
            previous=PastGeneration(OLD, NOON - timedelta(days=1), refiled_at),
        )
        assert decide_start(changed, message(OLD), NOON) == Proceed()
        later = message(OLD, key=replace(KEY, fire_at=NOON + timedelta(minutes=10)))
        assert decide_start(changed, later, NOON) == Skip(SkipReason.CHANGED)

    def test_what_fell_into_a_pause_is_skipped_as_paused(self) -> None:
        resumed = job(
            generation=Generation(CURRENT, NOON + timedelta(minutes=30)),
            previous=PastGeneration(OLD, NOON - timedelta(days=1), NOON - timedelta(minutes=5)),
        )
        assert decide_start(resumed, message(OLD), NOON) == Skip(SkipReason.PAUSED)

    def test_noise_never_takes_the_place_of_an_outcome(self) -> None:
        """A generation that lost its commit may name an instant that the previous generation
        covers."""
        resumed = job(
            generation=Generation(CURRENT, NOON + timedelta(minutes=1)),
            previous=PastGeneration(OLD, NOON - timedelta(days=1), NOON + timedelta(minutes=1)),
        )
        assert isinstance(decide_start(resumed, message(NEWER_STALE), NOON), Drop)

    def test_noise_from_before_the_first_filing_is_recorded_only_where_filings_are_forgotten(
        self,
    ) -> None:
        """Found by the simulation: a creation that died half-way left a skip in the history, at an
        instant at which there was no job."""
        known = PastGeneration(OLD, NOON - timedelta(days=1), NOON - timedelta(hours=1))
        before_all = message(OLDER, key=replace(KEY, fire_at=NOON - timedelta(days=1, hours=1)))
        resumed = job(generation=Generation(CURRENT, NOON - timedelta(minutes=1)), previous=known)
        assert decide_start(resumed, before_all, NOON) == Drop("its generation does not count")
        often = replace(resumed, earlier=(known,) * (MOST_REPLACED - 1))
        decision = decide_start(often, before_all, NOON)
        assert isinstance(decision, Skip)
        assert decision.reason is SkipReason.CHANGED


class TestEnds:
    def test_a_failure_is_retried_until_no_attempts_are_left(self) -> None:
        error = RunError("boom", "it broke")
        policy = job(retry=RetryPolicy(max_attempts=2))
        first = run(RunStatus.RUNNING, attempt_started_at=NOON)
        again = running.failed(first, policy, error, False, NOON, 0.0)
        assert again.status is RunStatus.RETRYING
        assert again.next_attempt_at == NOON + timedelta(seconds=2)
        last = running.failed(replace(first, attempt=2), policy, error, False, NOON, 0.0)
        assert (last.status, last.reason) == (RunStatus.DEAD, "exhausted")
        timed_out = running.failed(replace(first, attempt=2), policy, error, True, NOON, 0.0)
        assert timed_out.status is RunStatus.TIMED_OUT

    def test_a_permanent_failure_is_dead_at_once(self) -> None:
        error = RunError("http_404", "no such page", permanent=True)
        ended = running.failed(run(RunStatus.RUNNING), job(), error, False, NOON, 0.0)
        assert (ended.status, ended.reason) == (RunStatus.DEAD, "refused")

    def test_the_kinds_that_the_policy_does_not_name_are_refused(self) -> None:
        choosy = job(retry=RetryPolicy(retry_on=("http_5xx",)))
        slow = RunError("timeout", "too slow")
        refused = running.failed(run(RunStatus.RUNNING), choosy, slow, True, NOON, 0.0)
        assert (refused.status, refused.reason) == (RunStatus.TIMED_OUT, "refused")
        busy = RunError("http_503", "later")
        again = running.failed(run(RunStatus.RUNNING), choosy, busy, False, NOON, 0.0)
        assert again.status is RunStatus.RETRYING

    @pytest.mark.parametrize(
        ("asked", "waits"), [(1200, 1200), (0, 1), (0.2, 1), (90.1, 91), (10**9, 7 * 86_400)]
    )
    def test_a_target_may_ask_for_its_own_delay(self, asked: float, waits: int) -> None:
        busy = RunError("http_503", "later")
        claimed = run(RunStatus.RUNNING)
        failed = running.failed(claimed, job(), busy, False, NOON, 0.0, asked)
        assert failed.next_attempt_at == NOON + timedelta(seconds=waits)
        assert failed.expires_at >= claimed.expires_at + timedelta(seconds=waits - 1)

    def test_an_asked_delay_gives_no_further_attempt(self) -> None:
        policy = job(retry=RetryPolicy(max_attempts=1))
        error = RunError("http_503", "later")
        dead = running.failed(run(RunStatus.RUNNING), policy, error, False, NOON, 0.0, 5)
        assert (dead.status, dead.reason) == (RunStatus.DEAD, "exhausted")

    @pytest.mark.parametrize("us", [0, 300_000, 300_999, 999_999])
    def test_a_retry_is_a_whole_delay_from_the_moment_in_which_it_is_decided(self, us: int) -> None:
        """So nobody is paid for waiting out a second; the message says it to the millisecond."""
        now = NOON + timedelta(microseconds=us)
        claimed, error = run(RunStatus.RUNNING), RunError("e", "m")
        failed = running.failed(claimed, job(), error, False, now, 0.5, 7.2)
        due_at = failed.next_attempt_at
        assert due_at == NOON + timedelta(seconds=8, milliseconds=us // 1000)
        sent = decode(encode(running.retry_message(failed, message())))
        assert sent.due_at == due_at
        assert whole_delay(sent.delay_seconds(now + timedelta(milliseconds=50))) == 8

    def test_a_retry_that_a_tick_will_send_is_due_at_a_whole_second(self) -> None:
        now, error = NOON + timedelta(milliseconds=300), RunError("e", "m")
        failed = running.failed(run(RunStatus.RUNNING), job(), error, False, now, 0.5, 1200)
        assert failed.next_attempt_at == NOON + timedelta(seconds=1201)

    def test_a_claim_given_back_keeps_its_token(self) -> None:
        over = run(RunStatus.SCHEDULED, attempt=0, token=0, claim_id="")
        claimed = run(RunStatus.RUNNING, token=1)
        back = running.released(claimed, over, message(), NOON)
        assert (back.status, back.token, back.claim_id) == (RunStatus.SCHEDULED, 1, "claim-1")


class TestMessages:
    def test_a_message_survives_the_queue(self) -> None:
        full = message(key=replace(KEY, redrive=2, request_id="abc"), attempt=3, slot_key="h17")
        assert decode(encode(full)) == full
        waits = message(wait_until=NOON, waits=3)
        slot = RateSlot(NOON, Rate(3, 60, 'a"key'), "line", 2)
        for slotted in (replace(waits, rate_slot=slot), replace(waits, owner_slot=slot)):
            assert decode(encode(slotted)) == slotted

    @pytest.mark.parametrize(
        "body",
        [
            *("", "{", "[]", "{}", "null", "[" * 100_000),
            *('{"v":2,"runs":[{}]}', '{"v":1,"runs":[]}', '{"v":1,"runs":[1]}'),
            {"missed": []},
            {"fire_at": 1e20},
            {"due_at": float("inf")},
            {"due_at": -1},
            {"generation": "notaulid"},
            {"owner": "\ud800"},
            {"slot": "q9"},
            {"kind": "sleep"},
        ],
        ids=lambda body: str(body)[:30],
    )
    def test_anything_else_is_malformed(self, body: str | dict[str, object]) -> None:
        """Members stand for a message that has them."""
        if isinstance(body, dict):
            whole = json.loads(encode(message()))
            whole["runs"][0] |= body
            body = json.dumps(whole)
        with pytest.raises(MalformedMessageError):
            decode(body)

    def test_a_run_id_reads_back(self) -> None:
        manual = replace(KEY, kind=RunKind.MANUAL, request_id="01ABC", redrive=1)
        for key in (KEY, manual):
            assert RunKey.from_run_id("owner", key.run_id) == key

    def test_newer_runs_sort_first(self) -> None:
        newer = replace(KEY, fire_at=NOON + timedelta(seconds=1))
        assert newer.sort_key < KEY.sort_key
