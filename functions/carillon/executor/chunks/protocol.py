"""The protocol of chunks: claim, read the jobs, call, one fenced finish
(docs/architecture.md#chunks).

Returning acknowledges the message; raising leaves it to the queue.
"""

from datetime import datetime

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
    never_begun,
)
from carillon.domain.chunks.message import ChunkMessage, Member
from carillon.domain.decisions import Claim, Defer, Drop, Leave
from carillon.domain.execution import store_waits
from carillon.domain.execution.lateness import LATE
from carillon.domain.job import Job, JobState
from carillon.domain.message import Message
from carillon.domain.quotas import Quota
from carillon.domain.run import Run, RunKey, RunStatus
from carillon.errors import HeldError, StoreUnavailableError, UnreadableRowError
from carillon.executor.batch import Handled, PartlyHandledError, Report, defer_early
from carillon.executor.chunks.member_run import (
    BETWEEN_TRIES_SECONDS,
    TRIES,
    MemberRun,
    has_time,
    send_alone,
)
from carillon.executor.chunks.under_way import UnderWay, successes_of
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.context import RunContext
from carillon.executor.runs.protocol import LEASE_MARGIN, RunProtocol
from carillon.services.calendar_reader import CalendarReader

_ROUNDS = 8
"""One reception may find its chunk changed this often before it is left to the queue."""


