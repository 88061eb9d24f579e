"""Receptions without a call, as on AWS where Lambda throttles: the redrive, and the consumer."""

import json
import time
import uuid
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.job import Lane
from carillon.domain.message import encode
from carillon.domain.run import RunStatus
from carillon.domain.wheel.entry import message_of
from carillon.executor.batch import Handled
from carillon.stores.dynamo import open_stores
from tests.integration.system import System, Undelayed
from tests.support.tables import create_deployment

pytestmark = pytest.mark.ministack

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MAX_RECEIVES = 3


def received(sqs: Any, url: str) -> dict[str, Any] | None:
    """The next message of a queue, hidden for a second."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        answer = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1, VisibilityTimeout=1)
        for message in answer.get("Messages", []):
            return dict(message)
    return None


def test_a_run_whose_executors_were_throttled_comes_back_and_succeeds(ministack: str) -> None:
    settings = create_deployment(f"throttled-{uuid.uuid4().hex[:8]}")
    sqs = boto3.client("sqs")
    lane_url = settings.lane_queues[Lane.NORMAL]
    dead_url = sqs.create_queue(QueueName=f"dead-{uuid.uuid4().hex[:8]}")["QueueUrl"]
    dead_arn = sqs.get_queue_attributes(QueueUrl=dead_url, AttributeNames=["QueueArn"])
    redrive = {
        "deadLetterTargetArn": dead_arn["Attributes"]["QueueArn"],
        "maxReceiveCount": MAX_RECEIVES,
    }
    sqs.set_queue_attributes(
        QueueUrl=lane_url,
        Attributes={"VisibilityTimeout": "1", "RedrivePolicy": json.dumps(redrive)},
    )
    stores = open_stores(settings, SystemClock())
    clock = ManualClock(NOON)
    system = System(stores, Undelayed(stores.queue), clock)
    job = system.job("job", "* * * * *")
    assert system.indexer().index_job(job, None)
    message = message_of(job, NOON.replace(minute=1))
    clock.set(message.due_at)
    router = system.executor()
    sqs.purge_queue(QueueUrl=lane_url)
    sqs.send_message(QueueUrl=lane_url, MessageBody=encode(message))

    for _ in range(MAX_RECEIVES):
        assert received(sqs, lane_url) is not None, "received, and nobody is called"
        time.sleep(1.2)
    sqs.receive_message(QueueUrl=lane_url, WaitTimeSeconds=1)
    dead = received(sqs, dead_url)
    assert dead is not None
    assert router.dead(dead["Body"], system.ends_at()).handled is Handled.SENT_BACK
    assert stores.runs.get(message.key) is None

    back = received(sqs, lane_url)
    assert back is not None
    assert '"returns":1' in back["Body"]
    assert router.lane(back["Body"], system.ends_at()).handled is Handled.RAN
    run = stores.runs.get(message.key)
    assert run is not None
    assert (run.status, run.attempt) == (RunStatus.SUCCEEDED, 1)
