"""JobStore.list."""

from typing import Any

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.job import Job, JobState
from carillon.domain.spec.after import After
from carillon.domain.spec.job_summary import JobSummary
from carillon.errors import InvalidFieldError
from carillon.schedules import NEVER, CalendarRule
from carillon.stores.cursors import encode_cursor
from carillon.stores.ports import JobFilter
from tests.contract.kit import Kit
from tests.contract.samples import (
    NOW,
    a_calendar,
    a_combined_schedule,
    a_full_admission_row,
    a_full_operation,
    a_job,
    job_id,
    own_job_id,
)
from tests.support.jobs import job_with


def _created(kit: Kit, owner: str, count: int, **changes: object) -> list[Job]:
    jobs = [a_job(owner, job_id=own_job_id(owner, number), **changes) for number in range(count)]
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


def test_lists_are_by_name_whatever_its_case_and_composition(kit: Kit) -> None:
    owner = kit.new_owner()
    names = ["Ärger", "nightly", "B", "a\u0308rger 2", "a", "Nightly report", "N"]
    for number, name in enumerate(names):
        assert kit.jobs.create(a_job(owner, name=name, job_id=own_job_id(owner, number)))

    def listed(prefix: str = "") -> list[str]:
        return [job.spec.name for job in _walked(kit, owner, 2, JobFilter(name=prefix))]

    assert listed() == ["a", "B", "N", "nightly", "Nightly report", "Ärger", "a\u0308rger 2"]
    assert listed("NIGHT") == ["nightly", "Nightly report"]
    assert listed("ä") == listed("A\u0308RGER") == ["Ärger", "a\u0308rger 2"]
    assert listed("nightly s") == listed("\U0010ffff") == []