class ChunkProtocol:
    """Handles one message at a time; several threads may share it."""

    def __init__(self, ports: ExecutorPorts, runs: RunProtocol) -> None:
        self._ports = ports
        self._runs = runs

    def handle(self, message: ChunkMessage, ends_at: datetime) -> Report:
        """Handle a message of a lane; the process may be stopped at `ends_at`.

        0. early: defer, or wait; 1. claim the chunk; 2. read the jobs, and send alone what is not
        to go in it; 3. call all others side by side; 4. finish the chunk, once each has ended or
        has a row of its own. A step whose write is refused starts again with the chunk as it is
        now. Raises StoreUnavailableError, QueueUnavailableError, PartlyHandledError by what stops
        one of its occurrences, and HeldError while another executor holds the chunk: all leave it
        with the queue.
        """
        deferred = defer_early(self._ports, message)
        if deferred is not None:
            return deferred
        return self._stepped(message, None, ends_at)

    def handle_dead(self, message: ChunkMessage, ends_at: datetime) -> Report:
        """Handle a message of a dead-letter queue: a chunk that nobody has claimed goes in parts,
        each alone. Nothing is called. Raises HeldError where another executor is at it."""
        now = self._ports.clock.now()
        terms = self._ports.claim_terms(now, ends_at)
        self._ports.chunks.claim(never_begun(message, now, terms))
        return self._stepped(message, self._ports.chunks.get(message.key), ends_at)

    def wait(self, message: ChunkMessage, error: StoreUnavailableError) -> Report:
        """Send a copy of a message that the store has failed, to be acknowledged then. A chunk is
        given up a day after it could not be read for the first time: each of its occurrences goes
        alone, waits for the chunk, too, and is a dead letter after another day."""
        now, is_unreadable = self._ports.clock.now(), isinstance(error, UnreadableRowError)
        if is_unreadable and store_waits.is_given_up(message, now):
            return _report(
                message, send_alone(self._ports, list(map(message.alone, message.members)))
            )
        again = store_waits.held_up(message, now, is_unreadable=is_unreadable)
        self._ports.queue.send([again], [int(store_waits.wait_of(message).total_seconds())])
        first = message.alone(message.members[0])
        reason = "a row cannot be read" if is_unreadable else "the store failed"
        return Report(Handled.DEFERRED, first, reason=reason)

    def _stepped(self, message: ChunkMessage, seen: Chunk | None, ends_at: datetime) -> Report:
        """Act on the chunk as it was read, or else as it is once that was refused."""
        for _ in range(_ROUNDS):
            report = self._step(message, seen, ends_at)
            if report is not None:
                return report
            seen = self._ports.chunks.get(message.key)
        raise HeldError(f"{message.key.name}: the chunk changed at every step")

    def _step(self, message: ChunkMessage, seen: Chunk | None, ends_at: datetime) -> Report | None:
        """Act on the chunk as it was read; None when that was refused."""
        now = self._ports.clock.now()
        terms = self._ports.claim_terms(now, ends_at + LEASE_MARGIN)
        match decide_chunk(seen, message, now, terms):
            case ClaimChunk(chunk):
                return self._run(chunk, message, ends_at) if self._claims(chunk) else None
            case Disband(chunk):
                return self._follow(chunk, message) if self._ports.chunks.finish(chunk) else None
            case Follow(chunk):
                return self._follow(chunk, message)
            case Leave(reason) | Defer(_, reason):
                raise HeldError(f"{message.key.name}: {reason}")

    def _claims(self, chunk: Chunk) -> bool:
        return self._ports.chunks.claim(chunk)

    def _run(self, chunk: Chunk, message: ChunkMessage, ends_at: datetime) -> Report:
        """Run the occurrences of a chunk that is claimed."""
        under_way = UnderWay(self._ports, chunk, message)
        try:
            contexts = self._contexts(message, ends_at)
            others = [each for each in message.members if each not in contexts]
            reports = send_alone(self._ports, [message.alone(each) for each in others])
        except Exception:  # nothing is called, and each goes alone when the message comes again
            for member in message.members:
                under_way.settle(member, Ended(Outcome.ALONE))
            raise
        for member in others:
            under_way.settle(member, Ended(Outcome.ALONE))
        runs = [
            MemberRun(self._ports, self._runs, under_way, member, context)
            for member, context in contexts.items()
        ]
        reports += [each for each in self._ports.side_by_side(runs) if each is not None]
        ran = {context.message.key: context for context in contexts.values()}
        for success in under_way.successes or ():
            context = ran[success.key]
            reports.append(Report(Handled.RAN, context.message, success, job=context.job))
        partly = [each for each in under_way.errors if isinstance(each, PartlyHandledError)]
        reports += [each.report for each in partly]
        for error in under_way.errors:
            cause = error.__cause__ if error in partly else error
            raise PartlyHandledError(_report(message, reports)) from cause
        if under_way.successes is None:
            reports += self._followed(message, ends_at, reports)
        return _report(message, reports)

    def _followed(
        self, message: ChunkMessage, ends_at: datetime, told: list[Report]
    ) -> tuple[Report, ...]:
        """Do what is left to do once the finish was refused. Raises PartlyHandledError with what is
        `told` of those that had rows by then: nobody else tells of it."""
        try:
            return self._stepped(message, self._ports.chunks.get(message.key), ends_at).members
        except Exception as error:
            raise PartlyHandledError(_report(message, told)) from error

    def _contexts(self, message: ChunkMessage, ends_at: datetime) -> dict[Member, RunContext]:
        """The occurrences that may run in the chunk, by their jobs as they are after its claim."""
        jobs = self._ports.jobs.get_all([(each.owner, each.job_id) for each in message.members])
        found: dict[Member, RunContext] = {}
        for member in message.members:
            single, job = message.alone(member), jobs.get(member.job_id)
            if job is not None and self._goes_in(job, single, ends_at):
                calendars = CalendarReader(self._ports.calendars)
                found[member] = RunContext(single, job, calendars, ends_at)
        return found

    def _goes_in(self, job: Job, single: Message, ends_at: datetime) -> bool:
        """True if an occurrence may run in its chunk, by its job's row as read after the claim.

        Any other goes alone, where everything is decided that a policy, a change, a pause or an
        outage may make of it.
        """
        ports, now = self._ports, self._ports.clock.now()
        return (
            job.state is JobState.ACTIVE
            and job.generation.generation_id == single.generation_id
            and job.lane is single.lane
            and now - single.due_at <= LATE
            and has_time(ports, job, ends_at)
            and not ports.quotas.of(job.owner)[Quota.STARTS]
            and not job.successors
            and job.is_plain
            and not self._runs.slow_lane.hangs(job)
        )

    def _follow(self, chunk: Chunk, message: ChunkMessage) -> Report:
        """See that each occurrence of the message that has not succeeded has its own message: the
        chunk has ended, and its holder may have died before that.

        Raises HeldError while the row of one that died is claimed for another generation, and
        while that of one that has succeeded is claimed at all.
        """
        beside = {each.key: self._beside(each.key) for each in successes_of(chunk, message)}
        done = {key for key, status in beside.items() if status is not RunStatus.CANCELLED}
        alone: list[Message] = []
        died: list[Run] = []
        for member in message.members:
            single, end = message.alone(member), chunk.end_of(member)
            if single.key in done:
                continue
            if end is not None and end.outcome is Outcome.DIED:
                died.append(dead_attempt(chunk, single, self._ports.clock.now()))
            alone.append(single)
        held = self._uncounted(died)
        reports = send_alone(self._ports, [each for each in alone if each.key not in held])
        held |= {key for key in done if beside[key] is RunStatus.RUNNING}
        if held:
            raise HeldError(f"{message.key.name}: others' claims stand in rows of its runs")
        reports += [
            Report(Handled.REPEATED, message.alone(member), reason="the run is succeeded")
            for member in message.members
            if message.alone(member).key in done
        ]
        return _report(message, reports)

    def _beside(self, key: RunKey) -> RunStatus | None:
        """The status of the row of a run that has succeeded in the chunk; None without. One that is
        RUNNING is removed once its lease has lapsed: nobody knew that it was put, or its message
        looks here. Where somebody has cancelled it, that is the run's end, yet to be told."""
        try:
            row = self._ports.runs.get(key)
        except UnreadableRowError:
            return None
        if row is None or row.status is not RunStatus.RUNNING:
            return None if row is None else row.status
        lapsed = row.lease_until is None or row.lease_until <= self._ports.clock.now()
        return None if lapsed and self._ports.runs.discard_claim(row) else row.status

    def _uncounted(self, died: list[Run]) -> set[RunKey]:
        """Put the rows of attempts that died; answers those in whose place others' claims stand."""
        for _ in range(TRIES):
            died = [each for each in died if not self._counts(each)]
            if not died:
                break
            self._ports.clock.sleep(BETWEEN_TRIES_SECONDS)
        return {each.key for each in died}

    def _counts(self, died: Run) -> bool:
        try:
            seen = self._ports.runs.get(died.key)
        except UnreadableRowError:
            return True  # its own message waits for the row; the others go on
        decision = decide_death(seen, died, self._ports.clock.now())
        if isinstance(decision, Claim):
            return self._ports.runs.claim(decision.run, decision.over)
        return isinstance(decision, Drop)


def _report(message: ChunkMessage, reports: list[Report]) -> Report:
    first = message.alone(message.members[0])
    return Report(Handled.CHUNK, first, members=tuple(reports))
