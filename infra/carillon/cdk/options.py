"""The stack's options, each with its default: as a value, or from the CDK context (cdk.json, or
`-c key=value`)."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from aws_cdk import RemovalPolicy, Token
from aws_cdk import aws_logs as logs

from carillon.cdk.packages import PYTHON_VERSION
from carillon.cdk.runtime import chosen_python
from carillon.cdk.target_arns import role_arn, target_pattern
from carillon.domain.job import Lane
from carillon.domain.spec.teams import TEAM_NAME
from carillon.errors import ConfigurationError
from carillon.reading import Read, WholeNumber, email_address, listed, option, read_at, text
from carillon.settings import TICK_RESERVE_SECONDS, Choices, secrets_prefix

LANES = tuple(lane.value for lane in Lane)
ROLES = ("tick", "executor", "api")
"""The roles that have a memory size each; the dead-letter consumer is an executor."""

MOST_EXECUTORS_OF_AWS = 1000
"""The greatest maximum concurrency of an SQS event source; 2 is the least."""
_MOST_EXECUTORS = {"high": 50, "normal": 50, "low": 10, "slow": 100}

NEW_TABLE_WRITE_UNITS = 4_000
"""The writes that a new table on demand takes in a second (DynamoDB: initial throughput)."""

MOST_MACHINES = 48
"""An authorizer takes 50 audiences, of which command and console are two (API Gateway: quotas)."""

MOST_SCOPES = 50
"""The scopes that an app client may have (Amazon Cognito: quotas)."""
MOST_SCOPES_IN_ALL = 100
"""Those that a resource server may have."""

LOG_RETENTION = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    5: logs.RetentionDays.FIVE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    120: logs.RetentionDays.FOUR_MONTHS,
    150: logs.RetentionDays.FIVE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
    400: logs.RetentionDays.THIRTEEN_MONTHS,
    545: logs.RetentionDays.EIGHTEEN_MONTHS,
    731: logs.RetentionDays.TWO_YEARS,
    1827: logs.RetentionDays.FIVE_YEARS,
    3653: logs.RetentionDays.TEN_YEARS,
}
"""What CloudWatch Logs accepts, by days."""

PRODUCTION = "production"
ALL_STAGES = "Carillon"
"""The beginning of the names of every stage's stack and resources."""


def _matching(pattern: str) -> Read:
    def read(value: object) -> str:
        if not re.fullmatch(pattern, text(value)):
            raise ValueError(f"{value!r} does not match {pattern}")
        return text(value)

    return read


def _optional(check: Callable[[str], str]) -> Read:
    """Reads a text that `check` accepts, or none."""
    return lambda value: text(value) and check(text(value))


def _origin(text: str) -> str:
    if not re.fullmatch(r"https?://[a-z0-9.-]+(:\d{1,5})?", text):
        raise ValueError(f"{text!r} is no origin, such as https://console.example.com")
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{0,59}", text):
        raise ValueError(f"{text!r} is no name: letters, digits and dashes, at most 60")
    return text


def team_name(text: str) -> str:
    """Raises ConfigurationError."""
    if not re.fullmatch(TEAM_NAME, text):
        raise ConfigurationError("team", f"{text!r} is none: letters a-z, digits and dashes")
    return text


def _topic(value: object) -> str:
    """Alarms publish to standard topics only; one of the same app is told by a token."""
    arn = text(getattr(value, "topic_arn", value))
    if arn and not Token.is_unresolved(arn):
        _refuse_other_than_topic(arn)
    return arn


def _role(value: object) -> str:
    """One of the same app is told by a token."""
    arn = text(value)
    return arn if Token.is_unresolved(arn) else role_arn(arn)


def _refuse_other_than_topic(text: str) -> None:
    if not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}", text):
        raise ValueError(f"{text!r} is no standard topic: expected arn:aws:sns:REGION:ACCOUNT:NAME")


def _switch(value: object) -> bool:
    on_or_off = {"true": True, "false": False, "": False}
    word = str(value).strip().lower() if isinstance(value, str | bool) else None
    if word not in on_or_off:
        raise ValueError(f"expected true or false, got {value!r}")
    return on_or_off[word]


def _log_retention(value: object) -> int:
    days = WholeNumber(1, max(LOG_RETENTION))(value)
    if days not in LOG_RETENTION:
        raise ValueError(f"{days} is not one of {(*LOG_RETENTION,)}")
    return days


def _warm_write_units(value: object) -> int:
    units = WholeNumber(0, 1_000_000)(value)
    if 0 < units < NEW_TABLE_WRITE_UNITS:
        raise ValueError(f"expected 0, or {NEW_TABLE_WRITE_UNITS} and more, got {units}")
    return units


def _python(value: object) -> str:
    return chosen_python(text(value), PYTHON_VERSION)


