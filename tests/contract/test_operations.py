"""OperationStore."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest

from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.errors import InvalidFieldError
from carillon.stores.cursors import encode_cursor
from tests.contract.kit import CONTENDERS, Kit, contend
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_full_operation,
    a_gate,
    a_job,
    an_operation,
    operation_id,
)


def test_an_unknown_operation_is_none(kit: Kit) -> None:
    assert kit.operations.get(kit.new_owner(), operation_id()) is None


@pytest.mark.parametrize("make", [an_operation, a_full_operation])
def test_an_operation_comes_back_whole(kit: Kit, make: Callable[[str], Operation]) -> None:
    operation = make(kit.new_owner())
    assert kit.operations.put(operation, None)
    assert kit.operations.get(operation.owner, operation.operation_id) == operation


def test_kinds_and_states_come_back(kit: Kit) -> None:
    owner = kit.new_owner()
    pairs = [(kind, state) for kind in OperationKind for state in OperationState]
    operations = [
        an_operation(owner, number, kind=kind, state=state)
        for number, (kind, state) in enumerate(pairs)
    ]
    for operation in operations:
        assert kit.operations.put(operation, None)
    assert list(kit.operations.list(owner, 50).items) == operations[::-1]


def test_put_over_none_puts_only_where_there_is_none(kit: Kit) -> None:
    operation = an_operation(kit.new_owner())
    assert kit.operations.put(operation, None)
    assert kit.operations.put(operation, None), "its own"
    assert not kit.operations.put(dataclasses.replace(operation, per_minute=1), None)
    assert kit.operations.get(operation.owner, operation.operation_id) == operation


def test_put_needs_exactly_the_revision(kit: Kit) -> None:
    operation = an_operation(kit.new_owner(), revision=4)
    step = dataclasses.replace(operation, revision=5, step=2, cursor="here", expires_at=NOW)
    assert not kit.operations.put(operation, 3), "nothing is there"
    assert kit.operations.put(operation, None)
    assert not kit.operations.put(step, 3)
    assert not kit.operations.put(step, 5)
    assert kit.operations.get(operation.owner, operation.operation_id) == operation
    assert kit.operations.put(step, 4)
    assert kit.operations.put(step, 4), "its own, with an expiry that the store rounds up"
    assert not kit.operations.put(dataclasses.replace(step, cursor="there"), 4)
    stored = kit.operations.get(operation.owner, operation.operation_id)
    whole = NOW.replace(microsecond=0) + timedelta(seconds=1)
    assert stored == dataclasses.replace(step, expires_at=whole)


def test_list_pages_newest_first(kit: Kit) -> None:
    owner, other = kit.new_owner(), kit.new_owner()
    for number in (4, 0, 5, 2, 6, 1, 3):
        assert kit.operations.put(an_operation(owner, number), None)
    assert kit.operations.put(an_operation(other, 9), None)
    pages = [kit.operations.list(owner, 3)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(kit.operations.list(owner, 3, cursor))
    assert [len(page.items) for page in pages] == [3, 3, 1]
    ids = [operation.operation_id for page in pages for operation in page.items]
    assert ids == [operation_id(number) for number in range(6, -1, -1)]


def test_a_page_that_is_just_full_is_the_last(kit: Kit) -> None:
    operation = an_operation(kit.new_owner())
    assert kit.operations.put(operation, None)
    page = kit.operations.list(operation.owner, 1)
    assert (page.items, page.next_cursor) == ((operation,), None)


def test_what_else_an_owner_has_is_not_listed_among_operations(kit: Kit) -> None:
    owner = kit.new_owner()
    assert kit.jobs.create(a_job(owner))
    assert kit.calendars.put(a_calendar(owner), None)
    assert kit.gates.put(a_gate(owner), None)
    assert kit.operations.list(owner, 5).items == ()


def test_cursors_are_of_one_owner_and_method(kit: Kit) -> None:
    owner = kit.new_owner()
    for number in range(2):
        assert kit.operations.put(an_operation(owner, number), None)
    cursor = kit.operations.list(owner, 1).next_cursor
    assert cursor is not None
    with pytest.raises(InvalidFieldError) as refused:
        kit.operations.list(kit.new_owner(), 1, cursor)
    assert refused.value.field == "cursor"
    with pytest.raises(InvalidFieldError):
        kit.jobs.list(owner, 1, cursor)


@pytest.mark.parametrize(("key", "count"), [("!", 0), ("~", 2), ("ü", 2)])
def test_a_forged_cursor_leads_to_operations_only(kit: Kit, key: str, count: int) -> None:
    owner = kit.new_owner()
    for number in range(2):
        assert kit.operations.put(an_operation(owner, number), None)
    assert kit.gates.put(a_gate(owner), None)
    page = kit.operations.list(owner, 5, encode_cursor(("operations", owner), key))
    assert (len(page.items), page.next_cursor) == (count, None)


def test_one_of_many_steps_wins(threaded_kit: Kit) -> None:
    first = an_operation(threaded_kit.new_owner())
    assert threaded_kit.operations.put(first, None)
    steps = [
        dataclasses.replace(first, revision=2, step=2, done=number) for number in range(CONTENDERS)
    ]
    won = contend(lambda number: threaded_kit.operations.put(steps[number], 1))
    assert won.count(True) == 1
    stored = threaded_kit.operations.get(first.owner, first.operation_id)
    assert stored == steps[won.index(True)]
