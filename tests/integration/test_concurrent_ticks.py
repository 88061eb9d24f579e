"""Sixteen ticks for the same minute at once, on a server whose conditional writes are atomic."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Barrier, Lock

import boto3
import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.job import Job, Lane
from carillon.domain.message import decode
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import Entry, Slot, minute_end
from carillon.domain.wheel.segment import Control
from carillon.errors import HeldError
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores
from carillon.stores.ports import Page, WheelStore
from carillon.tick.counting import SegmentOutcome, SegmentReport
from carillon.tick.sharing import NO_SHARE, Share
from tests.integration.system import System, Undelayed
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack

TICKS = 16
SEGMENTS = 2
MORE_SEGMENTS = 6
WORKERS = 4
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class Killed(BaseException):
    """The tick's process dies here."""


class DyingWheel:
    """The first to free its lease (sends done, watermark not moved) dies instead; once."""

    def __init__(self, wheel: WheelStore) -> None:
        self._wheel = wheel
        self._lock = Lock()
        self.deaths = 0

    def put_control(self, control: Control, over: Control | None) -> bool:
        with self._lock:
            if control.lease_until is None and over is not None and self.deaths == 0:
                self.deaths += 1
                raise Killed
        return self._wheel.put_control(control, over)

    def query(self, segment: int, slot: Slot, after_key: str | None = None) -> Page[Entry]:
        return self._wheel.query(segment, slot, after_key)

    def get_control(self, segment: int) -> Control | None:
        return self._wheel.get_control(segment)

    def __getattr__(self, name: str) -> object:
        return getattr(self._wheel, name)


@pytest.fixture
def deployment(ministack: str) -> tuple[System, ManualClock, Settings]:
    clock = ManualClock(NOON)
    settings = create_deployment(f"ticks-{uuid.uuid4().hex[:8]}")
    stores = open_stores(settings, SystemClock())
    return System(stores, Undelayed(stores.queue), clock), clock, settings


def roots_and_shares_at_once(system: System) -> tuple[list[SegmentOutcome], list[Share]]:
    """Two roots, the shares that each of them invites, some of those once more, and what no root
    has meant, from one barrier."""
    barrier, invited = Barrier(TICKS, timeout=20), list[Share]()
    by_two_roots = [Share(number, WORKERS) for number in range(1, WORKERS)] * 2
    strays = [NO_SHARE, Share(0, 1), Share(7, 9), *by_two_roots]
    shares = [*by_two_roots, *strays][: TICKS - 2]

    def one(share: Share | None) -> list[SegmentReport]:
        barrier.wait()
        if share is None:
            return system.root(MORE_SEGMENTS, WORKERS, invited.append)
        return system.share(MORE_SEGMENTS, share)

    with ThreadPoolExecutor(TICKS) as threads:
        reports = [each for some in threads.map(one, [None, None, *shares]) for each in some]
    return [report.outcome for report in reports], invited


def tick_at_once(system: System, wheel: WheelStore | None = None) -> list[SegmentOutcome]:
    """Sixteen ticks from one barrier; a killed one has no outcome."""
    barrier = Barrier(TICKS, timeout=20)

    def one(_: int) -> list[SegmentOutcome]:
        barrier.wait()
        try:
            return [report.outcome for report in system.tick(SEGMENTS, wheel)]
        except Killed:
            return []

    with ThreadPoolExecutor(TICKS) as threads:
        return [outcome for outcomes in threads.map(one, range(TICKS)) for outcome in outcomes]


def execute_all(system: System, settings: Settings) -> int:
    """Sixteen executors until the lane is empty; the number of messages."""
    protocol = system.executor()
    url = settings.lane_queues[Lane.NORMAL]

    def work(_: int) -> int:
        queue = boto3.client("sqs")
        handled = 0
        while taken := queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
            for message in taken:
                with suppress(HeldError):  # a duplicate, which stays
                    protocol.handle(decode(message["Body"]), system.ends_at())
                    queue.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                    handled += 1
        return handled

    with ThreadPoolExecutor(TICKS) as threads:
        return sum(threads.map(work, range(TICKS)))


def create_jobs(system: System, segments: int = SEGMENTS) -> list[Job]:
    jobs = [system.job(f"minutely-{n}", "* * * * *", n % segments) for n in range(12)]
    jobs += [system.job(f"fast-{n}", "every 20s", n % segments) for n in range(6)]
    indexer = system.indexer()
    for job in jobs:
        assert indexer.index_job(job, None)
    return jobs


def assert_each_occurrence_ran_once(system: System, jobs: list[Job]) -> None:
    for job in jobs:
        control = system.stores.wheel.get_control(job.segment)
        assert control is not None
        expected = list(job.schedule.between(NOON, minute_end(control.watermark)))
        runs = system.stores.runs.list(job.owner, job.job_id, limit=100).items
        succeeded = [run.key.fire_at for run in runs if run.status is RunStatus.SUCCEEDED]
        assert sorted(succeeded) == expected
        others = [run for run in runs if run.status is not RunStatus.SUCCEEDED]
        assert others == []
    assert set(system.targets.calls.values()) == {1}, "and its target was called once"


def test_each_occurrence_ends_in_exactly_one_successful_run(
    deployment: tuple[System, ManualClock, Settings],
) -> None:
    system, clock, settings = deployment
    jobs = create_jobs(system)
    outcomes = tick_at_once(system)
    assert outcomes.count(SegmentOutcome.DISPATCHED) == SEGMENTS
    assert set(outcomes) <= {
        SegmentOutcome.DISPATCHED,
        SegmentOutcome.HELD,
        SegmentOutcome.CURRENT,
    }
    clock.advance(240)
    execute_all(system, settings)
    assert_each_occurrence_ran_once(system, jobs)


def test_also_when_a_tick_dies_between_send_and_advance(
    deployment: tuple[System, ManualClock, Settings],
) -> None:
    system, clock, settings = deployment
    jobs = create_jobs(system)
    wheel = DyingWheel(system.stores.wheel)
    tick_at_once(system, wheel)  # type: ignore[arg-type]
    assert wheel.deaths == 1
    clock.advance(60)
    tick_at_once(system)
    clock.advance(240)
    handled = execute_all(system, settings)
    assert handled > len(system.targets.calls), "the dead tick's messages were sent again"
    assert_each_occurrence_ran_once(system, jobs)
    assert clock.now() == NOON + timedelta(seconds=300)


def test_also_when_roots_and_shares_come_doubled_and_at_once_after_an_outage(
    deployment: tuple[System, ManualClock, Settings],
) -> None:
    system, clock, settings = deployment
    jobs = create_jobs(system, MORE_SEGMENTS)
    roots_and_shares_at_once(system)
    clock.advance(300)
    outcomes, invited = roots_and_shares_at_once(system)
    assert set(invited) <= {Share(number, WORKERS) for number in range(1, WORKERS)}
    assert SegmentOutcome.FAILED not in outcomes
    assert outcomes.count(SegmentOutcome.DISPATCHED) >= MORE_SEGMENTS
    controls = [system.stores.wheel.get_control(segment) for segment in range(MORE_SEGMENTS)]
    assert all(control and control.lease_until is None for control in controls)
    clock.advance(240)
    execute_all(system, settings)
    assert_each_occurrence_ran_once(system, jobs)
