"""Conditional writes of every store: prepared, and to be made by one writer or by many."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from carillon.domain.run import RunStatus
from tests.contract.kit import Kit
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_control,
    a_job,
    a_key,
    a_link,
    a_notification,
    a_record,
    a_run,
    a_use,
    a_window,
    an_admission_row,
    an_operation,
)


@dataclass(frozen=True)
class Write:
    """A write of one row, of which each writer, by his number, has one of his own."""

    row: Callable[[int], Any]
    put: Callable[[Any], bool]
    read: Callable[[], Any]

    def __call__(self, number: int = 0) -> bool:
        return self.put(self.row(number))


def first_job(kit: Kit) -> Write:
    job = a_job(kit.new_owner())
    return Write(
        lambda number: a_job(job.owner, name=f"writer {number}"),
        kit.jobs.create,
        lambda: kit.jobs.get(job.owner, job.job_id),
    )


def changed_job(kit: Kit) -> Write:
    first = first_job(kit)
    assert first()
    return replace(
        first,
        row=lambda number: replace(first.row(number), revision=2),
        put=lambda job: kit.jobs.replace(job, 1),
    )


def linked_job(kit: Kit) -> Write:
    first = first_job(kit)
    assert first()
    job = first.row(0)
    return replace(
        first,
        row=lambda number: replace(job, successors=(a_link(number),)),
        put=lambda row: kit.jobs.relink(row, over=()),
    )


def first_claim(kit: Kit) -> Write:
    run = a_run(a_key(kit.new_owner()))
    return Write(
        lambda number: replace(run, claim_id=f"claim {number}"),
        lambda row: kit.runs.claim(row, over=None),
        lambda: kit.runs.get(run.key),
    )


def takeover(kit: Kit) -> Write:
    first = first_claim(kit)
    assert first()
    return replace(
        first,
        row=lambda number: replace(first.row(0), token=2, attempt=2, claim_id=f"takeover {number}"),
        put=lambda row: kit.runs.claim(row, over=first.row(0)),
    )


def finish(kit: Kit) -> Write:
    first = first_claim(kit)
    ended = replace(first.row(0), status=RunStatus.DEAD, finished_at=NOW, lease_until=None)
    assert first()
    return replace(
        first, row=lambda number: replace(ended, result=str(number)), put=kit.runs.finish
    )


def first_control(kit: Kit) -> Write:
    segment = kit.new_segment()
    return Write(
        lambda number: a_control(segment, horizon=number),
        lambda control: kit.wheel.put_control(control, over=None),
        lambda: kit.wheel.get_control(segment),
    )


def lease(kit: Kit) -> Write:
    first = first_control(kit)
    seen, lease_until = first.row(0), NOW + timedelta(seconds=45)
    assert first()
    return replace(
        first,
        row=lambda number: replace(
            seen, token=1, lease_owner=f"tick-{number}", lease_until=lease_until
        ),
        put=lambda control: kit.wheel.put_control(control, over=seen),
    )


def _versioned(
    port: str, row: Callable[[str], Any], member: str, key: str, over: int | None
) -> Any:
    def prepare(kit: Kit) -> Write:
        rows, first = getattr(kit, port), row(kit.new_owner())
        if over is not None:
            assert rows.put(first, None)
        return Write(
            lambda number: replace(
                first, **{member: f"writer {number}", "revision": (over or 0) + 1}
            ),
            lambda changed: rows.put(changed, over),
            lambda: rows.get(first.owner, getattr(first, key)),
        )

    prepare.__name__ = f"{port}, {'first' if over is None else 'changed'}"
    return prepare


WRITES: list[Callable[[Kit], Write]] = [
    *(first_job, changed_job, linked_job, first_claim, takeover, finish, first_control, lease),
    *(
        _versioned(port, row, member, key, over)
        for port, row, member, key in (
            ("calendars", a_calendar, "description", "name"),
            ("admission_rows", an_admission_row, "started", "name"),
            ("operations", an_operation, "note", "operation_id"),
            ("idempotency_records", a_record, "answer", "key"),
            ("notifications", a_notification, "jobs", "name"),
            ("windows", a_window, "last_delivery", "name"),
            ("uses", a_use, "writer", "name"),
        )
        for over in (None, 1)
    ),
]
