"""CalendarStore."""

import dataclasses
from datetime import date, timedelta

import pytest

from carillon.domain.calendar import Calendar
from carillon.errors import InvalidFieldError
from tests.contract.kit import CONTENDERS, Kit, contend
from tests.contract.samples import NOW, a_calendar, a_job


def _put(kit: Kit, owner: str, **changes: object) -> Calendar:
    calendar = a_calendar(owner, **changes)
    assert kit.calendars.put(calendar, over_revision=None)
    return calendar


def test_an_unknown_calendar_is_none(kit: Kit) -> None:
    assert kit.calendars.get(kit.new_owner(), "holidays") is None


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"weekdays": frozenset(range(7)), "ranges": ()},
        {"weekdays": frozenset()},
        {"weekdays": frozenset(), "ranges": ()},
        {
            "name": "Feiertage/Österreich ~1",
            "description": "von Hand gepflegt — bis 2030",
            "revision": 12,
            "created_at": NOW - timedelta(days=400, microseconds=1),
        },
        {
            "ranges": (
                (date(2027, 5, 1), date(2027, 5, 1)),
                (date(1970, 1, 1), date(9998, 12, 31)),
                (date(2026, 12, 25), date(2026, 12, 25)),
                (date(2026, 12, 24), date(2026, 12, 31)),
            )
        },
    ],
    ids=["plain", "weekdays", "ranges", "nothing closed", "words", "ranges in any order"],
)
def test_a_calendar_comes_back_whole(kit: Kit, changes: dict[str, object]) -> None:
    calendar = _put(kit, kit.new_owner(), **changes)
    assert kit.calendars.get(calendar.owner, calendar.name) == calendar


def test_put_over_none_puts_only_where_there_is_none(kit: Kit) -> None:
    calendar = _put(kit, kit.new_owner())
    other = dataclasses.replace(calendar, weekdays=frozenset())
    assert not kit.calendars.put(other, over_revision=None)
    assert kit.calendars.get(calendar.owner, calendar.name) == calendar


def test_put_needs_exactly_the_revision(kit: Kit) -> None:
    calendar = _put(kit, kit.new_owner(), revision=4)
    changed = dataclasses.replace(calendar, weekdays=frozenset(), revision=5)
    assert not kit.calendars.put(changed, over_revision=3)
    assert not kit.calendars.put(changed, over_revision=5)
    assert kit.calendars.get(calendar.owner, calendar.name) == calendar
    assert kit.calendars.put(changed, over_revision=4)
    assert kit.calendars.get(calendar.owner, calendar.name) == changed


def test_a_repeated_put_knows_its_own_row(kit: Kit) -> None:
    calendar = _put(kit, kit.new_owner())
    assert kit.calendars.put(calendar, over_revision=None)
    changed = dataclasses.replace(calendar, ranges=(), revision=2)
    assert kit.calendars.put(changed, over_revision=1)
    assert kit.calendars.put(changed, over_revision=1)
    assert not kit.calendars.put(calendar, over_revision=None)


def test_put_over_a_revision_creates_nothing(kit: Kit) -> None:
    calendar = a_calendar(kit.new_owner(), revision=2)
    assert not kit.calendars.put(calendar, over_revision=1)
    assert kit.calendars.get(calendar.owner, calendar.name) is None


def test_delete_needs_exactly_the_revision(kit: Kit) -> None:
    calendar = _put(kit, kit.new_owner(), revision=4)
    assert not kit.calendars.delete(calendar.owner, calendar.name, 3)
    assert kit.calendars.get(calendar.owner, calendar.name) == calendar
    assert kit.calendars.delete(calendar.owner, calendar.name, 4)
    assert kit.calendars.get(calendar.owner, calendar.name) is None
    assert kit.calendars.delete(calendar.owner, calendar.name, 4), "gone"
    assert kit.calendars.put(a_calendar(calendar.owner), over_revision=None)


def test_owners_and_names_are_apart(kit: Kit) -> None:
    owner, other = kit.new_owner(), kit.new_owner()
    calendar = _put(kit, owner)
    assert kit.calendars.get(other, calendar.name) is None
    assert kit.calendars.list(other, 10).items == ()
    assert kit.calendars.delete(other, calendar.name, 1), "there is none"
    assert kit.calendars.delete(owner, "holiday", 1), "there is none"
    assert kit.calendars.get(owner, calendar.name) == calendar


def test_jobs_and_calendars_do_not_see_each_other(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    calendar = _put(kit, job.owner, name=job.job_id)
    assert kit.calendars.delete(job.owner, job.job_id, calendar.revision)
    assert kit.jobs.get(job.owner, job.job_id) == job
    assert kit.calendars.list(job.owner, 10).items == ()


def test_list_pages_in_the_order_of_names(kit: Kit) -> None:
    owner = kit.new_owner()
    assert kit.jobs.create(a_job(owner))
    names = ["b", "a", "a-", "c", "~", "a!", "Ü"]
    calendars = {name: _put(kit, owner, name=name) for name in names}
    pages = [kit.calendars.list(owner, 3)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(kit.calendars.list(owner, 3, cursor))
    assert [len(page.items) for page in pages] == [3, 3, 1]
    listed = [calendar for page in pages for calendar in page.items]
    assert listed == [calendars[name] for name in sorted(names)]


def test_a_page_that_is_just_full_is_the_last(kit: Kit) -> None:
    owner = kit.new_owner()
    calendars = [_put(kit, owner, name=name) for name in ("one", "two")]
    page = kit.calendars.list(owner, 2)
    assert (list(page.items), page.next_cursor) == (calendars, None)


def test_cursors_are_of_one_owner_and_method(kit: Kit) -> None:
    owner = kit.new_owner()
    for name in ("one", "two"):
        _put(kit, owner, name=name)
    cursor = kit.calendars.list(owner, 1).next_cursor
    assert cursor is not None
    with pytest.raises(InvalidFieldError) as refused:
        kit.calendars.list(kit.new_owner(), 1, cursor)
    assert refused.value.field == "cursor"
    with pytest.raises(InvalidFieldError):
        kit.jobs.list(owner, 1, cursor)


def test_one_of_many_creators_wins(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    calendars = [a_calendar(owner, description=f"creator {n}") for n in range(CONTENDERS)]
    won = contend(lambda n: threaded_kit.calendars.put(calendars[n], over_revision=None))
    assert won.count(True) == 1
    assert threaded_kit.calendars.get(owner, "holidays") == calendars[won.index(True)]


def test_one_of_many_writers_of_a_revision_wins(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    _put(threaded_kit, owner)
    calendars = [
        a_calendar(owner, description=f"writer {number}", revision=2)
        for number in range(CONTENDERS)
    ]
    won = contend(lambda number: threaded_kit.calendars.put(calendars[number], over_revision=1))
    assert won.count(True) == 1
    assert threaded_kit.calendars.get(owner, "holidays") == calendars[won.index(True)]


def test_a_change_and_a_deletion_cannot_both_win(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    _put(threaded_kit, owner)

    def attempt(number: int) -> bool:
        if number == 0:
            return threaded_kit.calendars.delete(owner, "holidays", 1)
        changed = a_calendar(owner, description=f"writer {number}", revision=2)
        return threaded_kit.calendars.put(changed, over_revision=1)

    won = contend(attempt)
    assert won.count(True) == 1
    assert (threaded_kit.calendars.get(owner, "holidays") is None) is won[0]
