"""JobStore."""

import dataclasses
from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.domain.calendar import CalendarUse
from shared.domain.job import Filing, Job, JobState, Lane, PreviousFiling
from shared.domain.policies import Backoff, CatchUp, OnComplete, RetryPolicy
from shared.domain.targets import WebhookTarget
from shared.errors import InvalidFieldError
from shared.recurrence import CalendarRule, DstRule, Fold, Gap, Schedule, parse_schedule
from shared.stores.cursors import encode_cursor
from tests.contract.kit import CONTENDERS, Kit, contend
from tests.contract.samples import (
    FILING_ID,
    FIRE_AT,
    NOW,
    a_bounded_schedule,
    a_calendar,
    a_combined_schedule,
    a_job,
    job_id,
)


def test_an_unknown_job_is_none(kit: Kit) -> None:
    assert kit.jobs.get(kit.new_owner(), job_id()) is None


def test_a_created_job_comes_back_whole(kit: Kit) -> None:
    job = a_job(
        kit.new_owner(),
        schedule=parse_schedule("every 25m offset 2m", "Europe/Riga", NOW.replace(microsecond=0)),
        target=WebhookTarget(url="https://example.com/hook?a=ü"),
        payload='["ünïcode",null,1.5]',
        previous=PreviousFiling(FILING_ID, NOW - timedelta(days=1, microseconds=1), NOW),
        earlier=tuple(
            PreviousFiling(FILING_ID, NOW - timedelta(days=n + 1), NOW - timedelta(days=n))
            for n in (1, 2)
        ),
        state=JobState.PAUSED,
        revision=12,
        lane=Lane.HIGH,
        catch_up=CatchUp.ALL,
        retry=RetryPolicy(7, Backoff(3, 1.1, 900)),
        timeout_seconds=55,
        fingerprint="0" * 64,
        end_at=NOW + timedelta(days=9),
        max_runs=1,
        on_complete=OnComplete.DELETE,
        window="50%",
        spread_seconds=749,
        calendar=CalendarUse("Feiertage ü", CalendarRule.NEXT_BUSINESS_DAY),
        paused_at=NOW + timedelta(microseconds=1),
    )
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


@pytest.mark.parametrize("schedule", [a_bounded_schedule, a_combined_schedule])
def test_a_schedule_comes_back_whole(kit: Kit, schedule: Callable[[], Schedule]) -> None:
    job = a_job(kit.new_owner(), schedule=schedule())
    assert kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == job


def test_the_end_of_the_schedule_is_not_the_owners_end(kit: Kit) -> None:
    job = a_job(kit.new_owner(), schedule=a_bounded_schedule(), end_at=NOW + timedelta(days=99))
    assert kit.jobs.create(job)
    stored = kit.jobs.get(job.owner, job.job_id)
    assert stored is not None
    assert stored.schedule.end_at == FIRE_AT + timedelta(days=30)
    assert stored.schedule.dst == DstRule(Gap.SKIP, Fold.BOTH)
    assert stored.end_at == NOW + timedelta(days=99)


