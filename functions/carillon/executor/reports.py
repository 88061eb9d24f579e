"""What became of a message."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import ceil

from carillon.domain.execution import returning
from carillon.domain.message import LONGEST_DELAY_SECONDS, Message
from carillon.domain.run import Run
from carillon.executor.ports import ExecutorPorts


class Handled(StrEnum):
    """What became of a message: the closed list that logs and metrics use."""

    RAN = "ran"
    SKIPPED = "skipped"
    SENT_ON = "sent_on"
    SENT_BACK = "sent_back"
    """From the dead-letter queue to its lane."""
    REPEATED = "repeated"
    DROPPED = "dropped"
    LOOKED = "looked"
    """The watch found nothing amiss."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was done with a message; `run` is the row that was last written or met, if any.

    `completes`: its end was that of the job, which was to be deleted then. `instead`: what was done
    with the occurrence that stands for it.
    """

    handled: Handled
    message: Message
    run: Run | None = None
    reason: str = ""
    completes: bool = False
    instead: "Report | None" = None


def send_back(ports: ExecutorPorts, message: Message) -> Report:
    """Send a message of a dead-letter queue back to its lane, to be acknowledged then."""
    again = returning.returned(message)
    ports.queue.send([again], [returning.delay_seconds(again)])
    return Report(Handled.SENT_BACK, again, reason="an attempt is left to be made")


def send_on(ports: ExecutorPorts, message: Message, at: datetime, reason: str) -> Report:
    """Send a copy of a message, visible at `at` or a little later, as far as the queue can delay
    it; the one received is to be acknowledged then."""
    wait_seconds = ceil((at - ports.clock.now()).total_seconds())
    ports.queue.send([message], [max(0, min(wait_seconds, LONGEST_DELAY_SECONDS))])
    return Report(Handled.SENT_ON, message, reason=reason)
