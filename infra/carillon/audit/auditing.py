"""Reads the tables of a deployment, page by page, and judges the runs of a span."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from carillon.audit.evidence import Evidence, Gap, JobVersion, Violation
from carillon.audit.judging import ROW_RULES
from carillon.audit.known import Indexed, Known, current_generation
from carillon.clock import Clock
from carillon.domain.job import Job, JobState
from carillon.domain.run import Run, RunKind, RunStatus
from carillon.domain.wheel.entry import (
    ZONE_CHANGE,
    Slot,
    minute_end,
    minute_of,
    minute_start,
    slots_of_minute,
    standing_key,
)
from carillon.domain.wheel.segment import Control
from carillon.errors import UnreadableRowError
from carillon.schedules import SlotKind
from carillon.schedules.placement.slots import is_zone_dependent
from carillon.services.history import History
from carillon.settings import Settings
from carillon.stores.cursors import pages
from carillon.stores.ports import Stores
from carillon.stores.segments import segments_in_use

UNDER_WAY = timedelta(minutes=30)
"""A run as young as this may yet come: longer than the longest delay of a message, and than the
consequences of one crash."""

_PAGE = 500
_MOST_TOLD, _MOST_FOUND = 10, 1_000
"""Of one page of a job's runs this many findings are reported, and searched for, at most."""
_LONGEST_CATCH_UP = timedelta(days=15)
"""A catch-up's row is at most this long after the first occurrence that it covers."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken promise: of a job, or of a segment where `owner` and `job_id` are empty."""

    promise: str
    owner: str
    job_id: str
    text: str


@dataclass(slots=True)
class Seen:
    """The counts of what an audit has read so far."""

    jobs: int = 0
    runs: int = 0
    findings: int = 0


