"""Puts every active job on the wheel anew, segment by segment, as a tick that was away."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from carillon.clock import Clock, Entropy
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.wheel.entry import DATED_ENTRY_LIFETIME, LAST_MINUTE, minute_end
from carillon.domain.wheel.segment import RENEW_AFTER, Control, freed, renewed
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.reindexing.owed import (
    Owed,
    Past,
    is_forgotten,
    owed_to,
    owing,
    since_when,
    step_of,
    waiting_message,
)
from carillon.reindexing.scanning import PAGE, scanned
from carillon.schedules import ClosedDays
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.stores.cursors import pages
from carillon.stores.ports import Stores

BATCH = 100
"""Jobs whose entries are put under one lease: some 12,000 at most, which take seconds."""
_FEW = 4
"""Runs that are read at once until the newest occurrence is among them."""
_ROUNDS = 8
"""The number of times that a tick may take a segment over before it is given up."""
_JobKey = tuple[str, str]
_Late = tuple[_JobKey, datetime, datetime | None]
"""A job, since when something is owed to it, and what it was told of last as missed."""


class LeaseLostError(Exception):
    """A tick has taken the segment over since."""


@dataclass(slots=True)
class Done:
    """The progress so far. `since` is the end of the earliest minute, by segment, from which on
    something is owed; `left` are the reasons why a job or run was left as it is."""

    jobs: int = 0
    entries: int = 0
    runs: int = 0
    operations: int = 0
    since: dict[int, datetime] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


class Reindex:
    """Files anew what a lost or restored wheel table may not hold; raises StoreUnavailableError.

    For a batch of jobs of a segment: 1. read their rows and histories; 2. take the segment's lease
    and record, in that one conditional write, the minutes that are owed; 3. put the entries; 4. let
    go. Ticks then work it off as after an outage: by each job's `catch_up`, at the pace of catching
    up. 5. send what runs wait for. It can be cut off anywhere and begun anew: a job whose entries
    were not put has run nothing since, and the next time finds it as it was. Of a segment that was
    behind ticks may have worked something off by then: `since` says from when it is owed.

    Jobs that have missed something come last. Ticks that work that off read all entries of those
    minutes: of one that was yet to be put anew they would call missed what has run.

    `since`: as if no tick had come after it; None to go by each job's history. It reaches no
    further than the segment is settled: what ticks owe already stays owed. `only` is one segment,
    None for all.
    """

    def __init__(
        self,
        stores: Stores,
        clock: Clock,
        entropy: Entropy,
        longest_delay_seconds: int,
        since: datetime | None = None,
        only: int | None = None,
    ) -> None:
        self.done = Done()
        self._stores = stores
        self._history = History.of(stores, clock, DATED_ENTRY_LIFETIME)
        self._rows = History(stores.runs).page, PAGE
        self._indexer = Indexer.of(stores, clock, longest_delay_seconds)
        self._clock = clock
        self._only = only
        self._since = since
        self._settled: dict[int, int] = {}
        """The minute up to which each segment that was behind was settled at the beginning: ticks
        go past what has yet to get its entries, and newer runs hide that."""
        self._late: defaultdict[int, list[_Late]] = defaultdict(list)
        """The jobs that have missed something, by segment."""
        self._whole_until = 0
        """Each segment below this one has its control item."""
        self._began_at = clock.now()
        self._earliest = self._began_at - DATED_ENTRY_LIFETIME
        self._lease_owner = f"reindex-{entropy.new_id(self._began_at)}"

    def run(self, on_progress: Callable[[Done], None] = lambda done: None) -> None:
        """Do all of it; `on_progress` hears of each batch."""
        waiting: defaultdict[int, list[_JobKey]] = defaultdict(list)
        owners: set[str] = set()
        for job in scanned(self._stores.jobs, self.done.left):
            owners.add(job.owner)
            if self._only not in (None, job.segment):
                continue
            if job.segment not in self._settled:
                self._begin(job.segment)
            waiting[job.segment].append((job.owner, job.job_id))
            if len(waiting[job.segment]) >= BATCH:
                self._batch(job.segment, waiting.pop(job.segment))
                on_progress(self.done)
        for segment, keys in sorted(waiting.items()):
            self._batch(segment, keys)
            on_progress(self.done)
        for segment, late in sorted(self._late.items()):
            for start in range(0, len(late), BATCH):
                self._late_batch(segment, late[start : start + BATCH])
                on_progress(self.done)
        for owner in sorted(owners):
            self._operations(owner)
            self._deliveries(owner)

    def _begin(self, segment: int) -> None:
        """Note how far a segment is, if it is behind. Ticks serve segments up to the first one that
        has no control item: those below this one have theirs, too."""
        for lower in range(self._whole_until, segment):
            if self._stores.wheel.examine_control(lower) is None:
                self._indexer.control(lower)
        self._whole_until = max(self._whole_until, segment)
        control = self._indexer.control(segment)
        self._settled[segment] = control.settled_until if control.backlog else LAST_MINUTE

    def _batch(self, segment: int, keys: list[_JobKey]) -> None:
        settled = self._indexer.control(segment).settled_until
        settled_until = minute_end(min(settled, self._settled[segment]))
        in_time, messages = list[Owed](), list[Message]()
        for key in keys:
            found = self._owed(key, settled_until)
            if found is None:
                continue
            since, told_at, owed = found
            messages += owed.messages
            in_time.append(owed.in_time(self._began_at))
            if in_time[-1] is not owed:
                self._late[segment].append((key, since, told_at))
        self._put(segment, in_time)
        self._indexer.schedule_messages(messages)
        self.done.runs += len(messages)

    def _late_batch(self, segment: int, late: list[_Late]) -> None:
        """Put the entries of jobs by their rows as they are by now; all else has been sent."""
        owed = list[Owed]()
        for key, since, told_at in late:
            try:
                job = self._stores.jobs.get(*key)
                if job is not None:
                    past = Past(job.generation.generation_id, self._earliest, told_at=told_at)
                    owed.append(owed_to(job, past, since, self._closed(job)))
            except UnreadableRowError as error:
                self.done.left.append(str(error))
        self._put(segment, owed)

    def _owed(
        self, key: _JobKey, settled_until: datetime
    ) -> tuple[datetime, datetime | None, Owed] | None:
        """Since when a job is owed what was due, what it was told of last as missed, and the
        entries and messages, by strong reads of its rows; None where there is no such job, or one
        of its rows cannot be read."""
        try:
            job = self._stores.jobs.get(*key)
            if job is None:
                return None
            past, closed = self._past(job), self._closed(job)
        except UnreadableRowError as error:
            self.done.left.append(str(error))
            return None
        if self._since is None:
            since = since_when(job, past, settled_until, self._earliest)
        else:
            spread = timedelta(seconds=job.spread_seconds)
            since = max(min(self._since, settled_until) - spread, self._earliest)
        self.done.jobs += 1
        if is_forgotten(job, past, since):
            lost = "its last run has expired: if the wheel was lost, pause and resume it"
            self.done.left.append(f"job {job.job_id} of {job.owner}: {lost}")
        return since, past.told_at, owed_to(job, past, since, closed)

    def _closed(self, job: Job) -> ClosedDays | None:
        use = job.spec.calendar
        calendar = None if use is None else self._stores.calendars.get(job.owner, use.name)
        return None if calendar is None else calendar.closed

    def _past(self, job: Job) -> Past:
        """Whatever waits has a row. Chunks are asked for the newest occurrence alone: to read all
        of them costs some 40,000 units for two weeks of a job of every minute."""
        past, cursor = Past(job.generation.generation_id, self._earliest), None
        while True:
            read, size = (self._history.page, _FEW) if past.last_at is None else self._rows
            page = read(job.owner, job.job_id, size, cursor, consistent=True)
            self.done.left += page.unreadable.values()
            past.add(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return past

    def _put(self, segment: int, owed: list[Owed]) -> None:
        if not any(each.entries for each in owed):
            return
        first = min((each.first for each in owed if each.first is not None), default=None)
        for _ in range(_ROUNDS):
            held = self._taken(segment, first)
            if held is None:
                continue
            try:
                for each in owed:
                    held = self._kept(held)
                    self._stores.wheel.put_entries(each.entries)
                self._write(freed(held), over=held)
            except LeaseLostError:
                continue
            self.done.entries += sum(len(each.entries) for each in owed)
            self._note_since(segment, held)
            return
        raise StoreUnavailableError(f"ticks took segment {segment} over each time: begin anew")

    def _taken(self, segment: int, first: int | None) -> Control | None:
        """The control item under this lease; None if another write came in between."""
        seen = self._indexer.control(segment)
        control = owing(seen, first, self._began_at, self._clock.now(), self._lease_owner)
        return control if self._stores.wheel.put_control(control, over=seen) else None

    def _kept(self, held: Control) -> Control:
        """The control item with its lease renewed where that is due: no tick may pass by while
        entries are put."""
        now = self._clock.now()
        due_at = held.lease_until and held.lease_until - 2 * RENEW_AFTER
        if due_at is None or now < due_at:
            return held
        renewal = renewed(held, now)
        self._write(renewal, over=held)
        return renewal

    def _write(self, control: Control, over: Control) -> None:
        if not self._stores.wheel.put_control(control, over=over):
            raise LeaseLostError

    def _operations(self, owner: str) -> None:
        """Order the steps of an owner's operations again: what orders them may wait on the wheel.
        One that was ordered twice is done once."""
        for page in pages(partial(self._stores.operations.list, owner, PAGE)):
            orders = [step_of(operation) for operation in page.items if not operation.is_final]
            self._indexer.schedule_messages(orders)
            self.done.operations += len(orders)

    def _deliveries(self, owner: str) -> None:
        """Order those of an owner's notifications again that wait for their next attempt."""
        for page in pages(partial(self._stores.notifications.list, owner, PAGE)):
            self.done.left += page.unreadable.values()
            for receiver in (notification.as_job() for notification in page.items):
                messages = [waiting_message(run, receiver) for run in self._past(receiver).waiting]
                self._indexer.schedule_messages(messages)
                self.done.runs += len(messages)

    def _note_since(self, segment: int, held: Control) -> None:
        at = minute_end(held.complete_until)
        self.done.since[segment] = min(self.done.since.get(segment, at), at)
