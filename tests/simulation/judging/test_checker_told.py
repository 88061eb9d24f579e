"""Callbacks and events: each end is told of, and nothing else."""

from carillon.domain.events import EventType
from carillon.domain.targets import TaskTarget
from tests.simulation.judging.checker_book import CLOSED, Book, found, key_of, only

TELL = TaskTarget(name="tell")
EVENTS = tuple(EventType)


def test_each_end_that_a_job_wants_to_hear_of_has_a_callback() -> None:
    book = Book(on_success=TELL, on_failure=TELL)
    book.ran(key_of(10).callback, 11)
    book.ran(key_of(20).callback, 21)
    book.ran(key_of(10))
    book.died(key_of(20))
    assert found(book.evidence(25)) == []
    del book.rows[key_of(20).callback]
    only(book.evidence(25), "callback", "is dead, and no callback tells of it")
    book.delete(26)
    assert found(book.evidence(27)) == []


def test_what_was_moved_to_before_its_job_is_told_of_once_it_has_come() -> None:
    """Seed 9979051520: the world ended while the callback waited for a permit."""
    book = Book(on_success=TELL, calendar=CLOSED)
    book.ran(key_of(-60), 20)
    told = [rule for rule, _ in found(book.evidence(15))]
    assert "callback" not in told
    assert "callback" in [rule for rule, _ in found(book.evidence(25))]


def test_nobody_is_called_back_who_does_not_want_it() -> None:
    book = Book(on_failure=TELL)
    book.ran(key_of(10).callback, 11)
    book.ran(key_of(10))
    only(book.evidence(15), "callback", "is succeeded, and its job wants no callback")
    book = Book(on_failure=TELL)
    book.ran(key_of(10).callback, 11)
    assert "which is not there" in dict(found(book.evidence(5)))["callback"]


def test_events_tell_of_each_end_and_each_start() -> None:
    book = Book(events=EVENTS)
    row = book.ran(key_of(10))
    dead = book.died(key_of(20))
    for name, second, key in (("started", 10, row), ("succeeded", 11, row), ("started", 20, dead)):
        book.tells(f"run.{name}", second, key.key.run_id)
    only(book.evidence(25), "event", "no event run.dead tells of it")
    book.tells("run.dead", 21, dead.key.run_id)
    assert found(book.evidence(25)) == []
    book.tells("run.dead", 21, row.key.run_id)
    only(book.evidence(25), "event", "which is succeeded")


def test_a_call_is_told_of_before_it_is_made() -> None:
    book = Book(events=EVENTS)
    row = book.ran(key_of(10))
    book.tells("run.succeeded", 11, row.key.run_id)
    book.tells("run.started", 10.2, row.key.run_id)
    only(book.evidence(15), "event", "before any event run.started")


def test_a_pause_that_was_answered_is_told_of() -> None:
    book = Book(events=EVENTS)
    book.pause(5)
    book.acknowledged("pause", 6)
    only(book.evidence(15), "event", "its pause was answered")
    book.tells("job.paused", 5.5)
    assert found(book.evidence(15)) == []
