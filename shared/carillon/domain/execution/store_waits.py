"""Messages that wait for a store: for one that does not answer, or for a row that cannot be read.

A copy waits ever longer, so that doubled copies do not multiply over a long outage. A store that
does not answer is waited for as long as it takes. A row that cannot be read may never be readable:
after a day, in which a deployment can be rolled forward again, its message is given up.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from carillon.domain.chunks.message import ChunkMessage, Order
from carillon.domain.message import Message
from carillon.domain.run import RunKind

FIRST_WAIT = timedelta(seconds=10)
LONGEST_WAIT = timedelta(minutes=5)
GIVEN_UP_AFTER = timedelta(hours=24)
"""Of a row that cannot be read."""
_DOUBLED_AT_MOST = 10
_Order = TypeVar("_Order", Message, ChunkMessage)


def wait_of(message: Order) -> timedelta:
    """The wait of a message for the store: 10 s, 20 s, 40 s ... up to 5 minutes."""
    doubled: int = 1 << min(message.store_waits, _DOUBLED_AT_MOST)
    return min(LONGEST_WAIT, FIRST_WAIT * doubled)


def held_up(message: _Order, now: datetime, *, is_unreadable: bool) -> _Order:
    """The message in its next wait for the store."""
    since = message.unreadable_since
    if is_unreadable and since is None:
        since = now.replace(microsecond=0)
    return replace(message, store_waits=message.store_waits + 1, unreadable_since=since)


def handled(message: Message) -> Message:
    """The message as it is handled: what comes of it has waited for no store."""
    if not message.store_waits:
        return message
    return replace(message, store_waits=0, unreadable_since=None)


def is_given_up(message: Order, now: datetime) -> bool:
    """True if a message has waited long enough for a row that cannot be read.

    Neither the run of a fixed delay nor the end of a pause is ever given up: all that the job has
    yet to do hangs on it.
    """
    since = message.unreadable_since
    if isinstance(message, Message) and _job_hangs_on(message):
        return False
    return since is not None and now - since >= GIVEN_UP_AFTER


def _job_hangs_on(message: Message) -> bool:
    return message.after_finish or message.key.kind is RunKind.RESUME
