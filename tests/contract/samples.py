"""Ordinary jobs, runs, entries and messages."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from carillon.domain.admission.state import (
    AdmissionRow,
    Line,
    PermitHolder,
    QueuedRun,
    Starts,
    job_admission,
)
from carillon.domain.calendar import Calendar
from carillon.domain.idempotency import IdempotencyRecord
from carillon.domain.job import Generation, Job, Lane, Successor
from carillon.domain.message import Message
from carillon.domain.notifying.notification import (
    Notification,
    SlackChannel,
    Told,
    channel_text,
)
from carillon.domain.notifying.window import Failing, Noted, Window
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.quotas import OwnLimits, Quota, Use
from carillon.domain.run import Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.after import Outcome
from carillon.domain.spec.names import job_id_of
from carillon.domain.targets import SecretReference, TaskTarget
from carillon.domain.wheel.entry import Entry, Slot
from carillon.domain.wheel.segment import Control
from carillon.schedules import DstRule, Fold, Gap, Schedule, SlotKind, parse_schedule
from tests.support.jobs import make_job

NOW = datetime(2026, 11, 20, 12, 34, 56, 789012, tzinfo=UTC)
FIRE_AT = datetime(2026, 11, 20, 12, 35, 17, tzinfo=UTC)
GENERATION_ID = "01KAGZ7T2M9GQ4C5V0Y6N8XWRD"
CLAIM_ID = "01KAGZ8A4N1B7E3F9J2K5M6PQS"


def job_id(number: int = 0) -> str:
    return job_id_of("anyone", str(number))


def own_job_id(owner: str, number: int = 0) -> str:
    """The id of one of an owner's jobs; no other owner has one of that id."""
    return job_id_of(owner, str(number))


def a_link(number: int = 0) -> Successor:
    return Successor(
        job_id(number), Outcome.FAILED, 3, Lane.LOW, 7, NOW, NOW + timedelta(seconds=1)
    )


def a_job(owner: str, **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "owner": owner,
        "job_id": own_job_id(owner),
        "name": "nightly report",
        "schedule": parse_schedule("17 * * * *", "Europe/Riga"),
        "target": TaskTarget(name="samples.hello"),
        "payload": '{"report":"sales"}',
        "segment": 3,
        "generation": Generation(GENERATION_ID, NOW),
        "created_at": NOW,
        "updated_at": NOW,
    }
    return make_job(**{**fields, **changes})


def a_bounded_schedule() -> Schedule:
    """A schedule with everything that one can have besides its text."""
    return parse_schedule(
        "0 9 * * 1-5",
        "Europe/Riga",
        start_at=FIRE_AT - timedelta(days=1),
        end_at=FIRE_AT + timedelta(days=30),
        dst=DstRule(Gap.SKIP, Fold.BOTH),
    )


def a_combined_schedule() -> Schedule:
    """A union with exceptions."""
    return parse_schedule("0 9 * * 1-5 | 0 12 * * 6 except * * 25 12 *", "Europe/Riga")


