"""Removal of wheel entries that are of no use any more, by whoever meets a message of theirs."""

from datetime import datetime

from functions.executor.ports import ExecutorPorts
from shared.domain import starting
from shared.domain.job import Job
from shared.domain.message import Message
from shared.domain.run import RunKind
from shared.domain.wheel import Slot, standing_key
from shared.recurrence import SlotKind


def remove_stale_entry(
    ports: ExecutorPorts, job: Job | None, message: Message, now: datetime
) -> None:
    """Remove the standing entry that sent this message, once it can be of no use any more.

    Raises StoreUnavailableError.
    """
    stale_since = starting.stale_since(job, message, now) if message.slot_key else None
    if stale_since is None:
        return
    slot = Slot.from_key(message.slot_key)
    control = ports.wheel.get_control(message.segment)
    if slot.kind is not SlotKind.DATED and control and control.dispatched(stale_since):
        key = message.key
        is_watch = key.kind is RunKind.WATCH
        entry_key = standing_key(key.job_id, message.filing_id, is_watch=is_watch)
        ports.wheel.remove_entry(message.segment, slot, entry_key)
