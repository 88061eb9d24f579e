"""Operations: work on many runs that goes on in paced steps after its request was answered."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class OperationKind(StrEnum):
    BACKFILL = "backfill"
    """Run a job's occurrences of a span of time (again, or only those without a success)."""
    REDRIVE = "redrive"
    """Run dead letters again."""
    DISCARD = "discard"
    """Take dead letters off the list."""


class OperationState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation row, whole; a change is a new value with the next revision.

    Each step does what is due in STEP_SECONDS at `per_minute` and records how far it came, under
    the revision that it saw: a step that is done twice is recorded once. `job_id` is the job of a
    backfill, or a filter ("" for none), as are `reason` and `error`; `from_at` and `until_at` bound
    fire times, inclusive. `cursor` continues behind what is done. `done` counts what was sent (or
    discarded), `passed_over` what needed nothing.
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
    state: OperationState = OperationState.RUNNING
    revision: int = 1
    step: int = 1
    cursor: str = ""
    done: int = 0
    passed_over: int = 0
    note: str = ""

    @property
    def is_final(self) -> bool:
        return self.state is not OperationState.RUNNING
