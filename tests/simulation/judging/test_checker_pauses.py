"""What the checker says of pauses: those that are to end by themselves, and what is done in one."""

from dataclasses import replace

import pytest

from carillon.audit.evidence import JobVersion
from carillon.domain.job import Generation
from carillon.domain.spec.owners import SYSTEM, Author, AuthorKind, Via
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    OWNER,
    Book,
    after,
    found,
    handed_over,
    key_of,
    only,
)

CLIENT = Author(AuthorKind.PERSON, "owner", "", Via.API)
NEXT_ID = GENERATION_ID[:-1] + "2"


def paused() -> Book:
    """Paused from 15 until 100; occurrences come every ten seconds."""
    book = Book()
    book.ran_at(10)
    book.becomes(15, book.job.paused(after(15), resume_at=after(100)))
    return book


def resume(book: Book, at: float, begins_after: int, author: Author = SYSTEM) -> None:
    generation = Generation(NEXT_ID, after(begins_after))
    book.becomes(at, book.job.in_new_generation(generation, after(at), author))


def test_one_that_is_resumed_at_its_end_is_sound() -> None:
    book = paused()
    resume(book, 100.5, 99)
    book.ran_at(100, 110)
    assert found(book.evidence(115)) == []


def test_nobody_resumes_it() -> None:
    only(paused().evidence(200), "paused", "nothing resumed it")


def test_it_is_not_resumed_before() -> None:
    book = paused()
    resume(book, 90.5, 90)
    only(book.evidence(95), "paused", f"it was resumed at {after(90.5)}")
    owner = paused()
    resume(owner, 90.5, 90, CLIENT)
    assert found(owner.evidence(95)) == []


def test_its_owner_may_have_resumed_it_in_a_request_that_stood_still() -> None:
    book = paused()
    resume(book, 109.5, 97, CLIENT)
    book.ran_at(100, 110)
    assert "paused" not in dict(found(book.evidence(115)))


@pytest.mark.parametrize(("at", "is_late"), [(179, False), (240, True)])
def test_one_that_is_committed_after_its_end_is_resumed_soon(at: float, is_late: bool) -> None:
    """Seed 9989011523 (a deployment switches chunks): its job was handed over meanwhile, by an
    executor that slow stores kept until its time was up."""
    book = Book()
    book.becomes(170, book.job.paused(after(15), resume_at=after(100)))
    resume(book, at, 99)
    texts = [text for name, text in found(book.evidence(245)) if name == "paused"]
    assert any("nothing resumed it" in text for text in texts) is is_late


@pytest.mark.parametrize("begins_after", [100, 105])
def test_it_begins_where_the_pause_ended(begins_after: int) -> None:
    book = paused()
    resume(book, 109.5, begins_after)
    only(book.evidence(109.6), "paused", "it begins after")


def test_a_pause_that_is_over_is_not_lengthened() -> None:
    book = paused()
    longer = replace(book.job, resume_at=after(200), updated_at=after(105))
    book.becomes(105, replace(longer, revision=book.job.revision + 1))
    only(book.evidence(150), "paused", "it was paused on")


def test_after_its_end_nothing_is_recorded_as_paused() -> None:
    book = paused()
    row = book.claimed(key_of(110), after(110))
    book.finished(row, after(110.2), row.status.SKIPPED, reason="paused")
    only(book.evidence(115), "skip", "was to be resumed at")


def test_a_change_of_a_paused_job_is_no_other_pause() -> None:
    """Seed 71000058: what was redriven meanwhile had succeeded."""
    book = Book(pause_after_failures=2)
    book.died(key_of(10))
    book.died(key_of(20))
    row = book.job.paused(after(20.5), "paused since 2 runs in a row failed")
    book.becomes(20.5, row)
    book.ran(replace(key_of(20), redrive=1), 23)
    book.died(replace(key_of(10), redrive=1), 24)
    book.becomes(25, replace(row, revision=row.revision + 1))
    assert "failures" not in dict(found(book.evidence(35)))


def test_a_death_may_pause_its_job_much_later() -> None:
    """Seed 9972001117: its executor died, and its message came again eleven minutes after."""
    book = Book(pause_after_failures=1)
    book.died(key_of(10))
    book.becomes(670, book.job.paused(after(670), "paused since a run failed"))
    assert "failures" not in dict(found(book.evidence(35)))


@pytest.mark.parametrize("note", ["paused since a run failed", "paused since another one did"])
def test_a_job_that_comes_back_in_its_pause_says_why_it_was_paused(note: str) -> None:
    """Seed 4711000074 with chunks: its row was taken for a pause, before which nothing had died."""
    book = Book(name="book", pause_after_failures=1)
    book.died(key_of(10))
    book.becomes(11, book.job.paused(after(11), "paused since a run failed"))
    left, there = handed_over(book.job, "owner-2", 20)
    book.becomes(20, left)
    left_there, back = handed_over(there, OWNER, 30, left)
    book.becomes(30, replace(back, note=note))
    theirs = [JobVersion(after(20), there), JobVersion(after(30), left_there)]
    evidence = book.evidence(35)
    evidence = replace(evidence, versions={**evidence.versions, there.job_id: theirs})
    if note == "paused since a run failed":
        assert found(evidence) == []
    else:
        only(evidence, "failures", "0 had died by then")