class Audit:
    """Judges the occurrences of all jobs after `since` and up to `until`, and checks that the next
    ones are indexed.

    `segments`: the option; what is in use beyond it is judged, too.
    `rest_at`: what was written after it is under way. It holds one page of one job's runs at a
    time. Only reads: it can be broken off and begun anew. Its clock's time zones must be those of
    the deployment.
    """

    def __init__(
        self,
        stores: Stores,
        history: History,
        segments: int,
        since: datetime,
        until: datetime,
        rest_at: datetime,
    ) -> None:
        self.seen = Seen()
        self._stores = stores
        self._history = history
        self._segments = segments
        self._since, self._until, self._rest_at = since, until, rest_at
        self._dispatched: dict[int, datetime] = {}
        self._controls: dict[int, Control] = {}
        self._gaps: list[Gap] = []
        self._unreadable: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        stores: Stores,
        clock: Clock,
        settings: Settings,
        since: datetime,
        until: datetime,
        rest_at: datetime,
    ) -> "Audit":
        """That of a deployment with these settings."""
        history = History.of(stores, clock, settings.run_lifetime)
        return cls(stores, history, settings.segments, since, until, rest_at)

    def findings(self) -> Iterator[Finding]:
        """Each as it is found; raises StoreUnavailableError."""
        for finding in self._all():
            self.seen.findings += 1
            yield finding

    def _all(self) -> Iterator[Finding]:
        for segment in range(segments_in_use(self._stores.wheel, self._segments)):
            yield from self._segment(segment)
        for page in pages(partial(self._stores.jobs.scan, _PAGE)):
            self.seen.jobs += len(page.items) + len(page.unreadable)
            for reason in page.unreadable.values():
                yield Finding("unreadable", "", "", reason)
            for job in page.items:
                yield from self._settled(job)

    def _segment(self, segment: int) -> Iterator[Finding]:
        """Judge the progress of a segment; what it has not dispatched yet is late, and not lost."""
        try:
            control = self._read_control(segment)
        except UnreadableRowError as error:
            self._dispatched[segment] = self._since
            yield Finding("unreadable", "", "", str(error))
            return
        if control is None:
            return
        self._dispatched[segment] = minute_end(control.watermark)
        self._gaps += [
            Gap(segment, minute_start(each.done + 1), minute_start(each.until + 1))
            for each in control.backlog
        ]
        for text in _behind(control, self._until):
            yield Finding("I3", "", "", f"segment {segment} {text}")

    def _settled(self, job: Job) -> Iterator[Finding]:
        """The faults of a job, unless its row has changed since it was read: then the faults by the
        new row."""
        found = list(self._of_job(job))
        try:
            now = self._stores.jobs.get(job.owner, job.job_id) if found else job
        except UnreadableRowError as error:
            return iter([Finding("unreadable", job.owner, job.job_id, str(error))])
        if now is not None and now != job:
            found = list(self._of_job(now))
        return iter(found)

    def _of_job(self, job: Job) -> Iterator[Finding]:
        self._unreadable.clear()
        for violation in self._violations(job):
            yield Finding(violation.invariant, job.owner, job.job_id, violation.text)
        for reason in self._unreadable.values():
            yield Finding("unreadable", job.owner, job.job_id, reason)
        text = self._unfiled(job)
        if text:
            yield Finding("I1", job.owner, job.job_id, text)

    def _violations(self, job: Job) -> Iterator[Violation]:
        """Page by page, the newest first: each is judged as the span of its fire times."""
        until = min(self._until, self._dispatched.get(job.segment, self._since))
        last = until - timedelta(seconds=job.spread_seconds)
        carried: list[Run] = []
        for rows, since in self._pages(job, last):
            self.seen.runs += len(rows)
            found = self._judged(job, [*carried, *rows], since, last)
            if not carried and any(each.fire_at is not None for each in found):
                carried = self._catch_ups_after(job, last)
                found = self._judged(job, [*carried, *rows], since, last)
            yield from _told(found)
            carried = _reaching_back([*carried, *rows], since)
            last = since

    def _pages(self, job: Job, last: datetime) -> Iterator[tuple[list[Run], datetime]]:
        """The runs with fire times up to `last`, and from behind when on each page has them all."""
        held: list[Run] = []
        read = partial(
            self._history.page, from_at=self._since + _SECOND, until_at=last, consistent=True
        )
        for page in pages(partial(read, job.owner, job.job_id, _PAGE)):
            held += page.items
            self._unreadable.update(page.unreadable)
            if page.next_cursor is None:
                yield held, self._since
                return
            # Of the oldest fire time there may be more to come.
            oldest = held[-1].key.fire_at if held else last
            whole = [row for row in held if row.key.fire_at > oldest]
            if whole:
                yield whole, oldest
                held = held[len(whole) :]

    def _catch_ups_after(self, job: Job, last: datetime) -> list[Run]:
        """Rows of later catch-ups that cover occurrences up to `last`."""
        from_at, until_at = last + _SECOND, last + _LONGEST_CATCH_UP
        read = partial(self._history.page, from_at=from_at, until_at=until_at)
        found = pages(partial(read, job.owner, job.job_id, _PAGE))
        return [row for page in found for row in _reaching_back(page.items, last)]

    def _judged(
        self, job: Job, rows: list[Run], since: datetime, last: datetime
    ) -> list[Violation]:
        """By all rules, of the generation that counts: what the schedules of those before it were
        is not known any more, nor what that of a job was which was changed in its pause."""
        own = replace(job, previous=None, earlier=())
        evidence = Evidence(
            versions={job.job_id: [JobVersion(job.updated_at, own)]} if job.is_as_filed else {},
            runs=[row for row in rows if not _is_forsaken(job, row)],
            until=last + timedelta(seconds=job.spread_seconds),
            since=since,
            gaps=[gap for gap in self._gaps if gap.segment == job.segment],
            rest_at=self._rest_at,
        )
        known = Known(evidence)
        found = (each for rule in ROW_RULES for each in rule(known))
        own_page = (each for each in found if each.fire_at is None or each.fire_at <= last)
        return list(islice(own_page, _MOST_FOUND))

    def _unfiled(self, job: Job) -> str | None:
        """The reason why no tick would send the job's next occurrence; None if one will."""
        indexed = current_generation(JobVersion(job.updated_at, job))
        if job.state is not JobState.ACTIVE or not indexed.is_computable:
            return None
        if job.segment not in self._dispatched and self._read_control(job.segment) is None:
            following = job.schedule.next(max(self._until, indexed.from_at))
            text = f"no tick serves its segment, {job.segment}, which has no control item"
            return None if following is None else f"{text}: it is to be put on the wheel anew"
        known = self._controls.get(job.segment)
        missing = self._missing(indexed, known) if known is not None else None
        if missing is not None:
            # A tick may have been there meanwhile, and have indexed what comes then.
            self._read_control(job.segment)
            missing = self._missing(indexed, self._controls[job.segment])
        if missing is None:
            return None
        return f"its next occurrence, at {missing}, is indexed nowhere: it would never come"

    def _missing(self, indexed: Indexed, control: Control) -> datetime | None:
        """The first occurrence that is due after what ticks have announced, if no slot holds it,
        nor the first one that they have yet to dispatch: whose visit puts the next."""
        for minute in (control.complete_until, control.horizon):
            after = minute_end(minute)
            following = indexed.job.schedule.next(max(after - indexed.spread, indexed.from_at))
            if following is None or self._holds(indexed, following, after):
                return None
        return following

    def _holds(self, indexed: Indexed, following: datetime, after: datetime) -> bool:
        """True if a slot holds the first occurrence that is due after an instant."""
        job = indexed.job
        key = standing_key(job.job_id, indexed.generation_id)
        slots = [*slots_of_minute(minute_of(following + indexed.spread))]
        # The link that only looks whether the zone has changed comes before, until it is visited.
        look = minute_of(following + indexed.spread - ZONE_CHANGE)
        if is_zone_dependent(job.schedule) and look > minute_of(after):
            slots.append(Slot(SlotKind.DATED, look))
        return any(self._stores.wheel.holds(job.segment, slot, key) for slot in slots)

    def _read_control(self, segment: int) -> Control | None:
        control = self._stores.wheel.get_control(segment)
        if control is not None:
            self._controls[segment] = control
        return control