def _members(names: tuple[str, ...], read: Read) -> Read:
    """Reads an object, as such or as JSON, that has exactly these members."""

    def read_each(value: object) -> Mapping[str, Any]:
        found = json.loads(value) if isinstance(value, str) else value
        if not isinstance(found, Mapping) or set(found) != set(names):
            raise ValueError(f"expected an object with the keys {', '.join(names)}")
        return {name: read_at(name, read, found[name]) for name in names}

    return read_each


def _machine_clients(value: object) -> Mapping[str, tuple[str, ...]]:
    """Reads an object, as such or as JSON, with the names of roles for each name of a machine."""
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, Mapping):
        raise ValueError(f'expected an object such as {{"ci": ["billing:editor"]}}, got {value!r}')
    if len(found) > MOST_MACHINES:
        raise ValueError(f"{len(found)} are too many: at most {MOST_MACHINES}")
    for name in found:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,31}", str(name)):
            raise ValueError(f"{name!r} is no name: letters a-z, digits and dashes, at most 32")
    machines = {str(name): read_at(name, _scopes, each) for name, each in found.items()}
    in_all = len({scope for scopes in machines.values() for scope in scopes})
    if in_all > MOST_SCOPES_IN_ALL:
        raise ValueError(f"{in_all} different roles are too many: at most {MOST_SCOPES_IN_ALL}")
    return machines


def _scopes(value: object) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(listed(least=1)(value)))
    if len(found) > MOST_SCOPES:
        raise ValueError(f"{len(found)} are too many: at most {MOST_SCOPES}")
    for scope in found:
        if not re.fullmatch(r"[!-~]{1,256}", scope) or set(scope) & set('"/\\'):
            raise ValueError(f"{scope!r}: Cognito has no scope with blanks, slashes or quotes")
    return found


