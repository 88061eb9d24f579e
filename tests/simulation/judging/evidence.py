"""The evidence that only a simulated deployment gives, beside its rows: calls, writes, requests,
faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from carillon.audit import evidence
from carillon.domain.activity.results import Result
from carillon.domain.activity.summary import Counted
from carillon.domain.job import Lane
from carillon.domain.notifying.notice import Notice
from carillon.domain.notifying.notification import Notification
from carillon.domain.notifying.window import Window
from carillon.domain.operation import Operation
from carillon.domain.run import Run, RunKey

BY_CHUNK = ("claimed by chunk", "finished by chunk")
CLAIMS = ("claim", BY_CHUNK[0])
"""The methods of writes of chunks, told of as of runs' rows."""


@dataclass(frozen=True, slots=True)
class RunWrite:
    """A write of a run row that had an effect: `after` is None for a removed row. `process` wrote
    it, `method` is `claim`, `finish` or `discard_claim`, or one of BY_CHUNK, for what a chunk's own
    write stands for. `job_revision` is that of the job's row
    when the process last read it before (0: there was none); None where it read none, or nobody
    knows.
    """

    at: datetime
    process: str
    method: str
    before: Run | None
    after: Run | None
    job_revision: int | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """One call of a target. `ended_at` is None where the caller had died or was not seen to end.

    `is_done`: the target has had its effect; `is_success`: its caller learned of it. `job_read_at`:
    when its process last read the job's row before, which then was at `job_revision`.
    `is_untouched`: no fault struck its process from the claim to the acknowledgement. `lane` is
    where its message was taken from, `job_lane` that of the row which was read; None where not
    known. `owner` is the one as whose the target was called, "" where not known.
    `chunk_claimed_at`: when its process had claimed the chunk that it is called in. `asked_at`:
    when a store last did what the call's own task had asked for.
    `may_be_late`: its message represents occurrences that were missed, has waited for a policy, or
    was in time when it was sent, as at the late end of a pause.
    """

    run_id: str
    job_id: str
    attempt: int
    begun_at: datetime
    ended_at: datetime | None = None
    is_done: bool = False
    process: str = ""
    job_read_at: datetime | None = None
    is_untouched: bool = False
    is_success: bool = False
    job_revision: int | None = None
    lane: Lane | None = None
    job_lane: Lane | None = None
    owner: str = ""
    chunk_claimed_at: datetime | None = None
    asked_at: datetime | None = None
    may_be_late: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """A request that was answered as done: `what` is create, change, pause, resume, delete, run,
    cancel, stop, redrive or discard, or one that begins or cancels an operation; `made` is the id
    of the operation. `run_id` where it named or made one. `key` is the idempotency key, if it had
    one.

    Or a report about a run: complete, fail or heartbeat, with the `word` that it left."""

    what: str
    job_id: str
    requested_at: datetime
    answered_at: datetime
    run_id: str = ""
    key: str = ""
    made: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An event that the bus was given: its type, the run or job that it is about, when."""

    what: str
    subject: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Recorded:
    """A result in the feed, where it is stamped with `at`, and could be read from `put_at` on."""

    at: datetime
    put_at: datetime
    result: Result


@dataclass(frozen=True, slots=True)
class Grant:
    """A start that a gate of the owner has granted: to begin at `slot_at` at the earliest."""

    owner: str
    gate: str
    at: datetime
    slot_at: datetime


@dataclass(frozen=True, slots=True)
class Load:
    """The content of the lanes at an instant: the number of messages, and of the different runs
    that they are about. A run counts once under each generation that has a message about it.
    `again`: how often ticks had begun to send the minutes ahead of a segment again by then, after a
    reindexing or since the queue had not taken all of one."""

    at: datetime
    messages: int
    runs: int
    again: int = 0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The bounds of lags: options of the deployment, and the longest time that one half of a call
    takes. The defaults are those of a deployment in which no call takes time."""

    latency_seconds: float = 0.0
    function_timeout_seconds: int = 60
    catch_up_per_minute: int = 3000
    segments: int = 1
    owner_starts_per_minute: int = 0
    owner_concurrent_runs: int = 0
    longest_return_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Evidence(evidence.Evidence):
    """`faults` are the instants at which one struck, `outages` the spans [from, until) in which a
    segment had minutes in its backlog, a reindexing took minutes back, nothing invoked ticks or
    executors, or a fault may have lasted (a stopped process, a late message). `tolerance_seconds`
    is how far the clocks of processes are off. `leftovers` names what was not to be there at the
    end: messages, operations under way, crashes of our own code. `told` are the events, `grants`
    those of rates, `operations` as they were last put, `loads` what was seen of the lanes each
    minute. Empty `writes`, `faults`, `told` and `grants` are unknown where `is_complete` is false.

    `caught_up` counts what ticks sent or indexed because they had been away, by segment and owner.
    `listed` are the runs of jobs as their lists show them, by job id.
    `activity` is the feed, with doubles (None: unknown), `activity_lost` what its store did not
    take, by run id and attempt, and `summed` what summaries count from an instant on, by that
    instant.
    `results` are the whole results of the runs that have one, None where it is not there.
    `target_faults` are those of the `faults` that struck in a target, with the id of the job that
    called it.
    `notices` are the messages of `notifications` by the run that delivers them, `recorded` the
    feed, with doubles, `untold` the instants at which notifications could not be told, `windows`
    those that are there, by owner and name. An executor records within `settle`, unless
    it `may_stand_still`.
    """

    is_complete: bool = True
    deliveries: Sequence[Delivery] = ()
    acks: Sequence[Ack] = ()
    writes: Sequence[RunWrite] = ()
    faults: Sequence[datetime] = ()
    outages: Sequence[tuple[datetime, datetime]] = ()
    leftovers: Sequence[str] = ()
    tolerance_seconds: float = 0.0
    told: Sequence[Told] = ()
    grants: Sequence[Grant] = ()
    operations: Sequence[Operation] = ()
    loads: Sequence[Load] = ()
    circumstances: Circumstances = Circumstances()
    target_faults: Sequence[tuple[datetime, str]] = ()
    caught_up: Mapping[tuple[int, str], int] = field(default_factory=dict)
    listed: Mapping[str, Sequence[Run]] = field(default_factory=dict)
    activity: Sequence[Result] | None = None
    activity_lost: frozenset[tuple[str, int]] = frozenset()
    summed: Mapping[datetime, Sequence[Counted]] = field(default_factory=dict)
    results: Mapping[RunKey, str | None] = field(default_factory=dict)
    notifications: Sequence[Notification] = ()
    notices: Mapping[str, Notice] = field(default_factory=dict)
    recorded: Sequence[Recorded] = ()
    untold: Sequence[datetime] = ()
    windows: Mapping[tuple[str, str], Window] = field(default_factory=dict)
    settle: timedelta = timedelta()
    may_stand_still: bool = False
