"""The ports of an executor."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from carillon.clock import Clock, Entropy, ThreadTimers, Timers
from carillon.domain.admission.state import AdmissionRow
from carillon.domain.calendar import Calendar
from carillon.domain.execution.transitions import ClaimTerms
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Job
from carillon.domain.message import Message
from carillon.domain.operation import Operation
from carillon.domain.targets import Target
from carillon.executor.runs.lifecycle_events import LifecycleEvents
from carillon.executor.targets import Call, Outcome
from carillon.services.activity import ActivitySink
from carillon.services.history import History
from carillon.services.indexer import Indexer
from carillon.stores.ports import (
    EventSink,
    JobStore,
    LaneQueue,
    RunStore,
    VersionedRows,
    WheelStore,
)


class Deliverer(Protocol):
    """The part of the targets that the protocol needs: `Targets`, or a stand-in for tests."""

    def deliver(self, target: Target, call: Call) -> Outcome:
        """Call the target once; whatever it does is an outcome, never an exception."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutorPorts:
    """The ports that an executor works on.

    `run_lifetime` is how long a run row lives after its last claim: longer than any duplicate of
    its message. `longest_timeout_seconds` caps the jobs' own limits: a deployment may
    have been given shorter processes than a job was made for. What could not be begun for
    longer than `queue_retention` is given up. An attempt longer than `slow_after_seconds` is a
    slow one; of the places in lane slow an owner holds `slow_lane_share` at most. The limits of an
    owner, `owner_starts_per_minute` and `owner_concurrent_runs`, are none where they are 0. Targets
    report the end of runs below `api_url`, which has no slash at its end.
    """

    jobs: JobStore
    calendars: VersionedRows[Calendar]
    wheel: WheelStore
    runs: RunStore
    queue: LaneQueue
    indexer: Indexer
    targets: Deliverer
    clock: Clock
    entropy: Entropy
    run_lifetime: timedelta
    longest_timeout_seconds: int
    admission_rows: VersionedRows[AdmissionRow]
    operations: VersionedRows[Operation]
    records: VersionedRows[IdempotencyRecord]
    events: EventSink
    activity: ActivitySink
    owner_starts_per_minute: int = 0
    owner_concurrent_runs: int = 0
    queue_retention: timedelta = timedelta(days=10)
    slow_after_seconds: int = 2
    slow_lane_share: int = 1
    api_url: str = ""
    timers: Timers = ThreadTimers()  # noqa: RUF009 - one for the process

    @property
    def history(self) -> History:
        return History(self.runs)

    @property
    def lifecycle(self) -> LifecycleEvents:
        return LifecycleEvents(self.events, self.activity)

    def claim_terms(self, now: datetime, lease_until: datetime) -> ClaimTerms:
        """The terms of a claim that is made now."""
        return ClaimTerms(self.entropy.new_id(now), lease_until, now + self.run_lifetime)

    def job_of(self, message: Message) -> Job | None:
        """The row of the message's job as it is now; raises StoreUnavailableError."""
        return self.jobs.get(message.key.owner, message.key.job_id)
