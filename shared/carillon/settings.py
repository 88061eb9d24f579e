"""The choices of a deployment, each declared once, and the settings of its functions: the
environment, parsed once into a frozen value."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from carillon.domain.addresses import Network
from carillon.domain.job import Lane
from carillon.domain.quotas import MOST, Limits, Quota, limits_in
from carillon.domain.spec.arns import covers
from carillon.domain.spec.teams import TEAM_PATTERN, Role, TeamPattern
from carillon.domain.wheel.entry import TICK_OUTAGE_DAYS
from carillon.domain.wheel.segment import MOST_LOOK_AHEAD
from carillon.errors import ConfigurationError
from carillon.reading import (
    WholeNumber,
    email_address,
    listed,
    option,
    read_members,
    required,
    switch,
    text,
)

TASK_RESERVE_SECONDS = 5
"""Kept of the executor's timeout for claim, finish and follow-up; jobs may ask for the rest."""

TICK_RESERVE_SECONDS = 6
"""Kept of the tick's timeout to record the progress before the function's own end."""

OPERATORS_GROUP = "operators"
"""Members of this group of the identity provider may see the whole deployment's status."""

PARAMETERS_ROOT = "/carillon-settings"
"""The parameters of all deployments are below it, each under its name."""

TASK_ENVIRONMENT = (
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
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


def _network(value: object) -> Network:
    return ip_network(str(value))


def _module(value: object) -> str:
    name = text(value)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name!r} is not the name of a Python module")
    return name


TRACES_TO_LOGS = "logs"
TRACES_TO_XRAY = "xray"


def _tracing(value: object) -> str:
    """The address may not have a user name, password or query: every function would show them."""
    place = text(value)
    if place not in ("", TRACES_TO_LOGS, TRACES_TO_XRAY) and not re.fullmatch(
        r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?", place
    ):
        raise ValueError(
            f"expected {TRACES_TO_LOGS}, {TRACES_TO_XRAY} or the URL of an OpenTelemetry collector "
            f"such as http://collector.internal:4318/v1/traces, got {place!r}"
        )
    return place


def _team_claim(value: object) -> str:
    if not re.fullmatch(r"[!-~]{1,200}", text(value)):
        raise ValueError(f"expected the name of a claim such as groups, got {value!r}")
    return text(value)


def _machine_names(value: object) -> dict[str, str]:
    if isinstance(value, Mapping):
        return dict(value)
    pairs = [each.partition("=") for each in listed()(value)]
    return {client_id: name for client_id, _, name in pairs}


def _default_role(value: object) -> str:
    if text(value) not in ("", *Role):
        raise ValueError(f"expected one of {', '.join(Role)}, or none, got {value!r}")
    return text(value)


def secrets_prefix(value: object) -> str:
    """At most five levels: Parameter Store knows 15, of which owner and name take two."""
    prefix, level = text(value), r"[A-Za-z0-9_.-]{1,60}"
    if not re.fullmatch(rf"{level}(/{level}){{0,4}}", prefix):
        raise ValueError(f"expected a path such as teams/carillon, got {prefix!r}")
    if prefix.lower().startswith(("aws", "ssm")):
        raise ValueError(f"{prefix!r}: Parameter Store keeps aws… and ssm… to itself")
    return prefix


