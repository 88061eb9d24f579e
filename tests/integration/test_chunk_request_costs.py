"""What a minute in chunks costs: every AWS request counted at the client, from real item sizes."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.job import Job, Lane
from carillon.domain.notifying.notification import Deliverable
from carillon.domain.policies import Overlap
from carillon.domain.run import RunError
from carillon.executor.targets import Call, Failure, Outcome
from carillon.schedules.insight.cost import IDLE_READS, IDLE_WRITES, RUN_READS, RUN_WRITES, Line
from carillon.stores.dynamo import open_stores
from tests.integration.system import CountingTargets, System, Undelayed
from tests.support.counting import ClientMeter
from tests.support.jobs import job_with
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack

MADE_AT = datetime(2026, 12, 1, 12, tzinfo=UTC)
DUE_AT = MADE_AT + timedelta(hours=2, minutes=6)
SEGMENTS = CHUNKS = 2
JOBS_PER_SEGMENT = 24
"""As many as a chunk has in the mean: a thousand jobs are some forty of these."""
CHUNK_WRITES = 2
"""Its claim and its finish, each below 1 KiB."""


class FirstFails(CountingTargets):
    """Every call succeeds but the first attempt of one job."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def deliver(self, target: Deliverable, call: Call) -> Outcome:
        outcome = super().deliver(target, call)
        is_failing = call.run_id.startswith(self._job.job_id) and call.attempt == 1
        return Failure(RunError("http_503", "busy")) if is_failing else outcome


class Minute:
    """The minute in which all jobs of a deployment are due, from just before its tick on."""

    def __init__(self) -> None:
        self.clock = ManualClock(MADE_AT)
        settings = create_deployment(f"chunks-{uuid.uuid4().hex[:8]}")
        stores = open_stores(settings, SystemClock())
        self.system = System(stores, Undelayed(stores.queue), self.clock, chunks=True)
        self._url = settings.lane_queues[Lane.NORMAL]
        self.system.tick(SEGMENTS)
        self.jobs = [
            self._job(segment, number)
            for segment in range(SEGMENTS)
            for number in range(JOBS_PER_SEGMENT)
        ]
        self.clock.set(DUE_AT - timedelta(minutes=3))
        self.system.tick(SEGMENTS)
        self.clock.advance(60)

    def received(self) -> Sequence[str]:
        """The bodies of what is in the queue."""
        queues = boto3.client("sqs")
        taken = queues.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10)["Messages"]
        for message in taken:
            queues.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in taken]

    def execute(self, bodies: Sequence[str]) -> None:
        executor = self.system.executor()
        for body in bodies:
            executor.lane(body, self.system.ends_at())

    def _job(self, segment: int, number: int) -> Job:
        made = self.system.job(f"job-{segment}-{number}", f"{DUE_AT:%M %H} * * *", segment)
        job = job_with(made, overlap=Overlap.ALLOW)
        assert self.system.indexer().index_job(job, None)
        return job


def test_a_minute_of_plain_jobs(meter: ClientMeter, ministack: str) -> None:
    minute = Minute()

    meter.clear()
    minute.system.tick(SEGMENTS)
    assert meter.writes == {"control": IDLE_WRITES * SEGMENTS, "runs": SEGMENTS}, "a plan each"
    assert meter.reads == {"wheel": IDLE_READS * SEGMENTS}
    assert meter.requests == {
        "GetItem": SEGMENTS,
        "Query": 3 * SEGMENTS,
        "PutItem": (IDLE_WRITES + 1) * SEGMENTS,
        "SendMessageBatch": SEGMENTS,
    }
    assert len(meter.sent) == CHUNKS
    assert meter.usage.of(Line.QUEUE) == SEGMENTS

    bodies = minute.received()
    minute.clock.set(DUE_AT)
    meter.clear()
    minute.execute(bodies)
    assert sorted(minute.system.targets.calls.values()) == [1] * len(minute.jobs)
    assert meter.writes == {"runs": CHUNK_WRITES * CHUNKS}
    assert meter.reads == {"jobs": RUN_READS * len(minute.jobs)}
    assert meter.requests == {"PutItem": CHUNK_WRITES * CHUNKS, "BatchGetItem": CHUNKS}


def test_a_chunk_in_which_one_run_fails(meter: ClientMeter, ministack: str) -> None:
    minute = Minute()
    minute.system.targets = FirstFails(minute.jobs[0])
    minute.system.tick(SEGMENTS)
    bodies = minute.received()

    minute.clock.set(DUE_AT)
    meter.clear()
    minute.execute(bodies)
    # The row of the one that fails is put and finished; it enters the index of what waits.
    assert meter.writes == {"runs": CHUNK_WRITES * CHUNKS + RUN_WRITES + 1}
    assert meter.reads == {"jobs": RUN_READS * len(minute.jobs)}
    assert meter.requests == {
        "PutItem": CHUNK_WRITES * CHUNKS + RUN_WRITES,
        "BatchGetItem": CHUNKS,
        "SendMessageBatch": 1,
    }

    bodies = minute.received()
    minute.clock.advance(2)
    meter.clear()
    minute.execute(bodies)
    assert sorted(minute.system.targets.calls.values()) == [1] * (len(minute.jobs) - 1) + [2]
    # As of any run that is retried: its row is read, and leaves the index.
    assert meter.writes == {"runs": RUN_WRITES + 1}
    assert meter.reads == {"runs": 1, "jobs": RUN_READS}
    assert meter.requests == {"GetItem": 2, "PutItem": RUN_WRITES}
