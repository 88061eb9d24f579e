"""The facts about a deployment at one instant: plain values, collected before any is judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from carillon.domain.wheel.segment import Control
from carillon.settings import Settings

_ABSENT = frozenset({"ResourceNotFoundException", "AWS.SimpleQueueService.NonExistentQueue"})
UNREADABLE = "unreadable"
"""The code of what can be had, and cannot be understood."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """In the place of a fact that could not be had: why, and AWS's code for it, if it has one."""

    reason: str
    code: str = ""

    @property
    def is_absent(self) -> bool:
        """True if the requested fact is not there; else nothing is known of it."""
        return self.code in _ABSENT

    @property
    def is_broken(self) -> bool:
        """True if the requested fact is there, and nobody can read it."""
        return self.code == UNREADABLE


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A function as its live alias has it. `service` is tick, api, executor or
    dead-letter-consumer; `release` is "" where the version names none; `reserved` concurrency is
    None for none of its own."""

    name: str
    service: str
    state: str
    timeout_seconds: int
    release: str
    layers: Sequence[str]
    variables: Mapping[str, str]
    reserved: int | Unknown | None
    recursive_loop: str | Unknown
    log_group: str = ""


@dataclass(frozen=True, slots=True)
class MappingFacts:
    """An event source mapping; `function` is the name that it calls, `qualifier` the alias or
    version of it, "" for none."""

    uuid: str
    queue_arn: str
    function: str
    qualifier: str
    state: str
    max_concurrency: int | None


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """`oldest_seconds` is the age of its oldest message."""

    url: str
    arn: str
    visibility_seconds: int
    messages: int
    oldest_seconds: int | Unknown


@dataclass(frozen=True, slots=True)
class RuleFacts:
    name: str
    enabled: bool
    targets: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """`expires_by`: the attribute of its TTL, "" for none. AWS counts `items` every six hours."""

    name: str
    status: str
    expires_by: str | Unknown
    recovers: bool | Unknown
    items: int


@dataclass(frozen=True, slots=True)
class AlarmFacts:
    name: str
    state: str
    actions: int
    enabled: bool


@dataclass(frozen=True, slots=True)
class SetAside:
    """An entry that ticks have gone on without; `is_readable` where it can be read by now."""

    segment: int
    slot: str
    key: str
    reason: str
    is_readable: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A deployment at `at`. `unreserved` is the account's concurrency that no function keeps for
    itself. `controls` are the control items of all segments in use: None for one that no tick has
    used, or the reason why it cannot be read. `secret` is the text of the signing secret.
    `skew_seconds` is this machine's clock minus the database's."""

    stack: str
    at: datetime
    settings: Settings
    unreserved: int | Unknown
    functions: Sequence[FunctionFacts]
    mappings: Sequence[MappingFacts | Unknown]
    queues: Sequence[QueueFacts | Unknown]
    rules: Sequence[RuleFacts | Unknown]
    tables: Mapping[str, TableFacts | Unknown]
    alarms: Sequence[AlarmFacts] | Unknown
    controls: Mapping[int, Control | Unknown | None]
    secret: str | Unknown
    skew_seconds: float | None
    set_aside: Sequence[SetAside] | Unknown = field(default_factory=tuple)

    @property
    def known_mappings(self) -> list[MappingFacts]:
        return [each for each in self.mappings if not isinstance(each, Unknown)]

    def functions_of(self, *services: str) -> list[FunctionFacts]:
        return [each for each in self.functions if each.service in services]
