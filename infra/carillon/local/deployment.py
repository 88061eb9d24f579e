"""`cdk deploy` to the local stack, its users and tokens."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from carillon.cdk.packages import build_layer, layer_digest
from carillon.cli.commands.admin.user_pool import UserPool
from carillon.domain.message import LONGEST_DELAY_SECONDS
from carillon.local.emulator import ACCOUNT_ID, INTERPRETER, REGION, REPOSITORY
from carillon.resources import resources_of
from carillon.settings import OPERATORS_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cognito_idp import CognitoIdentityProviderClient


TABLE = "AWS::DynamoDB::Table"


def settle_tables(template: Path, stack: str, client: Callable[[str], Any]) -> None:
    """Give the deployed tables the expiry and the recovery that the template asks for."""
    dynamodb = client("dynamodb")
    resources = json.loads(template.read_text())["Resources"]
    for kind, logical_id, name in resources_of(client("cloudformation"), stack):
        if kind == TABLE:
            _settle(dynamodb, name, resources[logical_id]["Properties"])


def _settle(dynamodb: Any, table: str, wanted: dict[str, Any]) -> None:
    expiry = wanted["TimeToLiveSpecification"]
    found = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if found["TimeToLiveStatus"] != "ENABLED":  # a second time is refused
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=expiry)
    dynamodb.update_continuous_backups(
        TableName=table,
        PointInTimeRecoverySpecification=wanted["PointInTimeRecoverySpecification"],
    )


STACK_NAME = "Carillon-local"
BOOTSTRAP_STACK_NAME = "CDKToolkit"
OWN_APP = "carillon.cdk.app"
CDK = REPOSITORY / "node_modules" / ".bin" / "cdk"

#: The state of everything local, ignored by git.
LOCAL_DIRECTORY = REPOSITORY / ".local"

#: One worker process per slot is warmed: few slots where the samples do not run.
LANES = {
    "high": {"max_concurrency": 2},
    "normal": {"max_concurrency": 4},
    "low": {"max_concurrency": 2},
    "slow": {"max_concurrency": 4},
}

#: The machine of the local stack, an editor of this team.
MACHINE = "ci"
MACHINE_TEAM = "demo"

#: What jobs may call: everything that the emulator's one account has, but the deployment's own.
TARGET_ARNS = tuple(
    f"arn:aws:{service}:*:{ACCOUNT_ID}:{resource}"
    for service, resource in (
        ("lambda", "function:*"),
        ("sqs", "*"),
        ("sns", "*"),
        ("events", "event-bus/*"),
        ("states", "stateMachine:*"),
        ("ecs", "task-definition/*"),
        ("batch", "job-definition/*"),
        ("batch", "job-queue/*"),
    )
)

#: As short as may be, so that a run whose worker was killed is taken over soon (in 90 s); but jobs
#: have the 10 s of docs/running.md: the first call of a function starts a worker, which takes some.
EXECUTOR_TIMEOUT_SECONDS = 15


class DeploymentFailed(Exception):
    """A command that deploys did not succeed; the message ends with the tail of its output."""


@dataclass(frozen=True)
class Deployment:
    """The addresses of a deployed stack; `outputs` are those of the stack, by id."""

    endpoint_url: str
    outputs: Mapping[str, str] = field(repr=False)

    @property
    def api_url(self) -> str:
        """The base URL of the HTTP API, without a slash at the end.

        The stack's own ApiUrl names a host of AWS, which leads nowhere here.
        """
        return f"{self.endpoint_url}/_aws/execute-api/{self.outputs['ApiId']}/$default"

    def client(self, service: str) -> Any:
        """A boto3 client of the emulator, whatever this process's own AWS set-up is."""
        return client(service, self.endpoint_url)


def client(service: str, endpoint_url: str) -> Any:
    """A boto3 client of the emulator at `endpoint_url`, with credentials that open nothing."""
    session = boto3.session.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name=REGION
    )
    return session.client(service, endpoint_url=endpoint_url)  # type: ignore[call-overload]


