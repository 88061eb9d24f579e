"""The checker and missed-run checks: an alert where no success came in time, and nowhere else."""

from dataclasses import replace

import pytest

from carillon.audit.evidence import JobVersion
from carillon.domain.job import MOST_REPLACED
from carillon.domain.policies import Overlap
from carillon.domain.run import Run, RunKind, RunStatus
from tests.simulation.judging.checker import violations
from tests.simulation.judging.checker_book import Book, after, found, handed_over, key_of, only


def rings(book: Book, second: int, at: float) -> None:
    """The watch puts a row about the occurrence."""
    row = Run(
        key=key_of(second, RunKind.WATCH),
        status=RunStatus.MISSED,
        attempt=0,
        token=0,
        claim_id="",
        generation_id=book.job.generation.generation_id,
        updated_at=after(at),
        expires_at=after(9999),
        reason="not_succeeded",
    )
    book.written(row, after(at), "watch", "claim")


def test_the_watch_rings_where_no_success_came_in_time() -> None:
    book = Book("at 2026-12-01T12:01:00Z", expect_within=60)
    book.died(key_of(60))
    only(book.evidence(125), "watch", "and the watch has told nobody")
    rings(book, 60, 120)
    assert found(book.evidence(125)) == []
    book = Book("at 2026-12-01T12:01:00Z", expect_within=60)
    book.ran(key_of(60))
    assert found(book.evidence(125)) == []
    rings(book, 60, 120)
    only(book.evidence(125), "watch", "a success was there before")


@pytest.mark.parametrize(("at", "struck_at", "alarms"), [(80, 0, 0), (300, 0, 1), (300, 100, 0)])
def test_the_watch_knows_no_generation_that_was_replaced_too_often(
    at: float, struck_at: float, alarms: int
) -> None:
    """Seed 9974003711: a job went to and fro between two owners, and was spread meanwhile. Seed
    9997007712: the last time while ticks were away, before the watch could look."""
    book = Book("at 2026-12-01T12:01:00Z", expect_within=60)
    book.died(key_of(60))
    for number in range(MOST_REPLACED):
        book.resume(70 + number, f"{book.job.generation.generation_id[:-1]}{2 + number}")
    only(book.evidence(125), "watch", "and the watch has told nobody")
    book.resume(at, f"{book.job.generation.generation_id[:-1]}9")
    if struck_at:
        book.faults.append(after(struck_at))
    assert [each.invariant for each in violations(book.evidence(400))] == ["watch"] * alarms


@pytest.mark.parametrize(("skipped_at", "rung"), [(130, []), (115, [60])])
def test_the_watch_need_not_ring_twice_for_what_came_late(skipped_at: int, rung: list[int]) -> None:
    """Seed 9994005165: the job was replaced, and the next one's row came after its own alarm."""
    book = Book("* * * * *", expect_within=60)
    book.skipped(key_of(60), after(skipped_at), "misfire")
    book.ran(key_of(120), 185)
    rings(book, 120, 180)
    silent = [each for each in violations(book.evidence(185)) if each.invariant == "watch"]
    assert [each.fire_at for each in silent] == [after(second) for second in rung]


@pytest.mark.parametrize(("covered", "rung"), [(True, []), (False, [60])])
def test_the_watch_need_not_ring_for_what_came_late_just_before_what_a_catch_up_covers(
    covered: bool, rung: list[int]
) -> None:
    book = Book("* * * * *", expect_within=60)
    book.skipped(key_of(60), after(250), "misfire")
    book.passed_over(120 if covered else 180, 180, 2 if covered else 1, 250)
    silent = [each for each in violations(book.evidence(185)) if each.invariant == "watch"]
    assert [each.fire_at for each in silent] == [after(second) for second in rung]


@pytest.mark.parametrize(
    ("passed_over_at", "given_back_after", "is_needless"),
    [(190, 0.1, True), (210, 0.1, False), (190, 150, False)],
)
def test_the_watch_rings_for_nothing_that_a_catch_up_had_passed_over(
    passed_over_at: float, given_back_after: float, is_needless: bool
) -> None:
    """Seed 9988004383: unless it had a row then, of an executor that died on what never counted."""
    book = Book("* * * * *", expect_within=60)
    book.given_back(key_of(60), "noise", given_back_after)
    book.passed_over(60, 120, 2, passed_over_at)
    rings(book, 60, 200)
    texts = [each.text for each in violations(book.evidence(205)) if each.invariant == "watch"]
    assert any("had passed over it by then" in text for text in texts) is is_needless


@pytest.mark.parametrize(
    ("passed_over_at", "came_at", "rung"),
    [(190, 260, []), (260, 260, []), (270, 260, [60]), (100, 110, [60])],
)
def test_the_watch_need_not_ring_for_what_came_once_a_catch_up_had_passed_over_it(
    passed_over_at: float, came_at: float, rung: list[int]
) -> None:
    """Its own message was hidden until its job was changed, and it ran, and died. After an outage
    all may come within an instant (seed 10000606809)."""
    book = Book("* * * * *", expect_within=60)
    book.faults.append(after(100))
    book.passed_over(60, 120, 2, passed_over_at)
    book.died(key_of(60), came_at)
    silent = [each for each in violations(book.evidence(185)) if each.invariant == "watch"]
    assert [each.fire_at for each in silent] == [after(second) for second in rung]


def test_the_watch_rings_for_a_success_that_came_late_where_nothing_struck() -> None:
    book = Book("at 2026-12-01T12:01:00Z", expect_within=60, overlap=Overlap.QUEUE_ONE)
    book.ran(key_of(60), 130)
    only(book.evidence(125), "watch", "and the watch has told nobody")
    book.faults.append(after(100))
    assert found(book.evidence(125)) == []


@pytest.mark.parametrize(("struck_at", "alarms"), [(100, 0), (0, 1)])
def test_the_watch_counts_a_backfill_of_the_job_that_a_job_was_handed_over_to(
    struck_at: float, alarms: int
) -> None:
    """Seed 9989001329 (a deployment switches chunks): the watch came late, after its success."""
    book = Book("at 2026-12-01T12:01:00Z", name="book", expect_within=60)
    book.died(key_of(60))
    left, there = handed_over(book.job, "owner-2", 70)
    book.becomes(70, left)
    key = key_of(60, RunKind.BACKFILL, request_id="b1")
    book.ran(replace(key, owner=there.owner, job_id=there.job_id), 130)
    if struck_at:
        book.faults.append(after(struck_at))
    evidence = book.evidence(150)
    versions = {**evidence.versions, there.job_id: [JobVersion(after(70), there)]}
    evidence = replace(evidence, versions=versions)
    assert [each.invariant for each in violations(evidence)] == ["watch"] * alarms


def test_a_watch_that_nobody_ordered_rings_for_nothing() -> None:
    book = Book()
    book.died(key_of(10))
    rings(book, 10, 12)
    only(book.evidence(15), "watch", "nobody expects anything")
