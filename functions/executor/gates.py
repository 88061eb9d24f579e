"""The gates that a claimed run passes before its target is called: read, decide, put, repeat."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from functions.executor.ports import ExecutorPorts
from shared.domain import concurrency, rate
from shared.domain.decisions import Claim, Go, Skip, Wait
from shared.domain.gate import OWNER_GATE, Gate, first_gate, job_gate, key_gate, rate_gate
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.misfire import misfire
from shared.domain.overlap import Others, has_job_gate, pass_job_gate
from shared.domain.passage import Passage
from shared.domain.policies import Overlap, Rate
from shared.domain.run import Run, RunKey, RunKind
from shared.domain.waiting import poll
from shared.errors import StoreUnavailableError

_ROUNDS = 12
"""How often others may change a gate under one run before that comes again later."""


class Gates:
    """A job costs no read and no write here unless a policy of it needs a memory."""

    def __init__(self, ports: ExecutorPorts) -> None:
        self._p = ports

    def admit(self, claim: Claim, message: Message, job: Job) -> Go | Skip | Wait:
        """Whether a claimed run may start now; with Go it holds what it needs, see `leave`.

        In order: its grace, its job's own gate, the rates, the concurrency key. What one gate has
        granted stays granted while a later one holds the run back. Raises StoreUnavailableError.
        """
        late = misfire(job, claim.run, self._p.clock.now())
        if late is not None:
            return late
        outcome = self._by_job(claim.run, message, job)
        if not isinstance(outcome, Go):
            return outcome
        slot = self._by_rates(claim, message, job)
        if isinstance(slot, Wait):
            return slot
        return self._by_key(claim.run, replace(message, has_rate_slot=slot), job)

    def leave(self, run: Run, job: Job) -> None:
        """Give back the run's place of its concurrency key; if that fails, its lease ends it."""
        if not _holds_a_key(job, run) or job.concurrency is None:
            return
        name = key_gate(job.concurrency.key)
        with suppress(StoreUnavailableError):
            for _ in range(_ROUNDS):
                gate = self._p.gates.get(job.owner, name)
                left = None if gate is None else concurrency.leave(gate, run)
                if gate is None or left is None:
                    return
                if self._p.gates.put(left.next_revision(gate.expires_at), gate.revision):
                    return

    def _by_job(self, run: Run, message: Message, job: Job) -> Go | Skip | Wait:
        if not has_job_gate(job, run):
            return Go()

        def decide(gate: Gate) -> Passage:
            others = self._others(gate, job, run)
            return pass_job_gate(job, run, message, gate, others, self._p.clock.now())

        return self._pass(job_gate(job.job_id), job, message, decide)

    def _others(self, gate: Gate, job: Job, run: Run) -> Others:
        """The rows of the other runs that the gate names, as far as the overlap asks for them."""
        if job.overlap is Overlap.ALLOW or gate.active == run.key.run_id:
            return Others()

        def row(run_id: str) -> Run | None:
            if run_id in ("", run.key.run_id):
                return None
            return self._p.runs.get(RunKey.from_run_id(job.owner, run_id))

        queues = job.overlap is Overlap.QUEUE_ONE
        return Others(row(gate.active), row(gate.waiting) if queues else None)

    def _by_rates(self, claim: Claim, message: Message, job: Job) -> bool | Wait:
        """Whether the run has taken a slot of the rates that count for it, all of them; if its slot
        is yet to come it waits for that."""
        if rate.has_slot(message, claim.over):
            return True
        granted: bool | Wait = False
        slot_at = self._p.clock.now()
        for name, limit in self._rates(job, claim.run):

            def decide(gate: Gate, limit: Rate = limit, slot_at: datetime = slot_at) -> Passage:
                now = self._p.clock.now()
                claim_id = claim.run.claim_id
                return rate.take_slot(gate, limit, message, claim_id, now, max(now, slot_at))

            outcome = self._pass(name, job, message, decide)
            if isinstance(outcome, Wait):
                if not outcome.message.has_rate_slot:
                    return outcome
                slot_at = outcome.message.starts_at
            granted = outcome if isinstance(outcome, Wait) else True
        return granted

    def _rates(self, job: Job, run: Run) -> Iterator[tuple[str, Rate]]:
        """The gates and limits that count; the owner's first, so that the job's is kept exactly."""
        if self._p.owner_starts_per_minute:
            yield OWNER_GATE, Rate(self._p.owner_starts_per_minute, 60)
        if job.rate is not None and run.key.kind is not RunKind.CALLBACK:
            yield rate_gate(job.rate.key, job.job_id), job.rate

    def _by_key(self, run: Run, message: Message, job: Job) -> Go | Skip | Wait:
        wanted = job.concurrency
        if wanted is None or not _holds_a_key(job, run):
            return Go()

        def decide(gate: Gate) -> Passage:
            now, fraction = self._p.clock.now(), self._p.entropy.fraction()
            return concurrency.enter(gate, wanted, run, message, now, fraction)

        return self._pass(key_gate(wanted.key), job, message, decide)

    def _pass(
        self, name: str, job: Job, message: Message, decide: Callable[[Gate], Passage]
    ) -> Go | Skip | Wait:
        """Decide by the gate as it is, and put it as decided; again where another was quicker."""
        for _ in range(_ROUNDS):
            # A job may fire more seldom than rows of runs live.
            interval = timedelta(seconds=job.interval_seconds or 0)
            expires_at = self._p.clock.now() + self._p.run_lifetime + interval
            stored = self._p.gates.get(job.owner, name)
            gate = stored or first_gate(job.owner, name, expires_at)
            passage = decide(gate)
            if passage.put is None:
                return passage.outcome
            put = passage.put.next_revision(max(gate.expires_at, expires_at))
            if self._p.gates.put(put, None if stored is None else stored.revision):
                return passage.outcome
        fraction = self._p.entropy.fraction()
        return poll(message, self._p.clock.now(), f"many pass the gate {name} at once", fraction)


def _holds_a_key(job: Job, run: Run) -> bool:
    return job.concurrency is not None and run.key.kind is not RunKind.CALLBACK