def aws_environment(endpoint_url: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of commands that talk to the emulator instead of AWS.

    Every AWS_ and CDK_ variable of the caller is dropped, and so are its profiles: a local
    deployment must have no way to reach an account.
    """
    environment = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("AWS_", "CDK_")) and name.lower() not in _PROXIES
    }
    # First on the path, or jsii finds another Node.
    own = [str(REPOSITORY / ".venv" / "bin"), str(CDK.parent)]
    path = os.pathsep.join([*own, inherited.get("PATH", os.defpath)])
    return environment | {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_REGION": REGION,
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "CARILLON_STACK": STACK_NAME,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "PATH": path,
    }


_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def synthesis_arguments(
    layer_directory: Path,
    overrides: Mapping[str, object],
    longest_delay_seconds: int = LONGEST_DELAY_SECONDS,
    app: str = OWN_APP,
) -> list[str]:
    """The arguments of `cdk synth` for a local deployment of the module `app`; `overrides` wins
    over its options."""
    context: dict[str, object] = {
        "carillon:emulation": {
            "layer_directory": str(layer_directory),
            "layer_python": str(INTERPRETER),
            "longest_delay_seconds": longest_delay_seconds,
        },
        "stage": "local",
        "lanes": LANES,
        "executor_timeout_seconds": EXECUTOR_TIMEOUT_SECONDS,
        "webhook_allowed_networks": "127.0.0.0/8",
        "target_arns": ",".join(TARGET_ARNS),
        "event_bus": True,
        "machine_clients": {MACHINE: [f"{MACHINE_TEAM}:editor"]},
        # There is no account whose other functions could take all of its concurrency.
        "tick_reserved_concurrency": False,
        **overrides,
    }
    arguments = ["--app", shlex.join([sys.executable, "-m", app])]
    for key, value in context.items():
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        arguments += ["-c", f"{key}={text}"]
    return arguments


def install_dependencies(parent: Path = LOCAL_DIRECTORY) -> Path:
    """The layer's content, for MiniStack's interpreter: built at first use.

    The folder's name is a digest of its content, so that it is made anew when the pins change.
    Raises DeploymentFailed.
    """
    interpreter = str(INTERPRETER)
    target = parent / f"dependencies-{layer_digest(interpreter)[:16]}"
    if target.exists():
        return target
    unfinished = parent / f"{target.name}.{os.getpid()}"
    try:
        build_layer(unfinished, interpreter)
        with contextlib.suppress(OSError):  # somebody else was quicker: theirs is the same
            unfinished.rename(target)
    except RuntimeError as error:
        raise DeploymentFailed(str(error)) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


def synthesize(
    endpoint_url: str,
    work_directory: Path,
    *,
    context: Mapping[str, object] | None = None,
    longest_delay_seconds: int = LONGEST_DELAY_SECONDS,
    app: str = OWN_APP,
) -> Path:
    """The folder of the app's assembly, `cdk.out` in `work_directory`; deploy.log tells of it.

    `context` changes or adds to the local options. Retries later than `longest_delay_seconds` come
    by the wheel. The command asks the emulator at `endpoint_url` whose account it is.

    Raises:
        DeploymentFailed: with the end of the failed command's output.
    """
    work_directory.mkdir(parents=True, exist_ok=True)
    log_path = work_directory / "deploy.log"
    log_path.write_bytes(b"")
    if not CDK.exists():
        raise DeploymentFailed(f"the CDK command is not installed at {CDK}: make setup")
    layer_directory = install_dependencies()
    assembly = work_directory / "cdk.out"
    chosen = synthesis_arguments(layer_directory, context or {}, longest_delay_seconds, app)
    command = [str(CDK), "synth", "--quiet", "--output", str(assembly), *chosen]
    run(command, aws_environment(endpoint_url, os.environ), log_path)
    return assembly


def deploy(endpoint_url: str, assembly: Path, *, stack_name: str = STACK_NAME) -> Deployment:
    """Bootstrap (once) and deploy an assembly to the emulator at `endpoint_url`.

    `stack_name` is that of the assembly's stage. deploy.log is beside the assembly.

    Raises:
        DeploymentFailed: with the end of the failed command's output.
    """
    log_path = assembly.with_name("deploy.log")
    environment = aws_environment(endpoint_url, os.environ)
    cloudformation: CloudFormationClient = client("cloudformation", endpoint_url)
    if not stack_exists(cloudformation, BOOTSTRAP_STACK_NAME):
        bootstrap = [str(CDK), "bootstrap", f"aws://{ACCOUNT_ID}/{REGION}", "--app", str(assembly)]
        run([*bootstrap, "--no-notices"], environment, log_path)
    options = ["--require-approval", "never", "--no-notices", "--progress", "events"]
    run([str(CDK), "deploy", stack_name, "--app", str(assembly), *options], environment, log_path)
    template = assembly / f"{stack_name}.template.json"
    settle_tables(template, stack_name, partial(client, endpoint_url=endpoint_url))
    return find_deployment(endpoint_url, stack_name)


def find_deployment(endpoint_url: str, stack_name: str = STACK_NAME) -> Deployment:
    """The deployment that the emulator holds. Raises DeploymentFailed if there is none."""
    cloudformation: CloudFormationClient = client("cloudformation", endpoint_url)
    try:
        stack = cloudformation.describe_stacks(StackName=stack_name)["Stacks"][0]
    except cloudformation.exceptions.ClientError as error:
        raise DeploymentFailed(f"no stack {stack_name} at {endpoint_url}: {error}") from error
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}
    return Deployment(endpoint_url, outputs)


def stack_exists(cloudformation: CloudFormationClient, name: str) -> bool:
    try:
        stacks = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except cloudformation.exceptions.ClientError:
        return False
    return bool(stacks) and stacks[0]["StackStatus"].endswith("_COMPLETE")


def run(command: Sequence[str], environment: Mapping[str, str], log_path: Path) -> None:
    """Run a command in the repository, its output appended to a log.

    It has a process group of its own, which is ended if we are interrupted meanwhile.

    Raises:
        DeploymentFailed: it ended with another code than 0.
    """
    began_at = log_path.stat().st_size if log_path.exists() else 0
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait()
        except BaseException:
            _end(process)
            raise
    if code != 0:
        output = log_path.read_bytes()[began_at:].decode(errors="replace")
        tail = "\n".join(output.splitlines()[-30:])
        raise DeploymentFailed(f"{' '.join(command[:3])} … ended with code {code}:\n{tail}")


def _end(process: subprocess.Popen[bytes], grace_seconds: float = 5.0) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_number)
        give_up_at = time.monotonic() + grace_seconds
        while process.poll() is None and time.monotonic() < give_up_at:
            time.sleep(0.05)


@dataclass(frozen=True)
class User:
    """An account of the deployment's user pool with a password known to us."""

    name: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Tokens:
    """The result of a sign-in; both tokens open the API until `expires_at`."""

    access_token: str = field(repr=False)
    id_token: str = field(repr=False)
    expires_at: datetime


def make_password() -> str:
    """A random password that any password policy of Cognito accepts."""
    return f"aA1!{secrets.token_urlsafe(24)}"


def create_user(
    deployment: Deployment, name: str, *, operator: bool = False, groups: Sequence[str] = ()
) -> User:
    """Create the user, or give an existing one a new password; its subject stays the same.

    An operator also sees the lag of every segment in `GET /status`. Groups that are missing are
    made.
    """
    cognito: CognitoIdentityProviderClient = deployment.client("cognito-idp")
    pool_id = deployment.outputs["UserPoolId"]
    user = User(name, make_password())
    with contextlib.suppress(cognito.exceptions.UsernameExistsException):
        cognito.admin_create_user(UserPoolId=pool_id, Username=name, MessageAction="SUPPRESS")
    cognito.admin_set_user_password(
        UserPoolId=pool_id, Username=name, Password=user.password, Permanent=True
    )
    pool = UserPool(STACK_NAME, deployment.outputs, cognito)
    for group in (*groups, *([OPERATORS_GROUP] if operator else ())):
        pool.put_into(name, group)
    return user


def sign_in(deployment: Deployment, user: User) -> Tokens:
    """Exchange name and password for tokens, by the flow that programs use."""
    cognito: CognitoIdentityProviderClient = deployment.client("cognito-idp")
    answer = cognito.initiate_auth(
        ClientId=deployment.outputs["UserPoolClientId"],
        AuthFlow="USER_PASSWORD_AUTH",
        AuthParameters={"USERNAME": user.name, "PASSWORD": user.password},
    )
    result = answer["AuthenticationResult"]
    return Tokens(
        access_token=result["AccessToken"],
        id_token=result["IdToken"],
        expires_at=datetime.now(UTC) + timedelta(seconds=result["ExpiresIn"]),
    )
