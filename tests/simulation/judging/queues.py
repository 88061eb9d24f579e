"""What is in the queues of a simulated deployment."""

from collections.abc import Iterator
from datetime import datetime

from carillon.domain.message import Message
from carillon.errors import MalformedMessageError
from carillon.stores.memory.messaging import MemoryQueue, Received


def due(queue: MemoryQueue, until: datetime) -> Iterator[Received]:
    """The messages that may start by `until`, and those that nobody can read."""
    for kept in queue.kept():
        try:
            is_due = kept.order.starts_at <= until
        except MalformedMessageError:
            is_due = True
        if is_due:
            yield kept


def runs_in(queue: MemoryQueue) -> Iterator[tuple[str, str]]:
    """What the messages are about, and under which generation: a request that is made again files
    anew, and so sends anew. An unreadable one stands for itself."""
    for kept in queue.kept():
        try:
            order = kept.order
            if isinstance(order, Message):
                yield order.key.run_id, order.generation_id
            else:
                yield order.key.name, ""
        except MalformedMessageError:
            yield str(kept.receipt), ""
