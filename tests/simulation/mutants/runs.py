"""Bugs planted into running: claims, leases, finishes, follow-ups, acknowledgements, policies."""

from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import functions.executor.protocol as protocol
import shared.domain.overlap as overlap
import shared.domain.returning as returning
import shared.domain.running as running
import shared.stores.memory.runs as running_rows
from functions.executor.follow_up import FollowUp
from functions.executor.gates import change_gate
from functions.executor.protocol import RunProtocol
from functions.executor.reports import Handled, Report
from infra.simulation.deployment import Deployment
from shared.domain.decisions import Claim
from shared.domain.gate import Gate, job_gate
from shared.domain.job import Job, Lane
from shared.domain.message import Message
from shared.domain.policies import Overlap
from shared.domain.run import Run, RunStatus
from shared.domain.running import Terms
from shared.errors import CarillonError
from shared.filing import Filer
from shared.simulation.loop import Loop
from shared.stores.memory.queue import MemoryQueue, Received
from shared.stores.memory.runs import MemoryRunStore
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Swap,
    after_an_outage,
    asked,
    both,
    faulty,
    given,
    instead,
    scheduled,
    small,
)


def _always_claims(original: Code) -> Code:
    def claim(self: MemoryRunStore, run: Run, over: Run | None) -> bool:
        with self._lock:
            return self._put(run, self._rows.get(run.key), allowed=True)

    return claim


def _always_finishes(original: Code) -> Code:
    def finish(self: MemoryRunStore, run: Run) -> bool:
        with self._lock:
            return self._put(run, self._rows.get(run.key), allowed=True)

    return finish


def _as_if_running(also_leased: bool) -> Any:
    """decide_claim that takes over what is not leased, whatever its status; or even what is."""

    def make(original: Code) -> Code:
        def decide_claim(seen: Run | None, message: Message, now: datetime, terms: Terms) -> Any:
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
        early = message.starts_at - self._p.clock.now()
        if early > running.EARLY:
            return original(self, message, ends_at, **how)  # type: ignore[no-any-return]
        if early > timedelta():
            self._p.clock.sleep(early.total_seconds())
        job = self._p.jobs.get(message.key.owner, message.key.job_id)
        hasty = copy(self)
        hasty._p = replace(self._p, jobs=Once(self._p.jobs, job))
        return original(hasty, message, ends_at, **how)  # type: ignore[no-any-return]

    return handle


def _gives_up(original: Code) -> Code:
    """A worker whose finish was refused takes it for done, and acknowledges."""

    def finish(self: RunProtocol, run: Run, message: Message, job: Job) -> Report:
        report: Report | None = original(self, run, message, job)
        return report or Report(Handled.REPEATED, message, run, "its finish was refused")

    return finish


def _acknowledges_first(original: Code) -> Code:
    def record(
        self: Deployment, queue: MemoryQueue, one: Received, ends_at: datetime, alone: bool
    ) -> None:
        queue.delete(one.receipt)
        original(self, queue, one, ends_at, alone)

    return record


def _acknowledges_failures(original: Code) -> Code:
    """A batch is acknowledged as a whole, whatever became of a record."""

    def record(self: Deployment, *args: Any) -> None:
        try:
            original(self, *args)
        except CarillonError:
            return

    return record


def _fails_as_a_whole(original: Code) -> Code:
    """No record of a batch is acknowledged where one has failed."""

    def together(self: Any, named: Any) -> Any:
        tasks = original(self, named)
        failure = next((task.failure for task in tasks if task.failure is not None), None)
        for task in tasks:
            task.failure = failure
        return tasks

    return together


class _PutBackError(CarillonError):
    """The message is to be visible again at `at`."""

    def __init__(self, at: datetime) -> None:
        super().__init__("put back")
        self.at = at


def _puts_back(original: Code) -> Code:
    def send_on(self: RunProtocol, message: Message, at: datetime, reason: str) -> Report:
        raise _PutBackError(at)

    return send_on


def _by_visibility(original: Code) -> Code:
    """ChangeMessageVisibility, which leaves the count of receptions as it is."""

    def record(
        self: Deployment, queue: MemoryQueue, one: Received, ends_at: datetime, alone: bool
    ) -> None:
        try:
            original(self, queue, one, ends_at, alone)
        except _PutBackError as error:
            kept = queue._kept.get(one.receipt)
            if kept is not None:
                at = max(error.at, self.clock.now())
                queue._kept[one.receipt] = replace(kept, visible_at=at)
                for heap in queue._heaps.values():
                    heap[:] = [each for each in heap if each[1] != one.receipt]
                    heap.sort()
                queue._heaps[one.lane].append((at, one.receipt))
                queue._heaps[one.lane].sort()
                queue._tell([(one.lane, at)])
            raise

    return record


def _not_drained(original: Code) -> Code:
    def poll(self: Deployment, lane: Lane | None, at_us: int) -> None:
        if lane is not None:
            original(self, lane, at_us)

    return poll


def _releases(original: Code) -> Code:
    """RunProtocol._finish, which then writes that the job has no active run any more."""

    def finish(self: RunProtocol, run: Run, message: Message, job: Job) -> Report | None:
        report: Report | None = original(self, run, message, job)
        if report is not None and run.is_final and job.overlap is not Overlap.ALLOW:

            def released(gate: Gate) -> Gate | None:
                return replace(gate, active="") if gate.active == run.key.run_id else None

            change_gate(self._p.gates, job.owner, job_gate(job.job_id), released)
        return report

    return finish


