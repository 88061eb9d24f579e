"""The whole scheduler in one process under a virtual clock: real protocols, memory stores.

Time goes second by second: a tick at the start of each minute, and executors that take whatever
the queue makes visible. A target is a Python function of the call.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from carillon.clock import ManualClock, SeededEntropy
from carillon.domain.calendar import Calendar, CalendarUse
from carillon.domain.execution.resuming import resume_message
from carillon.domain.job import Generation, Job, Lane, Priority, fraction_of, segment_of
from carillon.domain.message import Message
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.policies import CatchUp, OnComplete, RetryPolicy
from carillon.domain.quotas import NO_LIMITS, Quota
from carillon.domain.run import TRANSITIONS, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of
from carillon.errors import HeldError
from carillon.executor.batch import Report
from carillon.executor.ports import ExecutorPorts
from carillon.executor.router import Router
from carillon.executor.targets import Call, Outcome, Success
from carillon.schedules import (
    DEFAULT_DST,
    CalendarRule,
    DstRule,
    Schedule,
    parse_schedule,
    parse_window,
    spread_seconds,
)
from carillon.services.activity import Activity, ActivityWriter, GatheredActivity
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import UNLIMITED, Quotas
from carillon.stores.memory.activity import MemoryActivityStore
from carillon.stores.memory.changes import MemoryChangeStore
from carillon.stores.memory.chunks import MemoryChunkStore
from carillon.stores.memory.messaging import MemoryEvents, MemoryQueue
from carillon.stores.memory.rows import (
    MemoryJobStore,
    MemoryVersionedRows,
)
from carillon.stores.memory.runs import MemoryRunStore
from carillon.stores.memory.wheel import MemoryWheelStore
from carillon.stores.ports import (
    ADMISSION_ROWS,
    CALENDARS,
    IDEMPOTENCY_RECORDS,
    NOTIFICATIONS,
    OPERATIONS,
    QUOTAS,
    USES,
    WINDOWS,
)
from carillon.tick.counting import SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import TickPorts
from tests.support.jobs import job_with, make_job

OWNER = "user/owner-1"
FUNCTION_SECONDS = 60
LIFETIME = timedelta(days=30)
TZDATA = "2026.1"
"""The version of the time zone database that the ticks have, unless a test gives them another."""


def quotas_of(**limits: int) -> Quotas:
    """These limits for every owner, by their names, and no others."""
    return Quotas({**NO_LIMITS, **{Quota(name): limit for name, limit in limits.items()}})


class RecordingTargets:
    """Stands in for the executor's targets: every call succeeds unless `behave` says otherwise."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.behave: Callable[[Call], Outcome] = lambda call: Success("done")

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        self.calls.append(call)
        return self.behave(call)


class CheckedRuns(MemoryRunStore):
    """Lets no run change otherwise than TRANSITIONS says."""

    def _put(self, run: Run, stored: Run | None, allowed: bool) -> bool:
        is_put = super()._put(run, stored, allowed)
        if allowed and stored is not None and (run.is_final, run.status) != (True, stored.status):
            assert run.status in TRANSITIONS[stored.status], (stored, run)
        return is_put


