"""Bugs planted into running: claims, leases, finishes, follow-ups, policies."""

from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import carillon.domain.admission.overlap as overlap
import carillon.domain.execution.transitions as running
import carillon.executor.ports as ports
import carillon.stores.memory.runs as running_rows
from carillon.domain.admission.state import AdmissionRow, job_admission
from carillon.domain.decisions import Claim
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.policies import Overlap
from carillon.domain.run import Run, RunStatus
from carillon.executor.batch import Handled, Report
from carillon.executor.runs.admission import change_admission
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.follow_up import FollowUp
from carillon.executor.runs.protocol import RunProtocol
from carillon.stores.memory.runs import MemoryRunStore
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Swap,
    after_an_outage,
    asked,
    both,
    faulty,
    instead,
    lasting,
    scheduled,
    small,
)


def _always_claims(original: Code) -> Code:
    def claim(self: MemoryRunStore, run: Run, over: Run | None) -> bool:
        with self._lock:
            return self._put(run, self._rows.get(run.key), allowed=True)

    return claim


def always_finishes(original: Code) -> Code:
    def finish(self: MemoryRunStore, run: Run) -> bool:
        with self._lock:
            return self._put(run, self._rows.get(run.key), allowed=True)

    return finish


def _as_if_running(also_leased: bool) -> Any:
    """decide_claim that takes over what is not leased, whatever its status; or even what is."""

    def make(original: Code) -> Code:
        def decide_claim(
            seen: Run | None, message: Message, now: datetime, terms: ClaimTerms
        ) -> Any:
            leased = seen is not None and seen.lease_until is not None and now < seen.lease_until
            if seen is None or (leased and not also_leased):
                return original(seen, message, now, terms)
            if also_leased and not leased:
                return original(seen, message, now, terms)
            lapsed = replace(seen, status=RunStatus.RUNNING, lease_until=now)
            decision = original(lapsed, message, now, terms)
            return Claim(decision.run, seen) if isinstance(decision, Claim) else decision

        return decide_claim

    return make


def _reads_first(original: Code) -> Code:
    """RunProtocol.handle with the job's row read once, before the claim."""

    class Once:
        def __init__(self, jobs: Any, job: Job | None) -> None:
            self._jobs = jobs
            self._job = job

        def __getattr__(self, name: str) -> Any:
            return getattr(self._jobs, name)

        def get(self, owner: str, job_id: str) -> Job | None:
            return self._job

    def handle(self: RunProtocol, message: Message, ends_at: datetime, **how: bool) -> Report:
        early = message.starts_at - self._ports.clock.now()
        if early > running.EARLY:
            return original(self, message, ends_at, **how)  # type: ignore[no-any-return]
        if early > timedelta():
            self._ports.clock.sleep(early.total_seconds())
        job = self._ports.jobs.get(message.key.owner, message.key.job_id)
        hasty = copy(self)
        hasty._ports = replace(self._ports, jobs=Once(self._ports.jobs, job))
        return original(hasty, message, ends_at, **how)  # type: ignore[no-any-return]

    return handle


def _gives_up(original: Code) -> Code:
    """A worker whose finish was refused takes it for done, and acknowledges."""

    def start(
        self: RunProtocol, came: Message, context: RunContext, claim: Claim, ends_at: datetime
    ) -> Report:
        report: Report | None = original(self, came, context, claim, ends_at)
        refused = "its finish was refused"
        return report or Report(Handled.REPEATED, context.message, claim.run, refused)

    return start


def _releases(original: Code) -> Code:
    """RunProtocol.follow_up, which then writes that the job has no active run any more."""

    def follow_up(self: RunProtocol, run: Run, context: RunContext) -> Report:
        report: Report = original(self, run, context)
        job = context.job
        if run.is_final and job.spec.overlap is not Overlap.ALLOW:

            def released(gate: AdmissionRow) -> AdmissionRow | None:
                return replace(gate, active="") if gate.active == run.key.run_id else None

            change_admission(
                self._ports.admission_rows, job.owner, job_admission(job.job_id), released
            )
        return report

    return follow_up


def _expires_by_fire_time(original: Code) -> Code:
    def as_stored(run: Run) -> Run:
        kept: Run = original(run)
        return replace(kept, expires_at=kept.key.fire_at + (kept.expires_at - kept.updated_at))

    return as_stored


def _short_lease(original: Code) -> Code:
    def terms(claim_id: str, lease_until: datetime, expires_at: datetime) -> ClaimTerms:
        short = lease_until - timedelta(seconds=19)
        return ClaimTerms(claim_id, short, expires_at)

    return terms


RUNS = (
    Mutant(
        "claim_unconditional",
        ("I2",),
        "a claim is written over whatever stands there",
        (Swap(MemoryRunStore, "claim", _always_claims),),
    ),
    Mutant(
        "claim_without_status",
        ("I2",),
        "a run without a live lease is claimed, whatever its status",
        (Swap(running, "decide_claim", _as_if_running(also_leased=False)),),
    ),
    Mutant(
        "claim_of_live_lease",
        ("I2",),
        "a running run is claimed though its lease lives",
        (Swap(running, "decide_claim", _as_if_running(also_leased=True)),),
    ),
    Mutant(
        "row_read_before_claim",
        ("pause", "delete"),
        "the job's row is read before the claim",
        (Swap(RunProtocol, "handle", _reads_first),),
        reshape=both(
            small(6),
            scheduled("every 10s", overlap="allow"),
            asked("pause", 5),
            asked("resume", 4),
            faulty(slow=0.3, paused=0.01),
        ),
    ),
    Mutant(
        "finish_without_token",
        ("I4",),
        "a finish is written over whatever stands there",
        (Swap(MemoryRunStore, "finish", always_finishes),),
    ),
    Mutant(
        "refused_finish_acknowledged",
        ("I1",),
        "a worker whose finish was refused acknowledges",
        (Swap(RunProtocol, "_start", _gives_up),),
        # Of a run that was stopped, by a request that died before it ordered what follows.
        reshape=both(
            small(6),
            scheduled("every 5s after finish", overlap="allow", timeout_seconds=15),
            lasting(5),
            asked("stop", 15),
            faulty(dies=0.1),
        ),
    ),
    Mutant(
        "follow_up_not_repeated",
        ("I1",),
        "who meets a run that is retrying or final acknowledges only",
        (Swap(FollowUp, "again", instead(lambda self, run, context: False)),),
    ),
    Mutant(
        "overlap_lock_by_write",
        ("skip", "overlap"),
        "the overlap's lock is released by a write, the active run's row is not asked",
        (
            Swap(overlap, "_is_under_way", instead(lambda run: run is not None)),
            Swap(RunProtocol, "follow_up", _releases),
        ),
    ),
    Mutant(
        "row_expires_by_fire_time",
        ("I2",),
        "a run's row lives by its fire time, not by its last write",
        (Swap(running_rows, "_as_stored", _expires_by_fire_time),),
        reshape=both(
            small(205, 1),
            scheduled("every 5m", catch_up="all", overlap="allow"),
            faulty(duplicated=0.5),
            after_an_outage,
        ),
    ),
    Mutant(
        "lease_shorter_than_run",
        ("I2",),
        "a run's lease ends while its process works, and is not renewed",
        (Swap(ports, "ClaimTerms", _short_lease),),
        reshape=both(small(10), faulty(duplicated=0.5)),
    ),
)
