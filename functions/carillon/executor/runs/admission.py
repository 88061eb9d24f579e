"""The gates that a claimed run passes before its target is called: read, decide, put, repeat."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from carillon.domain.admission import limits, slowness
from carillon.domain.admission import limits as rate
from carillon.domain.admission.limits import Places
from carillon.domain.admission.overlap import (
    Others,
    check_job,
    has_job_admission,
    misfire,
    misfire_to_come,
    spaced,
)
from carillon.domain.admission.rate_line import RECHECK, forget
from carillon.domain.admission.state import (
    OWNER_ROW,
    PERMITS_ROW,
    SLOW_LANE_ROW,
    AdmissionRow,
    Verdict,
    first_admission,
    job_admission,
    key_admission,
    poll,
    rate_admission,
)
from carillon.domain.decisions import Claim, Proceed, Redirect, Skip, Wait
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message, RateSlot
from carillon.domain.policies import Concurrency, Overlap, Rate
from carillon.domain.quotas import Quota
from carillon.domain.run import Run, RunKey
from carillon.errors import StoreUnavailableError
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.context import RunContext
from carillon.stores.ports import VersionedRows

_ROUNDS = 12
"""Others may change a gate under one run this often before its message is deferred."""


Held = Skip | Wait | Redirect
"""The reason why a claimed run does not start now."""


def change_admission(
    admission_rows: VersionedRows[AdmissionRow],
    owner: str,
    name: str,
    change: Callable[[AdmissionRow], AdmissionRow | None],
) -> bool:
    """Put what `change` makes of the gate as it is; nothing where that is None or the same.

    `change` is called again where another was quicker; by `lasting` it sets how long the gate is to
    live. False if others changed the gate at every step. Raises StoreUnavailableError.
    """
    for _ in range(_ROUNDS):
        stored = admission_rows.get(owner, name)
        gate = stored or first_admission(owner, name)
        changed = change(gate)
        if changed is None or changed == gate:
            return True
        if admission_rows.put(changed.next_revision(), None if stored is None else stored.revision):
            return True
    return False


def check_admission(
    ports: ExecutorPorts, name: str, message: Message, decide: Callable[[AdmissionRow], Verdict]
) -> Proceed | Skip | Wait:
    """Decide by the gate as it is, and put it as decided; again where another was quicker."""
    outcome: Proceed | Skip | Wait = Proceed()

    def change(gate: AdmissionRow) -> AdmissionRow | None:
        nonlocal outcome
        verdict = decide(gate)
        outcome = verdict.outcome
        return verdict.put

    if change_admission(ports.admission_rows, message.key.owner, name, change):
        return outcome
    fraction = ports.entropy.fraction()
    return poll(message, ports.clock.now(), f"many pass the gate {name} at once", fraction)


def enter(
    ports: ExecutorPorts,
    name: str,
    places: Places,
    claim: Claim,
    message: Message,
    until: datetime | None = None,
) -> Proceed | Skip | Wait:
    """Take a permit of a gate, or keep the one that the run has, until its lease ends or `until`
    at most."""

    def decide(gate: AdmissionRow) -> Verdict:
        now, fraction = ports.clock.now(), ports.entropy.fraction()
        kept_until = until or claim.run.lease_until or now
        return limits.enter(gate, places, claim, message, kept_until, now, fraction)

    return check_admission(ports, name, message, decide)


def share_of_lane_slow(ports: ExecutorPorts) -> Places:
    return Places(ports.slow_lane_share, "its owner's share of lane slow", is_share=True)


class Admission:
    """A job costs no read and no write here unless a policy of it needs a memory."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._ports = ports

    def admit(self, claim: Claim, context: RunContext) -> Proceed | Held:
        """The verdict on a claimed run; with Go it holds what it needs, see `leave`.

        In order: its grace, its lane and its owner's share of lane slow, its job's own gate, the
        concurrency key, the job's rate, the owner's. What one gate has granted stays granted while
        a later one holds the run back, but for places in lane slow, places that would be kept for
        long, and slots of rates that grow old. Raises StoreUnavailableError.
        """
        message, job = context.message, context.job
        late = misfire(job, claim.run, message, self._ports.clock.now())
        if late is not None:
            return late
        held = self._by_lane(claim, message, job)
        if held is not None:
            return held
        outcome = self._by_policies(claim, message, job)
        if not isinstance(outcome, Proceed):
            self._leave_lane(claim.run, job)
        return outcome

    def leave(self, run: Run | None, job: Job) -> None:
        """Release the run's permits, of its concurrency key and of lane slow; where that fails, its
        lease ends them."""
        if run is None:
            return
        wanted = limits.needed_permit(job, run)
        if wanted is not None:
            self._leave(key_admission(wanted.key), run, job)
        self._leave_lane(run, job)

    def give_up(self, over: Run | None, context: RunContext | None) -> None:
        """Release what a run that is skipped, or was cancelled, has waited with: its place or turn,
        and far starts, behind which others would wait. Where that fails, nobody uses them."""
        if over is None or context is None:
            return
        message, job = context.message, context.job
        far, held = self._ports.clock.now() + RECHECK, message.rate_slot
        with suppress(StoreUnavailableError):
            for name in self._places_of(over, job):
                change_admission(
                    self._ports.admission_rows,
                    job.owner,
                    name,
                    lambda gate: limits.given_up(gate, over),
                )
            if held is not None and held.at > far:
                self._forget(rate_admission(held.rate.key, job.job_id), held, job)
            if message.owner_slot is not None and message.owner_slot.at > far:
                self._forget(OWNER_ROW, message.owner_slot, job)

    def _places_of(self, run: Run, job: Job) -> Iterator[str]:
        """The gates at which a run may wait for a place."""
        place = limits.needed_permit(job, run)
        if place is not None:
            yield key_admission(place.key)
        if job.lane is Lane.SLOW:
            yield SLOW_LANE_ROW
        if self._ports.quotas.of(job.owner)[Quota.RUNS]:
            yield PERMITS_ROW

    def _leave_lane(self, run: Run, job: Job) -> None:
        if job.lane is Lane.SLOW:
            self._leave(SLOW_LANE_ROW, run, job)

    def _leave(self, name: str, run: Run, job: Job) -> None:
        with suppress(StoreUnavailableError):
            change_admission(
                self._ports.admission_rows, job.owner, name, lambda gate: limits.leave(gate, run)
            )

    def _by_lane(self, claim: Claim, message: Message, job: Job) -> Redirect | Wait | None:
        """The lane for a message of another one than its job's, or the next check of one whose
        owner's share of lane slow is taken; None for one that may proceed."""
        if message.lane is not job.lane:
            return slowness.redirected(message, job)
        if job.lane is not Lane.SLOW:
            return None
        share = share_of_lane_slow(self._ports)
        outcome = enter(self._ports, SLOW_LANE_ROW, share, claim, message)
        return outcome if isinstance(outcome, Wait) else None

    def _by_policies(self, claim: Claim, message: Message, job: Job) -> Proceed | Skip | Wait:
        if has_job_admission(job, claim.run):
            outcome = self._by_job(claim.run, message, job)
            if not isinstance(outcome, Proceed):
                return outcome
        return self._by_load(claim, message, job)

    def _by_job(self, run: Run, message: Message, job: Job) -> Proceed | Skip | Wait:
        def decide(gate: AdmissionRow) -> Verdict:
            others = self._others(gate, job, run)
            now, fraction = self._ports.clock.now(), self._ports.entropy.fraction()
            return check_job(job, run, message, gate, others, now, fraction)

        return check_admission(self._ports, job_admission(job.job_id), message, decide)

    def _others(self, gate: AdmissionRow, job: Job, run: Run) -> Others:
        """The rows of the other runs that the gate names, as far as the policies ask for them."""

        def row(run_id: str) -> Run | None:
            if run_id in ("", run.key.run_id):
                return None
            return self._ports.runs.get(RunKey.from_run_id(job.owner, run_id))

        too_soon = spaced(job, run, gate, self._ports.clock.now())
        started = None if too_soon is None else row(gate.started)
        if job.spec.overlap is Overlap.ALLOW or gate.active == run.key.run_id:
            return Others(started=started)
        return Others(row(gate.active), row(gate.waiting), started)

    def _by_load(self, claim: Claim, message: Message, job: Job) -> Proceed | Skip | Wait:
        """Take a place of the key, and in it the slots of the rates that count, one by one.

        A run without a permit takes no slot: it would be old before it is used. A run whose start
        is granted for soon keeps its place until then: or others would take it each time. One that
        is to start later comes back for a place before.
        """
        run, place = claim.run, limits.needed_permit(job, claim.run)
        message = rate.with_slots_left(message, claim.over)
        if place is not None:
            entered = self._enter(place, claim, message)
            if not isinstance(entered, Proceed):
                return entered
        message, slot, outcome = self._by_rates(claim, message, job)
        now, kept = self._ports.clock.now(), limits.KEPT_FOR_A_SLOT
        if isinstance(outcome, Proceed) and slot is None:
            return outcome
        if place is not None:
            if slot is not None and slot.at <= now + kept:
                self._enter(place, claim, message, slot.at + kept)
            else:
                self._leave(key_admission(place.key), run, job)
        if slot is None:
            return outcome
        is_far = place is not None and slot.at > now + kept
        return rate.wait_for(message, slot, slot.at - kept if is_far else slot.at, now)

    def _by_rates(
        self, claim: Claim, message: Message, job: Job
    ) -> tuple[Message, RateSlot | None, Proceed | Skip | Wait]:
        """The message with the slots that it holds, and the one that it has to wait for, if any."""
        run = claim.run
        own = rate.needed_slot(job, run)
        held = message.rate_slot
        if held is not None and (own is None or own.key != held.rate.key):
            self._forget(rate_admission(held.rate.key, job.job_id), held, job)
            message = replace(message, rate_slot=None)
        if own is not None:
            name = rate_admission(own.key, job.job_id)
            slot, outcome = self._by_rate(name, own, message.rate_slot, run, message, job)
            message = replace(message, rate_slot=slot)
            if slot is None or slot.at > self._ports.clock.now():
                return message, slot, outcome
        per_minute = self._ports.quotas.of(job.owner)[Quota.STARTS]
        if not per_minute:
            return message, None, Proceed()
        owners_rate = Rate(per_minute, 60)
        held = message.owner_slot
        slot, outcome = self._by_rate(OWNER_ROW, owners_rate, held, run, message, job)
        is_to_come = slot is not None and slot.at > self._ports.clock.now()
        return replace(message, owner_slot=slot), slot if is_to_come else None, outcome

    def _by_rate(
        self, name: str, limit: Rate, held: RateSlot | None, run: Run, message: Message, job: Job
    ) -> tuple[RateSlot | None, Proceed | Skip | Wait]:
        """The slot of one rate: the one that is held, or a new one, unless that comes too late."""
        if held is not None and rate.is_in_time(message, held, self._ports.clock.now()):
            return held, Proceed()
        slot: RateSlot | None = None

        def decide(gate: AdmissionRow) -> Verdict:
            nonlocal slot
            now = self._ports.clock.now()
            taken = rate.take_slot(gate, limit, held, run.claim_id, now)
            slot = taken.slot
            is_to_come = slot.at > now
            late = misfire_to_come(job, run, message, slot.at) if is_to_come else None
            return Verdict(Proceed(), taken.put) if late is None else Verdict(late)

        outcome = check_admission(self._ports, name, message, decide)
        return (slot if isinstance(outcome, Proceed) else None), outcome

    def _forget(self, name: str, held: RateSlot, job: Job) -> None:
        now = self._ports.clock.now()
        anew = self._ports.entropy.new_id(now)
        change_admission(
            self._ports.admission_rows,
            job.owner,
            name,
            lambda gate: forget(gate, held.line_id, anew, now),
        )

    def _enter(
        self, wanted: Concurrency, claim: Claim, message: Message, until: datetime | None = None
    ) -> Proceed | Skip | Wait:
        places = Places(wanted.limit, f"the concurrency key {wanted.key!r}")
        return enter(self._ports, key_admission(wanted.key), places, claim, message, until)
