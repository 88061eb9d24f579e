"""A world whose jobs are settled, and chunks of their occurrences."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.chunks.chunk import Chunk, Outcome, ref_of
from carillon.domain.chunks.message import ChunkKey, ChunkMessage, Member, encode
from carillon.domain.chunks.placing import Plan
from carillon.domain.decisions import Claim
from carillon.domain.execution.transitions import decide_claim
from carillon.domain.job import Job, Lane
from carillon.domain.message import Message
from carillon.domain.run import Run, RunError
from carillon.domain.wheel.entry import minute_of
from carillon.executor.batch import Report
from carillon.executor.targets import Call, Failure, Success
from carillon.executor.targets import Outcome as Ended
from carillon.schedules import SlotKind
from tests.support.world import FUNCTION_SECONDS
from tests.unit.executor import kit
from tests.unit.executor.kit import NOON
from tests.unit.faults import Killed

DUE_AT = NOON + timedelta(hours=2)
"""Of all occurrences: the second one of hourly jobs that are made at noon."""


class World(kit.World):
    """At two o'clock, with the jobs `names`, made at noon, and a plan by which all go in one chunk;
    the queue holds nothing."""

    def __init__(self, *names: str) -> None:
        super().__init__(segments=1)
        minute, lasts_until = minute_of(DUE_AT), DUE_AT + timedelta(days=15)
        assert self.chunks.put_plan(Plan(0, minute, "salt", lasts_until, {(0, Lane.NORMAL): 1}))
        self.by_name = {name: self.create(name, "0 * * * *") for name in names}
        self.clock.set(DUE_AT)
        self.drain()

    def make(self, name: str, schedule: str = "0 * * * *", **settings: Any) -> Job:
        """Another job as if made at noon."""
        now = self.clock.now()
        self.clock.set(NOON)
        job = self.by_name[name] = self.create(name, schedule, **settings)
        self.clock.set(now)
        self.drain()
        return job

    def order(self, *names: str) -> ChunkMessage:
        """A chunk of these jobs, or of all that there are."""
        jobs = [self.by_name[name] for name in names or self.by_name]
        key = ChunkKey(0, minute_of(DUE_AT), DUE_AT.second, Lane.NORMAL, 0)
        return ChunkMessage(key, tuple(map(member_of, jobs)))

    def handle_chunk(self, order: ChunkMessage, seconds: float = FUNCTION_SECONDS) -> Report:
        """What a process does with it; what a store could not be asked is put off."""
        return self.executor.lane(encode(order), self.ends_at(seconds))

    def handle_dead_chunk(self, order: ChunkMessage) -> Report:
        return self.executor.dead(encode(order), self.ends_at())

    def alone(self, name: str) -> Message:
        return self.order(name).alone(member_of(self.by_name[name]))

    def run(self, name: str) -> Run | None:
        """By its row or its chunk."""
        return self.executor_ports.history.get(self.alone(name).key, self.by_name[name])

    def row(self, name: str) -> Run | None:
        return self.runs.get(self.alone(name).key)

    def sent(self) -> list[tuple[str, int]]:
        """The messages in the queue: the job's name and the attempt; of a chunk its waits."""
        names = {job.job_id: name for name, job in self.by_name.items()}
        found = []
        for order in (each.order for each in self.queue.kept()):
            if isinstance(order, ChunkMessage):
                found.append(("chunk", order.store_waits))
            else:
                found.append((names[order.key.job_id], order.attempt))
        return sorted(found)

    def called(self) -> list[tuple[str, int]]:
        """The calls so far, in their order: the job's name, and the attempt."""
        return [(call.job_name, call.attempt) for call in self.targets.calls]

    def chunk(self) -> Chunk:
        chunk = self.chunks.get(self.order().key)
        assert chunk is not None
        return chunk

    def ends(self) -> dict[str, Outcome]:
        """The outcomes of the final chunk."""
        ends = self.chunk().ends
        assert ends is not None
        refs = {
            name: ref_of(m.job_id, m.generation_id, m.spread_seconds) for name, m in self._members()
        }
        return {name: ends[ref].outcome for name, ref in refs.items() if ref in ends}

    def _members(self) -> list[tuple[str, Member]]:
        return [(name, member_of(job)) for name, job in self.by_name.items()]

    def answer(self, **outcomes: Ended | Callable[[Call], Ended]) -> None:
        """What the jobs' targets answer; all others succeed."""

        def behave(call: Call) -> Ended:
            outcome = outcomes.get(call.job_name, Success("done"))
            return outcome(call) if callable(outcome) else outcome

        self.targets.behave = behave

    def crash_after_claim(self, order: ChunkMessage, seconds: float = FUNCTION_SECONDS) -> None:
        """A process dies as soon as it has the chunk."""
        claim = self.chunks.claim

        def die(chunk: Chunk) -> bool:
            claim(chunk)
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.chunks, "claim", die)
            with pytest.raises(Killed):
                self.handle_chunk(order, seconds)

    def claim_for_another(self, name: str) -> Run:
        """A message of another generation has claimed the row, and is at it."""
        generation_id = self.entropy.new_id(NOON)
        noise = replace(self.alone(name), generation_id=generation_id)
        now = self.clock.now()
        terms = self.executor_ports.claim_terms(now, self.ends_at())
        claim = decide_claim(None, noise, now, terms)
        assert isinstance(claim, Claim)
        assert self.runs.claim(claim.run, over=None)
        return claim.run


BUSY = Failure(RunError("busy", "later"))


def member_of(job: Job) -> Member:
    generation_id = job.generation.generation_id
    return Member(job.owner, job.job_id, generation_id, SlotKind.HOURLY, job.spread_seconds)
