"""The run: the record of handling one occurrence, and the states it can be in."""

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum

_LAST_SECOND = 9_999_999_999
RESULT_LIMIT_BYTES = 512
"""A result or error message is cut here in the history, so that a run stays one write unit."""
WHOLE_RESULT_LIMIT_BYTES = 32 * 1024
"""A result that is kept whole is cut here; it has a row of its own."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class RunKind(StrEnum):
    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL = "backfill"
    """An occurrence run on request; `request_id` is the operation's id."""
    CALLBACK = "callback"
    """A call of a job's `on_success` or `on_failure`; `request_id` names the run that it
    reports."""
    AFTER = "after"
    """Started by the end of another job's run, which `request_id` names."""
    NOTICE = "notice"
    """A delivery of a notification, which `request_id` names; of no job's."""
    MISSED = "missed"
    """Not a run: one skip row that covers the occurrences which a catch-up skipped."""
    WATCH = "watch"
    """Not a run: a row for a fire time after which no success was recorded in time."""
    OPERATION = "operation"
    """Not a run: a message that does the next step of an operation."""
    RESUME = "resume"
    """Not a run: a message that resumes a job at the end of its pause, which `request_id` names."""
    WINDOW = "window"
    """Not a run: a message that does the next step of a notification's window."""


NO_RUNS = frozenset(
    {RunKind.MISSED, RunKind.WATCH, RunKind.OPERATION, RunKind.RESUME, RunKind.WINDOW}
)
"""The kinds that are no runs."""


class RunStatus(StrEnum):
    SCHEDULED = "scheduled"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    MISSED = "missed"
    """For rows of the missed-run check only."""


TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.SCHEDULED: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.RUNNING: frozenset(
        {
            RunStatus.RUNNING,  # a takeover after the lease lapsed
            RunStatus.SCHEDULED,  # a claim given back
            RunStatus.RETRYING,
            RunStatus.SUCCEEDED,
            RunStatus.DEAD,
            RunStatus.TIMED_OUT,
            RunStatus.SKIPPED,
            RunStatus.CANCELLED,  # its call is stopped, or its report not awaited
        }
    ),
    RunStatus.RETRYING: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED}),
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.DEAD: frozenset(),
    RunStatus.TIMED_OUT: frozenset(),
    RunStatus.SKIPPED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.MISSED: frozenset(),
}
"""Which status may follow which: whatever is to become of a run but its cancellation, it is
claimed first.

docs/running.md draws it and a test compares the two; every simulation keeps to it."""

FINAL = frozenset(status for status, following in TRANSITIONS.items() if not following)
DEAD_LETTER = frozenset({RunStatus.DEAD, RunStatus.TIMED_OUT})
TIMEOUT_KIND = "timeout"
"""The kind of error of an attempt that did not end in time."""
FAIL_KIND = "fail"
"""The kind of error of a task that raises Fail: final, whatever the retry policy allows."""
RETRY_KIND = "retry"
"""The kind of error of a task that raises Retry: retried, whatever the policy allows."""


class DeadReason(StrEnum):
    """The closed list of reasons why a run is a dead letter."""

    REFUSED = "refused"
    """An error that no retry can help."""
    EXHAUSTED = "exhausted"
    """No attempts are left."""
    EXECUTOR_DIED = "executor_died"
    """Executors stopped on it each time."""
    NEVER_STARTED = "never_started"
    """No executor could begin it for longer than a queue keeps its messages."""
    UNREADABLE = "unreadable"
    """A row that it needs could not be read for a day: of its job, itself, a calendar, a gate."""


class Attention(StrEnum):
    """The reasons why a run may need attention: what is counted of an owner's runs."""

    DEAD = "dead"
    """A dead letter."""
    RETRYING = "retrying"
    WAITING = "waiting"
    """A policy keeps it from starting."""


class Resolution(StrEnum):
    """The way in which a dead letter left the list before it expired."""

    REDRIVEN = "redriven"
    DISCARDED = "discarded"


