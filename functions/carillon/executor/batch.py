"""A batch of queue records: side by side, but for those that may kill their executor."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from carillon.domain.message import came_back
from carillon.errors import RunAloneError

BATCH_SIZE = 10
"""Records in a batch at most: SQS's limit without a batching window."""
SUSPICIOUS_COUNT = 4
"""Received so often, a record runs alone. Two or three receptions are mostly no crash: a throttled
invocation counts as one."""


class Record(Protocol):
    """What is known of any record here; `receive_count` is 1 at the first reception."""

    @property
    def body(self) -> str: ...

    @property
    def receive_count(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Received:
    """A queue record, by the id that acknowledges it."""

    message_id: str
    body: str
    receive_count: int


_R = TypeVar("_R", bound=Record)
Wave = Callable[[Sequence[_R], bool], Sequence[Exception | None]]
"""Handles records side by side, and says how each failed; told whether it is all that runs."""


def in_waves(records: Sequence[_R], wave: Wave[_R]) -> list[_R]:
    """Handle the records of a batch; those that failed stay with the queue.

    One that may have killed its executor runs when all others are done, and alone, so that it can
    take none along: received often, back from the dead-letter queue, or with an attempt that died.
    The last is known only once its row is read: then it raises RunAloneError.
    """
    alone = [one for one in records if _is_suspicious(one)]
    together = [one for one in records if not _is_suspicious(one)]
    failed: list[_R] = []
    if together:
        for one, error in zip(together, wave(together, len(records) == 1), strict=True):
            if error is not None:
                (alone if isinstance(error, RunAloneError) else failed).append(one)
    for one in sorted(alone, key=lambda one: one.receive_count):
        failed += [one for error in wave([one], True) if error is not None]
    return failed


def _is_suspicious(record: Record) -> bool:
    return record.receive_count >= SUSPICIOUS_COUNT or came_back(record.body)


class BatchRunner:
    """Handles the records of batches in threads of its own, made once per process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(BATCH_SIZE, thread_name_prefix="run")

    def run(
        self,
        records: Sequence[Received],
        handle: Callable[[Received, bool], None],
        on_error: Callable[[Received, Exception], None],
    ) -> list[str]:
        """Call `handle` for each record, and whether it runs alone; the ids of those for which it
        raised, told to `on_error`. They stay with the queue.
        """

        def wave(those: Sequence[Received], alone: bool) -> list[Exception | None]:
            def error_of(record: Received) -> Exception | None:
                try:
                    handle(record, alone)
                except RunAloneError as error:
                    return error
                except Exception as error:  # the others must go on
                    on_error(record, error)
                    return error
                return None

            return list(self._threads.map(error_of, those))

        return [record.message_id for record in in_waves(records, wave)]
