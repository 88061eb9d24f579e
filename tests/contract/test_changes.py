"""ChangeStore."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from carillon.domain.changes.change import Action, Change, Difference, Subject
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from carillon.errors import InvalidFieldError
from carillon.stores.ports import ChangeFilter, Page
from tests.contract.kit import Kit
from tests.contract.samples import own_job_id

AT = datetime(2026, 11, 20, 12, 0, 0, 250_001, tzinfo=UTC)
ANN = Author(AuthorKind.PERSON, "sub-1", "ann", Via.CLI)


def a_change(owner: str, seconds: float = 0, job: int = 0, **members: object) -> Change:
    change = Change(
        owner=owner,
        subject=Subject.JOB,
        key=own_job_id(owner, job),
        name="nightly",
        action=Action.CHANGE,
        revision=1,
        at=AT + timedelta(seconds=seconds),
        author=ANN,
    )
    return replace(change, **members)  # type: ignore[arg-type]


def of_job(kit: Kit, change: Change, limit: int = 10, only: ChangeFilter | None = None) -> Page:  # type: ignore[type-arg]
    return kit.changes.of_subject(change.owner, change.subject, change.key, limit, None, only)


def test_a_change_comes_back_whole(kit: Kit) -> None:
    owner = kit.new_owner()
    whole = a_change(
        owner,
        name="Bericht — später",
        changed=(Difference("target.name", '"a"', '"b…"'), Difference("tags.x", "null", "1")),
        note="since # it failed",
        source="manifest/billing",
        ref="run_1.2-3",
    )
    bare = a_change(owner, 1, author=SYSTEM, revision=2)
    kit.changes.put(whole)
    kit.changes.put(bare)

    assert of_job(kit, whole).items == (bare, whole)
    assert kit.changes.of_owner(owner, 10).items == (bare, whole)


def test_a_change_is_never_changed(kit: Kit) -> None:
    change = a_change(kit.new_owner())
    kit.changes.put(change)
    kit.changes.put(change)
    kit.changes.put(replace(change, note="another"))

    assert of_job(kit, change).items == (change,)


def test_requests_of_one_instant_are_kept_apart(kit: Kit) -> None:
    owner = kit.new_owner()
    changes = {a_change(owner, action=Action.REDRIVE, ref=ref) for ref in ("", "run_1", "run_2")}
    for change in changes:
        kit.changes.put(change)

    assert set(kit.changes.of_owner(owner, 10).items) == changes


def test_pages_go_on_newest_first(kit: Kit) -> None:
    """Of one instant the later revision is the newer."""
    owner = kit.new_owner()
    changes = [a_change(owner, seconds, revision=seconds + 1) for seconds in range(5)]
    changes.append(replace(changes[4], revision=6))
    other = a_change(owner, 9, job=1)
    for change in [*changes, other]:
        kit.changes.put(change)
    expected = changes[::-1]

    first = of_job(kit, other, 1)
    assert (first.items, first.next_cursor) == ((other,), None)
    found: list[Change] = []
    cursor = None
    while True:
        page = kit.changes.of_subject(owner, Subject.JOB, changes[0].key, 4, cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == expected
    page = kit.changes.of_owner(owner, 4)
    rest = kit.changes.of_owner(owner, 4, page.next_cursor)
    assert [*page.items, *rest.items] == [other, *expected]
    with pytest.raises(InvalidFieldError):
        kit.changes.of_owner(kit.new_owner(), 4, page.next_cursor)
    with pytest.raises(InvalidFieldError):
        kit.changes.of_subject(owner, Subject.JOB, other.key, 4, page.next_cursor)


def test_filters_choose(kit: Kit) -> None:
    owner = kit.new_owner()
    old = a_change(owner)
    paused = a_change(owner, 10, action=Action.PAUSE, author=SYSTEM, revision=2)
    new = a_change(owner, 20, revision=3)
    for change in (old, paused, new):
        kit.changes.put(change)

    for only, expected in (
        (ChangeFilter(from_at=paused.at), (new, paused)),
        (ChangeFilter(until_at=paused.at), (paused, old)),
        (ChangeFilter(from_at=paused.at, until_at=paused.at), (paused,)),
        (ChangeFilter(from_at=new.at, until_at=old.at), ()),
        (ChangeFilter(until_at=datetime(1960, 1, 1, tzinfo=UTC)), ()),
        (ChangeFilter(from_at=datetime(1960, 1, 1, tzinfo=UTC)), (new, paused, old)),
        (ChangeFilter(by="ann"), (new, old)),
        (ChangeFilter(by="sub-1"), (new, old)),
        (ChangeFilter(by="carillon"), (paused,)),
        (ChangeFilter(action=Action.PAUSE), (paused,)),
        (ChangeFilter(by="ann", action=Action.PAUSE), ()),
    ):
        assert of_job(kit, old, only=only).items == expected, only
        assert kit.changes.of_owner(owner, 10, None, only).items == expected, only


@pytest.mark.parametrize("suffix", ["#job", "#changes", f"#job#{'0' * 26}"])
def test_no_owner_reaches_what_another_has(kit: Kit, suffix: str) -> None:
    owner = kit.new_owner()
    change = a_change(owner)
    kit.changes.put(change)

    assert kit.changes.of_owner(owner + suffix, 10).items == ()
    assert kit.changes.of_owner(owner.rpartition("-")[0], 10).items == ()
    listed = kit.changes.of_subject(owner + suffix, Subject.JOB, change.key, 10)
    assert listed.items == ()
    assert not kit.runs.list(owner, change.key, 10).items
    assert not kit.runs.dead_letters(owner, 10).items
