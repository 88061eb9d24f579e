"""The deployment's settings: the environment, parsed once into a frozen value."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from ipaddress import ip_network

from carillon.domain.addresses import Network
from carillon.domain.job import Lane
from carillon.domain.wheel.entry import TICK_OUTAGE_DAYS
from carillon.errors import ConfigurationError

TASK_RESERVE_SECONDS = 5
"""Kept of the executor's timeout for claim, finish and follow-up; jobs may ask for the rest."""

OPERATORS_GROUP = "operators"
"""Members of this group of the identity provider may see the whole deployment's status."""

TASK_ENVIRONMENT = (
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "CARILLON_EMULATOR",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONTZPATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TZ",
)
"""The executor's variables that tasks see; docs/running.md lists them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting has the name of its environment variable, in lower case.

    `event_bus` is the name or ARN of an EventBridge bus, "" for none. `target_arns` are the AWS
    resources that jobs may call, as IAM patterns (`*` any text, `?` one character).
    `secrets_prefix` begins the names of owners' secrets and parameters. `owner_starts_per_minute`
    limits the starts of each owner's runs (0: not), `owner_concurrent_runs` how many of them last
    at once (0: not), `owner_requests_per_second` the requests that
    one process of the api serves each owner (0: not; up to `owner_requests_burst` at once),
    `catch_up_per_minute` the messages of a backlog, over all segments. What is due later than
    `longest_delay_seconds` waits on the wheel instead of in its queue. Attempts longer than
    `slow_after_seconds` make a slow job; of the places of lane slow each owner holds
    `slow_lane_share` at most. The names of the deployment's own resources begin with `stack_name`
    and a dash ("" where there is no stack). Tokens name `issuer` and `audience`; the gateway checks
    them, only the api tells of them.
    """

    jobs_table: str
    wheel_table: str
    runs_table: str
    lane_queues: dict[Lane, str]
    segments: int
    look_ahead_minutes: int
    tick_workers: int
    run_retention_days: int
    queue_retention_days: int
    function_timeout_seconds: int
    task_modules: tuple[str, ...]
    webhook_secret_arn: str
    webhook_allowed_networks: tuple[Network, ...]
    operators_group: str
    event_bus: str
    target_arns: tuple[str, ...]
    secrets_prefix: str
    owner_starts_per_minute: int
    owner_concurrent_runs: int
    catch_up_per_minute: int
    longest_delay_seconds: int
    slow_after_seconds: int
    slow_lane_share: int
    stack_name: str = ""
    owner_requests_per_second: int = 0
    owner_requests_burst: int = 0
    issuer: str = ""
    audience: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Parse the environment; raises ConfigurationError naming the variable."""
        env = os.environ if environment is None else environment
        return cls(
            jobs_table=_text(env, "JOBS_TABLE"),
            wheel_table=_text(env, "WHEEL_TABLE"),
            runs_table=_text(env, "RUNS_TABLE"),
            lane_queues=_lane_queues(env),
            segments=_number(env, "SEGMENTS", None, 1, 4096),
            look_ahead_minutes=_number(env, "LOOK_AHEAD_MINUTES", 2, 1, 10),
            tick_workers=_number(env, "TICK_WORKERS", 1, 1, 5),
            run_retention_days=_number(env, "RUN_RETENTION_DAYS", 30, 1, 3650),
            queue_retention_days=_number(env, "QUEUE_RETENTION_DAYS", 10, 1, 14),
            function_timeout_seconds=_number(env, "FUNCTION_TIMEOUT_SECONDS", 60, 3, 900),
            task_modules=_words(env, "TASK_MODULES", "carillon.executor.tasks.samples"),
            webhook_secret_arn=env.get("WEBHOOK_SECRET_ARN", ""),
            webhook_allowed_networks=_networks(env, "WEBHOOK_ALLOWED_NETWORKS"),
            operators_group=env.get("OPERATORS_GROUP", OPERATORS_GROUP),
            event_bus=env.get("EVENT_BUS", ""),
            target_arns=_words(env, "TARGET_ARNS", ""),
            secrets_prefix=_secrets_prefix(env),
            owner_starts_per_minute=_number(env, "OWNER_STARTS_PER_MINUTE", 0, 0, 10_000_000),
            owner_concurrent_runs=_number(env, "OWNER_CONCURRENT_RUNS", 0, 0, 1000),
            catch_up_per_minute=_number(env, "CATCH_UP_PER_MINUTE", 3000, 1, 10_000_000),
            longest_delay_seconds=_number(env, "LONGEST_DELAY_SECONDS", 900, 1, 900),
            slow_after_seconds=_number(env, "SLOW_AFTER_SECONDS", 2, 1, 900),
            slow_lane_share=_number(env, "SLOW_LANE_SHARE", 1, 1, 1000),
            stack_name=env.get("STACK_NAME", ""),
            owner_requests_per_second=_number(env, "OWNER_REQUESTS_PER_SECOND", 20, 0, 10_000),
            owner_requests_burst=_number(env, "OWNER_REQUESTS_BURST", 40, 0, 10_000),
            issuer=env.get("ISSUER", ""),
            audience=env.get("AUDIENCE", ""),
        )

    @property
    def run_lifetime(self) -> timedelta:
        """The time that a run row, or a tombstone, lives after its last write.

        A duplicate of a message must never outlive the row that absorbs it. A tick that died after
        a send may have its minute sent again as long as ticks may be down, and a queue then holds
        that message for its own retention.
        """
        duplicate_days = TICK_OUTAGE_DAYS + self.queue_retention_days + 1
        return timedelta(days=max(self.run_retention_days, duplicate_days))

    @property
    def longest_timeout_seconds(self) -> int:
        """The longest time limit that a job may have in this deployment."""
        return max(1, self.function_timeout_seconds - TASK_RESERVE_SECONDS)

    def allows_target(self, arn: str) -> bool:
        """True if jobs may call this AWS resource in this deployment."""
        return not self.is_own(arn) and any(_covers(each, arn) for each in self.target_arns)

    def is_own(self, arn: str) -> bool:
        """True if the resource is a deployment's own, of whichever stage: jobs never call those,
        whatever is allowed.

        Who could send to its queues, or invoke its functions, could act as any owner. The names of
        all stages begin alike.
        """
        names = re.split("[:/]", _segments(arn)[-1])
        begins = f"{self.stack_name.partition('-')[0]}-"
        return bool(self.stack_name) and any(name.startswith(begins) for name in names)

    @classmethod
    def variable_names(cls) -> frozenset[str]:
        """The environment variables that a deployment may set."""
        return frozenset(name.upper() for name in cls.__slots__)


def task_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables that tasks see."""
    env = os.environ if environment is None else environment
    return {name: env[name] for name in TASK_ENVIRONMENT if name in env}