class World:
    """One deployment with `segments` segments, standing at `start`."""

    def __init__(self, start: datetime, segments: int = 2, seed: int = 0) -> None:
        self.clock = ManualClock(start)
        self.entropy = SeededEntropy(seed)
        self.segments = segments
        self.jobs = MemoryJobStore()
        self.calendars = MemoryVersionedRows(CALENDARS)
        self.wheel = MemoryWheelStore(page_size=7)
        self.runs = CheckedRuns()
        self.chunks = MemoryChunkStore()
        self.activity = MemoryActivityStore()
        self.changes = MemoryChangeStore()
        self.admission_rows = MemoryVersionedRows(ADMISSION_ROWS)
        self.operations = MemoryVersionedRows(OPERATIONS)
        self.idempotency_records = MemoryVersionedRows(IDEMPOTENCY_RECORDS)
        self.notifications = MemoryVersionedRows(NOTIFICATIONS)
        self.windows = MemoryVersionedRows(WINDOWS)
        self.quotas = MemoryVersionedRows(QUOTAS)
        self.uses = MemoryVersionedRows(USES)
        self.events = MemoryEvents()
        self.queue = MemoryQueue(self.clock, visibility_timeout_seconds=6 * FUNCTION_SECONDS)
        self.indexer = Indexer(self.jobs, self.wheel, self.queue, self.clock, self.calendars)
        self.targets = RecordingTargets()
        self.bad_entries: list[str] = []
        self.reports: list[Report] = []
        writer = ActivityWriter(self.activity, self.clock, self.entropy, timedelta(days=7))
        self.gathered = GatheredActivity(writer)
        self.executor_ports = ExecutorPorts(
            jobs=self.jobs,
            calendars=self.calendars,
            wheel=self.wheel,
            runs=self.runs,
            chunks=self.chunks,
            queue=self.queue,
            indexer=self.indexer,
            targets=self.targets,
            clock=self.clock,
            entropy=self.entropy,
            run_lifetime=LIFETIME,
            longest_timeout_seconds=FUNCTION_SECONDS - 5,
            admission_rows=self.admission_rows,
            operations=self.operations,
            records=self.idempotency_records,
            notifications=self.notifications,
            windows=self.windows,
            events=self.events,
            activity=self.gathered,
            feed=Activity(self.activity),
            job_quotas=JobQuotas(UNLIMITED, self.jobs, self.uses, self.clock, self.entropy),
        ).notifying()
        self.executor = Router(self.executor_ports)
        self.tick_ports = TickPorts(
            jobs=self.jobs,
            calendars=self.calendars,
            wheel=self.wheel,
            chunks=self.chunks,
            indexer=self.indexer,
            clock=self.clock,
            on_bad_entry=lambda *where: self.bad_entries.append(" ".join(map(str, where))),
            tzdata=TZDATA,
        )

    def new_job(
        self,
        name: str,
        schedule: str | Sequence[object],
        *,
        timezone: str = "UTC",
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        max_runs: int | None = None,
        dst: DstRule = DEFAULT_DST,
        except_: Sequence[object] = (),
        window: str = "",
        fraction: float | None = None,
        calendar: tuple[str, CalendarRule] | None = None,
        on_complete: OnComplete = OnComplete.KEEP,
        catch_up: CatchUp = CatchUp.LATEST,
        priority: Priority = Lane.NORMAL,
        retry: RetryPolicy | None = None,
        timeout_seconds: int | None = 10,
        **more: Any,
    ) -> Job:
        """A job as the api would make it now; not indexed.

        `fraction` in [0, 1) is its place in the window, which otherwise follows from its id;
        `more` are other members of Job.
        """
        now = self.clock.now()
        job_id = job_id_of(OWNER, name)
        generation = Generation(self.entropy.new_id(now), now.replace(microsecond=0))
        parsed = parse_schedule(schedule, timezone, start_at, end_at, dst, except_)
        place = fraction_of(job_id) if fraction is None else fraction
        return make_job(
            ended(parsed, max_runs, generation.from_at),
            owner=OWNER,
            job_id=job_id,
            name=name,
            segment=segment_of(job_id, self.segments),
            generation=generation,
            created_at=now,
            updated_at=now,
            catch_up=catch_up,
            priority=priority,
            retry=retry or RetryPolicy(),
            timeout_seconds=timeout_seconds,
            end_at=end_at,
            max_runs=max_runs,
            on_complete=on_complete,
            window=window or None,
            spread_seconds=spread_seconds(parse_window(window), parsed, place) if window else 0,
            calendar=None if calendar is None else CalendarUse(*calendar),
            **more,
        )

    def create(self, name: str, schedule: str | Sequence[object], **options: object) -> Job:
        """Make a job and file it."""
        job = self.new_job(name, schedule, **options)  # type: ignore[arg-type]
        assert self.indexer.index_job(job, None)
        return job

    def pause(self, job: Job, until: datetime | None = None) -> Job:
        paused = job.paused(self.clock.now(), resume_at=until)
        if until is not None:
            self.indexer.schedule_message(resume_message(paused))
        assert self.jobs.replace(paused, job.revision)
        return paused

    def new_generation(self, job: Job, schedule: str | None = None, **changes: object) -> Job:
        """Resume, or change the schedule or other members of the row."""
        now = self.clock.now()
        generation_id = self.entropy.new_id(job.generation.next_id_at(now))
        changed = job.in_new_generation(Generation(generation_id, now.replace(microsecond=0)), now)
        if schedule is not None:
            changes["schedule"] = parse_schedule(schedule, job.schedule.timezone)
        changed = job_with(changed, **changes)
        assert self.indexer.index_job(changed, job.revision)
        return changed

    def ask(self, job: Job) -> RunKey:
        """Ask for a run by hand, as the api does."""
        now = self.clock.now()
        fire_at, request_id = now.replace(microsecond=0), self.entropy.new_id(now)
        key = RunKey(OWNER, job.job_id, RunKind.MANUAL, fire_at, request_id)
        generation_id, until = job.generation.generation_id, now + LIFETIME
        row = Run(key, RunStatus.SCHEDULED, 0, 0, request_id, generation_id, now, until)
        assert self.runs.claim(row, None)
        self.queue.send([Message(key, generation_id, job.segment, job.lane, fire_at)], [0])
        return key

    def close(self, name: str, *days: str, weekdays: Iterable[int] = ()) -> None:
        """Put a calendar, new or over an older one, in which exactly these days are closed."""
        stored = self.calendars.get(OWNER, name)
        revision = None if stored is None else stored.revision
        now = self.clock.now()
        calendar = Calendar(
            owner=OWNER,
            name=name,
            revision=1 if revision is None else revision + 1,
            weekdays=frozenset(weekdays),
            ranges=tuple((date.fromisoformat(day), date.fromisoformat(day)) for day in days),
            created_at=now,
            updated_at=now,
        )
        assert self.calendars.put(calendar, revision)

    def dispatcher(self) -> Dispatcher:
        owner = self.entropy.new_id(self.clock.now())
        return Dispatcher(self.tick_ports, lease_owner=owner, look_ahead_minutes=2)

    def tick(self) -> list[SegmentReport]:
        deadline = self.clock.now() + timedelta(seconds=52)
        return self.dispatcher().tick(range(self.segments), (), deadline)

    def execute(self) -> None:
        """Handle every message that is visible now."""
        ends_at = self.clock.now() + timedelta(seconds=FUNCTION_SECONDS)
        while received := self.queue.receive(self.clock.now(), 10):
            for one in received:
                with suppress(HeldError):
                    self.reports.append(self.executor.lane(one.body, ends_at))
                    self.queue.delete(one.receipt)
            self.gathered.flush()

    def run_until(self, until: datetime, *, ticking: bool = True) -> None:
        """Let time pass to `until`, inclusive; without ticks if `ticking` is false."""
        while self.clock.now() <= until:
            if ticking and self.clock.now().second == 0:
                self.tick()
            self.execute()
            self.clock.advance(1)

    def leap_to(self, instant: datetime) -> None:
        """Be at `instant` at once, as if every minute before its own had been dispatched: for
        times in which nothing is due."""
        self.clock.set(instant)
        minute = minute_of(instant) - 1
        for segment in range(self.segments):
            seen = self.indexer.control(segment)
            later = replace(seen, watermark=minute, horizon=minute)
            assert self.wheel.put_control(later, over=seen)

    def history(self, job: Job) -> list[Run]:
        """The job's runs, oldest first."""
        items = self.runs.list(job.owner, job.job_id, limit=100_000).items
        return list(reversed(items))

    def fired(self, job: Job) -> list[datetime]:
        """The fire times of the calls to the job's target, in the order of the calls."""
        return [call.fire_at for call in self.targets.calls if call.job_id == job.job_id]


def ended(schedule: Schedule, max_runs: int | None, from_at: datetime) -> Schedule:
    """The schedule as the api stores it: at its end after `max_runs` occurrences."""
    if max_runs is None:
        return schedule
    far = from_at + timedelta(days=36_525)
    *_, last = islice(schedule.between(from_at, far), max_runs)
    timezone, start_at, dst = schedule.timezone, schedule.start_at, schedule.dst
    return parse_schedule(schedule.text, timezone, start_at, last, dst)


def times(text: str, day: datetime) -> list[datetime]:
    """Instants of one day from text such as "00:04 00:08:30"."""
    found: Iterable[list[int]] = ([int(part) for part in word.split(":")] for word in text.split())
    return [day.replace(hour=t[0], minute=t[1], second=t[2] if len(t) > 2 else 0) for t in found]
