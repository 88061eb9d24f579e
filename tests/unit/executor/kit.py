"""A world for the executor: single messages at their instants, and ports that fail or die."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carillon.domain.execution.stopping import decide_cancel
from carillon.domain.job import Job
from carillon.domain.message import Message, encode
from carillon.domain.run import Run
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled, Report
from carillon.executor.targets import Call, Outcome, Success
from tests.support import world
from tests.support.jobs import job_with
from tests.unit.faults import Killed, dying, failing

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
LEASE_SECONDS = world.FUNCTION_SECONDS + 2
"""After so long, anybody may take a run over."""


class World(world.World):
    """It stands at noon."""

    def __init__(self, segments: int = 2) -> None:
        super().__init__(NOON, segments)

    def ends_at(self, seconds: float = world.FUNCTION_SECONDS) -> datetime:
        """The end of a process that has so long to live."""
        return self.clock.now() + timedelta(seconds=seconds)

    def drain(self) -> list[Message]:
        """Take everything off the queue, visible or not."""
        kept = self.queue.kept()
        for each in kept:
            self.queue.delete(each.receipt)
        return [each.message for each in kept]

    def due(self, job: Job, minutes: int = 1) -> Message:
        """The message of an occurrence, at its very instant; the queue holds nothing."""
        message = message_of(job, NOON + minutes * MINUTE)
        self.clock.set(message.due_at)
        self.drain()
        return message

    def handle(
        self, message: Message, seconds: float = world.FUNCTION_SECONDS, *, alone: bool = True
    ) -> Report:
        """What a process does with a message."""
        return self.executor.handle(message, self.ends_at(seconds), alone=alone)

    def lane(self, message: Message) -> Handled:
        """What its handler does, which puts off what a store could not be asked."""
        return self.executor.lane(encode(message), self.ends_at()).handled

    def handle_dead(self, message: Message) -> Report:
        """What the consumer of a dead-letter queue does with it."""
        return self.executor.handle_dead(message, self.ends_at())

    def run_of(self, message: Message) -> Run:
        run = self.runs.get(message.key)
        assert run is not None
        return run

    def cancel(self, run: Run, after: float = 0) -> Run:
        """What the API does with a run of this row, so many seconds from now."""
        now = self.clock.now() + timedelta(seconds=after)
        cancelled = decide_cancel(run, "cancel", now, run.expires_at)
        assert isinstance(cancelled, Run)
        assert self.runs.claim(cancelled, run)
        return cancelled

    def stored(self, job: Job) -> Job:
        found = self.jobs.get(job.owner, job.job_id)
        assert found is not None
        return found

    def change(self, job: Job, **settings: Any) -> Job:
        """Change settings of the stored row, which makes no new generation."""
        changed = job_with(job, revision=job.revision + 1, **settings)
        assert self.jobs.replace(changed, job.revision)
        return changed

    failing = staticmethod(failing)
    dying = staticmethod(dying)

    def crash_in_call(self, message: Message) -> None:
        """The executor dies while it calls the target; later calls succeed."""

        def die(call: Call) -> Outcome:
            raise Killed

        self.targets.behave = die
        with pytest.raises(Killed):
            self.handle(message)
        self.targets.behave = lambda call: Success(None)
