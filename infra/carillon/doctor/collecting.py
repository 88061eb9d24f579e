"""Asks AWS for the facts of a deployment, by the resources of its stack: reads only."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from carillon.cdk.releases import LIVE, release_of
from carillon.doctor.facts import (
    UNREADABLE,
    AlarmFacts,
    FunctionFacts,
    MappingFacts,
    QueueFacts,
    RuleFacts,
    SetAside,
    Snapshot,
    TableFacts,
    Unknown,
)
from carillon.domain.wheel.entry import DATED_ENTRY_LIFETIME, Slot
from carillon.domain.wheel.segment import Control
from carillon.errors import StoreUnavailableError, UnreadableRowError
from carillon.resources import resources_of
from carillon.settings import Settings
from carillon.stores.ports import Stores
from carillon.stores.segments import segments_in_use

_T = TypeVar("_T")
_EMULATED = Unknown("this is no AWS account, and what answers instead of one does not keep it")
_MOST_LINES, _LINES_OF = 10_000, timedelta(days=1)
"""Of each day so many lines are read: one entry may be told of each minute."""
_AGE_SPAN = timedelta(minutes=15)


def known(ask: Callable[[], _T]) -> _T | Unknown:
    """The answer of `ask`, or the reason why the service refuses one."""
    try:
        return ask()
    except ClientError as error:
        return Unknown(str(error), error.response.get("Error", {}).get("Code", ""))
    except UnreadableRowError as error:
        return Unknown(str(error), UNREADABLE)
    except (BotoCoreError, StoreUnavailableError) as error:
        return Unknown(str(error))


def named(name: str, ask: Callable[[], _T]) -> _T | Unknown:
    """The same, with the last part of the name in the reason: not all of AWS's words have it."""
    found = known(ask)
    if isinstance(found, Unknown):
        return replace(found, reason=f"{name.rpartition('/')[2]}: {found.reason}")
    return found


