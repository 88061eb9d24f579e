"""The ports of an executor."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from carillon.clock import Clock, Entropy, SideBySide, ThreadTimers, Timers, one_by_one
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.calendar import Calendar
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.notifying.notification import Deliverable, Notification, notification_of
from carillon.domain.notifying.window import Window
from carillon.domain.operation import Operation
from carillon.domain.run import RunKey, RunKind
from carillon.executor.notifying.notifier import Notifier
from carillon.executor.notifying.orders import WindowOrders
from carillon.executor.runs.lifecycle_events import SILENT, LifecycleEvents, Listener
from carillon.executor.targets import Call, Outcome
from carillon.services.activity import Activity, ActivitySink
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.notices import Notices
from carillon.services.packed import PackedRuns
from carillon.services.quotas import UNLIMITED, Quotas
from carillon.stores.ports import (
    ChunkStore,
    EventSink,
    JobStore,
    LaneQueue,
    RunStore,
    VersionedRows,
    WheelStore,
)

_SETTLED_SECONDS = 15
"""A process lives at most so much longer than the longest limit of an attempt."""


class Deliverer(Protocol):
    """The part of the targets that the protocol needs: `Targets`, or a stand-in for tests."""

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        """Call the target once; whatever it does is an outcome, never an exception."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutorPorts:
    """The ports that an executor works on.

    `run_lifetime` is how long a run row lives after its last claim: longer than any duplicate of
    its message. `longest_timeout_seconds` caps the jobs' own limits: a deployment may
    have been given shorter processes than a job was made for. What could not be begun for
    longer than `queue_retention` is given up. An attempt longer than `slow_after_seconds` is a
    slow one; of the places in lane slow an owner holds `slow_lane_share` at most. Targets
    report the end of runs below `api_url`, which has no slash at its end. Messages of notifications
    link to `console_url`, if there is one.
    `room` for a call of a chunk is that of `Targets`.
    """

    jobs: JobStore
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    runs: RunStore
    chunks: ChunkStore
    queue: LaneQueue
    indexer: Indexer
    targets: Deliverer
    clock: Clock
    entropy: Entropy
    run_lifetime: timedelta
    longest_timeout_seconds: int
    admission_rows: VersionedRows[AdmissionRow]
    operations: VersionedRows[Operation]
    notifications: VersionedRows[Notification]
    windows: VersionedRows[Window]
    records: VersionedRows[IdempotencyRecord]
    events: EventSink
    activity: ActivitySink
    feed: Activity
    job_quotas: JobQuotas
    quotas: Quotas = UNLIMITED
    queue_retention: timedelta = timedelta(days=10)
    slow_after_seconds: int = 2
    slow_lane_share: int = 1
    api_url: str = ""
    console_url: str = ""
    notifier: Listener = SILENT
    timers: Timers = ThreadTimers()  # noqa: RUF009 - one for the process
    side_by_side: SideBySide = one_by_one
    room: Callable[[Deliverable], AbstractContextManager[bool]] = lambda target: nullcontext(True)

    @property
    def packed(self) -> PackedRuns:
        return PackedRuns(self.jobs, self.chunks, self.clock, self.run_lifetime)

    @property
    def history(self) -> History:
        return History(self.runs, self.packed)

    @property
    def lifecycle(self) -> LifecycleEvents:
        return LifecycleEvents(self.events, self.activity, self.notifier)

    @property
    def notices(self) -> Notices:
        return Notices(self.records, self.queue, self.clock, self.run_lifetime)

    @property
    def window_orders(self) -> WindowOrders:
        return WindowOrders(self.notices, self.queue, self.settle, self.console_url)

    @property
    def settle(self) -> timedelta:
        """So long after the end of a run everything that its executor records of it is there."""
        return timedelta(seconds=self.longest_timeout_seconds + _SETTLED_SECONDS)

    def notifying(
        self, on_error: Callable[[Exception], None] = lambda error: None
    ) -> "ExecutorPorts":
        """With a listener that tells the owners' notifications; `on_error` gets what fails."""
        notifier = Notifier(
            self.notifications,
            self.windows,
            self.window_orders,
            self.clock,
            on_error,
        )
        return replace(self, notifier=notifier)

    def claim_terms(self, now: datetime, lease_until: datetime) -> ClaimTerms:
        """The terms of a claim that is made now."""
        return ClaimTerms(self.entropy.new_id(now), lease_until, now + self.run_lifetime)

    def job_of(self, message: Message) -> Job | None:
        """The row of the message's job as it is now; raises StoreUnavailableError."""
        return self.job_of_run(message.key)

    def job_of_run(self, key: RunKey) -> Job | None:
        """The row of the run's job; of a delivery what its notification makes one."""
        if key.kind is RunKind.NOTICE:
            notification = self.notifications.get(key.owner, notification_of(key))
            return None if notification is None else notification.as_job()
        return self.jobs.get(key.owner, key.job_id)
