"""A batch of queue records: first receptions side by side, repeated ones last and alone."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

BATCH_SIZE = 10
"""Records in a batch at most: SQS's limit without a batching window."""


@dataclass(frozen=True, slots=True)
class Received:
    """A queue record: `receive_count` is 1 at the first reception."""

    message_id: str
    body: str
    receive_count: int


class Counted(Protocol):
    """What is known of any record here."""

    @property
    def receive_count(self) -> int: ...


_R = TypeVar("_R", bound=Counted)


def waves(records: Sequence[_R]) -> list[list[_R]]:
    """The records that run side by side, wave after wave.

    A record that was received before may be the one that killed its executor. It runs when all
    others are done, so that it cannot take them along.
    """
    first = [record for record in records if record.receive_count <= 1]
    repeated = [[record] for record in records if record.receive_count > 1]
    return [first, *repeated] if first else repeated


class BatchRunner:
    """Handles the records of batches in threads of its own, made once per process."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(BATCH_SIZE, thread_name_prefix="run")

    def run(
        self,
        records: Sequence[Received],
        handle: Callable[[Received], None],
        on_error: Callable[[Received, Exception], None],
    ) -> list[str]:
        """Call `handle` for each record; the ids of those for which it raised, told to `on_error`.

        They stay with the queue.
        """

        def succeeds(record: Received) -> bool:
            try:
                handle(record)
            except Exception as error:  # the others must go on
                on_error(record, error)
                return False
            return True

        outcomes: list[tuple[Received, bool]] = []
        for wave in waves(records):
            outcomes += zip(wave, self._threads.map(succeeds, wave), strict=True)
        return [record.message_id for record, succeeded in outcomes if not succeeded]
