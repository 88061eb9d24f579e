"""The notification: an owner's wish to be told of events, and the channel that tells."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from carillon.domain.changes.change import KeptChange
from carillon.domain.events import EventType
from carillon.domain.job import Generation, Job, Lane
from carillon.domain.message import Message
from carillon.domain.policies import Backoff, RetryPolicy
from carillon.domain.run import RunKey, RunKind
from carillon.domain.spec.job_spec import JobSpec
from carillon.domain.spec.names import folded
from carillon.domain.targets import (
    AnyTarget,
    Reference,
    SnsTarget,
    Spec,
    TaskTarget,
    WebhookTarget,
)
from carillon.schedules import NEVER

NAME_PATTERN = r"^[a-z0-9][a-z0-9-]{0,47}$"
"""Run ids carry the name: no dot, which separates what webhooks sign, and no underscore."""
AT_MOST_EVERY = 900
"""Seconds between two messages, unless the owner says otherwise."""
MOST_NOTIFICATIONS = 50
"""Of an owner: they are read at once."""
_ATTEMPTS = 5
_TIMEOUT_SECONDS = 10
_SEGMENT = 0


class Told(StrEnum):
    """The events that a notification can tell; those of `EventType` have its values."""

    RUN_DEAD = EventType.RUN_DEAD.value
    RUN_MISSED = EventType.RUN_MISSED.value
    JOB_PAUSED = EventType.JOB_PAUSED.value
    """By Carillon, since its runs have failed."""
    JOB_SLOWED = EventType.JOB_SLOWED.value
    RUN_RECOVERED = "run.recovered"
    """A job that had failed works again."""


OCCURRING = frozenset(Told) - {Told.RUN_RECOVERED}
"""The events that happen; a recovery is found."""
FAILURES = frozenset({Told.RUN_DEAD, Told.RUN_MISSED, Told.JOB_PAUSED})
"""Those after which a job can work again."""


class SlackChannel(Spec):
    """An incoming webhook of Slack. Its URL is a secret: who knows it can post."""

    completion: ClassVar[None] = None
    method: ClassVar[Literal["POST"]] = "POST"

    type: Literal["slack"] = "slack"
    url: Reference


class EmailChannel(Spec):
    """An address that Amazon SES sends to."""

    completion: ClassVar[None] = None
    resource_arn: ClassVar[None] = None

    type: Literal["email"] = "email"
    address: Annotated[str, Field(max_length=254, pattern=r"^[^@\s,<>]+@[^@\s,<>]+\.[^@\s,.<>]+$")]


AnyChannel = SlackChannel | WebhookTarget | SnsTarget | EmailChannel
Channel = Annotated[AnyChannel, Field(discriminator="type")]
Deliverable = AnyTarget | SlackChannel | EmailChannel
"""What an executor can call."""

_channels: TypeAdapter[AnyChannel] = TypeAdapter(Channel)


def channel_text(channel: AnyChannel) -> str:
    """The channel as it is stored: compact JSON with its type."""
    return channel.model_dump_json(exclude_none=True)


@lru_cache(maxsize=1_000)
def _channel(text: str) -> AnyChannel:
    return _channels.validate_json(text)


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification row, whole; a change is a new value with the next revision.

    It tells of the events `on` of the jobs whose name is `jobs`, or begins so where that ends in
    `*` ("" for every job), and that have all of `tags`. `to` is the channel's text. Between two
    messages lie `at_most_every` seconds.
    """

    owner: str
    name: str
    revision: int
    on: tuple[Told, ...]
    to: str
    created_at: datetime
    updated_at: datetime
    jobs: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    at_most_every: int = AT_MOST_EVERY
    last_change: KeptChange = field(default=None, compare=False)

    @property
    def channel(self) -> AnyChannel:
        return _channel(self.to)

    @property
    def period(self) -> timedelta:
        return timedelta(seconds=self.at_most_every)

    def is_about(self, name: str, tags: Mapping[str, str]) -> bool:
        """True if it tells of the job of this name, with these tags."""
        wanted, found = folded(self.jobs), folded(name)
        is_named = found.startswith(wanted[:-1]) if wanted.endswith("*") else found == wanted
        return (not wanted or is_named) and self.tags.items() <= tags.items()

    def delivery(self, opened_at: datetime, revision: int | str) -> RunKey:
        return delivery_key(self.owner, self.name, opened_at, revision)

    def as_job(self) -> Job:
        """The job whose runs are its deliveries: it is in no store, and its target is the
        channel's."""
        spec = _delivering().model_copy(update={"name": f"notification {self.name}"})
        return Job(
            owner=self.owner,
            job_id=notification_id(self.owner, self.name),
            spec=spec,
            schedule=NEVER,
            segment=_SEGMENT,
            generation=Generation("", self.created_at),
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


@cache
def _delivering() -> JobSpec:
    """The settings that all deliveries have; the row's schedule, not theirs, says when: never."""
    retry = RetryPolicy(_ATTEMPTS, backoff=Backoff(base_seconds=5, cap_seconds=120))
    return JobSpec(
        name="notification",
        schedule="every 1d",
        target=TaskTarget(name="notification"),
        retry=retry,
        timeout_seconds=_TIMEOUT_SECONDS,
    )


def notification_id(owner: str, name: str) -> str:
    """The id under which its deliveries are recorded: of the form of a job's, and no job's."""
    digest = hashlib.sha256(f"notification\0{owner}\0{name}".encode()).digest()
    return base64.b32hexencode(digest).decode().lower()[:26]


def delivery_key(owner: str, name: str, opened_at: datetime, revision: int | str) -> RunKey:
    """The run that delivers the message that is recorded in a revision of a window, or a test;
    `opened_at` in whole seconds."""
    job_id = notification_id(owner, name)
    return RunKey(owner, job_id, RunKind.NOTICE, opened_at, f"{revision}-{name}")


def notification_of(key: RunKey) -> str:
    """The name of the notification that a message of kind NOTICE or WINDOW is for."""
    return key.request_id.partition("-")[2]


def delivery_message(key: RunKey, now: datetime) -> Message:
    """The order to deliver, at once."""
    return Message(key, "", _SEGMENT, Lane.NORMAL, now.replace(microsecond=0))