def test_create_puts_only_where_there_is_none(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    assert not kit.jobs.create(dataclasses.replace(job, name="another"))
    assert kit.jobs.get(job.owner, job.job_id) == job


def test_a_repeated_create_knows_its_own_row(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert kit.jobs.create(job)
    assert kit.jobs.create(job)


def test_a_tombstone_holds_its_key(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    expires_at = NOW.replace(microsecond=0) + timedelta(days=31)
    tombstone = job.deleted(NOW, expires_at)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(tombstone, job.revision)
    assert not kit.jobs.create(job)
    assert kit.jobs.get(job.owner, job.job_id) == tombstone


def test_an_expiry_is_kept_to_the_second_and_never_early(kit: Kit) -> None:
    job = a_job(kit.new_owner(), expires_at=NOW)
    assert kit.jobs.create(job)
    assert kit.jobs.create(job)
    stored = kit.jobs.get(job.owner, job.job_id)
    assert stored is not None
    assert stored.expires_at == NOW.replace(microsecond=0) + timedelta(seconds=1)


def test_replace_needs_exactly_the_revision(kit: Kit) -> None:
    job = a_job(kit.new_owner(), revision=4)
    changed = dataclasses.replace(job, name="changed", revision=5)
    assert kit.jobs.create(job)
    assert not kit.jobs.replace(changed, 3)
    assert not kit.jobs.replace(changed, 5)
    assert kit.jobs.get(job.owner, job.job_id) == job
    assert kit.jobs.replace(changed, 4)
    assert kit.jobs.get(job.owner, job.job_id) == changed


def test_a_repeated_replace_knows_its_own_row(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    changed = dataclasses.replace(job, name="changed", revision=2)
    other = dataclasses.replace(job, name="other", revision=2)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(changed, 1)
    assert kit.jobs.replace(changed, 1)
    assert not kit.jobs.replace(other, 1)


def test_replace_creates_nothing(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    assert not kit.jobs.replace(job, 1)
    assert kit.jobs.get(job.owner, job.job_id) is None


def test_optional_fields_can_go_again(kit: Kit) -> None:
    job = a_job(kit.new_owner()).paused(NOW)
    resumed = job.refiled(Filing(FILING_ID, NOW), NOW)
    assert kit.jobs.create(job)
    assert kit.jobs.replace(resumed, job.revision)
    assert kit.jobs.get(job.owner, job.job_id) == resumed


def test_owners_do_not_see_each_other(kit: Kit) -> None:
    mine, other = a_job(kit.new_owner()), kit.new_owner()
    assert kit.jobs.create(mine)
    assert kit.jobs.get(other, mine.job_id) is None
    assert kit.jobs.list(other, 10).items == ()
    assert kit.jobs.create(dataclasses.replace(mine, owner=other))


def _created(kit: Kit, owner: str, count: int, **changes: object) -> list[Job]:
    jobs = [a_job(owner, job_id=job_id(number), **changes) for number in range(count)]
    for job in jobs:
        assert kit.jobs.create(job)
    return sorted(jobs, key=lambda job: job.job_id)


def test_list_pages_in_the_order_of_job_ids(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs = _created(kit, owner, 7)
    first = kit.jobs.list(owner, 3)
    assert first.next_cursor is not None
    second = kit.jobs.list(owner, 3, first.next_cursor)
    assert second.next_cursor is not None
    third = kit.jobs.list(owner, 3, second.next_cursor)
    assert [len(page.items) for page in (first, second, third)] == [3, 3, 1]
    assert [*first.items, *second.items, *third.items] == jobs
    assert third.next_cursor is None


def test_a_page_that_is_just_full_is_the_last(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs = _created(kit, owner, 3)
    page = kit.jobs.list(owner, 3)
    assert (list(page.items), page.next_cursor) == (jobs, None)


def test_list_fills_its_pages_over_tombstones(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs = _created(kit, owner, 12)
    alive = [jobs[0], jobs[7], jobs[11]]
    for number, job in enumerate(jobs):
        if job not in alive:
            end = job.completed if number % 2 else job.deleted
            assert kit.jobs.replace(end(NOW, NOW), job.revision)
    page = kit.jobs.list(owner, 2)
    assert list(page.items) == alive[:2]
    assert page.next_cursor is not None
    rest = kit.jobs.list(owner, 2, page.next_cursor)
    assert (list(rest.items), rest.next_cursor) == (alive[2:], None)


def test_no_page_for_an_owner_with_tombstones_only(kit: Kit) -> None:
    owner = kit.new_owner()
    for job in _created(kit, owner, 3):
        assert kit.jobs.replace(job.deleted(NOW, NOW), job.revision)
    page = kit.jobs.list(owner, 2)
    assert (page.items, page.next_cursor) == ((), None)


def test_a_completed_job_keeps_its_key_and_payload(kit: Kit) -> None:
    job = a_job(kit.new_owner())
    completed = job.completed(NOW, NOW.replace(microsecond=0) + timedelta(days=31))
    assert kit.jobs.create(job)
    assert kit.jobs.replace(completed, job.revision)
    assert kit.jobs.get(job.owner, job.job_id) == completed
    assert not kit.jobs.create(job)
    assert kit.jobs.list(job.owner, 10).items == ()


def test_calendars_are_not_listed_among_jobs(kit: Kit) -> None:
    owner = kit.new_owner()
    for number in range(3):
        assert kit.calendars.put(a_calendar(owner, name=f"calendar{number}"), None)
    empty = kit.jobs.list(owner, 2)
    assert (empty.items, empty.next_cursor) == ((), None)
    jobs = _created(kit, owner, 4)
    first = kit.jobs.list(owner, 2)
    assert first.next_cursor is not None
    rest = kit.jobs.list(owner, 2, first.next_cursor)
    assert ([*first.items, *rest.items], rest.next_cursor) == (jobs, None)


@pytest.mark.parametrize("key", ["~", "~calendar/a", "ü"])
def test_a_forged_cursor_leads_to_no_calendars(kit: Kit, key: str) -> None:
    owner = kit.new_owner()
    assert kit.calendars.put(a_calendar(owner), None)
    page = kit.jobs.list(owner, 5, encode_cursor(("jobs", owner), key))
    assert (page.items, page.next_cursor) == ((), None)


def test_cursors_are_of_one_owner_and_method(kit: Kit) -> None:
    owner = kit.new_owner()
    _created(kit, owner, 2)
    cursor = kit.jobs.list(owner, 1).next_cursor
    assert cursor is not None
    with pytest.raises(InvalidFieldError) as refused:
        kit.jobs.list(kit.new_owner(), 1, cursor)
    assert refused.value.field == "cursor"
    with pytest.raises(InvalidFieldError):
        kit.runs.list(owner, job_id(), 1, cursor)


def test_one_of_many_creators_wins(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    jobs = [a_job(owner, name=f"creator {number}") for number in range(CONTENDERS)]
    won = contend(lambda number: threaded_kit.jobs.create(jobs[number]))
    assert won.count(True) == 1
    assert threaded_kit.jobs.get(owner, job_id()) == jobs[won.index(True)]


def test_one_of_many_writers_of_a_revision_wins(threaded_kit: Kit) -> None:
    owner = threaded_kit.new_owner()
    assert threaded_kit.jobs.create(a_job(owner))
    jobs = [a_job(owner, name=f"writer {number}", revision=2) for number in range(CONTENDERS)]
    won = contend(lambda number: threaded_kit.jobs.replace(jobs[number], 1))
    assert won.count(True) == 1
    assert threaded_kit.jobs.get(owner, job_id()) == jobs[won.index(True)]
