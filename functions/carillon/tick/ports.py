"""The ports that a tick works on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from carillon.clock import Clock, SideBySide, one_by_one
from carillon.domain.calendar import Calendar
from carillon.services.indexer import Indexer
from carillon.stores.ports import ChunkStore, JobStore, VersionedRows, WheelStore
from carillon.tick.sharing import Share

OnBadEntry = Callable[[int, str, str, str], None]
"""Called with (segment, slot key, entry key, reason) for an entry that the tick leaves out."""


Invite = Callable[[Share], None]
"""Has a tick invoked for a share, and does not wait for it; raises whatever hinders."""

OnUninvited = Callable[[Share, Exception], None]
"""Called for a share that could not be invited; the root serves its segments itself."""


@dataclass(frozen=True, slots=True)
class TickPorts:
    """The ports that a tick works on. `tzdata` is the version of its time zone database,
    `catch_up_share` the number of backlog messages that may start in one segment in a minute (None:
    any number). New plans have chunks if it is `chunked`, and outlive rows of runs, which live for
    `run_lifetime`: longer than any tick may dispatch a minute again."""

    jobs: JobStore
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    chunks: ChunkStore
    indexer: Indexer
    clock: Clock
    on_bad_entry: OnBadEntry
    tzdata: str = ""
    catch_up_share: int | None = None
    side_by_side: SideBySide = one_by_one
    chunked: bool = False
    run_lifetime: timedelta = timedelta(days=30)
