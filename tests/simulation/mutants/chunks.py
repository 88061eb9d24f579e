"""Bugs planted into chunks: their claim, their finish, what follows, and the looks at them."""

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import carillon.domain.execution.start_decision as starting
import carillon.executor.chunks.protocol as protocol
import carillon.tick.chunking as chunking
from carillon.domain.chunks.chunk import Chunk, Disband, Ended, Outcome, finished
from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Group, Plan
from carillon.domain.decisions import Claim, Drop, Leave, Proceed, Start
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.run import Run, RunKey, RunStatus
from carillon.domain.wheel.entry import minute_start
from carillon.executor.batch import Report
from carillon.executor.chunks.looks import ChunkLooks
from carillon.executor.chunks.member_run import MemberRun
from carillon.executor.chunks.protocol import ChunkProtocol
from carillon.simulation.faults import Draws
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.tick.chunking import Gathered
from carillon.tick.segment_visit import Visit
from tests.simulation.mutants.kit import (
    LANES,
    Code,
    Mutant,
    Swap,
    asked,
    bodied,
    both,
    faulty,
    given,
    instead,
    lasting,
    moved,
    small,
)
from tests.simulation.worlds.scenario import Scenario
from tests.simulation.worlds.scenario_parts import OWNERS


def _finish_of_anybody(original: Code) -> Code:
    def finish(self: MemoryChunkStore, chunk: Chunk) -> bool:
        with self._lock:
            self.chunks[chunk.key] = chunk
        return True

    return finish


def _only_acknowledges(original: Code) -> Code:
    def step(
        self: ChunkProtocol, message: ChunkMessage, seen: Chunk | None, ends_at: datetime
    ) -> Report | None:
        if seen is not None and seen.is_final:
            return protocol._report(message, [])
        report: Report | None = original(self, message, seen, ends_at)
        return report

    return step


def _disbands_the_living(original: Code) -> Code:
    def decide(
        seen: Chunk | None, message: ChunkMessage, now: datetime, terms: ClaimTerms
    ) -> object:
        decision = original(seen, message, now, terms)
        if seen is not None and isinstance(decision, Leave):
            died = dict.fromkeys(seen.refs, Ended(Outcome.DIED))
            return Disband(finished(seen, died))
        return decision

    return decide


def _follows_only(*outcomes: Outcome | None) -> Any:
    """ChunkProtocol._follow of no more members than those that have ended so."""

    def make(original: Code) -> Code:
        def follow(self: ChunkProtocol, chunk: Chunk, message: ChunkMessage) -> Report:
            ends = {each: chunk.end_of(each) for each in message.members}
            kept = [each for each, end in ends.items() if (end and end.outcome) in outcomes]
            if not kept:
                return protocol._report(message, [])
            report: Report = original(self, chunk, replace(message, members=tuple(kept)))
            return report

        return follow

    return make


def _adopts(original: Code) -> Code:
    def by_generation(job: Any, message: Any, now: Any, closed: Any) -> Start:
        start: Start = original(job, message, now, closed)
        is_settled = isinstance(start, Drop) and start.reason.startswith("the entries of the job")
        return Proceed() if is_settled else start

    return by_generation


def _own_plan(original: Code) -> Code:
    def standing(self: Gathered, wanted: Mapping[Group, int]) -> Plan:
        original(self, wanted)
        return Plan(self._segment, self._minute, self._salt, minute_start(self._minute), wanted)

    return standing


def _marks_at_once(original: Code) -> Code:
    def keep_lease(self: Visit, cursor: Any) -> None:
        self._outbox.mark((self._control, cursor))
        original(self, cursor)

    return keep_lease


def _reads_first(original: Code) -> Code:
    """ChunkProtocol.handle, with the jobs as they are when the message is received."""

    def handle(self: ChunkProtocol, message: ChunkMessage, ends_at: datetime) -> Report:
        members = [(each.owner, each.job_id) for each in message.members]
        jobs = self._ports.jobs.get_all(members)
        early = copy(self)
        known = SimpleNamespace(get_all=lambda keys: jobs)
        early._ports = replace(self._ports, jobs=known)
        report: Report = original(early, message, ends_at)
        return report

    return handle


