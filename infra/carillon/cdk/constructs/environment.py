"""The functions' environment: what carillon.settings reads, the same for every function."""

from collections.abc import Mapping
from dataclasses import fields

from aws_cdk import Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_secretsmanager as secretsmanager

from carillon.cdk.constructs.lanes import QUEUE_RETENTION_DAYS, Lanes
from carillon.cdk.constructs.storage import Tables
from carillon.cdk.emulation import Emulation
from carillon.cdk.options import Options
from carillon.domain.admission.slowness import share_of_an_owner
from carillon.domain.job import Lane
from carillon.errors import ConfigurationError
from carillon.settings import OPERATORS_GROUP, Choices

ROOM_BYTES = 2048
"""The bytes that options may take of Lambda's 4 KB for all variables; the rest is for the names of
tables, queues, logs and secret, which are known at deployment only, and for addresses."""


IN_PARAMETERS = frozenset({"own_arns", "target_arns", "task_names"})
"""The settings that are in parameters, not in the environment: their size does not matter."""


def environment(
    options: Options,
    emulation: Emulation,
    tables: Tables,
    lanes: Lanes,
    webhook_secret: secretsmanager.ISecret,
    event_bus: events.IEventBus | None,
) -> Mapping[str, str]:
    """All variables; raises ConfigurationError when the options' are longer than the room."""
    stack = Stack.of(tables)
    urls = {lane.value: queue.queue_url for lane, queue in lanes.queues.items()}
    return {
        "STACK_NAME": stack.stack_name,
        "JOBS_TABLE": tables.jobs.table_name,
        "WHEEL_TABLE": tables.wheel.table_name,
        "RUNS_TABLE": tables.runs.table_name,
        "LANE_QUEUES": stack.to_json_string(urls),
        "WEBHOOK_SECRET_ARN": webhook_secret.secret_arn,
        **({} if event_bus is None else {"EVENT_BUS": event_bus.event_bus_name}),
        **chosen_settings(options),
        "LONGEST_DELAY_SECONDS": str(emulation.longest_delay_seconds),
        "POWERTOOLS_METRICS_NAMESPACE": options.name,
        "POWERTOOLS_LOG_LEVEL": "INFO",
        # Zones come from the pinned tzdata package, never from the runtime's own files: all
        # functions must agree on every offset. The path does not exist: an empty value might not
        # be handed to the process.
        "PYTHONTZPATH": "/none",
    }


def chosen_settings(options: Options) -> Mapping[str, str]:
    """The environment variables that follow from the options alone.

    Raises ConfigurationError, naming the longest, when they take more than their room.
    """
    chosen = {
        **{
            each.name.upper(): _text(getattr(options, each.name))
            for each in fields(Choices)
            if each.name not in IN_PARAMETERS
        },
        "QUEUE_RETENTION_DAYS": str(QUEUE_RETENTION_DAYS),
        "OPERATORS_GROUP": OPERATORS_GROUP,
        "SLOW_LANE_SHARE": str(share_of_an_owner(options.places(Lane.SLOW))),
    }
    _check_room(chosen)
    # An empty list means the same as an absent variable.
    return {name: value for name, value in chosen.items() if value}


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _check_room(chosen: Mapping[str, str]) -> None:
    size_bytes = sum(len(f"{name}{value}".encode()) for name, value in chosen.items())
    if size_bytes > ROOM_BYTES:
        longest = max(chosen, key=lambda name: len(chosen[name]))
        raise ConfigurationError(
            longest.lower(),
            f"{len(chosen[longest])} bytes long; all options together take {size_bytes} bytes of "
            f"the functions' environment, which has room for {ROOM_BYTES}: shorten the list, "
            "by wider patterns for instance",
        )