def _text(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    if not value:
        raise ConfigurationError(name, "must be set")
    return value


def _number(env: Mapping[str, str], name: str, default: int | None, low: int, high: int) -> int:
    text = env.get(name, "" if default is None else str(default))
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ConfigurationError(name, f"must be a whole number from {low} to {high}, not {text!r}")
    return int(text)


def _secrets_prefix(env: Mapping[str, str]) -> str:
    name = "SECRETS_PREFIX"
    prefix = env.get(name, "carillon")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*", prefix):
        raise ConfigurationError(name, f"must be a path such as teams/carillon, not {prefix!r}")
    return prefix


def _covers(pattern: str, arn: str) -> bool:
    """True if an ARN matches segment by segment, so that no wildcard reaches into the next.

    IAM lets one reach further; what IAM alone would allow is refused here.
    """
    patterns, segments = _segments(pattern), _segments(arn)
    return len(segments) == len(patterns) and all(
        fnmatchcase(segment, each.replace("[", "[[]"))
        for segment, each in zip(segments, patterns, strict=True)
    )


def _segments(arn: str) -> list[str]:
    """arn, partition, service, region, account and resource, the last with all its colons."""
    return arn.split(":", 5)


def _words(env: Mapping[str, str], name: str, default: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in env.get(name, default).split(",") if word.strip())


def _networks(env: Mapping[str, str], name: str) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(word) for word in _words(env, name, ""))
    except ValueError as error:
        raise ConfigurationError(
            name, f"must be CIDR blocks separated by commas: {error}"
        ) from error


def _lane_queues(env: Mapping[str, str]) -> dict[Lane, str]:
    name = "LANE_QUEUES"
    try:
        urls = {Lane(lane): str(url) for lane, url in json.loads(_text(env, name)).items()}
    except (ValueError, AttributeError) as error:
        raise ConfigurationError(name, f"must be a JSON object of lane to URL: {error}") from error
    if set(urls) != set(Lane):
        raise ConfigurationError(name, f"must name each of {', '.join(Lane)}")
    return urls
