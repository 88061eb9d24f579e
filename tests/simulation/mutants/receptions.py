"""Bugs planted into receptions: acknowledgements, waits, the dead-letter queue, batches."""

from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

import carillon.domain.execution.returning as returning
import carillon.domain.execution.transitions as running
import carillon.executor.batch as batch
import carillon.executor.runs.protocol as protocol
from carillon.domain.job import Lane
from carillon.domain.message import Message
from carillon.errors import CarillonError
from carillon.executor.batch import Report
from carillon.executor.ports import ExecutorPorts
from carillon.executor.runs.protocol import RunProtocol
from carillon.services.indexer import Indexer
from carillon.simulation.deployment import Deployment
from carillon.simulation.loop import Loop
from carillon.stores.memory.messaging import MemoryQueue, Received
from tests.simulation.mutants.kit import (
    Code,
    Mutant,
    Swap,
    both,
    faulty,
    given,
    instead,
    scheduled,
    small,
)


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
    def defer(ports: ExecutorPorts, message: Message, at: datetime, reason: str) -> Report:
        raise _PutBackError(at)

    return defer


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


def _does_not_wait(original: Code) -> Code:
    def handle(self: RunProtocol, message: Message, ends_at: datetime, **how: bool) -> Report:
        now = self._ports.clock.now().replace(microsecond=0)
        if message.starts_at > now:
            message = replace(message, due_at=min(now, message.due_at), wait_until=None)
        return original(self, message, ends_at, **how)  # type: ignore[no-any-return]

    return handle


def _cut_at_900(original: Code) -> Code:
    """What the queue cannot delay so long is delayed as long as it can."""

    def schedule_messages(
        self: Indexer, messages: Any, until: datetime | None = None, at_least: int = 0
    ) -> None:
        hasty = copy(self)
        hasty._longest_delay_seconds = 10**9
        original(hasty, messages, until, at_least)

    return schedule_messages


RECEPTIONS = (
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
            Swap(protocol, "defer", _puts_back),
            Swap(batch, "defer", _puts_back),
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
            given(ticks_down=(), executors_down=(), settle_minutes=2),
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
        (Swap(Indexer, "schedule_messages", _cut_at_900),),
        cannot_break=(
            "the message comes too early, and step 0 of the run protocol defers whatever is more"
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
)
