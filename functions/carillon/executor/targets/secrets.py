"""Secrets that targets need: the deployment's own, and those that owners keep for their jobs.

An owner's secret `name` is `{prefix}/{owner}/{name}` in Secrets Manager, its parameter
`/{prefix}/{owner}/{name}` in SSM. The owner is encoded (`owner_path`), so that no owner can name
another's. Their texts are in no row, log or message; a failure is reported by AWS's code only,
since its words name roles and accounts.
"""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Generic, TypeVar

from carillon.clock import Clock
from carillon.domain.targets import ParameterReference, Reference, SecretReference
from carillon.executor.deadlines import Deadline, call_within

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent(Generic[_K, _V]):
    """Up to `limit` values by key; the one that was used longest ago goes first. For several
    threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[_K, _V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _K) -> _V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def keep(self, key: _K, value: _V) -> _V:
        """Keep a value and answer it, or the one that another thread has kept meanwhile."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
            return kept


REFRESH_AFTER = timedelta(minutes=5)
RETRY_AFTER = timedelta(seconds=30)
DOUBTFUL_FOR = timedelta(seconds=10)
"""The answer that there is no such secret counts for this long, and so does a text that an endpoint
has refused: less than REFRESH_AFTER, so that one that is put right soon works."""
REFRESH_SECONDS = 1.0
REFRESH_SHARE = 0.25
"""Of a call's time a refresh gets so much, at most REFRESH_SECONDS: the rest is the call's. Who
comes meanwhile waits as long for it."""
MOST_KEPT = 1000
"""Texts of owners' secrets that a process keeps; the one that was used longest ago goes first."""

_KEPT_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.")
_MISSING_CODES = frozenset(
    {
        "ResourceNotFoundException",
        "ParameterNotFound",
        "InvalidRequestException",  # marked for deletion
    }
)


class SecretError(Exception):
    """A secret's text cannot be had now; `kind` is the kind of the run's error.

    `secret_missing`, `secret_unavailable` or `secret_invalid`: none is for good, since it is put
    right without a change of the job.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def owner_path(owner: str) -> str:
    """The owner as a part of names, `{kind}/{name}`: of the name `A-Z a-z 0-9 - .` stay, any other
    byte of UTF-8 becomes _XX."""
    kind, _, name = owner.partition("/")
    encoded = "".join(
        character
        if character in _KEPT_CHARACTERS
        else "".join(f"_{byte:02X}" for byte in character.encode())
        for character in name
    )
    return f"{kind}/{encoded}"


def name_of(reference: Reference) -> str:
    """The reference as its owner knows it, for messages."""
    match reference:
        case SecretReference(secret=name):
            return f"the secret {name!r}"
        case ParameterReference(parameter=name):
            return f"the parameter {name!r}"


class AwsSecrets:
    """Reads texts from Secrets Manager and SSM; raises SecretError."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._lock = Lock()

    def secret(self, secret_id: str) -> str:
        """`secret_id` is a name or an ARN."""
        answer = self._ask("secretsmanager", "get_secret_value", SecretId=secret_id)
        return str(self._text(answer, "SecretString"))

    def parameter(self, name: str) -> str:
        answer = self._ask("ssm", "get_parameter", Name=name, WithDecryption=True)
        return str(self._text(answer["Parameter"], "Value"))

    def _text(self, answer: dict[str, Any], member: str) -> Any:
        if member not in answer:
            raise SecretError("secret_missing", "has no text")
        return answer[member]

    def _ask(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        # Half a second of imports that a deployment without webhooks never pays for.
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._client(service), operation)(**arguments)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            if code in _MISSING_CODES:
                raise SecretError("secret_missing", f"does not exist ({code})") from error
            raise SecretError("secret_unavailable", f"cannot be read ({code})") from error
        except BotoCoreError as error:
            code = type(error).__name__
            raise SecretError("secret_unavailable", f"cannot be read ({code})") from error
        return answer

    def _client(self, service: str) -> Any:
        import boto3
        from botocore.config import Config

        with self._lock:
            if service not in self._clients:
                limits = Config(
                    connect_timeout=2, read_timeout=5, retries={"total_max_attempts": 3}
                )
                session: Any = boto3.Session()
                client = self._clients[service] = session.client(service, config=limits)
                client.meta.events.register("before-send", _use_once)
            return self._clients[service]