@dataclass(frozen=True, kw_only=True)
class Options(Choices):
    """All that can be chosen at deployment; docs/options.md has the table.

    Raises ConfigurationError, naming the option, for a value that it cannot have. `issuer` and
    `audience` are both empty, for which there is a Cognito user pool, or both set.
    """

    stage: str = option(
        PRODUCTION,
        _matching(r"[a-z][a-z0-9-]{0,15}"),
        "a second deployment in the account: the stack of this repository's app is "
        "`Carillon-{stage}`, and its removal leaves nothing",
    )
    name: str = option(
        "",
        _optional(_name),
        "names in the account are to begin otherwise (none: with the stack's name and the "
        "construct's path in it)",
    )
    lanes: Mapping[str, Mapping[str, int]] = option(
        {lane: {"max_concurrency": most} for lane, most in _MOST_EXECUTORS.items()},
        _members(LANES, _members(("max_concurrency",), WholeNumber(2, MOST_EXECUTORS_OF_AWS))),
        "a lane needs more executors at a time",
    )
    # With less than is kept of it a tick would send nothing.
    tick_timeout_seconds: int = option(
        58, WholeNumber(TICK_RESERVE_SECONDS + 4, 900), "a tick's minute takes longer"
    )
    log_retention_days: int = option(30, _log_retention, "logs are to be kept longer")
    issuer: str = option("", text, "your own OIDC issuer signs the tokens, not a Cognito user pool")
    audience: str = option("", text, "the same: what its tokens are for")
    machine_clients: Mapping[str, tuple[str, ...]] = option(
        {},
        _machine_clients,
        "programs sign in by themselves (docs/teams.md): each with its roles in teams, "
        '`{"ci": ["billing:editor"]}`',
    )
    pass_role_arns: tuple[str, ...] = option(
        (),
        listed(_role),
        "jobs start tasks of ECS: the ARNs of the task roles and execution roles of the task "
        "definitions in `target_arns`",
    )
    secrets_prefix: str = option(
        "",
        _optional(secrets_prefix),
        "jobs name secrets: they are `{prefix}/{owner}/{name}`, parameters "
        "`/{prefix}/{owner}/{name}` (none: the `name` in small letters)",
    )
    event_bus: bool = option(
        False,
        _switch,
        "lifecycle events are wanted: makes a bus (outputs `EventBusName`, `EventBusArn`)",
    )
    # The bounds are Lambda's.
    memory_mb: Mapping[str, int] = option(
        dict.fromkeys(ROLES, 512),
        _members(ROLES, WholeNumber(128, 10_240)),
        "a function needs more processor time, which comes with memory",
    )
    tick_reserved_concurrency: bool = option(
        True,
        _switch,
        "the account's quota forbids it (AWS keeps 100 unreserved); without it another function's "
        "flood can hold up ticks",
    )
    warm_write_units: int = option(
        0,
        _warm_write_units,
        "the first herd needs more than 4,000 writes or 12,000 reads a second, which new tables "
        "take (reads get three times as many); AWS charges for it once, and never lowers it again",
    )
    recover_runs: bool = option(
        False,
        _switch,
        "a lost history of runs is to be restored, not begun anew: about $0.07 more a million "
        "fires",
    )
    console: bool = option(
        False,
        _switch,
        "the stack is to serve the console itself, at `/console/` of its API, where people sign in "
        "to the user pool",
    )
    console_client_id: str = option(
        "",
        text,
        "the same with an issuer of your own: the id of a public client there (authorization code "
        "with PKCE), whose tokens the API takes, too",
    )
    cors_origins: tuple[str, ...] = option((), listed(_origin), "pages of other sites call the API")
    alarm_email: str = option(
        "", _optional(email_address), "somebody is to hear of alarms (docs/operate.md)"
    )
    alarm_topic: str = option(
        "", _topic, "the same, by an SNS topic: its ARN, or in an app of your own the topic"
    )
    alarm_lost_runs: int = option(
        10,
        WholeNumber(0, 1_000_000),
        "fewer dead or missed runs within an hour are to be an alarm (0: none)",
    )
    monthly_budget_dollars: int = option(
        0, WholeNumber(0, 1_000_000), "the stack's cost is to be watched (0: not)"
    )
    dashboard: bool = option(True, _switch, "the account's three free ones are taken")
    python: str = option(
        "",
        _python,
        "the Python that synthesises, which is Lambda's, too, is to be this one and no other",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        read_at("target_arns", listed(target_pattern), self.target_arns)
        self._check_identity_provider()
        self._check_machines()
        if self.tick_workers > self.segments:
            message = f"{self.tick_workers} are more than there are segments"
            raise ConfigurationError("tick_workers", message)
        if self.monthly_budget_dollars and not (self.alarm_email or self.alarm_topic):
            message = "needs alarm_email or alarm_topic, or nobody hears when it is spent"
            raise ConfigurationError("monthly_budget_dollars", message)
        if not self.secrets_prefix:
            # No stage reads another one's secrets.
            own = read_at("secrets_prefix", secrets_prefix, (self.name or self.stack_name).lower())
            object.__setattr__(self, "secrets_prefix", own)

    def _check_identity_provider(self) -> None:
        if self.console and bool(self.issuer) != bool(self.console_client_id):
            message = "must be given for a console with an issuer, and only then"
            raise ConfigurationError("console_client_id", message)
        for one, other in (("issuer", "audience"), ("audience", "issuer")):
            if getattr(self, one) and not getattr(self, other):
                raise ConfigurationError(other, f"must be given together with {one}")
        if self.issuer and not re.fullmatch(r"https://[^\s?#]+", self.issuer):
            raise ConfigurationError("issuer", f"expected an https URL, got {self.issuer!r}")

    def _check_machines(self) -> None:
        if self.issuer and self.machine_clients:
            message = "are the user pool's: with an issuer of your own make them there"
            raise ConfigurationError("machine_clients", message)
        for name, roles in self.machine_clients.items():
            for role in roles:
                if not self.teams.teams_in([role]):
                    message = f"{role!r} names no team and role, as `team_pattern` has them"
                    raise ConfigurationError(f"machine_clients.{name}", message)

    @property
    def stack_name(self) -> str:
        """The name of this repository's own stack: stages live side by side in one account."""
        return ALL_STAGES if self.stage == PRODUCTION else f"{ALL_STAGES}-{self.stage}"

    @property
    def keep_data(self) -> bool:
        """True if tables, user pool and secret outlive the stack."""
        return self.stage == PRODUCTION

    @property
    def data_policy(self) -> RemovalPolicy:
        """The policy for tables, user pool and secret when their stack goes. What a first
        deployment made that fails goes with it, always."""
        kept = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        return kept if self.keep_data else RemovalPolicy.DESTROY

    @property
    def log_retention(self) -> logs.RetentionDays:
        return LOG_RETENTION[self.log_retention_days]

    def places(self, lane: Lane) -> int:
        """The number of runs of a lane that its executors can hold at once."""
        return self.lanes[lane.value]["max_concurrency"] * lane.batch_size

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Options":
        """Parse the app's whole context; raises ConfigurationError for an unknown key, too.

        Keys of CDK itself (with a colon, a slash or a dash) are ignored.
        """
        return cls.given({key: each for key, each in context.items() if re.fullmatch(r"\w+", key)})

    @classmethod
    def given(cls, options: Mapping[str, Any]) -> "Options":
        """Raises ConfigurationError for an unknown option, too."""
        known = {each.name for each in fields(cls)}
        for key in options.keys() - known:
            raise ConfigurationError(key, f"unknown option; known are {', '.join(sorted(known))}")
        return cls(**options)
