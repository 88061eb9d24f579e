"""VersionedRows, of every kind."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from zlib import crc32

import pytest

from carillon.domain.quotas import Quota
from carillon.errors import InvalidFieldError
from carillon.stores.cursors import encode_cursor
from carillon.stores.ports import (
    ADMISSION_ROWS,
    CALENDARS,
    IDEMPOTENCY_RECORDS,
    NOTIFICATIONS,
    OPERATIONS,
    QUOTAS,
    USES,
    WINDOWS,
    RowKind,
)
from tests.contract.kit import Kit, contend
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_full_admission_row,
    a_full_operation,
    a_full_use,
    a_full_window,
    a_job,
    a_notification,
    a_record,
    a_use,
    a_window,
    an_admission_row,
    an_operation,
    operation_id,
    own_limits,
)


@dataclass(frozen=True)
class Case:
    """A kind, rows of an owner with every member and with few, and a member to change."""

    port: str
    kind: RowKind[Any]
    few: Callable[..., Any]
    full: Callable[..., Any]
    member: str
    value: Callable[[str], Any] = str
    """Makes a value of that member of a text; others of others."""

    def changed(self, row: Any, value: str, revision: int | None = None) -> Any:
        changes = {self.member: self.value(value), "revision": revision or row.revision + 1}
        return replace(row, **changes)


def _limits_of(text: str) -> dict[Quota, int]:
    return {Quota.JOBS: crc32(text.encode())}


CASES = [
    Case("calendars", CALENDARS, a_calendar, a_calendar, "description"),
    Case("admission_rows", ADMISSION_ROWS, an_admission_row, a_full_admission_row, "started"),
    Case("operations", OPERATIONS, an_operation, a_full_operation, "note"),
    Case("idempotency_records", IDEMPOTENCY_RECORDS, a_record, a_record, "answer"),
    Case("notifications", NOTIFICATIONS, a_notification, a_notification, "jobs"),
    Case("windows", WINDOWS, a_window, a_full_window, "last_delivery"),
    Case(
        "quotas",
        QUOTAS,
        own_limits,
        own_limits,
        "limits",
        lambda text: {Quota.JOBS: crc32(text.encode())},
    ),
    Case("uses", USES, a_use, a_full_use, "writer"),
]
LASTING = (CALENDARS, NOTIFICATIONS, QUOTAS, USES)
EXPIRING = [case for case in CASES if case.kind not in LASTING]
every_kind = pytest.mark.parametrize("case", CASES, ids=[case.port for case in CASES])


def rows_of(kit: Kit, case: Case) -> Any:
    return getattr(kit, case.port)


@every_kind
def test_an_unknown_row_is_none(kit: Kit, case: Case) -> None:
    assert rows_of(kit, case).get(kit.new_owner(), "a") is None


@every_kind
def test_a_row_comes_back_whole_and_its_members_can_go_again(kit: Kit, case: Case) -> None:
    rows, full = rows_of(kit, case), case.full(kit.new_owner())
    few = replace(case.few(full.owner), revision=full.revision + 1)
    few = replace(few, **{case.kind.key: case.kind.key_of(full)})
    assert rows.put(full, None)
    assert rows.get(full.owner, case.kind.key_of(full)) == full
    assert rows.put(few, full.revision)
    assert rows.get(full.owner, case.kind.key_of(full)) == few


@every_kind
def test_put_over_none_puts_only_where_there_is_none(kit: Kit, case: Case) -> None:
    rows, row = rows_of(kit, case), case.few(kit.new_owner())
    assert rows.put(row, None)
    assert rows.put(row, None), "its own"
    assert not rows.put(case.changed(row, "another", row.revision), None)
    assert rows.get(row.owner, case.kind.key_of(row)) == row


@every_kind
def test_put_needs_exactly_the_revision(kit: Kit, case: Case) -> None:
    rows, row = rows_of(kit, case), case.full(kit.new_owner(), revision=4)
    changed = case.changed(row, "changed")
    assert not rows.put(row, 3), "nothing is there"
    assert rows.get(row.owner, case.kind.key_of(row)) is None
    assert rows.put(row, None)
    assert not rows.put(changed, 3)
    assert not rows.put(changed, 5)
    assert rows.get(row.owner, case.kind.key_of(row)) == row
    assert rows.put(changed, 4)
    assert rows.put(changed, 4), "its own, with an expiry that the store rounds up"
    assert not rows.put(case.changed(changed, "another", 5), 4)
    assert rows.get(row.owner, case.kind.key_of(row)) == changed


@pytest.mark.parametrize("case", EXPIRING, ids=[case.port for case in EXPIRING])
def test_an_expiry_is_kept_to_the_second_and_never_early(kit: Kit, case: Case) -> None:
    rows, row = rows_of(kit, case), case.few(kit.new_owner(), expires_at=NOW)
    assert rows.put(row, None)
    stored = rows.get(row.owner, case.kind.key_of(row))
    assert stored.expires_at == NOW.replace(microsecond=0) + timedelta(seconds=1)


@every_kind
def test_delete_needs_exactly_the_revision(kit: Kit, case: Case) -> None:
    rows, row = rows_of(kit, case), case.few(kit.new_owner(), revision=4)
    key = case.kind.key_of(row)
    assert rows.put(row, None)
    assert not rows.delete(row.owner, key, 3)
    assert rows.get(row.owner, key) == row
    assert rows.delete(row.owner, key, 4)
    assert rows.get(row.owner, key) is None
    assert rows.delete(row.owner, key, 4), "gone"
    assert rows.put(case.few(row.owner), None)


@every_kind
def test_owners_and_kinds_are_apart(kit: Kit, case: Case) -> None:
    rows, row, other = rows_of(kit, case), case.few(kit.new_owner()), kit.new_owner()
    key = case.kind.key_of(row)
    assert rows.put(row, None)
    job = a_job(row.owner)
    assert kit.jobs.create(job)
    assert rows.get(other, key) is None
    assert rows.delete(other, key, 1), "there is none"
    for rest in CASES:
        if rest is not case:
            assert rows_of(kit, rest).get(row.owner, key) is None
            assert rows_of(kit, rest).delete(row.owner, key, row.revision), "there is none"
            assert rows_of(kit, rest).list(row.owner, 5).items == ()
    assert rows.delete(row.owner, job.job_id, 1), "there is none"
    assert kit.jobs.list(row.owner, 5).items == (job,)
    assert rows.get(row.owner, key) == row


GATES_OF_ANY_TEXT = [
    "key/database",
    "key/Datenbank ü/1",
    "key/~calendar/holidays",
    "key/" + "x" * 1000,
    "key/" + "x" * 999 + "y",
    "key/" + "ü" * 3000,
    "key/\ud800",
    "key/\udfff",
    "~",
    "~admission/key/database",
    "key/\0",
    "",
]


def test_names_of_gates_are_any_text_and_told_apart(kit: Kit) -> None:
    owner = kit.new_owner()
    for number, name in enumerate(GATES_OF_ANY_TEXT):
        assert kit.admission_rows.put(
            an_admission_row(owner, name=name, started=str(number)), None
        ), name
    stored = [kit.admission_rows.get(owner, name) for name in GATES_OF_ANY_TEXT]
    assert [gate and (gate.name, gate.started) for gate in stored] == [
        (name, str(number)) for number, name in enumerate(GATES_OF_ANY_TEXT)
    ]


NAMES = ["b", "a", "a-", "c", "~", "a!", "Ü"]
NUMBERS = [operation_id(number) for number in (4, 0, 5, 2, 6, 1, 3)]


@pytest.mark.parametrize(
    ("case", "keys"), [(CASES[0], NAMES), (CASES[2], NUMBERS)], ids=["calendars", "operations"]
)
class TestLists:
    def test_pages_are_in_the_order_of_keys(self, kit: Kit, case: Case, keys: list[str]) -> None:
        rows, owner = rows_of(kit, case), kit.new_owner()
        assert kit.jobs.create(a_job(owner))
        assert rows.put(case.few(kit.new_owner()), None)
        of_key = {key: replace(case.few(owner), **{case.kind.key: key}) for key in keys}
        for row in of_key.values():
            assert rows.put(row, None)
        pages = [rows.list(owner, 3)]
        while (cursor := pages[-1].next_cursor) is not None:
            pages.append(rows.list(owner, 3, cursor))
        assert [len(page.items) for page in pages] == [3, 3, 1]
        listed = [row for page in pages for row in page.items]
        assert listed == [of_key[key] for key in sorted(keys, reverse=case.kind.newest_first)]

    def test_a_page_that_is_just_full_is_the_last(
        self, kit: Kit, case: Case, keys: list[str]
    ) -> None:
        rows, row = rows_of(kit, case), case.few(kit.new_owner())
        assert rows.put(row, None)
        page = rows.list(row.owner, 1)
        assert (page.items, page.next_cursor) == ((row,), None)

    def test_cursors_are_of_one_owner_and_method(
        self, kit: Kit, case: Case, keys: list[str]
    ) -> None:
        rows, owner = rows_of(kit, case), kit.new_owner()
        for key in keys[:2]:
            assert rows.put(replace(case.few(owner), **{case.kind.key: key}), None)
        cursor = rows.list(owner, 1).next_cursor
        with pytest.raises(InvalidFieldError) as refused:
            rows.list(kit.new_owner(), 1, cursor)
        assert refused.value.field == "cursor"
        with pytest.raises(InvalidFieldError):
            kit.jobs.list(owner, 1, cursor)


@pytest.mark.parametrize(("key", "count"), [("!", 0), ("~", 2), ("ü", 2)])
def test_a_forged_cursor_leads_to_rows_of_the_kind_only(kit: Kit, key: str, count: int) -> None:
    owner = kit.new_owner()
    for number in range(2):
        assert kit.operations.put(an_operation(owner, number), None)
    assert kit.admission_rows.put(an_admission_row(owner), None)
    page = kit.operations.list(owner, 5, encode_cursor(("operations", owner), key))
    assert (len(page.items), page.next_cursor) == (count, None)


@every_kind
def test_a_change_and_a_deletion_cannot_both_win(threaded_kit: Kit, case: Case) -> None:
    rows, first = rows_of(threaded_kit, case), case.few(threaded_kit.new_owner(), revision=1)
    key = case.kind.key_of(first)
    assert rows.put(first, None)

    def attempt(number: int) -> bool:
        if number == 0:
            return bool(rows.delete(first.owner, key, 1))
        return bool(rows.put(case.changed(first, f"writer {number}"), 1))

    won = contend(attempt)
    assert won.count(True) == 1
    assert (rows.get(first.owner, key) is None) is won[0]
