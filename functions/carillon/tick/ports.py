"""The ports that a tick works on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from carillon.clock import Clock
from carillon.domain.calendar import Calendar
from carillon.services.indexer import Indexer
from carillon.stores.ports import JobStore, VersionedRows, WheelStore
from carillon.tick.sharing import Share

_T = TypeVar("_T")

OnBadEntry = Callable[[int, str, str, str], None]
"""Called with (segment, slot key, entry key, reason) for an entry that the tick leaves out."""


class SideBySide(Protocol):
    """Makes calls that are independent of each other at one time."""

    def __call__(self, calls: Sequence[Callable[[], _T]]) -> list[_T]:
        """The answers, in the order of the calls, when all have ended; raises what one raises."""
        ...


def one_by_one(calls: Sequence[Callable[[], _T]]) -> list[_T]:
    """SideBySide with one thread only."""
    return [call() for call in calls]


Invite = Callable[[Share], None]
"""Has a tick invoked for a share, and does not wait for it; raises whatever hinders."""

OnUninvited = Callable[[Share, Exception], None]
"""Called for a share that could not be invited; the root serves its segments itself."""


@dataclass(frozen=True, slots=True)
class TickPorts:
    """The ports that a tick works on. `tzdata` is the version of its time zone database,
    `catch_up_share` the number of backlog messages that may start in one segment in a minute (None:
    any number)."""

    jobs: JobStore
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    indexer: Indexer
    clock: Clock
    on_bad_entry: OnBadEntry
    tzdata: str = ""
    catch_up_share: int | None = None
    side_by_side: SideBySide = one_by_one
