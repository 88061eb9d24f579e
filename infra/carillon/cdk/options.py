"""The deployment's options: the context of cdk.json (or `-c key=value`), parsed once."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from aws_cdk import RemovalPolicy

from carillon.cdk.option_texts import email_address, module, network, origin, target_pattern, topic
from carillon.cdk.packages import PYTHON_VERSION, service_name
from carillon.cdk.runtime import chosen_python
from carillon.domain.job import Lane
from carillon.domain.wheel.segment import MOST_LOOK_AHEAD
from carillon.errors import ConfigurationError

LANES = tuple(lane.value for lane in Lane)
ROLES = ("tick", "executor", "api")
"""What functions have their memory by; the dead-letter consumer is an executor."""

NEW_TABLE_WRITE_UNITS = 4_000
"""What a new table on demand takes in a second (DynamoDB: initial throughput)."""

LOG_RETENTION_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1827, 3653)
"""What CloudWatch Logs accepts."""

PRODUCTION = "production"
ALL_STAGES = "Carillon"
"""What the names of every stage's stack and resources begin with."""

_BOUNDS = {
    "segments": (1, 4096),
    "look_ahead_minutes": (1, MOST_LOOK_AHEAD // timedelta(minutes=1)),
    "run_retention_days": (1, 3650),
    "executor_timeout_seconds": (3, 900),
    "tick_timeout_seconds": (3, 900),
    "owner_starts_per_minute": (0, 10_000_000),
    # All permits of an owner stand in one row.
    "owner_concurrent_runs": (0, 1000),
    # The stage lets ten times as much through, for all.
    "owner_requests_per_second": (1, 1_000),
    "owner_requests_burst": (1, 500),
    "catch_up_per_minute": (1, 10_000_000),
    # SQS delays no longer.
    "longest_delay_seconds": (1, 900),
    # What is longer than any attempt would find none.
    "slow_after_seconds": (1, 900),
    "alarm_lost_runs": (0, 1_000_000),
    "monthly_budget_dollars": (0, 1_000_000),
}
"""Of the options that are whole numbers: the least and the most."""


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """One lane; `max_concurrency` is the most executors that work it at a time."""

    max_concurrency: int


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen at deployment; cdk.json holds the defaults.

    `issuer` and `audience` are both empty (a Cognito user pool is created) or both set.
    `target_arns` are the AWS resources that jobs may call; `event_bus` makes a bus for lifecycle
    events; `secrets_prefix` begins the names of the secrets and parameters that jobs may name, ""
    for the stack's name in small letters;
    `owner_starts_per_minute` and `owner_concurrent_runs`, the number of an owner's runs that last
    longer than two seconds, are 0 for no limit; `owner_requests_per_second` (and
    `owner_requests_burst`, at once) bounds what the API serves one owner; `catch_up_per_minute` is
    the pace at which a backlog is worked off. Retries later than `longest_delay_seconds` come by
    the wheel: SQS delays for 900 s at most, and less makes that way short enough to be watched.
    Jobs whose attempts keep lasting longer than `slow_after_seconds` are served in lane slow.
    `memory_mb` is that of the functions by role: processor time comes with it.
    `tick_reserved_concurrency` keeps places of the account's concurrency for the ticks.
    `warm_write_units` is what tables take in a second from their first one on, 0 for what new ones
    take by themselves (4,000). `recover_runs` keeps a point-in-time recovery of the runs, as there
    is of jobs and wheel. `cors_origins` are the sites whose pages may call the API.
    Alarms notify `alarm_topic`, an existing topic's ARN, and the address `alarm_email`, "" for
    neither; `alarm_lost_runs` dead or missed runs within an hour raise one, 0 for no such alarm.
    `monthly_budget_dollars` is a budget of what is tagged as the stack's, 0 for none. `dashboard`
    makes one.
    `python` is the version that synthesises and that Lambda runs, pinned or not; `task_services`
    are what tasks call with boto3 beside the functions' own services, "*" for all.
    `local_layer_python` and `layer_directory` exist for emulators: an interpreter that the layer is
    built for, and a directory of this machine that a layer of one file puts on the path.
    """

    stage: str
    segments: int
    tick_workers: int
    look_ahead_minutes: int
    lanes: Mapping[str, LaneOptions]
    run_retention_days: int
    executor_timeout_seconds: int
    tick_timeout_seconds: int
    issuer: str
    audience: str
    webhook_allowed_networks: tuple[str, ...]
    task_modules: tuple[str, ...]
    target_arns: tuple[str, ...]
    event_bus: bool
    secrets_prefix: str
    owner_starts_per_minute: int
    owner_concurrent_runs: int
    owner_requests_per_second: int
    owner_requests_burst: int
    catch_up_per_minute: int
    longest_delay_seconds: int
    slow_after_seconds: int
    memory_mb: Mapping[str, int]
    tick_reserved_concurrency: bool
    warm_write_units: int
    recover_runs: bool
    cors_origins: tuple[str, ...]
    alarm_topic: str
    alarm_email: str
    alarm_lost_runs: int
    monthly_budget_dollars: int
    dashboard: bool
    log_retention_days: int
    python: str
    task_services: tuple[str, ...]
    local_layer_python: str
    layer_directory: str

    @property
    def stack_name(self) -> str:
        """What the names of all resources begin with: stages live side by side in one account."""
        return _stack_name(self.stage)

    @property
    def keep_data(self) -> bool:
        """Whether tables, user pool and secret outlive the stack."""
        return self.stage == PRODUCTION

    @property
    def data_policy(self) -> RemovalPolicy:
        """What becomes of tables, user pool and secret with their stack. What a first deployment
        made that fails goes with it, always."""
        kept = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        return kept if self.keep_data else RemovalPolicy.DESTROY

    @property
    def on_emulator(self) -> bool:
        """Whether the stack is for an emulator, which knows no metric math."""
        return bool(self.layer_directory)

    def places(self, lane: Lane) -> int:
        """How many runs of a lane its executors can hold at once."""
        return self.lanes[lane.value].max_concurrency * lane.batch_size

    @classmethod
    def from_context(cls, context: Mapping[str, object]) -> "Options":
        """Parse the app's whole context.

        Raises ConfigurationError for a key that is missing, unknown or out of bounds. Keys of CDK
        itself (they hold a colon, a slash or a dash) are passed over.
        """
        _refuse_unknown(context, cls.__slots__)
        numbers: dict[str, Any] = {key: _number(context, key) for key in _BOUNDS}
        _refuse_unheard_budget(context, numbers["monthly_budget_dollars"])
        issuer, audience = _identity_provider(context)
        stage = _matching(context, "stage", r"[a-z][a-z0-9-]{0,15}")
        return cls(
            **numbers,
            stage=stage,
            tick_workers=_integer(context, "tick_workers", 1, min(5, numbers["segments"])),
            lanes=_lanes(context),
            issuer=issuer,
            audience=audience,
            webhook_allowed_networks=_listed(context, "webhook_allowed_networks", network),
            task_modules=_task_modules(context),
            target_arns=_listed(context, "target_arns", target_pattern),
            event_bus=_switch(context, "event_bus"),
            secrets_prefix=_secrets_prefix(context, stage),
            memory_mb=_memory_mb(context),
            tick_reserved_concurrency=_switch(context, "tick_reserved_concurrency"),
            warm_write_units=_warm_write_units(context),
            recover_runs=_switch(context, "recover_runs"),
            cors_origins=_listed(context, "cors_origins", origin),
            alarm_topic=_optional(context, "alarm_topic", topic),
            alarm_email=_optional(context, "alarm_email", email_address),
            dashboard=_switch(context, "dashboard"),
            log_retention_days=_log_retention(context),
            python=_python(context),
            task_services=_listed(context, "task_services", service_name),
            local_layer_python=_text(context, "local_layer_python"),
            layer_directory=_text(context, "layer_directory"),
        )


def _refuse_unknown(context: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in context:
        if re.fullmatch(r"\w+", key) and key not in known:
            raise ConfigurationError(key, f"unknown option; known are {', '.join(sorted(known))}")


def _value(context: Mapping[str, object], key: str) -> object:
    if context.get(key) is None:
        raise ConfigurationError(key, "missing from the context; cdk.json holds the defaults")
    return context[key]


def _text(context: Mapping[str, object], key: str) -> str:
    value = _value(context, key)
    if not isinstance(value, str):
        raise ConfigurationError(key, f"expected text, got {value!r}")
    return value.strip()


def _matching(context: Mapping[str, object], key: str, pattern: str) -> str:
    text = _text(context, key)
    if not re.fullmatch(pattern, text):
        raise ConfigurationError(key, f"{text!r} does not match {pattern}")
    return text


def _switch(context: Mapping[str, object], key: str) -> bool:
    value = _value(context, key)
    on_or_off = {"true": True, "false": False, "": False}
    text = str(value).strip().lower() if isinstance(value, str | bool) else None
    if text not in on_or_off:
        raise ConfigurationError(key, f"expected true or false, got {value!r}")
    return on_or_off[text]


def _number(context: Mapping[str, object], key: str) -> int:
    return _integer(context, key, *_BOUNDS[key])


def _integer(context: Mapping[str, object], key: str, least: int, most: int) -> int:
    return _bounded(key, _value(context, key), least, most)


def _bounded(key: str, value: object, least: int, most: int) -> int:
    # `-c key=value` gives text; JSON gives a number; a boolean is neither.
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigurationError(
            key, f"expected a whole number from {least} to {most}, got {value!r}"
        )
    return value


def _log_retention(context: Mapping[str, object]) -> int:
    days = _integer(context, "log_retention_days", 1, LOG_RETENTION_DAYS[-1])
    if days not in LOG_RETENTION_DAYS:
        raise ConfigurationError("log_retention_days", f"{days} is not one of {LOG_RETENTION_DAYS}")
    return days


def _object(
    context: Mapping[str, object], key: str, members: tuple[str, ...]
) -> Mapping[str, object]:
    """A JSON object, as such or as text, that has exactly these members."""
    value = _value(context, key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ConfigurationError(key, f"not JSON: {error}") from error
    if not isinstance(value, Mapping) or set(value) != set(members):
        raise ConfigurationError(key, f"expected an object with the keys {', '.join(members)}")
    return value


def _memory_mb(context: Mapping[str, object]) -> Mapping[str, int]:
    # The bounds are Lambda's.
    found = _object(context, "memory_mb", ROLES)
    return {role: _bounded(f"memory_mb.{role}", found[role], 128, 10_240) for role in ROLES}


def _warm_write_units(context: Mapping[str, object]) -> int:
    units = _integer(context, "warm_write_units", 0, 1_000_000)
    if 0 < units < NEW_TABLE_WRITE_UNITS:
        message = f"expected 0, or {NEW_TABLE_WRITE_UNITS} and more, got {units}"
        raise ConfigurationError("warm_write_units", message)
    return units


def _lanes(context: Mapping[str, object]) -> Mapping[str, LaneOptions]:
    found = _object(context, "lanes", LANES)
    return {lane: _lane(lane, found[lane]) for lane in LANES}


def _lane(lane: str, value: object) -> LaneOptions:
    key = f"lanes.{lane}"
    if not isinstance(value, Mapping) or set(value) != {"max_concurrency"}:
        raise ConfigurationError(key, 'expected {"max_concurrency": number}')
    # The bounds are those of an SQS event source's maximum concurrency.
    limit = _bounded(f"{key}.max_concurrency", value["max_concurrency"], 2, 1000)
    return LaneOptions(limit)


def _identity_provider(context: Mapping[str, object]) -> tuple[str, str]:
    issuer, audience = _text(context, "issuer"), _text(context, "audience")
    if issuer and not audience:
        raise ConfigurationError("audience", "must be given together with issuer")
    if audience and not issuer:
        raise ConfigurationError("issuer", "must be given together with audience")
    if issuer and not re.fullmatch(r"https://[^\s?#]+", issuer):
        raise ConfigurationError("issuer", f"expected an https URL, got {issuer!r}")
    return issuer, audience


def _listed(
    context: Mapping[str, object], key: str, check: Callable[[str], str]
) -> tuple[str, ...]:
    """The comma-separated parts of a value, each passed through `check`."""
    parts = [part.strip() for part in _text(context, key).split(",")]
    return tuple(_checked(key, part, check) for part in parts if part)


def _optional(context: Mapping[str, object], key: str, check: Callable[[str], str]) -> str:
    """A text that `check` accepts, or none."""
    text = _text(context, key)
    return text and _checked(key, text, check)


def _checked(key: str, text: str, check: Callable[[str], str]) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise ConfigurationError(key, str(error)) from error


def _task_modules(context: Mapping[str, object]) -> tuple[str, ...]:
    modules = _listed(context, "task_modules", module)
    if not modules:
        raise ConfigurationError("task_modules", "expected at least one Python module")
    return modules


def _python(context: Mapping[str, object]) -> str:
    try:
        return chosen_python(_text(context, "python"), PYTHON_VERSION)
    except ValueError as error:
        raise ConfigurationError("python", str(error)) from error


def _stack_name(stage: str) -> str:
    return ALL_STAGES if stage == PRODUCTION else f"{ALL_STAGES}-{stage}"


def _secrets_prefix(context: Mapping[str, object], stage: str) -> str:
    """At most five levels: Parameter Store knows 15, of which owner and name take two.

    The stack's name where none is given: no stage reads another one's secrets.
    """
    if not _text(context, "secrets_prefix"):
        return _stack_name(stage).lower()
    level = r"[A-Za-z0-9_.-]{1,60}"
    prefix = _matching(context, "secrets_prefix", rf"{level}(/{level}){{0,4}}")
    if prefix.lower().startswith(("aws", "ssm")):
        raise ConfigurationError(
            "secrets_prefix", f"{prefix!r}: Parameter Store keeps aws… and ssm… to itself"
        )
    return prefix


def _refuse_unheard_budget(context: Mapping[str, object], dollars: int) -> None:
    if dollars and not (_text(context, "alarm_email") or _text(context, "alarm_topic")):
        message = "needs alarm_email or alarm_topic, or nobody hears when it is spent"
        raise ConfigurationError("monthly_budget_dollars", message)
