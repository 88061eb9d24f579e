"""The ports on DynamoDB (PynamoDB), SQS and EventBridge (boto3)."""

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import NoRegionError
from pynamodb.connection import Connection

from carillon.clock import Clock, Entropy, SystemEntropy
from carillon.errors import ConfigurationError
from carillon.settings import Settings
from carillon.stores.dynamo import answers
from carillon.stores.dynamo.activity import DynamoActivityStore
from carillon.stores.dynamo.changes import DynamoChangeStore
from carillon.stores.dynamo.chunks import DynamoChunkStore
from carillon.stores.dynamo.jobs import DynamoJobStore
from carillon.stores.dynamo.messaging import (
    PARALLEL_REQUESTS,
    EventBridgeEvents,
    EventsClient,
    SqsLaneQueue,
)
from carillon.stores.dynamo.models import JobRow, RunRow, WheelRow
from carillon.stores.dynamo.runs import DynamoRunStore
from carillon.stores.dynamo.side_rows import DynamoVersionedRows
from carillon.stores.dynamo.table import Table
from carillon.stores.dynamo.task_logs import CloudWatchTaskLogs, LogsClient
from carillon.stores.dynamo.wheel import DynamoWheelStore
from carillon.stores.memory import NoEvents
from carillon.stores.ports import (
    ADMISSION_ROWS,
    CALENDARS,
    IDEMPOTENCY_RECORDS,
    NOTIFICATIONS,
    OPERATIONS,
    QUOTAS,
    USES,
    WINDOWS,
    EventSink,
    Stores,
)
from carillon.stores.recording import ChangeEvents, GenerationRecords, RecordedJobs
from carillon.stores.task_logs import TaskLogs

_HALF_A_SECOND = 0.5
"""The header has whole seconds: the middle of its second is the best guess (RFC 9110, 6.6.1)."""


class SkewMeter:
    """Keeps the skew that the last answer showed; exact to about half a second and the time of the
    answer's way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: float | None = None

    def seconds(self) -> float | None:
        """This clock minus DynamoDB's; None before the first answer."""
        return self._seconds

    def observe(self, parsed: dict[str, Any], **_: object) -> None:
        """Take an answer, as botocore's event `after-call` gives it."""
        date = parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date is not None:
            elapsed = self._clock.now() - parsedate_to_datetime(date)
            self._seconds = elapsed.total_seconds() - _HALF_A_SECOND


CONNECT_TIMEOUT_SECONDS = 2
READ_TIMEOUT_SECONDS = 5
TOTAL_ATTEMPTS = 5
"""Of one request, by botocore's standard mode: backoff with jitter, throttling included."""
POOL_CONNECTIONS = 32
USER_AGENT = "carillon"
"""The user agent of all requests: one that is given spares botocore to build one each time."""


def open_stores(
    settings: Settings,
    clock: Clock,
    entropy: Entropy | None = None,
    *,
    lost: Callable[[int], None] = lambda count: None,
) -> Stores:
    """The stores on the tables and queues that the settings name.

    Region, credentials and endpoint are botocore's own search. Clients are made here, once: they
    are safe to use from several threads, their making is not. `entropy` jitters repetitions, `lost`
    hears how many events about changes the bus has not taken. Raises ConfigurationError.
    """
    entropy, skew = entropy or SystemEntropy(), SkewMeter(clock)
    connection, sqs = _clients(skew)
    jobs = Table(connection, JobRow, settings.jobs_table)
    runs = Table(connection, RunRow, settings.runs_table)
    changes = DynamoChangeStore(runs, settings.change_lifetime)
    chunks = DynamoChunkStore(runs, clock, entropy)
    events = _event_sink(settings, clock, entropy)
    told = ChangeEvents(events, lost)
    records = GenerationRecords(chunks, settings.run_lifetime)
    return Stores(
        jobs=RecordedJobs(DynamoJobStore(jobs, clock, entropy), changes, told, records),
        changes=changes,
        calendars=DynamoVersionedRows(jobs, CALENDARS),
        wheel=DynamoWheelStore(Table(connection, WheelRow, settings.wheel_table), clock, entropy),
        runs=DynamoRunStore(runs),
        chunks=chunks,
        activity=DynamoActivityStore(runs),
        queue=SqsLaneQueue(sqs, settings.lane_queues, clock, entropy),
        admission_rows=DynamoVersionedRows(jobs, ADMISSION_ROWS),
        operations=DynamoVersionedRows(jobs, OPERATIONS),
        idempotency_records=DynamoVersionedRows(jobs, IDEMPOTENCY_RECORDS),
        notifications=DynamoVersionedRows(jobs, NOTIFICATIONS),
        windows=DynamoVersionedRows(jobs, WINDOWS),
        quotas=DynamoVersionedRows(jobs, QUOTAS),
        uses=DynamoVersionedRows(jobs, USES),
        events=events,
        skew_seconds=skew.seconds,
    )


def _clients(skew: SkewMeter) -> tuple[Connection, Any]:
    """Those of DynamoDB, whose answers `skew` sees, and of SQS."""
    try:
        connection = open_connection()
        connection.client.meta.events.register("after-call.dynamodb", skew.observe)
        return connection, boto3.client("sqs", config=_client_config(PARALLEL_REQUESTS))
    except NoRegionError as error:
        raise ConfigurationError("AWS_DEFAULT_REGION", "must be set") from error


def open_task_logs(settings: Settings) -> TaskLogs:
    """The output of tasks in the log groups that the settings name."""
    return CloudWatchTaskLogs(_logs_client, settings.log_groups)


def open_connection() -> Connection:
    """One DynamoDB client for all tables, ready for use from several threads."""
    connection = Connection(
        connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        read_timeout_seconds=READ_TIMEOUT_SECONDS,
        max_pool_connections=POOL_CONNECTIONS,
        retry_configuration={"mode": "standard", "total_max_attempts": TOTAL_ATTEMPTS},
    )
    connection.session.set_default_client_config(Config(user_agent=USER_AGENT))
    answers.register(connection.client.meta.events)
    return connection


def read_parameters(path: str) -> dict[str, str]:
    """The settings in Parameter Store: `path/VARIABLE/1` and the parts that follow it."""
    parts: dict[tuple[str, int], str] = {}
    ssm = boto3.client("ssm", config=_client_config(1))
    for page in ssm.get_paginator("get_parameters_by_path").paginate(Path=path, Recursive=True):
        for each in page["Parameters"]:
            _, variable, number = each["Name"].rsplit("/", 2)
            parts[variable, int(number)] = each["Value"]
    names = {variable for variable, _ in parts}
    return {n: ",".join(parts[key] for key in sorted(parts) if key[0] == n) for n in names}


def _event_sink(settings: Settings, clock: Clock, entropy: Entropy) -> EventSink:
    if not settings.event_bus:
        return NoEvents()
    return EventBridgeEvents(_events_client, settings.event_bus, clock, entropy)


def _events_client() -> EventsClient:
    client: EventsClient = boto3.client("events", config=_client_config(POOL_CONNECTIONS))
    return client


def _logs_client() -> LogsClient:
    client: LogsClient = boto3.client("logs", config=_client_config(1))
    return client


def _client_config(connections: int) -> Config:
    return Config(
        user_agent=USER_AGENT,
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        max_pool_connections=connections,
        retries={"mode": "standard", "total_max_attempts": TOTAL_ATTEMPTS},
    )


__all__ = ["Stores", "open_stores", "read_parameters"]