def _row_counts_as_success(original: Code) -> Code:
    def settle(self: MemberRun, end: Ended) -> None:
        if self._row is not None and end.outcome is Outcome.ALONE:
            now = self._ports.clock.now()
            end = Ended(Outcome.OK, self._under_way.chunk.claimed_at, now)
        original(self, end)

    return settle


def _may_enter(self: MemberRun, run: Run) -> bool:
    """MemberRun._is_held, by the permits alone."""
    return self._runs.permits.enter(Claim(run, None), self._context.message) is not None


def _does_not_look(original: Code) -> Code:
    return lambda self, start, job, message, over, now: start


def before_the_minute(scenario: Scenario) -> Scenario:
    """Each request comes within two seconds before a whole minute, as executors wait for it."""
    return moved(scenario, 58_000_000, 2_000_000)


def for_chunks(scenario: Scenario) -> Scenario:
    """Jobs that go in chunks every minute, in a deployment that sends them; nothing is asked but to
    create them, or the first chunk would never come."""
    jobs = tuple(replace(job, seconds=1.5, failures=0.0) for job in scenario.jobs)
    options = replace(scenario.options, chunks=True, records=True, owner_starts_per_minute=0)
    creations = tuple(each for each in scenario.requests if each.what == "create")
    calm = replace(scenario, jobs=jobs, options=options, requests=creations)
    calm = replace(calm, ticks_down=(), executors_down=())
    return bodied(_plain)(replace(calm, minutes=max(calm.minutes, 20)))


def short_lived(scenario: Scenario) -> Scenario:
    """A message comes again within a minute. Later, whoever handles it looks at its chunk."""
    return replace(scenario, options=replace(scenario.options, function_timeout_seconds=8))


def with_permits(scenario: Scenario) -> Scenario:
    """Each call is preceded by a read, in which a process may stand still."""
    return replace(scenario, options=replace(scenario.options, owner_concurrent_runs=5))


def _of_one_owner(scenario: Scenario) -> Scenario:
    """All jobs are of one owner, who may have one run that lasts."""
    jobs = tuple(replace(job, owner=OWNERS[0]) for job in scenario.jobs)
    options = replace(scenario.options, owner_concurrent_runs=1, slow_after_seconds=900)
    return replace(scenario, jobs=jobs, options=options)


def _plain(body: dict[str, Any], draws: Draws) -> dict[str, Any]:
    """The body of a plain job that is due every minute."""
    kept: dict[str, Any] = {name: body[name] for name in ("name", "tags") if name in body}
    return {
        **kept,
        "schedule": "* * * * *",
        "target": {"type": "task", "name": "echo"},
        "catch_up": "all",
        "overlap": "allow",
        "retry": {**body["retry"], "max_attempts": 3},
    }


def _over_the_cancelled(original: Code) -> Code:
    def decide(seen: Run | None, died: Run, now: datetime) -> Claim | Leave | Drop:
        if seen is not None and seen.status is RunStatus.CANCELLED:
            return Claim(replace(died, token=seen.token + 1), seen)
        decision: Claim | Leave | Drop = original(seen, died, now)
        return decision

    return decide


LOST = ("I1", "I2", "late")
TWICE = ("I2", "I1", "attempts", "I4", "overlap")