def _lane_queues(value: object) -> dict[Lane, str]:
    try:
        found = value if isinstance(value, dict) else json.loads(required(value))
        urls = {Lane(lane): str(url) for lane, url in found.items()}
    except AttributeError as error:
        raise ValueError(f"expected a JSON object of lane to URL: {error}") from error
    if set(urls) != set(Lane):
        raise ValueError(f"expected each of {', '.join(Lane)}")
    return urls


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The choices made at deployment that the functions obey: each is an option of the stack, and
    in capitals a variable of its functions."""

    segments: int = option(
        4,
        WholeNumber(1, 4096),
        "a segment's minute no longer fits into a tick; `carillon admin spread` then moves jobs",
    )
    tick_workers: int = option(
        1,
        WholeNumber(1, 64),
        "a herd is to be sent sooner: up to so many ticks share a minute that one would take "
        "seconds for; no more than there are `segments`",
    )
    chunks: bool = option(
        True,
        switch,
        "each run is to have a claim and a row of its own; about 24 plain ones of a second share "
        "them otherwise",
    )
    look_ahead_minutes: int = option(
        2,
        WholeNumber(1, MOST_LOOK_AHEAD // timedelta(minutes=1)),
        "ticks come late for longer than that",
    )
    run_retention_days: int = option(
        30, WholeNumber(1, 3650), "history is to be kept longer, or less long"
    )
    activity_days: int = option(
        7, WholeNumber(1, 365), "the activity feed is to reach further back, or less far"
    )
    change_retention_days: int = option(
        400, WholeNumber(1, 3650), "who changed what is to be known for longer, or less long"
    )
    executor_timeout_seconds: int = option(
        60,
        WholeNumber(TASK_RESERVE_SECONDS + 1, 900),
        "runs take longer; short ones recover quicker",
    )
    task_modules: tuple[str, ...] = option(
        ("carillon.executor.tasks.samples",),
        listed(_module, least=1),
        "the samples are not wanted; tasks of your own come by `tasks` (docs/your-project.md)",
    )
    webhook_allowed_networks: tuple[Network, ...] = option(
        (), listed(_network), "webhooks must reach private networks"
    )
    target_arns: tuple[str, ...] = option(
        (),
        listed(),
        "jobs call AWS resources: ARNs with `*`; the executors' role gets exactly these",
    )
    secrets_prefix: str = option("carillon", secrets_prefix)
    owner_jobs: int = option(
        10_000,
        WholeNumber(0, MOST[Quota.JOBS]),
        "an owner has more jobs; of one alone, `carillon quota set` (0: no limit)",
    )
    owner_scheduled_per_minute: int = option(
        0,
        WholeNumber(0, MOST[Quota.SCHEDULED]),
        "an owner's schedules may not yield more than a share (0: no limit)",
    )
    owner_starts_per_minute: int = option(
        0, WholeNumber(0, MOST[Quota.STARTS]), "no owner may take more than a share (0: no limit)"
    )
    owner_concurrent_runs: int = option(
        0,
        WholeNumber(0, MOST[Quota.RUNS]),
        "an owner's runs that last longer than 2 s are to leave room for others (0: no limit)",
    )
    owner_requests_per_second: int = option(
        20,
        WholeNumber(0, MOST[Quota.REQUESTS]),
        "an owner sends more requests to the API (0: no limit); the stage lets ten times as many "
        "through, for all",
    )
    email_sender: str = option(
        "",
        lambda value: text(value) and email_address(value),
        "notifications go by e-mail, too: the address that Amazon SES sends them from",
    )
    owner_requests_burst: int = option(40, WholeNumber(1, 500), "the same, at once after a pause")
    catch_up_per_minute: int = option(
        3000,
        WholeNumber(1, 10_000_000),
        "a backlog is to be worked off faster or slower, over all segments",
    )
    # A longer value than any attempt would find none.
    slow_after_seconds: int = option(
        2,
        WholeNumber(1, 900),
        "attempts of that length are still to be served among the quick ones",
    )
    tracing: str = option(
        "",
        _tracing,
        "traces are wanted (docs/tracing.md): `logs`, `xray`, or the URL of an OpenTelemetry "
        "collector",
    )
    trace_percent: int = option(
        100, WholeNumber(1, 100), "the traces of some of the runs are enough"
    )

    team_claim: str = option(
        "cognito:groups",
        _team_claim,
        "your issuer has its groups or roles in another claim of its tokens (docs/teams.md)",
    )
    team_pattern: str = option(
        TEAM_PATTERN,
        required,
        "the names there are others: a regular expression of Python for a whole name, with the "
        "groups `team` and `role`",
    )
    team_default_role: str = option(
        "", _default_role, "the pattern has no `role`, or not always: the role then (none: refused)"
    )
    machine_scope_claim: str = option(
        "scope",
        _team_claim,
        "your issuer has the scopes of machines in another claim, as Okta in `scp`",
    )
    personal_jobs: bool = option(True, switch, "jobs are to be those of teams, never of people")
    operators_act_for_teams: bool = option(
        False, switch, "operators are to help any team: each is an admin of it then"
    )

    def __post_init__(self) -> None:
        read_members(self)
        try:
            _ = self.teams
        except ValueError as error:
            raise ConfigurationError("team_pattern", str(error)) from error

    @property
    def limits(self) -> Limits:
        """The quotas of owners that have none of their own."""
        return limits_in(self)

    @property
    def teams(self) -> TeamPattern:
        """The reader of teams in the names that tokens hold."""
        return TeamPattern(
            self.team_pattern, Role(self.team_default_role) if self.team_default_role else None
        )


@dataclass(frozen=True, kw_only=True)
class Settings(Choices):
    """Every setting has the name of its environment variable, in lower case.

    `event_bus` is the name or ARN of an EventBridge bus, "" for none. What is due later than
    `longest_delay_seconds` waits on the wheel instead of in its queue. Of the places of lane slow
    each owner holds `slow_lane_share` at most. `own_arns` are the deployment's own resources.
    Task processes alone have `task_folder` on their path, and credentials of the role
    `task_role_arn`; `task_names` are the tasks that there are (none: unknown).
    Settings that are too long for an environment are in parameters below the path `parameters`.
    Tokens name `issuer` and `audience`; the gateway checks them, only the api tells of them.
    `machine_names` are those of the clients that sign in by themselves, by id (`id=name`); they
    get their tokens at `token_url`, of an emulator's only the path.
    The output of tasks is in `log_groups`.
    `api_url` is the API's address, for reports of runs' ends; of an emulator's only its path.
    `console_url` is that of the console, "" without one.
    """

    jobs_table: str = field(metadata={"read": required})
    wheel_table: str = field(metadata={"read": required})
    runs_table: str = field(metadata={"read": required})
    lane_queues: dict[Lane, str] = field(metadata={"read": _lane_queues})
    queue_retention_days: int = option(10, WholeNumber(1, 14))
    webhook_secret_arn: str = option("", text)
    operators_group: str = option(OPERATORS_GROUP, text)
    event_bus: str = option("", text)
    longest_delay_seconds: int = option(900, WholeNumber(1, 900))
    slow_lane_share: int = option(1, WholeNumber(1, 1000))
    stack_name: str = option("", text)
    own_arns: tuple[str, ...] = option((), listed())
    task_folder: str = option("", text)
    task_names: tuple[str, ...] = option((), listed())
    task_role_arn: str = option("", text)
    parameters: str = option("", text)
    issuer: str = option("", text)
    audience: str = option("", text)
    console_client_id: str = option("", text)
    sign_in_url: str = option("", text)
    machine_names: Mapping[str, str] = option({}, _machine_names)
    token_url: str = option("", text)
    api_url: str = option("", text)
    console_url: str = option("", text)
    log_groups: tuple[str, ...] = option((), listed())

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] | None = None,
        read_parameters: Callable[[str], Mapping[str, str]] | None = None,
    ) -> "Settings":
        """Parse the environment, and with `read_parameters` the variables below its path.

        Raises ConfigurationError naming the variable.
        """
        env: Mapping[str, str] = os.environ if environment is None else environment
        if read_parameters and env.get("PARAMETERS"):
            env = {**env, **read_parameters(env["PARAMETERS"])}
        for name in ("API_URL", "TOKEN_URL"):
            if env.get(name, "").startswith("/"):
                env = {**env, name: env.get("AWS_ENDPOINT_URL", "") + env[name]}
        needed = {each.name: "" for each in fields(cls) if each.default_factory is MISSING}
        given = {name.lower(): env[name] for name in cls.variable_names() & env.keys()}
        values: Any = needed | given
        try:
            return cls(**values)
        except ConfigurationError as error:
            raise ConfigurationError(error.name.upper(), error.message) from error

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
    def activity_lifetime(self) -> timedelta:
        """The time that the activity feed reaches back: not beyond the runs that it names."""
        return min(timedelta(days=self.activity_days), self.run_lifetime)

    @property
    def change_lifetime(self) -> timedelta:
        """The time that who changed what is known for."""
        return timedelta(days=self.change_retention_days)

    @property
    def longest_timeout_seconds(self) -> int:
        """The longest time limit that a job may have in this deployment."""
        return self.executor_timeout_seconds - TASK_RESERVE_SECONDS

    def allows_target(self, arn: str) -> bool:
        """True if jobs may call this AWS resource in this deployment."""
        return not self.is_own(arn) and any(covers(each, arn) for each in self.target_arns)

    def is_own(self, arn: str) -> bool:
        """True if the resource, or what it is a version or alias of, is the deployment's own: jobs
        never call those, whatever is allowed.

        Who could send to its queues, or invoke its functions, could act as any owner.
        """
        return arn in self.own_arns or arn.rpartition(":")[0] in self.own_arns

    @classmethod
    def variable_names(cls) -> frozenset[str]:
        """The environment variables that a deployment may set."""
        return frozenset(each.name.upper() for each in fields(cls))


def task_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment variables that tasks see."""
    env = os.environ if environment is None else environment
    return {name: env[name] for name in TASK_ENVIRONMENT if name in env}