OWN_PAYLOAD = "p"
"""Request ids that begin so are those of manual runs with a payload of their own: no ULID does, nor
the digest of a key."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """The identity of a run: a function of the occurrence, so that duplicates meet.

    `request_id` is empty for scheduled runs; `redrive` counts the times a dead letter was run
    again. `fire_at` is in whole seconds.
    """

    owner: str
    job_id: str
    kind: RunKind
    fire_at: datetime
    request_id: str = ""
    redrive: int = 0

    @property
    def sort_key(self) -> str:
        """Newest fire time first; unique within a job."""
        newest_first = _LAST_SECOND - int(self.fire_at.timestamp())
        return f"{newest_first:010d}#{self.kind.value}#{self.request_id}#{self.redrive}"

    @staticmethod
    def fire_at_of(sort_key: str) -> datetime:
        """The fire time that a sort key begins with. Raises ValueError for any other text."""
        return datetime.fromtimestamp(_LAST_SECOND - int(sort_key.partition("#")[0]), UTC)

    @property
    def run_id(self) -> str:
        """The public id, unique over all jobs: `job-id_fire-time_kind[-request-id]_redrive`.

        It has no dot: Standard Webhooks signs `id.timestamp.body`.
        """
        kind = f"{self.kind.value}-{self.request_id}" if self.request_id else self.kind.value
        at = self.fire_at  # strftime takes five times as long
        time = f"{at.year:04}{at.month:02}{at.day:02}T{at.hour:02}{at.minute:02}{at.second:02}Z"
        return f"{self.job_id}_{time}_{kind}_{self.redrive}"

    @property
    def has_own_payload(self) -> bool:
        """True if the run's request has the payload; its redrives have the same."""
        return self.kind is RunKind.MANUAL and self.request_id.startswith(OWN_PAYLOAD)

    @property
    def is_occurrence(self) -> bool:
        """True for the first run of an instant that the job's schedule has."""
        return self.kind is RunKind.SCHEDULED and not self.redrive

    @property
    def redriven(self) -> "RunKey":
        """The key of the run that runs this one, a dead letter, again."""
        return replace(self, redrive=self.redrive + 1)

    @property
    def callback(self) -> "RunKey":
        """The key of the run that calls back about this one."""
        named = f"{self.kind.value}-{self.redrive}-{self.request_id}"
        return RunKey(self.owner, self.job_id, RunKind.CALLBACK, self.fire_at, named)

    @property
    def called_back(self) -> "RunKey":
        """The run that a callback reports. Raises ValueError for any other."""
        kind, redrive, request_id = self.request_id.split("-", 2)
        return replace(self, kind=RunKind(kind), request_id=request_id, redrive=int(redrive))

    def successor(self, job_id: str) -> "RunKey":
        """The key of the run of another job that the end of this one starts."""
        named = f"{self.kind.value}-{self.redrive}-{self.job_id}-{self.request_id}"
        return RunKey(self.owner, job_id, RunKind.AFTER, self.fire_at, named)

    @property
    def predecessor(self) -> "RunKey":
        """The run whose end has started this one. Raises ValueError unless `successor` has made
        the key."""
        kind, redrive, job_id, request_id = self.request_id.split("-", 3)
        return RunKey(self.owner, job_id, RunKind(kind), self.fire_at, request_id, int(redrive))

    @classmethod
    def from_run_id(cls, owner: str, run_id: str) -> "RunKey":
        """Raises ValueError for text that `run_id` cannot have made."""
        job_id, fired, kind_and_request, redrive = run_id.split("_")
        kind, _, request_id = kind_and_request.partition("-")
        fire_at = datetime.strptime(fired, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return cls(owner, job_id, RunKind(kind), fire_at, request_id, int(redrive))


@dataclass(frozen=True, slots=True)
class RunError:
    """The reason why an attempt failed: `kind` is a short name (an exception's class, `http_503`,
    `timeout`), `message` one line, cut at RESULT_LIMIT_BYTES. `permanent`: no retry can help."""

    kind: str
    message: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One failed attempt of a run that went on; `token_hash` is that of its Completion, if any."""

    attempt: int
    started_at: datetime
    finished_at: datetime
    error: RunError
    token_hash: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """The terms on which an attempt ends by a report (docs/running.md#runs-that-end-later).

    Who reports knows the token of which `token_hash` is the SHA-256, in hexadecimal. A heartbeat
    moves the end of the run's lease by `heartbeat_seconds`, up to `until`. `is_open`: the target
    has accepted the work, and no executor holds the run any more. `permits` are the names of the
    admission rows in which it holds a permit until it ends.
    """

    token_hash: str
    until: datetime
    heartbeat_seconds: int
    is_open: bool = False
    permits: tuple[str, ...] = ()

    @property
    def holder(self) -> str:
        """Whom the admission rows name as the holder of a permit."""
        return self.token_hash[:26]


@dataclass(frozen=True, slots=True)
class Run:
    """A run row, whole. Every write of it is conditional on the row that was seen.

    `token` grows at each claim and `claim_id` is unique to one: together they fence the final
    write. `lease_until` counts only while RUNNING. `started_at` is the first attempt's start.
    `effective_at` is when it was to start where that is not its fire time (a window); `note` has,
    in words, what its status and reason lack. `waits` is the ordinal of the wait that it is in, or
    was in last, before the attempt that is under way or to come: only the message that carries it
    is current. `settled`: of a dead letter that is none any more. `other_generations`: whose
    messages claimed it, too, and have yet to come again; of a run that has ended there are none.
    `completion`: of a run whose attempt, which is under way or was the last, ends by a report.
    `result_bytes`: of a run whose whole result, so long, is kept beside its row, under its
    `claim_id`; `result` is its beginning.
    For a skip that covers a range, `covers_from` .. key.fire_at are its first and last occurrence
    and `covers_count` their number.
    """

    key: RunKey
    status: RunStatus
    attempt: int
    token: int
    claim_id: str
    generation_id: str
    updated_at: datetime
    expires_at: datetime
    lease_until: datetime | None = None
    started_at: datetime | None = None
    attempt_started_at: datetime | None = None
    finished_at: datetime | None = None
    next_attempt_at: datetime | None = None
    result: str | None = None
    result_bytes: int | None = None
    error: RunError | None = None
    reason: str | None = None
    covers_from: datetime | None = None
    covers_count: int | None = None
    effective_at: datetime | None = None
    note: str | None = None
    settled: Resolution | None = None
    waits: int = 0
    attempts: tuple[AttemptRecord, ...] = field(default=())
    other_generations: tuple[str, ...] = ()
    completion: Completion | None = None

    @classmethod
    def scheduled(
        cls, key: RunKey, generation_id: str, claim_id: str, now: datetime, expires_at: datetime
    ) -> "Run":
        """The row of a run that has yet to begin."""
        return cls(key, RunStatus.SCHEDULED, 0, 0, claim_id, generation_id, now, expires_at)

    def cancelled(self, reason: str, claim_id: str, now: datetime, expires_at: datetime) -> "Run":
        """The row of a run that is not to begin, begin again, or go on."""
        return replace(
            self,
            status=RunStatus.CANCELLED,
            lease_until=None,
            reason=reason,
            token=self.token + 1,
            claim_id=claim_id,
            updated_at=now,
            finished_at=now,
            next_attempt_at=None,
            expires_at=max(self.expires_at, expires_at),
        )

    def was_claimed_for(self, generation_id: str) -> bool:
        """True if a message of the generation has claimed the run, which has not ended since."""
        return generation_id == self.generation_id or generation_id in self.other_generations

    def is_held_by(self, claim: "Run") -> bool:
        """True if the row is RUNNING under the claim that `claim` was made from."""
        is_same_claim = (self.token, self.claim_id) == (claim.token, claim.claim_id)
        return self.status is RunStatus.RUNNING and is_same_claim

    @property
    def lag_seconds(self) -> float | None:
        """Start of the run minus its effective time; None while it has not started."""
        if self.started_at is None:
            return None
        return (self.started_at - (self.effective_at or self.key.fire_at)).total_seconds()

    @property
    def duration_seconds(self) -> float | None:
        """From the start of its first attempt to its end; None while it has not ended."""
        if self.started_at is None or self.finished_at is None:
            return None
        return round((self.finished_at - self.started_at).total_seconds(), 3)

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def is_open(self) -> bool:
        """True if its target has accepted the work and is to report its end."""
        is_accepted = self.completion is not None and self.completion.is_open
        return is_accepted and self.status is RunStatus.RUNNING

    @property
    def attention(self) -> Attention | None:
        if self.is_dead_letter:
            return Attention.DEAD
        if self.status is RunStatus.RETRYING:
            return Attention.RETRYING
        is_held_back = self.status is RunStatus.SCHEDULED and self.waits > 0
        return Attention.WAITING if is_held_back else None

    @property
    def is_dead_letter(self) -> bool:
        """True if it stands on the list of dead letters."""
        return self.status in DEAD_LETTER and self.settled is None


def cut(text: str, limit: int = RESULT_LIMIT_BYTES) -> str:
    """The text, or its beginning with a mark of how long it was; `limit` is in bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text
    mark = f"... ({len(data)} bytes)"
    return data[: limit - len(mark)].decode("utf-8", "ignore") + mark


def one_line(text: str) -> str:
    """The text cut to the history's length, on one line, without what cannot be printed.

    That drops line ends, terminal escapes, and lone surrogates, which no store can encode.
    """
    return "".join(character if character.isprintable() else " " for character in cut(text)).strip()


def kept_text(text: str, *, whole: bool) -> str:
    """A result as the history keeps it: one line, its beginning; or `whole`, with its lines, up to
    WHOLE_RESULT_LIMIT_BYTES, without control characters and lone surrogates. Scripts need more than
    what is printable to Python: joiners, and blanks of their own."""
    if not whole:
        return one_line(text)
    return _CONTROLS.sub(" ", cut(text, WHOLE_RESULT_LIMIT_BYTES)).strip()