def _expires_by_fire_time(original: Code) -> Code:
    def as_stored(run: Run) -> Run:
        kept: Run = original(run)
        return replace(kept, expires_at=kept.key.fire_at + (kept.expires_at - kept.updated_at))

    return as_stored


def _does_not_wait(original: Code) -> Code:
    def handle(self: RunProtocol, message: Message, ends_at: datetime, **how: bool) -> Report:
        now = self._p.clock.now().replace(microsecond=0)
        if message.starts_at > now:
            message = replace(message, due_at=min(now, message.due_at), wait_until=None)
        return original(self, message, ends_at, **how)  # type: ignore[no-any-return]

    return handle


def _cut_at_900(original: Code) -> Code:
    """What the queue cannot delay so long is delayed as long as it can."""

    def file_messages(self: Filer, messages: Any) -> None:
        hasty = copy(self)
        hasty._longest_delay_seconds = 10**9
        original(hasty, messages)

    return file_messages


def _short_lease(original: Code) -> Code:
    def terms(claim_id: str, lease_until: datetime, expires_at: datetime) -> Terms:
        short = lease_until - timedelta(seconds=19)
        return Terms(claim_id, short, expires_at)

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
        (Swap(MemoryRunStore, "finish", _always_finishes),),
    ),
    Mutant(
        "refused_finish_acknowledged",
        ("I1",),
        "a worker whose finish was refused acknowledges",
        (Swap(RunProtocol, "_finish", _gives_up),),
        cannot_break=(
            "a lease outlives its process, so that nobody whose finish is refused lives to"
            " acknowledge; and who took the run over holds a message of his own, which stays"
            " with the queue until he, too, has answered"
        ),
    ),
    Mutant(
        "follow_up_not_repeated",
        ("I1",),
        "who meets a run that is retrying or final acknowledges only",
        (Swap(FollowUp, "again", instead(lambda self, run, message, job=None: False)),),
    ),
    Mutant(
        "acknowledged_first",
        ("I1",),
        "a message is acknowledged before its run's finish",
        (Swap(Deployment, "_record", _acknowledges_first),),
    ),
    Mutant(
        "held_by_visibility",
        ("I1",),
        "what must wait is put back by its visibility, not as a copy",
        (
            Swap(RunProtocol, "_send_on", _puts_back),
            Swap(Deployment, "_record", _by_visibility),
        ),
        cannot_break=(
            "what is received too often comes to the dead-letter queue, whose consumer ends the"
            " run or repeats what follows: it may be dead, though it only waited, but is never lost"
        ),
    ),
    Mutant(
        "dlq_not_drained",
        ("I1",),
        "nobody takes what the queue has given up",
        (Swap(Deployment, "_poll", _not_drained),),
        reshape=both(small(10), faulty(dies=0.05)),
    ),
    Mutant(
        "never_begun_settled_as_dead",
        ("attempts",),
        "what a lane has given up is dead, though an attempt is left to be made",
        (Swap(returning, "is_given_up", instead(lambda *terms: True)),),
        reshape=both(small(10), faulty(dies=0.05)),
    ),
    Mutant(
        "overlap_lock_by_write",
        ("skip", "overlap"),
        "the overlap's lock is released by a write, the active run's row is not asked",
        (
            Swap(overlap, "_is_under_way", instead(lambda run: run is not None)),
            Swap(RunProtocol, "_finish", _releases),
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
        "duplicates_wait_on",
        ("runaway",),
        "a message of an earlier wait goes on waiting beside that of the current one",
        (Swap(running, "_is_of_an_earlier_wait", instead(lambda message, seen: False)),),
        reshape=both(
            small(30),
            scheduled(
                "every 20s",
                overlap="allow",
                timeout_seconds=15,
                concurrency={"key": "k", "limit": 1},
            ),
            faulty(duplicated=0.5, target_hangs=0.9),
            given(ticks_down=(), executors_down=()),
        ),
    ),
    Mutant(
        "early_not_waited_for",
        ("I3",),
        "an early message is run at once",
        (Swap(RunProtocol, "handle", _does_not_wait),),
        reshape=both(small(5), scheduled("every 20s")),
    ),
    Mutant(
        "retry_cut_at_900_s",
        ("I3",),
        "a delay of more than 15 minutes is cut to what the queue can delay",
        (Swap(Filer, "file_messages", _cut_at_900),),
        cannot_break=(
            "the message comes too early, and step 0 of the run protocol sends on whatever is more"
            " than 2 s early, as often as it takes"
        ),
    ),
    Mutant(
        "failed_record_acknowledged",
        ("I1",),
        "a batch is acknowledged as a whole",
        (Swap(Deployment, "_record", _acknowledges_failures),),
    ),
    Mutant(
        "batch_retried_whole",
        ("I1",),
        "a batch of which one record has failed comes again as a whole",
        (Swap(Loop, "together", _fails_as_a_whole),),
        cannot_break=(
            "the other records come again to final or retrying rows, which absorb them; repeated"
            " ones are run alone, so that no neighbour drags them to the dead-letter queue"
        ),
    ),
    Mutant(
        "lease_shorter_than_run",
        ("I2",),
        "a run's lease ends while its process works, and is not renewed",
        (Swap(protocol, "Terms", _short_lease),),
        reshape=both(small(10), faulty(duplicated=0.5)),
    ),
)
