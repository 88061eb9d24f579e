"""The ports: what Carillon needs of a store and of a queue. These docstrings are the specification.

For every port: a method raises StoreUnavailableError (the queue: QueueUnavailableError) when the
service throttled or failed beyond the implementation's own retries with backoff; then nothing is
known about a write's effect. A conditional write answers True when the row now is what the caller
wanted, and False when another got there first. A write that was applied but whose answer was lost
is recognised as the caller's own when it is repeated, so that it answers True too. Reads are
strongly consistent unless stated otherwise. Implementations hold no state of a caller's and can be
used from several threads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from carillon.domain.admission.state import AdmissionRow
from carillon.domain.calendar import Calendar
from carillon.domain.chunks.message import Order
from carillon.domain.events import Event
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Job, Successor
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import Window
from carillon.domain.operation import Operation
from carillon.domain.quotas import OwnLimits, Use
from carillon.domain.run import Attention, Run, RunKey
from carillon.domain.spec.job_summary import JobSummary
from carillon.domain.wheel.entry import Entry, EntryKey, Slot
from carillon.domain.wheel.segment import Control, Remains
from carillon.stores.activity import ActivityStore
from carillon.stores.changes import ChangeFilter as ChangeFilter
from carillon.stores.changes import ChangeStore as ChangeStore
from carillon.stores.choices import EXPIRY_ATTRIBUTE as EXPIRY_ATTRIBUTE
from carillon.stores.choices import LISTED_MEMBERS as LISTED_MEMBERS
from carillon.stores.choices import DeadLetterFilter as DeadLetterFilter
from carillon.stores.choices import JobFilter as JobFilter
from carillon.stores.choices import Tally as Tally
from carillon.stores.chunks import ChunkStore as ChunkStore
from carillon.stores.chunks import Read as Read
from carillon.stores.pages import Page as Page


class JobStore(Protocol):
    """Jobs by job id, tombstones included; another owner's job is none."""

    def get(self, owner: str, job_id: str) -> Job | None:
        """The row, strongly consistent; a deleted job is a row in state DELETED or COMPLETED.

        Raises UnreadableRowError for a row that this version cannot read.
        """
        ...

    def get_all(self, keys: Sequence[tuple[str, str]]) -> dict[str, Job]:
        """The rows of these owners and job ids that there are, by job id, strongly consistent;
        those that this version cannot read are left out, and those that the store does not answer
        with the others."""
        ...

    def create(self, job: Job) -> bool:
        """Put the row if there is none under its key."""
        ...

    def replace(self, job: Job, revision: int) -> bool:
        """Put the row if the stored one has exactly `revision`, and the same successors."""
        ...

    def relink(self, job: Job, over: tuple[Successor, ...]) -> bool:
        """Put the row if the stored one has its revision, and exactly the successors `over`."""
        ...

    def remove_unreadable(self, owner: str, job_id: str) -> bool:
        """Remove the row if it cannot be read; False for any other, or none."""
        ...

    def list(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[Job]:
        """The owner's jobs by name (`Job.list_key`), without tombstones. Those that a page has are
        as they are now; that a job is on it, and where, may be eventually consistent.

        A page has at most `limit` items. `only` leaves out all others; a cursor continues under the
        filter that it came from.
        """
        ...

    def summaries(
        self, owner: str, limit: int, cursor: str | None = None, only: JobFilter | None = None
    ) -> Page[JobSummary]:
        """As `list`, but what pages have is eventually consistent, too."""
        ...

    def tally(self, owner: str, cursor: str | None = None) -> Tally:
        """The owner's jobs by state, as far as one request reads; eventually consistent."""
        ...

    def scan(self, limit: int, cursor: str | None = None) -> Page[Job]:
        """The jobs of all owners in no order, tombstones included; eventually consistent."""
        ...


class VersionedRow(Protocol):
    """A row of which every version has a revision of its own."""

    @property
    def owner(self) -> str: ...

    @property
    def revision(self) -> int: ...


Row = TypeVar("Row", bound=VersionedRow)


@dataclass(frozen=True, slots=True)
class RowKind(Generic[Row]):
    """A kind of small rows that an owner has beside jobs; `key` names the member that tells the
    owner's rows of this kind apart."""

    name: str
    type: type[Row]
    key: str
    newest_first: bool = False
    """Lists begin with the greatest key."""
    any_text: bool = False
    """Keys hold text that users chose, of any length: such rows are not listed."""

    def key_of(self, row: Row) -> str:
        key: str = getattr(row, self.key)
        return key


CALENDARS = RowKind("calendar", Calendar, "name")
ADMISSION_ROWS = RowKind("admission", AdmissionRow, "name", any_text=True)
IDEMPOTENCY_RECORDS = RowKind("idempotency", IdempotencyRecord, "key")
OPERATIONS = RowKind("operation", Operation, "operation_id", newest_first=True)
NOTIFICATIONS = RowKind("notification", Notification, "name")
WINDOWS = RowKind("window", Window, "name")
QUOTAS = RowKind("quota", OwnLimits, "of")
USES = RowKind("use", Use, "name")


class VersionedRows(Protocol[Row]):
    """Rows of one RowKind by (owner, key); they are no jobs, and not listed among them.

    Every method raises UnreadableRowError for a row that this version cannot read.
    """

    def get(self, owner: str, key: str) -> Row | None:
        """The row, strongly consistent; one past its `expires_at` may still be answered."""
        ...

    def put(self, row: Row, over_revision: int | None) -> bool:
        """Put the row if the stored one has exactly `over_revision`; None: if there is none."""
        ...

    def delete(self, owner: str, key: str, revision: int) -> bool:
        """Remove the row if it has exactly `revision`; True too when there is none (any more)."""
        ...

    def list(self, owner: str, limit: int, cursor: str | None = None) -> Page[Row]:
        """The owner's rows in the kind's order; may be eventually consistent. Pages are as those
        of JobStore."""
        ...


class WheelStore(Protocol):
    """Entries by (segment, slot, entry key), and one control item per segment."""

    def put_entries(self, entries: Sequence[Entry]) -> None:
        """Put all; those that the store leaves unprocessed are repeated until none is left.

        An entry put twice is the same entry. Not atomic: some may be put when it raises.
        """
        ...

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        """One page of the slot's entries with keys greater than `after_key`, in their order; the
        cursor is the last one's key."""
        ...

    def holds(self, segment: int, slot: Slot, entry_key: str) -> bool:
        """True if there is an entry with exactly this key, strongly consistent."""
        ...

    def remove_entries(self, segment: int, keys: Sequence[EntryKey]) -> None:
        """Remove the entries with exactly these keys; nothing happens where there is none.

        Those that the store leaves unprocessed are repeated until none is left. Not atomic: some
        may be gone when it raises.
        """
        ...

    def get_control(self, segment: int) -> Control | None:
        """The segment's control item, strongly consistent.

        Raises UnreadableRowError, which has the mend, for one that cannot be read.
        """
        ...

    def put_control(self, control: Control, over: Control | None) -> bool:
        """Put the item if the stored one still has the token and lease of `over`.

        With None: if there is none.
        """
        ...

    def examine_control(self, segment: int) -> Remains | None:
        """The readable part of the segment's control item, strongly consistent."""
        ...

    def mend_control(self, control: Control, over: Remains) -> bool:
        """Put the item if the stored one is exactly what `over` was read from."""
        ...


class RunStore(Protocol):
    """Runs by run key. `claim`, `finish`, `discard_claim` and `replace_unreadable` are the only
    ways to change one.

    A note is stored cut to RESULT_LIMIT_BYTES. Whole results have rows of their own, so that lists
    of runs stay small.
    """

    def get(self, key: RunKey) -> Run | None:
        """The row, strongly consistent; rows past their `expires_at` may still be answered."""
        ...

    def claim(self, run: Run, over: Run | None) -> bool:
        """Put `run` if the stored row has the token, claim id, status and attempt of `over`.

        The attempt counts since the release of a takeover keeps the token and the status of it: who
        read the claim must not write as if its attempt had begun.

        With None: if there is none. This also records a run that is to come (SCHEDULED) and a
        row that covers skipped occurrences; and every change of an open run, which nobody holds.
        """
        ...

    def finish(self, run: Run) -> bool:
        """Put `run` if the stored row is RUNNING under exactly `run.token` and `run.claim_id`."""
        ...

    def replace_unreadable(self, run: Run) -> bool:
        """Put `run` over a row that cannot be read, unless that row has ended."""
        ...

    def discard_claim(self, run: Run) -> bool:
        """Remove the row if it is RUNNING under exactly `run.token` and `run.claim_id`.

        For a claim that should never have been made. False means: not known to be removed by this
        call; after a lost answer the row may be gone all the same.
        """
        ...

    def put_result(self, run: Run, text: str) -> None:
        """Store the whole result of the claim that `run` is held by, for as long as its row.

        It is no one's until a row with that claim id says so (`Run.result_bytes`).
        """
        ...

    def get_result(self, run: Run) -> str | None:
        """The result that was put for the run's claim id; rows past their `expires_at` may still be
        answered."""
        ...

    def list(
        self,
        owner: str,
        job_id: str,
        limit: int,
        cursor: str | None = None,
        *,
        from_at: datetime | None = None,
        until_at: datetime | None = None,
        consistent: bool = False,
    ) -> Page[Run]:
        """The job's runs, newest fire time first; may be behind unless it is to be `consistent`.

        `from_at` and `until_at` bound their fire times, inclusive, in whole seconds.
        """
        ...

    def newest(self, owner: str, job_id: str, count: int) -> tuple[Run, ...]:
        """As the first page of `list`, but no row more is read than `count`."""
        ...

    def count(self, owner: str, attention: Attention, most: int) -> int:
        """The number of the owner's runs with this `Run.attention`, counted up to about `most`;
        eventually consistent."""
        ...

    def dead_letters(
        self,
        owner: str,
        limit: int,
        cursor: str | None = None,
        only: DeadLetterFilter | None = None,
    ) -> Page[Run]:
        """The owner's dead letters (`Run.is_dead_letter`), newest fire time first.

        Eventually consistent: one that has just died or was just settled may be missing or there.
        """
        ...


class LaneQueue(Protocol):
    """One queue per lane; at least once, in no order."""

    def send(
        self,
        messages: Sequence[Order],
        delays: Sequence[float],
        until: datetime | None = None,
    ) -> None:
        """Send each message to its lane, visible after its delay (0 to 900 seconds) from now, which
        `delaying.whole_delay` rounds when the message leaves.

        Ten go in one request, of one lane each; those refused singly are repeated with backoff.
        Returns when the queue has acknowledged all; raises QueueUnavailableError otherwise, also
        where it takes beyond `until`: some may be sent by then, or later (the
        caller repeats everything: duplicates are absorbed by the claim). Raises ValueError for
        another number of delays than messages, or a delay out of range.
        """
        ...


class EventSink(Protocol):
    """The destination of lifecycle events; a deployment without a bus has one that drops them."""

    def emit(self, events: Sequence[Event]) -> int:
        """Hand the events on; answers how many were not taken, beyond the implementation's own
        repetitions. Raises nothing: a run must not fail for its event's sake."""
        ...


SKEW_LIMIT_SECONDS = 2.0
"""A clock that is further from the database's is off: what goes by it comes early, or late."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The ports of one deployment."""

    jobs: JobStore
    """It records changes (recording.py)."""
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    runs: RunStore
    chunks: ChunkStore
    activity: ActivityStore
    changes: ChangeStore
    queue: LaneQueue
    admission_rows: VersionedRows[AdmissionRow]
    operations: VersionedRows[Operation]
    idempotency_records: VersionedRows[IdempotencyRecord]
    notifications: VersionedRows[Notification]
    windows: VersionedRows[Window]
    quotas: VersionedRows[OwnLimits]
    uses: VersionedRows[Use]
    events: EventSink
    skew_seconds: Callable[[], float | None]
    """This machine's clock minus the database's, as last seen; None before the first answer."""