def _is_forsaken(job: Job, row: Run) -> bool:
    """True if an unfinished row has no purpose: a process claimed it that had been stopped past its
    lease, for generations that never counted, or not at that instant. Nobody comes for it."""
    if row.status is not RunStatus.RUNNING or row.attempt > 1 or not row.key.is_occurrence:
        return False
    own, at = current_generation(JobVersion(job.updated_at, job)), row.key.fire_at
    spans = {own.generation_id: (own.from_at, own.until_at)}
    spans.update({each.generation_id: (each.from_at, each.until_at) for each in job.replaced})
    for generation_id in (row.generation_id, *row.other_generations):
        begin, end = spans.get(generation_id, (at, at))
        if begin < at and (end is None or at <= end):
            return False
        if generation_id not in spans and job.has_counted(generation_id):
            return False  # the job's row does not remember when
    return True


def _behind(control: Control, until: datetime) -> Iterator[str]:
    reached = minute_end(control.watermark)
    if reached < until - timedelta(minutes=1):
        yield f"has dispatched nothing after {reached}"
    for each in control.backlog:
        begin, end = minute_start(each.done + 1), minute_end(each.until)
        if each.until > each.done and begin <= until:
            yield f"has yet to dispatch what was due from {begin} to {end}"


def _told(found: list[Violation]) -> Iterator[Violation]:
    """The first of them, and how many more there are."""
    yield from found[:_MOST_TOLD]
    left = found[_MOST_TOLD:]
    if left:
        yield replace(left[0], text=f"{left[0].text}; and {len(left) - 1} more, or beyond")


def _reaching_back(rows: Iterable[Run], until: datetime) -> list[Run]:
    """Rows of catch-ups that are later than `until`, and cover what is not."""
    return [
        row
        for row in rows
        if row.key.kind is RunKind.MISSED and row.key.fire_at > until
        if row.covers_from is not None and row.covers_from <= until
    ]