def test_a_job_is_listed_where_its_name_is_now(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs = [
        a_job(owner, name=name, job_id=own_job_id(owner, number))
        for number, name in enumerate("bc")
    ]
    for job in jobs:
        assert kit.jobs.create(job)
    first = job_with(jobs[1], name="a", revision=2)
    assert kit.jobs.replace(first, 1)
    assert list(kit.jobs.list(owner, 5).items) == [first, jobs[0]]
    assert kit.jobs.replace(first.deleted(NOW, NOW), 2)
    assert list(kit.jobs.list(owner, 5).items) == [jobs[0]]
    revived = job_with(first, revision=4)
    assert kit.jobs.replace(revived, 3)
    assert list(kit.jobs.list(owner, 5).items) == [revived, jobs[0]]


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


def test_what_else_an_owner_has_is_not_listed_among_jobs(kit: Kit) -> None:
    owner = kit.new_owner()
    for number in range(3):
        assert kit.calendars.put(a_calendar(owner, name=f"calendar{number}"), None)
        assert kit.admission_rows.put(a_full_admission_row(owner, name=f"key/{number}"), None)
        assert kit.operations.put(a_full_operation(owner, operation_id=str(number)), None)
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


def _walked(kit: Kit, owner: str, limit: int, only: JobFilter) -> list[Job]:
    """All jobs, over pages that may be short."""
    found, cursor = list[Job](), None
    while True:
        page = kit.jobs.list(owner, limit, cursor, only)
        assert len(page.items) <= limit
        found += page.items
        if (cursor := page.next_cursor) is None:
            return found


@pytest.mark.parametrize(
    ("only", "names"),
    [
        (JobFilter(), {"plain", "child", "tagged", "both", "other"}),
        (JobFilter(parent="channel/5"), {"child", "both"}),
        (JobFilter(parent="channel"), set()),
        (JobFilter(tags=(("team", "ü"),)), {"tagged", "both"}),
        (JobFilter(tags=(("x-0.b", "2"),)), {"tagged", "other"}),
        (JobFilter(tags=(("team", "ü"), ("x-0.b", "2"))), {"tagged"}),
        (JobFilter("channel/5", (("team", "ü"),)), {"both"}),
        (JobFilter(tags=(("team", "2"),)), set()),
        (JobFilter(tags=(("nobody", "ü"),)), set()),
        (JobFilter(name="O"), {"other"}),
        (JobFilter(name="b", parent="channel/5"), {"both"}),
        (JobFilter(name="plainer"), set()),
    ],
    ids=str,
)
def test_a_filter_leaves_out_all_others(kit: Kit, only: JobFilter, names: set[str]) -> None:
    owner = kit.new_owner()
    members: dict[str, dict[str, object]] = {
        "plain": {},
        "child": {"parent": "channel/5"},
        "tagged": {"tags": {"team": "ü", "x-0.b": "2"}},
        "both": {"parent": "channel/5", "tags": {"team": "ü"}},
        "other": {"tags": {"team": "o", "x-0.b": "2"}},
    }
    for number, (name, changes) in enumerate(members.items()):
        assert kit.jobs.create(a_job(owner, name=name, job_id=own_job_id(owner, number), **changes))
    assert {job.spec.name for job in _walked(kit, owner, 50, only)} == names


def test_filtered_pages_go_on(kit: Kit) -> None:
    owner = kit.new_owner()
    jobs = [
        a_job(owner, job_id=own_job_id(owner, n), parent="even" if n % 2 == 0 else "")
        for n in range(20)
    ]
    for job in jobs:
        assert kit.jobs.create(job)
    gone = next(job for job in jobs if job.spec.parent)
    assert kit.jobs.replace(gone.deleted(NOW, NOW), gone.revision)
    wanted = sorted((j for j in jobs if j.spec.parent and j != gone), key=lambda job: job.job_id)
    assert _walked(kit, owner, 4, JobFilter(parent="even")) == wanted


def test_a_scan_goes_through_the_jobs_of_all_owners(kit: Kit) -> None:
    owners = [kit.new_owner() for _ in range(3)]
    jobs = [job for owner in owners for job in _created(kit, owner, 3)]
    gone = jobs[0].deleted(NOW, NOW)
    assert kit.jobs.replace(gone, jobs[0].revision)
    assert kit.calendars.put(a_calendar(owners[0]), None)
    seen: list[Job] = []
    cursor: str | None = None
    while True:
        page = kit.jobs.scan(2, cursor)
        assert len(page.items) <= 2
        seen += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    own = [job for job in seen if job.owner in owners]
    assert sorted(job.job_id for job in own) == sorted(job.job_id for job in jobs)
    assert sum(job.is_tombstone for job in own) == 1


def test_summaries_have_what_lists_show_and_no_row_is_read_for_them(kit: Kit) -> None:
    owner = kit.new_owner()
    plain, combined, after = _created(kit, owner, 3)
    changed = [
        job_with(plain, name="a", state=JobState.PAUSED, note="moving", resume_at=NOW, revision=2),
        job_with(
            combined,
            name="b",
            schedule=a_combined_schedule(),
            window="10m",
            spread_seconds=7,
            calendar=CalendarUse("holidays", CalendarRule.NEXT_BUSINESS_DAY),
            parent="channel/5",
            tags={"team": "x"},
            managed_by="manifest/billing",
            revision=2,
        ),
        job_with(after, name="c", schedule=NEVER, after=After("nightly", within=60), revision=2),
    ]
    for job in changed:
        assert kit.jobs.replace(job, 1)

    def summaries(**only: Any) -> list[JobSummary]:
        return list(kit.jobs.summaries(owner, 9, only=JobFilter(**only)).items)

    shown = [*map(JobSummary.of, changed)]
    assert summaries() == shown
    assert summaries(name="B") == summaries(tags=(("team", "x"),)) == shown[1:2]
    assert summaries(state="paused") == shown[:1]
    first = kit.jobs.summaries(owner, 2)
    assert list(kit.jobs.summaries(owner, 2, first.next_cursor).items) == shown[2:]
    assert list(kit.jobs.list(owner, 9, only=JobFilter(state="active")).items) == changed[1:]
    assert kit.jobs.replace(changed[0].deleted(NOW, NOW), 2)
    assert summaries() == shown[1:]
