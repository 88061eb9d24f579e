"""The gates that a claimed run passes before its target is called: read, decide, put, repeat."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from functions.executor.ports import ExecutorPorts
from shared.domain import concurrency, rate, slowness
from shared.domain.decisions import Claim, Go, SendInstead, Skip, Wait
from shared.domain.gate import (
    OWNER_GATE,
    SLOW_LANE_GATE,
    Gate,
    first_gate,
    job_gate,
    key_gate,
    rate_gate,
)
from shared.domain.job import Job, Lane
from shared.domain.message import Message
from shared.domain.misfire import misfire
from shared.domain.overlap import Others, has_job_gate, pass_job_gate
from shared.domain.passage import Passage
from shared.domain.policies import Concurrency, Overlap, Rate
from shared.domain.run import Run, RunKey
from shared.domain.waiting import poll
from shared.errors import StoreUnavailableError
from shared.stores.ports import GateStore

_ROUNDS = 12
"""How often others may change a gate under one run before that comes again later."""


Held = Skip | Wait | SendInstead
"""What keeps a claimed run from starting now."""


def change_gate(
    gates: GateStore, owner: str, name: str, change: Callable[[Gate], Gate | None]
) -> bool:
    """Put what `change` makes of the gate as it is; nothing where that is None or the same.

    `change` is asked again where another was quicker; it says by `lasting` how long the gate is to
    live. False if others changed the gate at every step. Raises StoreUnavailableError.
    """
    for _ in range(_ROUNDS):
        stored = gates.get(owner, name)
        gate = stored or first_gate(owner, name)
        changed = change(gate)
        if changed is None or changed == gate:
            return True
        if gates.put(changed.next_revision(), None if stored is None else stored.revision):
            return True
    return False


class Gates:
    """A job costs no read and no write here unless a policy of it needs a memory."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports
        per_minute = ports.owner_starts_per_minute
        self._owners_rate = Rate(per_minute, 60) if per_minute else None

    def admit(self, claim: Claim, message: Message, job: Job) -> Go | Held:
        """Whether a claimed run may start now; with Go it holds what it needs, see `leave`.

        In order: its grace, its lane and its owner's share of lane slow, its job's own gate, the
        job's rate, the owner's, the concurrency key. What one gate has granted stays granted while
        a later one holds the run back, but for places in lane slow and for slots of rates that grow
        old. Raises StoreUnavailableError.
        """
        late = misfire(job, claim.run, message, self._p.clock.now())
        if late is not None:
            return late
        held = self._by_lane(claim.run, message, job)
        if held is not None:
            return held
        outcome = self._by_policies(claim, message, job)
        if not isinstance(outcome, Go):
            self._leave_lane(claim.run, job)
        return outcome

    def leave(self, run: Run, job: Job) -> None:
        """Give back the run's places, of its concurrency key and of lane slow; where that fails,
        its lease ends them."""
        wanted = concurrency.needed_place(job, run)
        if wanted is not None:
            self._leave(key_gate(wanted.key), run, job)
        self._leave_lane(run, job)

    def _leave_lane(self, run: Run, job: Job) -> None:
        if job.lane is Lane.SLOW:
            self._leave(SLOW_LANE_GATE, run, job)

    def _leave(self, name: str, run: Run, job: Job) -> None:
        with suppress(StoreUnavailableError):
            change_gate(self._p.gates, job.owner, name, lambda gate: concurrency.leave(gate, run))

    def _by_lane(self, run: Run, message: Message, job: Job) -> SendInstead | Wait | None:
        """Where to send a message of another lane than its job's, or when to look again at one
        whose owner's share of lane slow is taken; None for one that may go on."""
        if message.lane is not job.lane:
            return slowness.redirected(message, job)
        if job.lane is not Lane.SLOW:
            return None
        entered: Gate | None = None

        def change(gate: Gate) -> Gate | None:
            nonlocal entered
            entered = slowness.enter(gate, self._p.slow_lane_share, run, self._p.clock.now())
            return entered

        if change_gate(self._p.gates, job.owner, SLOW_LANE_GATE, change) and entered is not None:
            return None
        return slowness.wait_for_share(message, self._p.clock.now(), self._p.entropy.fraction())

    def _by_policies(self, claim: Claim, message: Message, job: Job) -> Go | Skip | Wait:
        if has_job_gate(job, claim.run):
            outcome = self._by_job(claim.run, message, job)
            if not isinstance(outcome, Go):
                return outcome
        return self._by_load(claim, message, job)

    def _by_job(self, run: Run, message: Message, job: Job) -> Go | Skip | Wait:
        def decide(gate: Gate) -> Passage:
            others = self._others(gate, job, run)
            now, fraction = self._p.clock.now(), self._p.entropy.fraction()
            return pass_job_gate(job, run, message, gate, others, now, fraction)

        return self._pass(job_gate(job.job_id), message, decide)

    def _others(self, gate: Gate, job: Job, run: Run) -> Others:
        """The rows of the other runs that the gate names, as far as the overlap asks for them."""
        if job.overlap is Overlap.ALLOW or gate.active == run.key.run_id:
            return Others()

        def row(run_id: str) -> Run | None:
            if run_id in ("", run.key.run_id):
                return None
            return self._p.runs.get(RunKey.from_run_id(job.owner, run_id))

        return Others(row(gate.active), row(gate.waiting))

    def _by_load(self, claim: Claim, message: Message, job: Job) -> Go | Skip | Wait:
        """Take the slots of the rates that count, one after the other, then a place of the key.

        No slot is taken while the key has no place: it would be old before it is used.
        """
        run = claim.run
        message = rate.with_slots_left(message, claim.over)
        own = None if message.has_rate_slot else rate.needed_slot(job, run)
        owners = None if message.has_owner_slot else self._owners_rate
        place = concurrency.needed_place(job, run)
        slot_at = message.starts_at
        if own is not None or owners is not None:
            wait = None if place is None else self._look_for_place(place, message)
            if wait is not None:
                return rate.with_fresh_slots(wait, slot_at)
            slot_at = self._p.clock.now()
        if own is not None:
            slotted = replace(message, has_rate_slot=True)
            outcome = self._by_rate(rate_gate(own.key, job.job_id), own, run, message, slotted)
            if not isinstance(outcome, Go):
                return outcome
            message = slotted
        if owners is not None:
            slotted = replace(message, has_owner_slot=True)
            outcome = self._by_rate(OWNER_GATE, owners, run, message, slotted)
            if not isinstance(outcome, Go):
                return outcome
            message = slotted
        if place is None:
            return Go()
        outcome = self._by_key(place, run, message)
        return rate.with_fresh_slots(outcome, slot_at) if isinstance(outcome, Wait) else outcome

    def _by_rate(
        self, name: str, limit: Rate, run: Run, message: Message, slotted: Message
    ) -> Go | Skip | Wait:
        """Take a slot of one rate; `slotted` is the message that has it."""

        def decide(gate: Gate) -> Passage:
            return rate.take_slot(gate, limit, slotted, run.claim_id, self._p.clock.now())

        return self._pass(name, message, decide)

    def _look_for_place(self, wanted: Concurrency, message: Message) -> Wait | None:
        gate = self._p.gates.get(message.key.owner, key_gate(wanted.key))
        if gate is None:
            return None
        now, fraction = self._p.clock.now(), self._p.entropy.fraction()
        return concurrency.wait_for_place(gate, wanted, message, now, fraction)

    def _by_key(self, wanted: Concurrency, run: Run, message: Message) -> Go | Skip | Wait:
        def decide(gate: Gate) -> Passage:
            now, fraction = self._p.clock.now(), self._p.entropy.fraction()
            return concurrency.enter(gate, wanted, run, message, now, fraction)

        return self._pass(key_gate(wanted.key), message, decide)

    def _pass(
        self, name: str, message: Message, decide: Callable[[Gate], Passage]
    ) -> Go | Skip | Wait:
        """Decide by the gate as it is, and put it as decided; again where another was quicker."""
        outcome: Go | Skip | Wait = Go()

        def change(gate: Gate) -> Gate | None:
            nonlocal outcome
            passage = decide(gate)
            outcome = passage.outcome
            return passage.put

        if change_gate(self._p.gates, message.key.owner, name, change):
            return outcome
        fraction = self._p.entropy.fraction()
        return poll(message, self._p.clock.now(), f"many pass the gate {name} at once", fraction)
