"""Bugs planted into single steps of chunks: plan, claim, finish, rows, reads, dead letters."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import carillon.domain.wheel.entry as wheel
import carillon.executor.chunks.protocol as protocol
from carillon.clock import id_created_at
from carillon.domain.chunks.chunk import Chunk, Disband, Ended, Outcome, finished
from carillon.domain.chunks.message import ChunkMessage
from carillon.domain.chunks.placing import Group, Plan
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.wheel.entry import minute_of, minute_start
from carillon.errors import StoreUnavailableError
from carillon.executor.batch import Report
from carillon.executor.chunks.member_run import MemberRun
from carillon.executor.chunks.protocol import ChunkProtocol
from carillon.executor.chunks.under_way import UnderWay, successes_of
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.tick.chunking import Gathered
from carillon.tick.segment_visit import Visit
from tests.simulation.mutants.chunks import (
    LOST,
    TWICE,
    before_the_minute,
    for_chunks,
    short_lived,
)
from tests.simulation.mutants.kit import (
    LANES,
    Code,
    Mutant,
    Swap,
    asked,
    behind,
    both,
    faulty,
    instead,
    small,
)
from tests.simulation.worlds.scenario import Scenario


def _put_later(original: Code) -> Code:
    """Gathered._standing, which notes the plan that is still to be put."""

    def standing(self: Any, wanted: Mapping[Group, int]) -> Plan:
        found: Plan | None = self._ports.chunks.get_plan(self._segment, self._minute)
        if found is None:
            expires_at = minute_start(self._minute) + timedelta(days=99)
            found = Plan(self._segment, self._minute, self._salt, expires_at, wanted)
            self.unput = found
        return found

    return standing


def _puts_plan(original: Code) -> Code:
    """Visit._done: all of the minute has been sent."""

    def done(self: Visit, control: Any) -> None:
        unput = vars(self._gathered).get("unput")
        if unput is not None:
            self._ports.chunks.put_plan(unput)
        original(self, control)

    return done


def _claim_of_anybody(original: Code) -> Code:
    def claim(self: MemoryChunkStore, chunk: Chunk) -> bool:
        with self._lock:
            self.chunks[chunk.key] = chunk
        return True

    return claim


def _ends_whatever_stands(original: Code) -> Code:
    def finish(self: UnderWay) -> None:
        final = finished(self.chunk, dict(self._ends))
        self._ports.chunks.finish(final)
        self.successes = successes_of(final, self.message)

    return finish


def _discards(original: Code) -> Code:
    def handle_dead(self: ChunkProtocol, message: ChunkMessage, ends_at: datetime) -> Report:
        if self._ports.chunks.get(message.key) is None:
            return protocol._report(message, [])
        report: Report = original(self, message, ends_at)
        return report

    return handle_dead


def _refused_is_an_end(original: Code) -> Code:
    def handled(self: MemberRun) -> Report | None:
        try:
            report: Report | None = original(self)
        except StoreUnavailableError as error:
            if not str(error).endswith("another's claim stands in its row"):
                raise
            self._settle(Ended(Outcome.ALONE))
            return None
        return report

    return handled


def _failing(scenario: Scenario) -> Scenario:
    """Each call fails as often as not: such a run needs a row."""
    jobs = tuple(replace(job, failures=0.5) for job in scenario.jobs)
    return replace(scenario, jobs=jobs)


def _at_once(generation_id: str) -> int:
    """chunked_from, without the time in which a generation settles."""
    return minute_of(id_created_at(generation_id)) + 1


def _runs_lapsed(original: Code) -> Code:
    def decide(
        seen: Chunk | None, message: ChunkMessage, now: datetime, terms: ClaimTerms
    ) -> object:
        decision = original(seen, message, now, terms)
        is_lapsed = isinstance(decision, Disband)
        return original(None, message, now, terms) if is_lapsed else decision

    return decide


def _claim_of_lapsed(original: Code) -> Code:
    def claim(self: MemoryChunkStore, chunk: Chunk) -> bool:
        with self._lock:
            seen = self.chunks.get(chunk.key)
            if seen is not None and not seen.is_final and seen.lease_until <= chunk.claimed_at:
                del self.chunks[chunk.key]
        is_claimed: bool = original(self, chunk)
        return is_claimed

    return claim


CHUNK_STEPS: tuple[Mutant, ...] = (
    Mutant(
        "plan_after_the_send",
        TWICE,
        "the plan of a minute is put when all of it has been sent",
        (Swap(Gathered, "_standing", _put_later), Swap(Visit, "_done", _puts_plan)),
    ),
    Mutant(
        "chunk_claimed_over_another",
        TWICE,
        "the claim of a chunk is written over whatever stands there",
        (Swap(MemoryChunkStore, "claim", _claim_of_anybody),),
    ),
    Mutant(
        "refused_chunk_acknowledged",
        LOST,
        "who is refused the finish of a chunk goes on as if it had been finished",
        (Swap(UnderWay, "_finish", _ends_whatever_stands),),
        reshape=both(small(22, jobs=3), for_chunks, asked("stop", 6), before_the_minute),
        # Whoever is refused is past its end otherwise, and acknowledges nothing.
        world=(Swap(protocol, "LEASE_MARGIN", instead(timedelta(seconds=-19.5))),),
    ),
    Mutant(
        "dead_chunk_discarded",
        LOST,
        "a chunk that the queue has given up before anybody claimed it is discarded",
        (Swap(ChunkProtocol, "handle_dead", _discards),),
        reshape=both(for_chunks, faulty(dies=0.2)),
    ),
    Mutant(
        "refused_row_is_an_end",
        LOST,
        "a failure in a chunk counts as ended where another's claim stands in its row",
        (Swap(MemberRun, "_handled", _refused_is_an_end),),
        reshape=both(
            for_chunks,
            _failing,
            asked("change", 2, *LANES),
            before_the_minute,
            faulty(dies=0.1, paused=0.05),
        ),
    ),
    Mutant(
        "young_in_chunks",
        TWICE,
        "what is due within an hour of its generation's making goes in chunks, too",
        (Swap(wheel, "chunked_from", instead(_at_once)),),
    ),
    Mutant(
        "jobs_of_chunks_not_consistent",
        ("pause", "delete", "I1"),
        "the read of the jobs after the claim of their chunk may be behind",
        behind("jobs", "get_all"),
        reshape=both(for_chunks, asked("pause", 2), before_the_minute, faulty(stale=0.3)),
    ),
    Mutant(
        "lapsed_chunk_run_again",
        TWICE,
        "who finds a chunk whose lease has lapsed claims it, and runs it again",
        (
            Swap(protocol, "decide_chunk", _runs_lapsed),
            Swap(MemoryChunkStore, "claim", _claim_of_lapsed),
        ),
        reshape=both(for_chunks, short_lived, faulty(dies=0.1)),
    ),
)