class Collector:
    """Collects one snapshot; raises ClientError where the stack itself cannot be read."""

    def __init__(self, stack: str, settings: Settings, stores: Stores, now: datetime) -> None:
        self._stack = stack
        self._settings = settings
        self._stores = stores
        self._now = now
        cloudformation = self._client("cloudformation")
        self._on_aws = "amazonaws.com" in cloudformation.meta.endpoint_url
        self._resources = list(resources_of(cloudformation, stack))

    def snapshot(self) -> Snapshot:
        functions = list(self._functions())
        ticks = [each.log_group for each in functions if each.service == "tick"]
        return Snapshot(
            stack=self._stack,
            at=self._now,
            settings=self._settings,
            unreserved=known(self._unreserved),
            functions=functions,
            mappings=list(self._mappings()),
            queues=[named(url, partial(self._queue, url)) for url in self._ids("AWS::SQS::Queue")],
            rules=list(self._rules()),
            tables=self._tables(),
            alarms=known(lambda: list(self._alarms())),
            controls={n: self._control(n) for n in range(self._segments())},
            secret=known(self._secret),
            skew_seconds=self._stores.skew_seconds(),
            set_aside=known(lambda: list(self._set_aside(ticks))),
        )

    def _client(self, service: str) -> Any:
        return boto3.client(service)  # type: ignore[call-overload]

    def _ids(self, kind: str) -> list[str]:
        """The physical ids of the stack's resources of a type; those of custom resources apart."""
        return [physical for each, _, physical in self._resources if each == kind]

    def _here(self, ask: Callable[[], _T]) -> _T | Unknown:
        """A fact that emulators answer, and do not mean."""
        return known(ask) if self._on_aws else _EMULATED

    def _unreserved(self) -> int:
        limits = self._client("lambda").get_account_settings()["AccountLimit"]
        return int(limits["UnreservedConcurrentExecutions"])

    def _functions(self) -> Iterator[FunctionFacts]:
        client = self._client("lambda")
        for name in self._ids("AWS::Lambda::Function"):
            try:
                found = client.get_function_configuration(FunctionName=name, Qualifier=LIVE)
            except client.exceptions.ResourceNotFoundException:
                continue  # the console's has no releases
            variables = found.get("Environment", {}).get("Variables", {})
            yield FunctionFacts(
                name=name,
                service=variables.get("POWERTOOLS_SERVICE_NAME", ""),
                state=found.get("State", "Active"),
                timeout_seconds=found["Timeout"],
                release=release_of(found.get("Description", "")),
                layers=[each["Arn"] for each in found.get("Layers", [])],
                variables=variables,
                reserved=self._here(partial(_reserved, client, name)),
                recursive_loop=self._here(partial(_recursive_loop, client, name)),
                log_group=found.get("LoggingConfig", {}).get("LogGroup", ""),
            )

    def _mappings(self) -> Iterator[MappingFacts | Unknown]:
        client = self._client("lambda")
        for uuid in self._ids("AWS::Lambda::EventSourceMapping"):
            found = known(partial(client.get_event_source_mapping, UUID=uuid))
            if not isinstance(found, Unknown):
                yield _mapping(uuid, found)
            elif not found.is_absent:  # where it is missing, its queue has none
                yield found

    def _queue(self, url: str) -> QueueFacts:
        answer = self._client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        found = answer["Attributes"]
        return QueueFacts(
            url=url,
            arn=found["QueueArn"],
            visibility_seconds=int(found["VisibilityTimeout"]),
            messages=int(found["ApproximateNumberOfMessages"]),
            oldest_seconds=self._here(lambda: self._age(found["QueueArn"].rpartition(":")[2])),
        )

    def _age(self, queue: str) -> int:
        answer = self._client("cloudwatch").get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": queue}],
            StartTime=self._now - _AGE_SPAN,
            EndTime=self._now,
            Period=60,
            Statistics=["Maximum"],
        )
        found = sorted(answer["Datapoints"], key=lambda each: each["Timestamp"])
        return int(found[-1]["Maximum"]) if found else 0

    def _rules(self) -> Iterator[RuleFacts | Unknown]:
        for name in self._ids("AWS::Events::Rule"):
            found = named(name, partial(self._rule, name))
            if not (isinstance(found, Unknown) and found.is_absent):  # then there is none
                yield found

    def _rule(self, name: str) -> RuleFacts:
        client = self._client("events")
        state = client.describe_rule(Name=name)["State"]
        targets = client.list_targets_by_rule(Rule=name)["Targets"]
        return RuleFacts(name, state == "ENABLED", len(targets))

    def _tables(self) -> Mapping[str, TableFacts | Unknown]:
        settings = self._settings
        names = {"jobs": settings.jobs_table, "wheel": settings.wheel_table}
        return {
            role: named(name, partial(self._table, name))
            for role, name in (names | {"runs": settings.runs_table}).items()
        }

    def _table(self, name: str) -> TableFacts:
        client = self._client("dynamodb")
        found = client.describe_table(TableName=name)["Table"]
        return TableFacts(
            name,
            found["TableStatus"],
            known(lambda: _expires_by(client.describe_time_to_live(TableName=name))),
            known(lambda: _recovers(client.describe_continuous_backups(TableName=name))),
            int(found.get("ItemCount", 0)),
        )

    def _alarms(self) -> Iterator[AlarmFacts]:
        names = self._ids("AWS::CloudWatch::Alarm")
        client = self._client("cloudwatch")
        for begin in range(0, len(names), 100):
            answer = client.describe_alarms(AlarmNames=names[begin : begin + 100])
            for each in answer["MetricAlarms"]:
                yield AlarmFacts(
                    each["AlarmName"],
                    each["StateValue"],
                    len(each.get("AlarmActions", [])),
                    each.get("ActionsEnabled", True),
                )

    def _segments(self) -> int:
        configured = self._settings.segments
        found = known(lambda: segments_in_use(self._stores.wheel, configured))
        return configured if isinstance(found, Unknown) else found

    def _control(self, segment: int) -> Control | Unknown | None:
        return known(lambda: self._stores.wheel.get_control(segment))

    def _secret(self) -> str:
        client = self._client("secretsmanager")
        answer = client.get_secret_value(SecretId=self._settings.webhook_secret_arn)
        return str(answer.get("SecretString", ""))

    def _set_aside(self, log_groups: list[str]) -> Iterator[SetAside]:
        """Entries that ticks have reported since dated entries of that age expire, and that are
        still there."""
        seen: set[tuple[int, str, str]] = set()
        for line in (line for group in log_groups for line in self._lines(group)):
            found = _told(line)
            if found is None or (found.segment, found.slot, found.key) in seen:
                continue
            seen.add((found.segment, found.slot, found.key))
            slot = Slot.from_key(found.slot)
            if self._stores.wheel.holds(found.segment, slot, found.key):
                yield replace(found, is_readable=self._is_readable(found, slot))

    def _lines(self, group: str) -> Iterator[str]:
        """Those of each day apart, the last one first: lines of long ago hide none of today."""
        pager = self._client("logs").get_paginator("filter_log_events")
        until, since = self._now, self._now - DATED_ENTRY_LIFETIME
        while until > since:
            pages = pager.paginate(
                logGroupName=group,
                startTime=_millis(until - _LINES_OF),
                endTime=_millis(until),
                filterPattern='"entry.set_aside"',
                PaginationConfig={"MaxItems": _MOST_LINES},
            )
            yield from (event["message"] for page in pages for event in page["events"])
            until -= _LINES_OF

    def _is_readable(self, entry: SetAside, slot: Slot) -> bool:
        """True if it can be read by now: a reindex writes under the same key."""
        page = self._stores.wheel.query(entry.segment, slot, entry.key[:-1])
        return any(each.key == entry.key for each in page.items)


def _millis(instant: datetime) -> int:
    return int(instant.timestamp() * 1000)


def _told(line: str) -> SetAside | None:
    try:
        found = json.loads(line)
        return SetAside(
            int(found["segment"]), str(found["slot"]), str(found["entry"]), str(found["reason"])
        )
    except (ValueError, KeyError, TypeError):
        return None


def _mapping(uuid: str, found: Mapping[str, Any]) -> MappingFacts:
    # arn:aws:lambda:region:account:function:name, and :alias if it calls one
    name, _, qualifier = found["FunctionArn"].split(":", 6)[6].partition(":")
    limit = found.get("ScalingConfig", {}).get("MaximumConcurrency")
    return MappingFacts(uuid, found["EventSourceArn"], name, qualifier, found["State"], limit)


def _expires_by(answer: Mapping[str, Any]) -> str:
    found = answer["TimeToLiveDescription"]
    is_on = found.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return str(found.get("AttributeName", "")) if is_on else ""


def _recovers(answer: Mapping[str, Any]) -> bool:
    found = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return str(found.get("PointInTimeRecoveryStatus")) == "ENABLED"


def _reserved(client: Any, name: str) -> int | None:
    answer = client.get_function_concurrency(FunctionName=name)
    reserved: int | None = answer.get("ReservedConcurrentExecutions")
    return reserved


def _recursive_loop(client: Any, name: str) -> str:
    return str(client.get_function_recursion_config(FunctionName=name)["RecursiveLoop"])
