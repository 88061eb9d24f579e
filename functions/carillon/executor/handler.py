"""Lambda entry points of the executor: a lane's messages, and the dead-letter queues'.

This is the only place of the executor that composes objects and asks for the time.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools.utilities.data_classes import SQSEvent
from aws_lambda_powertools.utilities.typing import LambdaContext

from carillon.clock import SideBySideThreads, SystemClock, SystemEntropy
from carillon.domain.chunks.placing import MOST_IN_ONE
from carillon.domain.message import Message
from carillon.errors import HeldError, MalformedMessageError, StoreUnavailableError
from carillon.executor.batch import (
    BATCH_SIZE,
    BatchRunner,
    PartlyHandledError,
    Received,
    Report,
    tell,
)
from carillon.executor.ports import ExecutorPorts
from carillon.executor.router import Router
from carillon.executor.runs.lifecycle_events import BufferedEvents
from carillon.executor.targets import Targets
from carillon.executor.tracing import create_tracer
from carillon.garbage import spare_what_is_loaded
from carillon.services.activity import Activity, ActivityWriter, GatheredActivity
from carillon.services.indexer import Indexer
from carillon.services.job_quotas import JobQuotas
from carillon.services.quotas import Quotas
from carillon.settings import Settings
from carillon.stores.dynamo import open_stores, read_parameters
from carillon.telemetry import Action, create_telemetry

MOST_CALLS = BATCH_SIZE * MOST_IN_ONE
"""Calls of chunks that a process makes side by side: ten chunks of full size, lest calls that hang
hold up others. Threads are made when they are first needed."""

settings = Settings.from_environment(read_parameters=read_parameters)
telemetry = create_telemetry("executor", traced=bool(settings.tracing))
clock = SystemClock()
stores = open_stores(settings, clock, lost=telemetry.events_lost)
targets = Targets(settings, clock)
batches = BatchRunner()
entropy = SystemEntropy()
events = BufferedEvents(stores.events)
activity = GatheredActivity(
    ActivityWriter(stores.activity, clock, entropy, settings.activity_lifetime)
)
tracer = create_tracer(settings, clock)


def _on_store_failure(message: Message, error: StoreUnavailableError) -> None:
    telemetry.failure(Action.MESSAGE_FAILED, error, run_id=message.key.run_id)


def _on_notifying_failure(error: Exception) -> None:
    telemetry.failure(Action.NOTIFYING_FAILED, error)


quotas = Quotas(settings.limits, stores.quotas, clock)
router = Router(
    ExecutorPorts(
        jobs=stores.jobs,
        calendars=stores.calendars,
        wheel=stores.wheel,
        runs=stores.runs,
        chunks=stores.chunks,
        queue=stores.queue,
        indexer=Indexer.of(stores, clock, settings.longest_delay_seconds),
        targets=targets,
        clock=clock,
        entropy=entropy,
        run_lifetime=settings.run_lifetime,
        longest_timeout_seconds=settings.longest_timeout_seconds,
        admission_rows=stores.admission_rows,
        operations=stores.operations,
        records=stores.idempotency_records,
        notifications=stores.notifications,
        windows=stores.windows,
        events=events,
        activity=activity,
        feed=Activity(stores.activity),
        queue_retention=timedelta(days=settings.queue_retention_days),
        quotas=quotas,
        job_quotas=JobQuotas(quotas, stores.jobs, stores.uses, clock, entropy),
        slow_after_seconds=settings.slow_after_seconds,
        slow_lane_share=settings.slow_lane_share,
        api_url=settings.api_url,
        console_url=settings.console_url,
        side_by_side=SideBySideThreads(MOST_CALLS),
        room=targets.room,
    ).notifying(_on_notifying_failure),
    _on_store_failure,
)


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Run a batch of a lane; answers which records stay with the queue."""
    ends_at = _ends_at(context)

    sent_on = router.send_on({each.message_id: each for each in _records(event)})

    def handle(record: Received, alone: bool) -> Report:
        return sent_on.get(record.message_id) or router.lane(record.body, ends_at, alone=alone)

    return _answer(event, ends_at, handle)


def dead_letter_handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Settle messages that a lane has given up, or send them back to it."""
    ends_at = _ends_at(context)

    def handle(record: Received, alone: bool) -> Report:
        return router.dead(record.body, ends_at)

    return _answer(event, ends_at, handle)


def _answer(
    event: dict[str, Any], ends_at: datetime, handle: Callable[[Received, bool], Report]
) -> dict[str, Any]:
    reports: list[Report] = []
    if tracer is not None:
        handle = tracer.watched(handle)

    def handle_one(record: Received, alone: bool) -> None:
        try:
            reports.append(handle(record, alone))
        except PartlyHandledError as error:
            reports.append(error.report)
            raise
        except MalformedMessageError as error:
            # Nobody can ever read it: this line is all that is left of it.
            told = {"body": ascii(record.body[:1000]), "reason": str(error)}
            telemetry.record(Action.MESSAGE_MALFORMED, logging.ERROR, **told)

    failed = batches.run(_records(event), handle_one, _on_error)
    tell(telemetry, reports, len(failed))  # before what may hang: nobody tells of it again
    telemetry.events_lost(events.flush())
    telemetry.activity_lost(activity.flush())
    if tracer is not None:
        tracer.export(ends_at, telemetry)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _records(event: dict[str, Any]) -> list[Received]:
    return [
        Received(r.message_id, r.body, int(r.attributes.approximate_receive_count))
        for r in SQSEvent(event).records
    ]


def _on_error(record: Received, error: Exception) -> None:
    cause = error.__cause__ if isinstance(error, PartlyHandledError) else error
    if not isinstance(cause, HeldError):  # a duplicate, which comes again when the run has ended
        telemetry.failure(Action.MESSAGE_FAILED, cause or error, message_id=record.message_id)


def _ends_at(context: LambdaContext) -> datetime:
    return clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())


targets.prepare(2)  # the pool grows with need: a child costs 8 MB and 70 ms of CPU
spare_what_is_loaded()
