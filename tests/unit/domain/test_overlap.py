"""A job's own gate: overlap and spacing, one situation at a time."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from carillon.domain.admission.overlap import Others, check_job, has_job_admission
from carillon.domain.admission.state import AdmissionRow, Verdict, first_admission
from carillon.domain.decisions import Proceed, Skip, SkipReason, Wait
from carillon.domain.job import Job
from carillon.domain.policies import Overlap
from carillon.domain.run import FINAL, Completion, Run, RunKind, RunStatus
from carillon.schedules import parse_schedule
from tests.unit.domain.samples import CURRENT, KEY, NOON, job, message, run

GATE = first_admission("owner", "job/job").lasting(NOON + timedelta(days=30))
CLAIMED = run(RunStatus.RUNNING)
OWN = KEY.run_id
OTHER = replace(KEY, fire_at=NOON - timedelta(minutes=10))
ACTIVE = [status for status in RunStatus if status not in FINAL]
MANUAL = replace(KEY, kind=RunKind.MANUAL, request_id="r")


def other(status: RunStatus) -> Run:
    return run(status, key=OTHER)


def passing(
    policy: Overlap,
    gate: AdmissionRow,
    claimed: Run = CLAIMED,
    others: Others | None = None,
    now: datetime = NOON,
) -> Verdict:
    others = others or Others()
    return check_job(job(overlap=policy), claimed, message(), gate, others, now, 0.0)


@pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE_ONE])
class TestWhoeverIsAlone:
    def test_passes_and_is_named(self, policy: Overlap) -> None:
        assert passing(policy, GATE) == Verdict(Proceed(), replace(GATE, active=OWN))

    @pytest.mark.parametrize("status", [*FINAL, None])
    def test_the_row_of_the_run_that_is_named_decides(
        self, policy: Overlap, status: RunStatus | None
    ) -> None:
        gate = replace(GATE, active=OTHER.run_id)
        row = None if status is None else other(status)
        verdict = passing(policy, gate, others=Others(active=row))
        assert verdict == Verdict(Proceed(), replace(GATE, active=OWN))

    def test_passes_again_without_a_write(self, policy: Overlap) -> None:
        gate = replace(GATE, active=OWN)
        assert passing(policy, gate, replace(CLAIMED, attempt=2)) == Verdict(Proceed(), gate)

    def test_that_has_its_row_anew_fences_off_who_has_found_none(self, policy: Overlap) -> None:
        gate = replace(GATE, active=OWN)
        for token in (1, 2):  # it may have been held back since it made it
            verdict = passing(policy, gate, replace(CLAIMED, token=token))
            assert verdict == Verdict(Proceed(), gate.next_revision())

    def test_the_gate_lasts_as_long_as_the_row_of_the_run(self, policy: Overlap) -> None:
        """Also of one that passes again, as each attempt does."""
        for active in (OTHER.run_id, OWN):
            verdict = passing(policy, replace(GATE, active=active, expires_at=NOON))
            assert verdict.put is not None
            assert verdict.put.expires_at >= CLAIMED.expires_at


@pytest.mark.parametrize("status", ACTIVE)
class TestWhileAnotherIsActive:
    def test_skip_names_the_active_run(self, status: RunStatus) -> None:
        gate = replace(GATE, active=OTHER.run_id)
        verdict = passing(Overlap.SKIP, gate, others=Others(active=other(status)))
        skip = Skip(SkipReason.OVERLAP, f"{OTHER.run_id} was active")
        assert verdict == Verdict(skip)

    def test_the_first_waits_for_its_turn(self, status: RunStatus) -> None:
        gate = replace(GATE, active=OTHER.run_id)
        verdict = passing(Overlap.QUEUE_ONE, gate, others=Others(active=other(status)))
        assert isinstance(verdict.outcome, Wait)
        assert verdict.outcome.message.wait_until == NOON + timedelta(seconds=1)
        assert verdict.put == replace(gate, waiting=OWN, waiting_generation=CURRENT)
        assert verdict.put is not None
        for token, put in [(2, verdict.put), (1, verdict.put.next_revision())]:
            comes_again = replace(CLAIMED, token=token)
            others = Others(active=other(status))
            again = passing(Overlap.QUEUE_ONE, verdict.put, comes_again, others)
            assert isinstance(again.outcome, Wait)
            assert again.put == put, "it waits already; but its row may not have been there"
        assert verdict.put.expires_at >= CLAIMED.expires_at

    @pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE_ONE])
    @pytest.mark.parametrize(
        "claimed",
        [
            run(RunStatus.RUNNING, key=MANUAL),
            run(RunStatus.RUNNING, key=replace(KEY, kind=RunKind.BACKFILL, request_id="o")),
            run(RunStatus.RUNNING, key=KEY.redriven),
            run(RunStatus.RUNNING, attempt=2),
        ],
    )
    def test_what_was_asked_for_or_has_begun_waits_in_the_place_of_the_next(
        self, status: RunStatus, policy: Overlap, claimed: Run
    ) -> None:
        gate = replace(GATE, active=OTHER.run_id)
        verdict = passing(policy, gate, claimed, Others(active=other(status)))
        assert isinstance(verdict.outcome, Wait)
        assert verdict.outcome.reason == f"waits for the end of {OTHER.run_id}"
        assert verdict.put == replace(gate, waiting=claimed.key.run_id, waiting_generation=CURRENT)


def test_who_waits_for_an_open_run_is_woken_and_checks_ever_less_often() -> None:
    """It may last for days."""
    gate = replace(GATE, active=OTHER.run_id)
    terms = Completion("hash", NOON + timedelta(days=1), 3_600, is_open=True)
    active = replace(other(RunStatus.RUNNING), completion=terms)
    now = NOON + timedelta(minutes=20)
    verdict = passing(Overlap.QUEUE_ONE, gate, others=Others(active=active), now=now)
    assert isinstance(verdict.outcome, Wait)
    assert verdict.outcome.message.wait_until == now + timedelta(minutes=5)
    assert verdict.put is not None
    assert verdict.put.waiting == OWN


class TestTheOneThatWaits:
    WAITING = replace(KEY, fire_at=NOON - timedelta(minutes=5))

    @pytest.fixture
    def gate(self) -> AdmissionRow:
        return replace(
            GATE, active=OTHER.run_id, waiting=self.WAITING.run_id, waiting_generation=CURRENT
        )

    @pytest.mark.parametrize("active", [RunStatus.RUNNING, RunStatus.SUCCEEDED])
    @pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE_ONE])
    def test_occurrences_that_come_while_one_waits_are_skipped(
        self, gate: AdmissionRow, policy: Overlap, active: RunStatus
    ) -> None:
        """Also in the moment in which the active one has ended and it has yet to wake."""
        waiting = run(RunStatus.SCHEDULED, attempt=0, key=self.WAITING)
        verdict = passing(policy, gate, others=Others(other(active), waiting))
        note = f"{self.WAITING.run_id} was waiting for its turn"
        if policy is Overlap.SKIP and active is RunStatus.RUNNING:
            note = f"{OTHER.run_id} was active"
        assert verdict == Verdict(Skip(SkipReason.OVERLAP, note))

    @pytest.mark.parametrize("active", [RunStatus.RUNNING, RunStatus.SUCCEEDED])
    @pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.QUEUE_ONE])
    def test_others_that_somebody_asked_for_wait_behind_it(
        self, gate: AdmissionRow, policy: Overlap, active: RunStatus
    ) -> None:
        waiting = run(RunStatus.SCHEDULED, attempt=0, key=self.WAITING)
        asked = run(RunStatus.RUNNING, key=MANUAL)
        verdict = passing(policy, gate, asked, Others(other(active), waiting))
        assert isinstance(verdict.outcome, Wait)
        assert verdict.outcome.reason == f"waits behind {self.WAITING.run_id}"
        assert verdict.put is None

    @pytest.mark.parametrize(
        ("waited_minutes", "seconds"), [(0, 1), (1, 15), (4, 60), (20, 300), (90, 450)]
    )
    def test_they_check_ever_less_often(
        self, gate: AdmissionRow, waited_minutes: int, seconds: int
    ) -> None:
        """A backfill may have tens of thousands of them, which wait for days."""
        waiting = run(RunStatus.SCHEDULED, attempt=0, key=self.WAITING)
        asked = run(RunStatus.RUNNING, key=replace(KEY, kind=RunKind.BACKFILL, request_id="o"))
        now = NOON + timedelta(minutes=waited_minutes)
        others = Others(other(RunStatus.RUNNING), waiting)
        verdict = passing(Overlap.SKIP, gate, asked, others, now)
        assert isinstance(verdict.outcome, Wait)
        assert verdict.outcome.message.wait_until == now + timedelta(seconds=seconds)

    @pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.SKIPPED, None])
    def test_the_place_of_one_that_waits_no_more_is_free(
        self, gate: AdmissionRow, status: RunStatus | None
    ) -> None:
        waiting = None if status is None else run(status, key=self.WAITING)
        others = Others(other(RunStatus.RUNNING), waiting)
        verdict = passing(Overlap.QUEUE_ONE, gate, others=others)
        assert isinstance(verdict.outcome, Wait)
        assert verdict.put is not None
        assert verdict.put.waiting == OWN

    @pytest.mark.parametrize("status", [RunStatus.CANCELLED, None])
    def test_whoever_passes_leaves_the_place_free(
        self, gate: AdmissionRow, status: RunStatus | None
    ) -> None:
        waiting = None if status is None else run(status, key=self.WAITING)
        others = Others(other(RunStatus.DEAD), waiting)
        verdict = passing(Overlap.QUEUE_ONE, gate, others=others)
        assert verdict == Verdict(Proceed(), replace(GATE, active=OWN))

    def test_the_one_that_waited_leaves_its_place(self, gate: AdmissionRow) -> None:
        gate = replace(gate, waiting=OWN)
        verdict = passing(Overlap.QUEUE_ONE, gate, others=Others(other(RunStatus.DEAD)))
        assert verdict == Verdict(Proceed(), replace(GATE, active=OWN))


class TestSpacing:
    """The seed's wrapper rule, with an interval of ten minutes and a tolerance of one."""

    GATE = replace(GATE, started=OTHER.run_id, started_at=NOON - timedelta(minutes=9))

    def spaced(self, **changes: object) -> Job:
        every = parse_schedule("every 10m")
        return job(**{"schedule": every, "tolerance": 60, **changes})

    def at(self, seconds: int, claimed: Run = CLAIMED, **changes: object) -> Verdict:
        now = NOON + timedelta(seconds=seconds)
        return check_job(self.spaced(**changes), claimed, message(), self.GATE, Others(), now, 0.0)

    def test_too_soon_is_dropped_with_both_times(self) -> None:
        note = f"539 s after the start of {OTHER.run_id}; 540 s are due"
        assert self.at(-1) == Verdict(Skip(SkipReason.SPACING, note))

    def test_at_the_very_instant_it_starts_and_is_the_last_start(self) -> None:
        started = replace(self.GATE, started=OWN, started_at=NOON)
        assert self.at(0) == Verdict(Proceed(), started)

    def test_who_comes_again_passes_and_counts_from_then_on(self) -> None:
        gate = replace(self.GATE, started=OWN)
        now = NOON - timedelta(minutes=8)
        verdict = check_job(self.spaced(), CLAIMED, message(), gate, Others(), now, 0.0)
        assert verdict == Verdict(Proceed(), replace(gate, started_at=now))

    @pytest.mark.parametrize(
        "claimed",
        [
            run(RunStatus.RUNNING, attempt=2),
            run(RunStatus.RUNNING, key=KEY.redriven),
            run(RunStatus.RUNNING, key=MANUAL),
        ],
    )
    def test_other_than_first_attempts_of_occurrences_neither_ask_nor_count(
        self, claimed: Run
    ) -> None:
        assert not has_job_admission(self.spaced(), claimed)
        assert self.at(-60, claimed, overlap=Overlap.SKIP).put == replace(
            self.GATE, active=claimed.key.run_id
        )

    def test_a_drop_takes_no_place_in_the_overlap(self) -> None:
        assert self.at(-60, overlap=Overlap.SKIP).put is None


def test_only_jobs_with_such_policies_have_a_gate() -> None:
    assert not has_job_admission(job(), CLAIMED)
    assert not has_job_admission(job(tolerance=5), CLAIMED), "a cron schedule has no interval"
    assert has_job_admission(job(overlap=Overlap.SKIP), CLAIMED)
    callback = run(RunStatus.RUNNING, key=KEY.callback)
    assert not has_job_admission(job(overlap=Overlap.SKIP), callback)
