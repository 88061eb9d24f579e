"""Operations: work on many runs, done in throttled steps after the request was answered."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from carillon.domain.job import Job, Lane
from carillon.domain.message import Message
from carillon.domain.run import RunKey, RunKind
from carillon.domain.spec.owners import SYSTEM, Author
from carillon.schedules import Delay

STEP_SECONDS = 30
"""From the beginning of one step to that of the next, at least."""
MOST_PER_MINUTE = 1_000
"""The highest rate: one process must do one step in a fraction of its period."""
MOST_LEFT = 20
"""Reasons that an operation keeps of what it has left as it was."""


class OperationKind(StrEnum):
    BACKFILL = "backfill"
    """Run a job's occurrences of a span of time (again, or only those without a success)."""
    REDRIVE = "redrive"
    """Run dead letters again."""
    DISCARD = "discard"
    """Take dead letters off the list."""
    HAND_OVER = "hand_over"
    """Make jobs those of another owner."""


class OperationState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation row, whole; a change is a new value with the next revision.

    Each step does what is due in STEP_SECONDS at `per_minute` and records how far it came, under
    the revision that it saw: a step that is done twice is recorded once. `step` is the next one to
    do; the process that begins it holds it until `busy_until`, so that no two do it side by side,
    at twice the pace. `job_id` is the job of a backfill, or a filter ("" for none), as are `reason`
    and `error`; `from_at` and `until_at` bound fire times, inclusive. `cursor` continues behind
    what is done (of a backfill: the last fire time, in epoch seconds). `done` counts what was sent
    (or discarded), `passed_over` what needed nothing; a step that died half-way may have done more.
    `tries` counts how often the present step was begun.

    Of a hand-over `to` is the other owner, `parent` and `tags` are filters, `author` is who asked
    for it, and `force` takes managed jobs, too. `in_hand` are the jobs that have been chosen and
    may have begun to move: such an operation does not end before they have. `left` says of the
    first jobs that stayed why.
    """

    owner: str
    operation_id: str
    kind: OperationKind
    created_at: datetime
    updated_at: datetime
    expires_at: datetime
    per_minute: int
    job_id: str = ""
    from_at: datetime | None = None
    until_at: datetime | None = None
    only_missed: bool = False
    reason: str = ""
    error: str = ""
    to: str = ""
    parent: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    force: bool = False
    author: Author = SYSTEM
    in_hand: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    state: OperationState = OperationState.RUNNING
    revision: int = 1
    step: int = 1
    cursor: str = ""
    done: int = 0
    passed_over: int = 0
    note: str = ""
    busy_until: datetime | None = None
    tries: int = 0

    @property
    def is_final(self) -> bool:
        return self.state is not OperationState.RUNNING

    @property
    def reached_at(self) -> datetime | None:
        """Of a backfill: the last fire time that is done; None before there is any."""
        if self.kind is not OperationKind.BACKFILL or not self.cursor:
            return None
        return datetime.fromtimestamp(int(self.cursor), UTC)

    @property
    def step_size(self) -> int:
        """The number of runs for its present step: any two steps in a row make `per_minute`."""
        return (self.per_minute + self.step % 2) * STEP_SECONDS // 60

    def due_at(self, place: int, begin: datetime) -> datetime:
        """The start of the n-th run (from 0) of a step that begins at a whole second.

        All steps of one size have the same places, so that no minute, wherever it begins, gets
        more than `per_minute`.
        """
        return begin + timedelta(seconds=place * STEP_SECONDS // max(1, self.step_size))

    def step_message(self, due_at: datetime) -> Message:
        """The order to do the present step."""
        created_at = self.created_at.replace(microsecond=0)
        return Message(
            key=RunKey(self.owner, self.operation_id, RunKind.OPERATION, created_at),
            generation_id="",
            segment=0,
            lane=Lane.LOW,
            due_at=due_at,
            attempt=self.step,
        )

    def cancelled(self, now: datetime, expires_at: datetime) -> "Operation":
        return self._ended(OperationState.CANCELLED, "", now, expires_at)

    def is_held_as(self, taken: "Operation") -> bool:
        """True if the process that took the step as `taken` still holds it: nobody has taken it
        over or recorded it since. A cancellation takes nothing away."""
        return (self.step, self.busy_until) == (taken.step, taken.busy_until)

    def failed(self, note: str, now: datetime, expires_at: datetime) -> "Operation":
        ended = self._ended(OperationState.FAILED, note, now, expires_at)
        return replace(ended, busy_until=None)

    def _ended(
        self, state: OperationState, note: str, now: datetime, expires_at: datetime
    ) -> "Operation":
        return replace(
            self,
            state=state,
            note=note,
            revision=self.revision + 1,
            updated_at=now,
            expires_at=expires_at,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of a step; `state` is that of the operation after it, and `pause_seconds` the time
    until the next step begins."""

    cursor: str
    done: int = 0
    passed_over: int = 0
    state: OperationState = OperationState.RUNNING
    note: str = ""
    pause_seconds: int = STEP_SECONDS
    in_hand: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def recorded_on(self, operation: Operation, now: datetime, expires_at: datetime) -> Operation:
        """The operation after the step; one that was cancelled meanwhile stays so: nothing that the
        step chose is in hand then, and nothing goes on."""
        return replace(
            operation,
            state=operation.state if operation.is_final else self.state,
            revision=operation.revision + 1,
            step=operation.step + 1,
            busy_until=None,
            tries=0,
            cursor=self.cursor,
            done=operation.done + self.done,
            passed_over=operation.passed_over + self.passed_over,
            in_hand=() if operation.is_final else self.in_hand,
            left=(*operation.left, *self.left)[:MOST_LEFT],
            note="" if operation.is_final else self.note,
            updated_at=now,
            expires_at=expires_at,
        )


def why_not_filled(job: Job) -> str | None:
    """The reason why a job has no occurrences for a backfill, whatever the span; None if it may
    have."""
    if isinstance(job.schedule, Delay):
        return "a fixed delay has no fire times of its own: its job cannot be filled"
    if job.spec.after is not None:
        return "there is none: the job runs after another one, whose span can be filled"
    return None
