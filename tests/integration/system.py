"""Tick and executors on a deployment's real stores, as a test drives them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Any

from carillon.clock import Clock, SystemEntropy
from carillon.domain.chunks.message import Order
from carillon.domain.job import Generation, Job, segment_of
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.policies import CatchUp
from carillon.domain.spec.names import job_id_of
from carillon.domain.wheel.entry import minute_of
from carillon.executor.ports import ExecutorPorts
from carillon.executor.router import Router
from carillon.executor.targets import Call, Outcome, Success
from carillon.services.activity import Activity, ActivityWriter, GatheredActivity
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import UNLIMITED
from carillon.stores.dynamo import Stores
from carillon.stores.memory import NoEvents
from carillon.stores.ports import LaneQueue, WheelStore
from carillon.tick.counting import SegmentReport
from carillon.tick.dispatcher import Dispatcher
from carillon.tick.ports import Invite, TickPorts
from carillon.tick.root import Root
from carillon.tick.sharing import Share, Worth, in_order, segments_of
from tests.support.jobs import make_job

OWNER = "9f4c1c1e-6d3a-4b52-8f5e-0a2b7c9d1e3f"


class CountingTargets:
    """Every call succeeds; counts them by run."""

    def __init__(self) -> None:
        self.calls: dict[str, int] = {}
        self._lock = Lock()

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        with self._lock:
            self.calls[call.run_id] = self.calls.get(call.run_id, 0) + 1
        return Success(None)


class Undelayed:
    """A lane queue without delays: a test with a virtual clock need not wait."""

    def __init__(self, queue: LaneQueue) -> None:
        self._queue = queue

    def send(self, messages: Sequence[Order], delays: Sequence[float], *until: Any) -> None:
        self._queue.send(messages, [0] * len(delays))


class System:
    """One deployment under one clock, with or without chunks."""

    def __init__(
        self, stores: Stores, queue: LaneQueue, clock: Clock, *, chunks: bool = False
    ) -> None:
        self.stores = stores
        self.queue = queue
        self.clock = clock
        self.chunks = chunks
        self.entropy = SystemEntropy()
        self.targets = CountingTargets()

    def job(self, name: str, schedule: str, segment: int | None = None) -> Job:
        """A job as the api would make it now; not indexed."""
        now = self.clock.now()
        job_id = job_id_of(OWNER, name)
        return make_job(
            schedule,
            owner=OWNER,
            job_id=job_id,
            name=name,
            payload='{"to":"someone@example.com"}',
            segment=segment_of(job_id, 2) if segment is None else segment,
            generation=Generation(self.entropy.new_id(now), now.replace(microsecond=0)),
            created_at=now,
            updated_at=now,
            # Tests let minutes pass between tick and executor: what comes late runs all the same.
            catch_up=CatchUp.ALL,
        )

    def indexer(self) -> Indexer:
        return Indexer(
            self.stores.jobs, self.stores.wheel, self.queue, self.clock, self.stores.calendars
        )

    def tick(self, segments: int, wheel: WheelStore | None = None) -> list[SegmentReport]:
        """One invocation of the tick, as a process of its own would make it."""
        ports = self._tick_ports(wheel or self.stores.wheel)
        return self._dispatcher(ports).tick(range(segments), (), self._deadline())

    def root(self, segments: int, workers: int, invite: Invite) -> list[SegmentReport]:
        """One invocation of the root."""
        ports = self._tick_ports(self.stores.wheel)
        root = Root(
            ports,
            self._dispatcher(ports),
            invite,
            lambda share, error: None,
            workers=workers,
            worth=Worth(),
        )
        return root.tick(segments, self._deadline())

    def share(self, segments: int, share: Share) -> list[SegmentReport]:
        """One invocation of a share."""
        order = in_order(segments, minute_of(self.clock.now()))
        dispatcher = self._dispatcher(self._tick_ports(self.stores.wheel))
        return dispatcher.tick(*segments_of(order, share), self._deadline())

    def _tick_ports(self, wheel: WheelStore) -> TickPorts:
        return TickPorts(
            jobs=self.stores.jobs,
            calendars=self.stores.calendars,
            wheel=wheel,
            chunks=self.stores.chunks,
            indexer=Indexer(self.stores.jobs, wheel, self.queue, self.clock, self.stores.calendars),
            clock=self.clock,
            on_bad_entry=lambda *where: None,
            chunked=self.chunks,
        )

    def _dispatcher(self, ports: TickPorts) -> Dispatcher:
        owner = self.entropy.new_id(self.clock.now())
        return Dispatcher(ports, lease_owner=owner, look_ahead_minutes=2)

    def _deadline(self) -> datetime:
        return self.clock.now() + timedelta(seconds=50)

    def executor(self) -> Router:
        return Router(
            ExecutorPorts(
                jobs=self.stores.jobs,
                calendars=self.stores.calendars,
                wheel=self.stores.wheel,
                runs=self.stores.runs,
                chunks=self.stores.chunks,
                queue=self.queue,
                indexer=self.indexer(),
                targets=self.targets,
                clock=self.clock,
                entropy=self.entropy,
                run_lifetime=timedelta(days=30),
                longest_timeout_seconds=55,
                admission_rows=self.stores.admission_rows,
                operations=self.stores.operations,
                records=self.stores.idempotency_records,
                notifications=self.stores.notifications,
                windows=self.stores.windows,
                events=NoEvents(),
                feed=Activity(self.stores.activity),
                job_quotas=JobQuotas(
                    UNLIMITED, self.stores.jobs, self.stores.uses, self.clock, self.entropy
                ),
                activity=GatheredActivity(
                    ActivityWriter(
                        self.stores.activity, self.clock, self.entropy, timedelta(days=7)
                    )
                ),
            )
        )

    def ends_at(self) -> datetime:
        return self.clock.now() + timedelta(seconds=60)
