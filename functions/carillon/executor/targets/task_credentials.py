"""The credentials that tasks get: of the deployment's task role, and short-lived.

They reach a task process as the variables in which AWS's SDKs look for them. With the time at
which they expire there, boto3 reads the variables again before that: clients that a task module
makes at its import go on working in a process that lives for hours.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Protocol

from carillon.clock import Clock
from carillon.executor.deadlines import Deadline, call_within
from carillon.executor.targets.secrets import REFRESH_SECONDS, REFRESH_SHARE, RETRY_AFTER

LIFETIME = timedelta(hours=1)
"""The longest that a role may give to another one (IAM: role chaining)."""
LEFT = timedelta(minutes=20)
"""The least that a task gets: more than the longest timeout of a function, and than the quarter of
an hour before the end in which boto3 looks for newer ones."""
SPARE = timedelta(minutes=1)
"""Of credentials that could not be renewed in time, a task gets those that last for its limit and
so much more."""
FIRST_SECONDS = 10.0
"""For the credentials of the first processes, which no call has asked for yet."""
SESSION_NAME = "carillon-tasks"


class TaskCredentialsError(OSError):
    """The credentials cannot be had now; AWS's own words are left out: they name accounts."""


class TokenService(Protocol):
    """The part of AWS's token service that is used."""

    def assume_role(
        self, *, RoleArn: str, RoleSessionName: str, DurationSeconds: int
    ) -> Mapping[str, Any]: ...


class TaskCredentials:
    """Keeps what it has got until less than LEFT is left, longer while there is nothing newer;
    usable from several threads."""

    def __init__(
        self, role_arn: str, clock: Clock, connect: Callable[[], TokenService] | None = None
    ) -> None:
        self._role_arn = role_arn
        self._clock = clock
        self._connect = connect or _connect
        self._client: TokenService | None = None
        self._variables: dict[str, str] = {}
        self._expires_at: datetime | None = None
        self._asked_at: datetime | None = None
        self._lock = Lock()

    def variables(self, deadline: Deadline) -> Mapping[str, str]:
        """The variables for a task; none without a role. Raises TaskCredentialsError, and
        TimeoutError when it takes longer than the deadline."""
        if not self._role_arn:
            return {}
        while not self._lock.acquire(timeout=deadline.poll_seconds()):
            if deadline.passed:
                raise TimeoutError
        try:
            if not self._last_for(LEFT):
                self._renew_within(deadline)
            return self._variables
        finally:
            self._lock.release()

    def kept(self) -> Mapping[str, str]:
        """The variables of the last task, else new ones: for a process that is started, which gets
        others with its call. Raises OSError."""
        return self._variables or self.variables(Deadline.after(FIRST_SECONDS))

    def _last_for(self, span: timedelta) -> bool:
        return self._expires_at is not None and self._expires_at - self._clock.now() >= span

    def _renew_within(self, deadline: Deadline) -> None:
        """Renew them. A failure is raised only if those kept do not outlast the call; else the next
        try comes after RETRY_AFTER."""
        now, left = self._clock.now(), deadline.remaining()
        outlast = self._last_for(timedelta(seconds=left) + SPARE)
        if outlast and self._asked_at is not None and now < self._asked_at + RETRY_AFTER:
            return
        self._asked_at = now
        seconds = min(REFRESH_SECONDS, REFRESH_SHARE * left) if outlast else left
        try:
            call_within(Deadline.after(seconds, deadline.stopped), self._renew)
        except (TaskCredentialsError, TimeoutError):
            if not outlast:
                raise

    def _renew(self) -> None:
        try:
            self._client = self._client or self._connect()
            found = self._client.assume_role(
                RoleArn=self._role_arn,
                RoleSessionName=SESSION_NAME,
                DurationSeconds=int(LIFETIME.total_seconds()),
            )["Credentials"]
        except Exception as error:  # of botocore, which is imported with the first call
            reason = type(error).__name__
            raise TaskCredentialsError(f"no credentials for tasks: {reason}") from error
        self._variables = {
            "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
            "AWS_SESSION_TOKEN": found["SessionToken"],
            "AWS_CREDENTIAL_EXPIRATION": found["Expiration"].isoformat(),
        }
        self._expires_at = found["Expiration"]


def _connect() -> TokenService:
    # Tasks that need no AWS should not pay for it.
    import boto3
    from botocore.config import Config

    config = Config(connect_timeout=2, read_timeout=3, retries={"total_max_attempts": 3})
    service: TokenService = boto3.client("sts", config=config)
    return service