CHUNKS: tuple[Mutant, ...] = (
    Mutant(
        "chunk_finished_by_anybody",
        TWICE,
        "the finish of a chunk does not ask whether its claim still holds",
        (Swap(MemoryChunkStore, "finish", _finish_of_anybody),),
        reshape=both(for_chunks, short_lived, faulty(paused=0.05, duplicated=0.2)),
    ),
    Mutant(
        "final_chunk_acknowledged",
        LOST,
        "who meets a finished chunk acknowledges its message, and sends nothing alone",
        (Swap(ChunkProtocol, "_step", _only_acknowledges),),
    ),
    Mutant(
        "chunk_disbanded_alive",
        TWICE,
        "a second message disbands a chunk whose holder is at it",
        (Swap(protocol, "decide_chunk", _disbands_the_living),),
    ),
    Mutant(
        "unlisted_member_dropped",
        LOST,
        "what a finished chunk does not list is not sent alone",
        (Swap(ChunkProtocol, "_follow", _follows_only(*Outcome)),),
        world=(Swap(chunking, "MOST_MEMBERS", instead(1)),),
    ),
    Mutant(
        "died_member_not_sent",
        LOST,
        "the occurrences of a disbanded chunk are not sent alone",
        (Swap(ChunkProtocol, "_follow", _follows_only(None, Outcome.OK, Outcome.ALONE)),),
    ),
    Mutant(
        "death_not_counted",
        ("I2",),
        "the attempts of a disbanded chunk get no rows",
        (Swap(ChunkProtocol, "_uncounted", instead(lambda self, died: set[RunKey]())),),
        reshape=both(for_chunks, short_lived, faulty(dies=0.1)),
    ),
    Mutant(
        "cancelled_without_a_fence",
        TWICE,
        "a run is cancelled in its chunk, and whoever holds that may record its success",
        (Swap(MemoryChunkStore, "fence", instead(lambda self, chunk, claim_id: True)),),
        reshape=both(for_chunks, short_lived, asked("stop", 4), faulty(paused=0.05)),
    ),
    Mutant(
        "death_over_a_cancelled_run",
        ("I1",),
        "the attempt of a disbanded chunk is put over the row of a run that was cancelled",
        (Swap(protocol, "decide_death", _over_the_cancelled),),
        reshape=both(for_chunks, short_lived, asked("stop", 4), faulty(dies=0.1)),
    ),
    Mutant(
        "no_look_at_chunks",
        TWICE,
        "a changed job's run does not look at chunks of the generation before",
        (Swap(ChunkLooks, "before", _does_not_look),),
        reshape=both(
            for_chunks,
            asked("change", 1, *LANES),
            before_the_minute,
            given(most_latency_us=900_000),
            faulty(slow=0.1),
        ),
    ),
    Mutant(
        "settled_instant_adopted",
        TWICE,
        "another generation's message is adopted though the own occurrence goes in a chunk",
        (Swap(starting, "_by_generation", _adopts),),
        reshape=both(for_chunks, asked("change", 1, *LANES), faulty(dies=0.1, throttled=0.1)),
        # Looks find its success, too. Each of the two holds alone.
        world=(Swap(ChunkLooks, "before", _does_not_look),),
    ),
    Mutant(
        "plan_not_obeyed",
        TWICE,
        "a tick that finds a plan sends by its own",
        (
            Swap(Gathered, "_standing", _own_plan),
            Swap(Gathered, "_known_plan", instead(lambda self: None)),
        ),
    ),
    Mutant(
        "cursor_passes_gathered",
        LOST,
        "the cursor passes occurrences that are gathered, and not sent yet",
        (Swap(Visit, "_keep_lease", _marks_at_once),),
    ),
    Mutant(
        "slow_call_is_a_success",
        ("I1", "I2", "I4", "attempts", "result"),
        "a run of a chunk that has a row of its own is finished as a success at once",
        (Swap(MemberRun, "_settle", _row_counts_as_success),),
    ),
    Mutant(
        "claim_left_beside_a_success",
        ("I1", "I4"),
        "a row whose put had no answer stays beside the success of its run in a chunk",
        (Swap(ChunkProtocol, "_beside", instead(lambda self, key: None)),),
        reshape=both(for_chunks, lasting(4), faulty(lost=0.2)),
    ),
    Mutant(
        "called_after_a_stall",
        TWICE,
        "a process that stood still calls what its chunk had before, whoever has the chunk now",
        (Swap(MemberRun, "_is_held", instead(_may_enter)),),
        reshape=both(for_chunks, short_lived, with_permits, faulty(paused=0.05)),
    ),
    Mutant(
        "permit_of_the_whole_chunk",
        ("permits",),
        "the end of one run of a chunk gives back the permits of all",
        (Swap(MemberRun, "_holder", instead(lambda self, run: run)),),
        reshape=both(small(22, jobs=4), for_chunks, lasting(30), _of_one_owner, asked("run", 6)),
    ),
)

RACED: tuple[Mutant, ...] = (
    Mutant(
        "jobs_read_before_the_claim",
        ("pause", "delete", "change", "I2", "I1"),
        "the jobs of a chunk are read when its message is received",
        (Swap(ChunkProtocol, "handle", _reads_first),),
        reshape=both(for_chunks, asked("pause", 1), before_the_minute),
    ),
)
"""Seeds hardly ever meet these: races find them (races/chunks.py)."""