def a_calendar(owner: str, **changes: Any) -> Calendar:
    fields: dict[str, Any] = {
        "owner": owner,
        "name": "holidays",
        "revision": 1,
        "weekdays": frozenset({5, 6}),
        "ranges": (
            (date(2026, 12, 24), date(2026, 12, 26)),
            (date(2027, 1, 1), date(2027, 1, 1)),
        ),
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Calendar(**{**fields, **changes})


def own_limits(owner: str, **changes: Any) -> OwnLimits:
    """Those of one of the owners in a partition, which deployments have one of."""
    fields: dict[str, Any] = {
        "of": "team/billing",
        "revision": 1,
        "updated_at": NOW,
        "limits": {Quota.JOBS: 20_000, Quota.RUNS: 0},
        "owner": owner,
    }
    return OwnLimits(**{**fields, **changes})


def a_use(owner: str, **changes: Any) -> Use:
    return Use(**{"owner": owner, "revision": 1, "counted_at": NOW, "jobs": 0, **changes})


def a_full_use(owner: str, **changes: Any) -> Use:
    fields = {"revision": 3, "jobs": 12, "fires_per_day": 86_400, "writer": CLAIM_ID}
    return a_use(owner, **{**fields, **changes})


def a_key(owner: str, fire_at: datetime = FIRE_AT, **changes: Any) -> RunKey:
    fields: dict[str, Any] = {"job_id": job_id(), "kind": RunKind.SCHEDULED}
    return RunKey(owner=owner, fire_at=fire_at, **{**fields, **changes})


def a_run(key: RunKey, **changes: Any) -> Run:
    """A first claim."""
    fields: dict[str, Any] = {
        "status": RunStatus.RUNNING,
        "attempt": 1,
        "token": 1,
        "claim_id": CLAIM_ID,
        "generation_id": GENERATION_ID,
        "updated_at": NOW,
        "expires_at": NOW.replace(microsecond=0) + timedelta(days=30),
        "lease_until": NOW + timedelta(seconds=90),
        "started_at": NOW,
        "attempt_started_at": NOW,
    }
    return Run(key=key, **{**fields, **changes})


def a_notification(owner: str, **changes: Any) -> Notification:
    fields: dict[str, Any] = {
        "owner": owner,
        "name": "ops",
        "revision": 1,
        "on": (Told.RUN_DEAD, Told.RUN_RECOVERED),
        "to": channel_text(SlackChannel(url=SecretReference(secret="slack-ops"))),
        "created_at": NOW,
        "updated_at": NOW,
        "jobs": "import *",
        "tags": {"team": "billing"},
        "at_most_every": 3600,
    }
    return Notification(**{**fields, **changes})


def a_window(owner: str, **changes: Any) -> Window:
    fields: dict[str, Any] = {
        "owner": owner,
        "name": "ops",
        "opened_at": NOW,
        "until": NOW + timedelta(minutes=15),
        "last_delivery": "run",
        "told_until": NOW,
        "quiet_until": NOW + timedelta(minutes=15),
        "first": Noted(Told.JOB_SLOWED, NOW, job_id(), "nightly report"),
        "expires_at": NOW.replace(microsecond=0) + timedelta(days=30),
    }
    return Window(**{**fields, **changes})


def a_full_window(owner: str, revision: int = 7) -> Window:
    first = Noted(
        Told.RUN_DEAD, NOW, job_id(), "nightly report", a_key(owner).run_id, "http_503", "é 503"
    )
    return a_window(
        owner,
        first=first,
        revision=revision,
        step=3,
        period_seconds=1800,
        failing=(Failing(job_id(), "nightly report", NOW), Failing(job_id(1), "é", NOW)),
        noted=(Noted(Told.JOB_PAUSED, NOW, job_id(1), "é"),),
        goes_on=True,
        is_open=False,
        is_ordered=False,
    )


def an_admission_row(owner: str, **changes: Any) -> AdmissionRow:
    fields: dict[str, Any] = {
        "owner": owner,
        "name": job_admission(job_id()),
        "revision": 1,
        "expires_at": NOW.replace(microsecond=0) + timedelta(days=30),
    }
    return AdmissionRow(**{**fields, **changes})


def a_full_admission_row(owner: str, **changes: Any) -> AdmissionRow:
    """A gate with everything that one can have; in life it is a job's, a key's or a rate's."""
    fields: dict[str, Any] = {
        "revision": 12,
        "active": a_key(owner).run_id,
        "waiting": a_key(owner, FIRE_AT + timedelta(hours=1)).run_id,
        "waiting_generation": GENERATION_ID,
        "started": a_key(owner).run_id,
        "started_at": NOW + timedelta(microseconds=1),
        "failed": ("first", "second"),
        "failed_generation": "generation",
        "holders": (PermitHolder(CLAIM_ID, NOW), PermitHolder("ü", FIRE_AT)),
        "turns": (QueuedRun(a_key(owner).run_id, NOW, FIRE_AT),),
        "lines": (
            Line(
                3, 60, CLAIM_ID, NOW, (Starts(3, NOW), Starts(1, NOW + timedelta(microseconds=1)))
            ),
            Line(1, 86_400, "ü", FIRE_AT, ()),
        ),
    }
    return an_admission_row(owner, **{**fields, **changes})


def a_record(owner: str, **changes: Any) -> IdempotencyRecord:
    expires_at = NOW.replace(microsecond=0) + timedelta(days=7)
    record = IdempotencyRecord(owner, "0f" * 13, "answer", expires_at, "digest")
    return replace(record, **changes)


def operation_id(number: int = 0) -> str:
    """Ids that order by their number."""
    return f"01KAGZ7T2M9GQ4C5V0Y6N8X{number:03d}"


def an_operation(owner: str, number: int = 0, **changes: Any) -> Operation:
    fields: dict[str, Any] = {
        "owner": owner,
        "operation_id": operation_id(number),
        "kind": OperationKind.REDRIVE,
        "created_at": NOW,
        "updated_at": NOW,
        "expires_at": NOW.replace(microsecond=0) + timedelta(days=30),
        "per_minute": 600,
    }
    return Operation(**{**fields, **changes})


def a_full_operation(owner: str, **changes: Any) -> Operation:
    """An operation with everything that one can have."""
    fields: dict[str, Any] = {
        "kind": OperationKind.BACKFILL,
        "updated_at": NOW + timedelta(microseconds=1),
        "per_minute": 60,
        "job_id": job_id(),
        "from_at": FIRE_AT - timedelta(days=1),
        "until_at": FIRE_AT,
        "only_missed": True,
        "reason": "exhausted",
        "error": "http_503",
        "state": OperationState.CANCELLED,
        "revision": 7,
        "step": 6,
        "cursor": "2026-11-20T12:35:17Z",
        "done": 180,
        "passed_over": 3,
        "note": "cancelled by its owner — später",
        "busy_until": NOW + timedelta(seconds=59),
        "tries": 2,
    }
    return an_operation(owner, **{**fields, **changes})


def an_entry(owner: str, segment: int, number: int = 0, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "segment": segment,
        "slot": Slot(SlotKind.HOURLY, 17),
        "owner": owner,
        "job_id": job_id(number),
        "generation_id": GENERATION_ID,
        "from_at": NOW,
        "schedule": parse_schedule("17 * * * *"),
    }
    return Entry(**{**fields, **changes})


def a_message(owner: str, lane: Lane = Lane.NORMAL, **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "key": a_key(owner),
        "generation_id": GENERATION_ID,
        "segment": 3,
        "due_at": FIRE_AT,
    }
    return Message(lane=lane, **{**fields, **changes})


def a_control(segment: int, **changes: Any) -> Control:
    return Control(segment, **{"horizon": 29_700_000, "watermark": 29_699_998, **changes})
