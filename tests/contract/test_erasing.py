"""The erasure of an owner leaves nothing of it, and all else as it was, byte for byte."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest

from carillon.clock import ManualClock, SystemClock
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.settings import Settings
from carillon.stores.dynamo.erasing import UNDER_WAY, Erasure, HandOverUnderWayError
from tests.contract.kit import Kit
from tests.contract.samples import (
    NOW,
    a_full_operation,
    a_full_use,
    a_full_window,
    a_job,
    an_admission_row,
    an_entry,
    own_job_id,
    own_limits,
)
from tests.contract.test_owners import _put_all, owners_of_like_names
from tests.contract.test_unreadable_rows import settings_of

Items = set[tuple[str, str]]
"""Each item as text, with its table's name."""


def put_everything(kit: Kit, owner: str) -> None:
    """One of everything that can be stored for an owner."""
    _put_all(kit, owner, "mine")
    jobs = kit.recorded_jobs
    assert jobs is not None
    job = a_job(owner, job_id=own_job_id(owner, 1), name="changed")
    assert jobs.create(job)
    later = replace(job.generation, generation_id="01KBD000000000000000000009")
    assert jobs.replace(job.in_new_generation(later, NOW), job.revision)
    kit.wheel.put_entries([an_entry(owner, kit.new_segment())])
    assert kit.windows.put(a_full_window(owner, revision=1), None)
    assert kit.admission_rows.put(an_admission_row(owner), None)
    assert kit.operations.put(a_full_operation(owner, kind=OperationKind.REDRIVE), None)
    assert kit.quotas.put(own_limits(owner), None)
    assert kit.uses.put(a_full_use(owner), None)


def items_of(settings: Settings) -> Items:
    return {
        (table, repr(sorted(item.items())))
        for table in (settings.jobs_table, settings.wheel_table, settings.runs_table)
        for item in scanned(table)
    }


def scanned(table: str) -> Iterator[dict[str, Any]]:
    pages = boto3.client("dynamodb").get_paginator("scan").paginate(TableName=table)
    return (item for page in pages for item in page["Items"])


def test_nothing_of_the_owner_is_left_and_all_else_is_as_it_was(aws_kit: Kit) -> None:
    """Of owners whose names contain each other's, or what looks like a part of a key."""
    settings = settings_of(aws_kit)
    owners, own, before = owners_of_like_names(aws_kit), dict[str, Items](), items_of(settings)
    for owner in owners:
        put_everything(aws_kit, owner)
        own[owner] = items_of(settings) - before.union(*own.values())
        assert len(own[owner]) >= 17, own[owner]

    rehearsed = Erasure.of(owners[0], settings, SystemClock(), is_rehearsal=True)
    rehearsed.run()
    assert items_of(settings) == before.union(*own.values())
    for some in (owners[::2], owners[1::2]):
        for owner in some:
            work = Erasure.of(owner, settings, ManualClock(NOW))
            work.run()
            assert work.done.removed == rehearsed.done.removed
            assert work.done.removed.total() == len(own.pop(owner))
            assert f"{NOW + UNDER_WAY:%H:%M:%SZ}" in work.done.left[0]
        assert items_of(settings) == before.union(*own.values())
    again = Erasure.of(owners[0], settings, SystemClock())
    again.run()
    assert (again.done.removed.total(), again.done.left) == (0, [])


@pytest.mark.parametrize("side", ["owner", "to"])
def test_while_jobs_are_between_two_owners_nothing_is_deleted(aws_kit: Kit, side: str) -> None:
    settings = settings_of(aws_kit)
    owner, other = (f"team/{aws_kit.new_owner()}" for _ in range(2))
    put_everything(aws_kit, owner)
    giver, taker = (owner, other) if side == "owner" else (other, owner)
    moving: Operation = a_full_operation(giver, kind=OperationKind.HAND_OVER, to=taker)
    moving = replace(moving, state=OperationState.RUNNING, operation_id=f"{moving.operation_id}0")
    assert aws_kit.operations.put(moving, None)
    before = items_of(settings)
    with pytest.raises(HandOverUnderWayError, match="is under way"):
        Erasure.of(owner, settings, SystemClock()).run()
    assert items_of(settings) == before
    ended = replace(moving, state=OperationState.SUCCEEDED, revision=moving.revision + 1)
    assert aws_kit.operations.put(ended, moving.revision)
    Erasure.of(owner, settings, SystemClock()).run()
    assert len(items_of(settings)) < len(before) - 16