def _use_once(request: Any, **_: object) -> None:
    """Have the connection end with its request: reads are minutes apart, within which a process may
    stand still and the network forget a connection. The next read would hang on it."""
    request.headers["Connection"] = "close"


class KeptText:
    """A text, kept for REFRESH_AFTER; that there is none, for DOUBTFUL_FOR. While it cannot be
    refreshed the old one serves on; not so when it exists no more. For several threads: a batch
    begins with ten at once, often in a process that has stood still for longer than that."""

    def __init__(self, read: Callable[[], str], clock: Clock) -> None:
        self._read = read
        self._clock = clock
        self._text: str | None = None
        self._missing: str | None = None
        """Why there is none."""
        self._asked_at: datetime | None = None
        self._lasts = RETRY_AFTER
        """How long counts what the source said then."""
        self._lock = Lock()

    def get(self, deadline: Deadline, within: timedelta = REFRESH_AFTER) -> str:
        """The text as it was `within` that time ago, or later.

        Raises SecretError, also when there is no text before the deadline: the target, of which
        nothing was asked yet, has not timed out."""
        kept = self._text
        if not self._lock.acquire(timeout=_wait_seconds(kept, deadline)):
            if kept is None:
                raise _late()
            return kept
        try:
            if self._is_stale(within):
                self._refresh(deadline)
            text, missing = self._text, self._missing
        finally:
            self._lock.release()
        if text is not None:
            return text
        if missing is not None:
            raise SecretError("secret_missing", missing)
        raise SecretError("secret_unavailable", "cannot be read")

    def _is_stale(self, within: timedelta) -> bool:
        if self._asked_at is None or (self._text is None and self._missing is None):
            return True
        return self._clock.now() >= self._asked_at + min(self._lasts, within)

    def _refresh(self, deadline: Deadline) -> None:
        self._missing, self._asked_at, self._lasts = None, self._clock.now(), RETRY_AFTER
        if self._text is not None:
            deadline = Deadline.after(_wait_seconds(self._text, deadline))
        try:
            call_within(deadline, self._fetch)
        except TimeoutError:
            if self._text is None:
                raise _late() from None
        except SecretError:
            if self._text is None:
                raise

    def _fetch(self) -> None:
        """Also what comes too late for the call that asked counts, for the next: from when it was
        asked for, since a process may stand still before it takes the answer."""
        asked_at = self._clock.now()
        try:
            self._text, self._missing = self._read(), None
        except SecretError as error:
            if error.kind == "secret_missing":  # told before the text goes: nobody finds neither
                self._missing, self._asked_at, self._lasts = str(error), asked_at, DOUBTFUL_FOR
                self._text = None
            raise
        self._asked_at, self._lasts = asked_at, REFRESH_AFTER


def _wait_seconds(kept: str | None, deadline: Deadline) -> float:
    """The time of a call for a text that is to be read, if `kept` is what there is."""
    left = deadline.remaining()
    return left if kept is None else min(REFRESH_SECONDS, REFRESH_SHARE * left)


def _late() -> SecretError:
    return SecretError("secret_unavailable", "was not read in time")


class OwnerSecrets:
    """The secrets that owners refer to, each kept for a while; usable from several threads."""

    def __init__(self, source: AwsSecrets, prefix: str, clock: Clock) -> None:
        self._source = source
        self._prefix = prefix
        self._clock = clock
        self._kept: Recent[tuple[str, Reference], KeptText] = Recent(MOST_KEPT)

    def text(
        self,
        owner: str,
        reference: Reference,
        deadline: Deadline,
        within: timedelta = REFRESH_AFTER,
    ) -> str:
        """The text as it was `within` that time ago, or later, without blanks and line ends around
        it; raises SecretError."""
        try:
            return self._kept_text(owner, reference).get(deadline, within).strip()
        except SecretError as error:
            raise SecretError(error.kind, f"{name_of(reference)} {error}") from error

    def _kept_text(self, owner: str, reference: Reference) -> KeptText:
        key = (owner, reference)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        new = KeptText(lambda: self._read(owner, reference), self._clock)
        return self._kept.keep(key, new)

    def _read(self, owner: str, reference: Reference) -> str:
        path = f"{self._prefix}/{owner_path(owner)}"
        match reference:
            case SecretReference(secret=name):
                return self._source.secret(f"{path}/{name}")
            case ParameterReference(parameter=name):
                return self._source.parameter(f"/{path}/{name}")
