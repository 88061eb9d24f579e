"""Lifecycle events: the closed list of their types, and each as a CloudEvent (version 1.0)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

SOURCE = "carillon"


class EventType(StrEnum):
    """The types of lifecycle events; a job chooses among `run.*` and `job.*`."""

    SCHEDULER_STARTED = "scheduler.started"
    """A tick sent something, after ticks that had found nothing due."""
    SCHEDULER_IDLE = "scheduler.idle"
    """A tick found nothing due, after ticks that had."""
    RUN_STARTED = "run.started"
    """An attempt begins."""
    RUN_SUCCEEDED = "run.succeeded"
    RUN_FAILED = "run.failed"
    """An attempt failed; `run.retrying` or `run.dead` follows."""
    RUN_RETRYING = "run.retrying"
    RUN_DEAD = "run.dead"
    """The run is a dead letter: dead, or timed out."""
    RUN_SKIPPED = "run.skipped"
    RUN_MISSED = "run.missed"
    """No success was recorded within the job's `expect_within` after a fire time."""
    JOB_COMPLETED = "job.completed"
    JOB_CHANGED = "job.changed"
    """What was done to it, or to its runs by hand, and by whom."""
    JOB_PAUSED = "job.paused"
    JOB_SLOWED = "job.slowed"
    """It is served in lane slow from now on."""
    JOB_RECOVERED = "job.recovered"
    """It is served by its priority again."""


JOB_EVENTS = tuple(each for each in EventType if not each.value.startswith("scheduler."))
"""The types that a job may choose."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `event_id` is a function of its cause, so that a second delivery can be
    recognised.

    `subject` is a run id, a job id, or the scheduler; `data` is JSON.
    """

    event_id: str
    type: EventType
    subject: str
    occurred_at: datetime
    data: dict[str, Any] = field(default_factory=dict)

    def as_cloud_event(self) -> dict[str, Any]:
        """Its JSON form by CloudEvents 1.0."""
        return {
            "specversion": "1.0",
            "id": self.event_id,
            "source": SOURCE,
            "type": f"{SOURCE}.{self.type.value}",
            "subject": self.subject,
            "time": self.occurred_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "data": self.data,
        }
