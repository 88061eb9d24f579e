"""Runs that are held back: concurrency keys, lateness, and what becomes of row and message."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.admission.limits import Places, enter, leave
from carillon.domain.admission.overlap import misfire
from carillon.domain.admission.state import (
    AdmissionRow,
    PermitHolder,
    QueuedRun,
    Verdict,
    first_admission,
    poll,
    wait_until,
)
from carillon.domain.decisions import Claim, Proceed, Skip, SkipReason, Wait
from carillon.domain.execution import transitions as running
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.message import Missed, RateSlot
from carillon.domain.policies import CatchUp, Rate
from carillon.domain.run import AttemptRecord, Run, RunError, RunKind, RunStatus
from carillon.schedules import parse_schedule
from tests.unit.domain.samples import KEY, NOON, OLD, job, message, run

SECOND = timedelta(seconds=1)
TERMS = ClaimTerms("claim-2", NOON + 61 * SECOND, NOON + timedelta(days=30))
TERMS_LATER = replace(TERMS, lease_until=NOON + 600 * SECOND)
CLAIMED = run(
    RunStatus.RUNNING, lease_until=NOON + 61 * SECOND, started_at=NOON, attempt_started_at=NOON
)
TWO = Places(2, "the concurrency key 'db'")
GATE = first_admission("owner", "key/db").lasting(NOON + 61 * SECOND)


class TestConcurrency:
    def holder(self, name: str, seconds: int) -> PermitHolder:
        return PermitHolder(f"claim-{name}", NOON + seconds * SECOND)

    def enter(self, gate: AdmissionRow, waits: int = 0, fraction: float = 0.0) -> Verdict:
        claim, until = Claim(CLAIMED, None), NOON + 61 * SECOND
        return enter(gate, TWO, claim, message(waits=waits), until, NOON, fraction)

    def test_a_place_is_held_until_the_lease_of_its_claim_ends(self) -> None:
        verdict = self.enter(GATE)
        assert verdict.outcome == Proceed()
        assert verdict.put is not None
        assert verdict.put.holders == (PermitHolder("claim-1", NOON + 61 * SECOND),)

    def test_when_all_are_held_it_looks_again_later(self) -> None:
        full = replace(GATE, holders=(self.holder("a", 1), self.holder("b", 9)))
        verdict = self.enter(full, waits=3, fraction=0.5)
        assert isinstance(verdict.outcome, Wait)
        assert verdict.outcome.message.wait_until == NOON + 6 * SECOND
        assert verdict.put is None

    def test_a_place_is_free_at_the_very_instant_of_the_leases_end(self) -> None:
        lapsed = replace(GATE, holders=(self.holder("a", 0), self.holder("b", 9)))
        verdict = self.enter(lapsed)
        assert verdict.put is not None
        assert [holder.claim_id for holder in verdict.put.holders] == ["claim-b", "claim-1"]

    def test_only_the_claim_itself_leaves(self) -> None:
        """A worker that lost its lease must not free the place of its successor."""
        entered = self.enter(GATE).put
        assert entered is not None
        assert leave(entered, replace(CLAIMED, claim_id="claim-of-old")) is None
        assert leave(entered, CLAIMED) == GATE

    def test_it_keeps_the_place_that_it_had_while_it_waited(self) -> None:
        full = replace(GATE, holders=(self.holder("1", 90), self.holder("b", 90)))
        again = Claim(replace(CLAIMED, claim_id="claim-2"), run(RunStatus.SCHEDULED, attempt=0))
        verdict = enter(full, TWO, again, message(), NOON + 61 * SECOND, NOON, 0.0)
        assert verdict.put is not None
        assert verdict.put.holders == (self.holder("b", 90), self.holder("2", 61))


class TestTurns:
    """A free place is for who was due first of those that have waited for long."""

    ONE = Places(1, "the concurrency key 'db'")
    HELD = replace(GATE, holders=(PermitHolder("other", NOON + timedelta(days=1)),))

    def enter(
        self, gate: AdmissionRow, due_seconds: int, now_seconds: int, name: str = "a"
    ) -> Verdict:
        due_at, now = NOON + due_seconds * SECOND, NOON + now_seconds * SECOND
        key = replace(KEY, fire_at=due_at, request_id=name)
        claim = Claim(replace(CLAIMED, key=key, claim_id=f"claim-{name}"), None)
        waiting = message(key=key, due_at=due_at, waits=9)
        return enter(gate, self.ONE, claim, waiting, now + 60 * SECOND, now, 0.0)

    def waits_seconds(self, verdict: Verdict, now_seconds: int) -> float:
        assert isinstance(verdict.outcome, Wait)
        at = verdict.outcome.message.wait_until
        assert at is not None
        return (at - NOON).total_seconds() - now_seconds

    def turns(self, verdict: Verdict) -> list[str]:
        assert verdict.put is not None
        return [turn.run_id.split("-")[1].split("_")[0] for turn in verdict.put.turns]

    def test_none_is_given_before_half_a_minute(self) -> None:
        assert self.enter(self.HELD, 0, 29).put is None
        assert self.turns(self.enter(self.HELD, 0, 30)) == ["a"]

    def test_who_was_due_before_takes_it_and_who_comes_later_gets_none(self) -> None:
        gate = self.enter(self.HELD, 10, 60, "a").put
        assert gate is not None
        assert self.turns(self.enter(gate, 5, 60, "b")) == ["b"]
        later = self.enter(gate, 11, 60, "c")
        assert later.put is None
        assert self.waits_seconds(later, 60) == 15

    def test_who_has_it_looks_every_two_seconds_and_the_others_ever_less_often(self) -> None:
        first = self.enter(self.HELD, 0, 3600)
        assert self.waits_seconds(first, 3600) == 1
        assert first.put is not None
        again = self.enter(first.put, 0, 3602)
        assert again.put is None, "a turn is renewed twice a minute, not at every look"
        for waited_seconds, longest_seconds in [(40, 30), (600, 300), (7200, 900)]:
            now = 3600 + waited_seconds
            gate = replace(
                first.put, turns=(replace(first.put.turns[0], until=NOON + now * 2 * SECOND),)
            )
            other = self.enter(gate, 3600, now, "z")
            assert self.waits_seconds(other, now) == longest_seconds / 2

    def test_a_free_place_is_kept_for_it(self) -> None:
        waiting = self.enter(self.HELD, 0, 60).put
        assert waiting is not None
        free = replace(waiting, holders=())
        fresh = self.enter(free, 61, 61, "b")
        assert isinstance(fresh.outcome, Wait)
        assert "'db', behind 1 run" in fresh.outcome.reason
        own = self.enter(free, 0, 62)
        assert own.outcome == Proceed()
        assert self.turns(own) == []
        gone = self.enter(free, 125, 125, "b")
        assert gone.outcome == Proceed(), "one that looks no more loses its turn after a minute"

    def test_who_waits_for_a_share_looks_rarely_until_it_has_its_turn(self) -> None:
        share = replace(self.ONE, is_share=True)
        claim = Claim(replace(CLAIMED, claim_id="claim-a"), None)
        for now_seconds, waits, longest in [(5, 0, 16), (29, 2, 16), (30, 2, 1)]:
            now = NOON + now_seconds * SECOND
            waiting = message(due_at=NOON, waits=waits)
            verdict = enter(self.HELD, share, claim, waiting, now, now, 0.0)
            assert self.waits_seconds(verdict, now_seconds) == longest

    def test_not_more_than_there_are_places(self) -> None:
        gate = self.enter(self.HELD, 10, 60, "a").put
        assert gate is not None
        assert len(gate.turns) == 1
        assert gate.turns == (
            QueuedRun(gate.turns[0].run_id, NOON + 10 * SECOND, NOON + 120 * SECOND),
        )


class TestMisfire:
    def late(self, seconds: int, claimed: Run = CLAIMED, **changes: object) -> Skip | None:
        skips = {"grace": 60, "catch_up": CatchUp.SKIP, **changes}
        return misfire(job(**skips), claimed, message(), NOON + seconds * SECOND)

    def test_beyond_the_grace_it_is_skipped_and_the_note_says_how_late(self) -> None:
        assert self.late(60) is None
        note = "61 s late, with 60 s of grace"
        assert self.late(61) == Skip(SkipReason.MISFIRE, note)

    def test_counted_from_the_effective_time(self) -> None:
        assert self.late(100, replace(CLAIMED, effective_at=NOON + 50 * SECOND)) is None

    @pytest.mark.parametrize(
        "changes",
        [{"catch_up": CatchUp.LATEST}, {"catch_up": CatchUp.ALL}],
    )
    def test_only_where_the_catch_up_skips(self, changes: object) -> None:
        assert self.late(10_000, **changes) is None  # type: ignore[arg-type]

    def test_without_a_grace_a_minute_is_late(self) -> None:
        assert self.late(60, grace=None) is None
        assert self.late(61, grace=None) == self.late(61)

    @pytest.mark.parametrize(
        ("schedule", "held"),
        [
            ("every 1m after finish", {}),
            ("at 2026-12-01T12:00:00Z", {}),
            ("every 1m", {"waits": 1}),
            ("every 1m", {"wait_until": NOON}),
            ("every 1m", {"in_time": True}),
        ],
    )
    def test_without_a_grace_nothing_is_late_that_waited_or_that_no_other_follows(
        self, schedule: str, held: dict[str, object]
    ) -> None:
        skips = {"grace": None, "catch_up": CatchUp.SKIP}
        late = job(schedule=parse_schedule(schedule), **skips)
        given = message(**held)  # type: ignore[arg-type]
        assert misfire(late, CLAIMED, given, NOON + 10_000 * SECOND) is None

    @pytest.mark.parametrize(
        "claimed",
        [
            replace(CLAIMED, attempt=2),
            replace(CLAIMED, key=KEY.redriven),
            replace(CLAIMED, key=replace(KEY, kind=RunKind.MANUAL, request_id="r")),
            replace(CLAIMED, key=replace(KEY, kind=RunKind.BACKFILL, request_id="o")),
        ],
    )
    def test_never_what_was_asked_for_or_has_begun(self, claimed: Run) -> None:
        assert self.late(10_000, claimed) is None


class TestMessagesThatWait:
    @pytest.mark.parametrize(
        ("waits", "seconds"), [(0, 2), (1, 2), (2, 4), (4, 16), (5, 30), (1000, 30)]
    )
    def test_polling_doubles_up_to_half_a_minute(self, waits: int, seconds: int) -> None:
        soonest, latest = (poll(message(waits=waits), NOON, "r", at).message for at in (0, 0.999))
        assert soonest.wait_until == NOON + seconds / 2 * SECOND
        assert latest.wait_until == NOON + seconds * SECOND

    def test_each_wait_has_the_ordinal_after_the_last_that_its_row_knows(self) -> None:
        wait = wait_until(message(waits=1), NOON, "r")
        claimed = replace(CLAIMED, waits=3, attempt=2)
        again = running.in_next_wait(wait, claimed).message
        assert (again.waits, again.attempt) == (4, 2)

    def test_it_waits_in_ceil_second_never_too_short(self) -> None:
        at = NOON + timedelta(milliseconds=1)
        assert wait_until(message(), at, "r").message.starts_at == NOON + SECOND

    def test_what_it_stood_for_is_recorded_by_now(self) -> None:
        missed = Missed(NOON - timedelta(hours=1), CatchUp.LATEST, job().schedule)
        again = poll(message(slot_key="h0", missed=missed), NOON, "reason", 0.0).message
        assert (again.slot_key, again.missed) == ("", None)


class TestRowsThatWait:
    WAIT = wait_until(message(), NOON + 100 * SECOND, "held back")

    @pytest.mark.parametrize(
        "over", [None, run(RunStatus.SCHEDULED, attempt=0, token=0, claim_id="")]
    )
    def test_one_that_has_yet_to_begin_is_scheduled_and_says_why(self, over: Run | None) -> None:
        back = running.waiting(CLAIMED, over, self.WAIT, NOON)
        assert (back.status, back.attempt, back.note) == (RunStatus.SCHEDULED, 0, "held back")
        assert back.next_attempt_at == NOON + 100 * SECOND
        assert (back.started_at, back.lease_until) == (None, None)
        assert back.expires_at == CLAIMED.expires_at + 100 * SECOND
        assert (back.token, back.claim_id) == (CLAIMED.token, CLAIMED.claim_id), "for the finish"

    def test_one_that_is_to_be_tried_again_says_why_and_until_when(self) -> None:
        over = run(RunStatus.RETRYING, attempt=2, next_attempt_at=NOON)
        claimed = replace(CLAIMED, attempt=3, token=7)
        wait = running.in_next_wait(self.WAIT, claimed)
        back = running.waiting(claimed, over, wait, NOON)
        assert (back.status, back.attempt, back.note) == (RunStatus.RETRYING, 2, "held back")
        assert (back.next_attempt_at, back.token) == (NOON + 100 * SECOND, 7)

        claim = running.decide_claim(back, wait.message, wait.message.starts_at, TERMS_LATER)
        assert isinstance(claim, Claim)
        assert claim.run.note is None, "it waits no more"

    def test_one_whose_executor_died_is_to_be_tried_again(self) -> None:
        """It says so, with the attempt that died, why it waits and until when."""
        later = NOON + 90 * SECOND
        died = replace(CLAIMED, note="moved")
        takeover = running.decide_claim(died, message(), later, TERMS_LATER)
        assert isinstance(takeover, Claim)
        wait = wait_until(message(), later + 100 * SECOND, "held back")
        wait = running.in_next_wait(wait, takeover.run)
        back = running.waiting(takeover.run, died, wait, later)
        assert (back.status, back.attempt, back.note) == (RunStatus.RETRYING, 1, "held back")
        assert back.next_attempt_at == later + 100 * SECOND
        assert (back.lease_until, back.started_at, back.attempt_started_at) == (None, NOON, NOON)
        assert back.error == running.EXECUTOR_DIED
        assert [(each.attempt, each.error) for each in back.attempts] == [(1, back.error)]
        assert back.expires_at == takeover.run.expires_at + 100 * SECOND

        again = replace(wait.message, attempt=takeover.run.attempt)
        claim = running.decide_claim(back, again, wait.message.starts_at, TERMS_LATER)
        assert isinstance(claim, Claim)
        assert (claim.run.attempt, claim.run.attempts) == (2, back.attempts)
        assert claim.run.note is None, "it waits no more"
        held_again = running.waiting(claim.run, back, wait, later)
        assert (held_again.status, held_again.attempt) == (RunStatus.RETRYING, 1)
        assert (held_again.note, held_again.attempts) == ("held back", back.attempts)

    def test_the_claim_after_a_wait_is_a_first_attempt_due_when_it_always_was(self) -> None:
        """Also by the message that wakes it, which is due at once."""
        first = replace(CLAIMED, effective_at=NOON - 30 * SECOND)
        for before in (first, CLAIMED):
            row = running.waiting(before, None, self.WAIT, NOON)
            wakes = message(due_at=NOON + 40 * SECOND)
            claim = running.decide_claim(row, wakes, NOON + 40 * SECOND, TERMS)
            assert isinstance(claim, Claim)
            assert (claim.run.attempt, claim.run.effective_at) == (1, before.effective_at)
            assert claim.run.started_at == NOON + 40 * SECOND
            assert (claim.run.note, claim.run.next_attempt_at) == (None, None)

    def test_a_retry_begins_its_waits_anew_and_has_no_slot(self) -> None:
        waited = message(wait_until=NOON, waits=3, rate_slot=RateSlot(NOON, Rate(1, 60), "line"))
        retrying = run(RunStatus.RETRYING, next_attempt_at=NOON + SECOND)
        retry = running.retry_message(retrying, waited)
        assert (retry.starts_at, retry.waits) == (NOON + SECOND, 0)
        assert retry.rate_slot is None

    def test_whose_row_it_is(self) -> None:
        waiting = running.waiting(CLAIMED, None, self.WAIT, NOON)
        assert running.was_made_by(waiting, message())
        assert running.was_made_by(run(RunStatus.RUNNING), message())
        assert not running.was_made_by(waiting, message(OLD)), "another generation's"
        asked = run(RunStatus.SCHEDULED, attempt=0)
        assert not running.was_made_by(asked, message()), "the api put it"

    def test_a_row_whose_attempt_has_ended_is_the_next_ones(self) -> None:
        """Seed 9100000491: a copy of the first message took the row of a called attempt along."""
        failed = AttemptRecord(1, NOON, NOON, RunError("http_500", "no"))
        dead = replace(run(RunStatus.RUNNING), attempt=2, attempts=(failed,))
        assert not running.was_made_by(dead, message())
        assert running.was_made_by(dead, replace(message(), attempt=2)), "nothing comes after it"
        died = replace(failed, error=running.EXECUTOR_DIED)
        taken_over = replace(dead, attempts=(died,))
        assert running.was_made_by(taken_over, message()), "no other message comes for it"
