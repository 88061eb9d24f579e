"""The lanes as SQS may be: a message comes twice, late, or the queue takes a part of a batch."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

from carillon.domain.message import Message
from carillon.domain.wheel.delaying import whole_delay
from carillon.errors import QueueUnavailableError
from carillon.simulation.dice import Dice
from carillon.simulation.faults import Fault
from carillon.simulation.loop import Loop
from carillon.stores.memory.messaging import MemoryQueue
from carillon.stores.ports import check_delays

_LATEST_SECONDS = 600.0
"""SQS promises no bound; this one is beyond every lease and most visibility timeouts."""

_FAULTS = (Fault.PART_SENT, Fault.LATE, Fault.DUPLICATED)


class SimulatedQueue:
    """LaneQueue in front of a MemoryQueue."""

    def __init__(self, queue: MemoryQueue, loop: Loop) -> None:
        self._queue = queue
        self._loop = loop
        self._sent: Counter[str] = Counter()
        self._has_faults = any(map(loop.chaos.faults.of, _FAULTS))

    def send(
        self,
        messages: Sequence[Message],
        seconds: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        check_delays(messages, seconds)
        delays = [whole_delay(each) for each in seconds]
        now = self._loop.instant()
        if not self._has_faults:
            for message, delay in zip(messages, delays, strict=True):
                self._queue.put(message, now + timedelta(seconds=delay))
            return
        for number, (message, delay) in enumerate(zip(messages, delays, strict=True)):
            name = f"{message.key.run_id}/{message.attempt}"
            self._sent[name] += 1
            dice = Dice(self._loop.chaos.seed, f"send {name}", self._sent[name])
            where = f"send {name} {self._sent[name]}"
            if self._strikes(Fault.PART_SENT, where, dice):
                raise QueueUnavailableError(len(messages) - number, "not acknowledged")
            visible_at = now + timedelta(seconds=delay)
            if self._strikes(Fault.LATE, where, dice):
                visible_at += timedelta(seconds=dice.between(1, _LATEST_SECONDS))
            self._queue.put(message, visible_at)
            if self._strikes(Fault.DUPLICATED, where, dice):
                later = dice.choice((0.0, 1.0, 30.0, _LATEST_SECONDS)) * dice.fraction()
                self._queue.put(message, visible_at + timedelta(seconds=later))

    def _strikes(self, fault: Fault, where: str, dice: Dice) -> bool:
        if not self._loop.chaos.strikes(fault, where, self._loop.us, dice):
            return False
        self._loop.tell(f"FAULT {fault.value} {where}")
        return True
