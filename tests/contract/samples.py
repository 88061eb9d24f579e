"""Ordinary jobs, runs, entries and messages."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from shared.domain.calendar import Calendar
from shared.domain.job import Filing, Job, Lane, job_id_of
from shared.domain.message import Message
from shared.domain.run import Run, RunKey, RunKind, RunStatus
from shared.domain.segment import Control
from shared.domain.targets import TaskTarget
from shared.domain.wheel import Entry, Slot
from shared.recurrence import DstRule, Fold, Gap, Schedule, SlotKind, parse_schedule

NOW = datetime(2026, 11, 20, 12, 34, 56, 789012, tzinfo=UTC)
FIRE_AT = datetime(2026, 11, 20, 12, 35, 17, tzinfo=UTC)
FILING_ID = "01KAGZ7T2M9GQ4C5V0Y6N8XWRD"
CLAIM_ID = "01KAGZ8A4N1B7E3F9J2K5M6PQS"


def job_id(number: int = 0) -> str:
    return job_id_of("anyone", str(number))


def a_job(owner: str, **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "owner": owner,
        "job_id": job_id(),
        "name": "nightly report",
        "schedule": parse_schedule("17 * * * *", "Europe/Riga"),
        "target": TaskTarget(name="samples.hello"),
        "payload": '{"report":"sales"}',
        "segment": 3,
        "filing": Filing(FILING_ID, NOW),
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Job(**{**fields, **changes})


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
        "filing_id": FILING_ID,
        "updated_at": NOW,
        "expires_at": NOW.replace(microsecond=0) + timedelta(days=30),
        "lease_until": NOW + timedelta(seconds=90),
        "started_at": NOW,
        "attempt_started_at": NOW,
    }
    return Run(key=key, **{**fields, **changes})


def an_entry(owner: str, segment: int, number: int = 0, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "segment": segment,
        "slot": Slot(SlotKind.HOURLY, 17),
        "owner": owner,
        "job_id": job_id(number),
        "filing_id": FILING_ID,
        "from_at": NOW,
        "schedule": parse_schedule("17 * * * *"),
    }
    return Entry(**{**fields, **changes})


def a_message(owner: str, lane: Lane = Lane.NORMAL, **changes: Any) -> Message:
    fields: dict[str, Any] = {
        "key": a_key(owner),
        "filing_id": FILING_ID,
        "segment": 3,
        "due_at": FIRE_AT,
    }
    return Message(lane=lane, **{**fields, **changes})


def a_control(segment: int, **changes: Any) -> Control:
    return Control(segment, **{"horizon": 29_700_000, "watermark": 29_699_998, **changes})
