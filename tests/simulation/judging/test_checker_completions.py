"""What the checker says of runs that end by a report: each rule meets a story that keeps it, and
one that breaks it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from carillon.domain.policies import Concurrency
from carillon.domain.run import Completion, Run, RunError, RunStatus
from tests.simulation.judging.checker_book import Book, after, found, key_of, only
from tests.simulation.judging.evidence import Ack

TERMS = Completion("digest", after(600), 30, permits=("key/k",))


def opened(book: Book, second: int, lease_seconds: float = 30) -> Run:
    """A run is called, and open from then on."""
    at = after(second)
    row = book.claimed(key_of(second), at, completion=TERMS)
    book.called(row, after(second + 0.05), is_success=False, is_done=False)
    terms = replace(TERMS, is_open=True)
    until = at + timedelta(seconds=lease_seconds)
    later = replace(row, completion=terms, token=2, lease_until=until, updated_at=at)
    return book.written(later, after(second + 0.2), f"{row.key.run_id}/1", "claim")


def ended(book: Book, row: Run, second: float, status: RunStatus, **members: Any) -> Run:
    """The API, or a check, ends the open run."""
    at = after(second)
    terms: dict[str, Any] = {
        "status": status,
        "token": row.token + 1,
        "updated_at": at,
        "finished_at": at,
    }
    after_it = replace(row, **{**terms, "lease_until": None, **members})
    return book.written(after_it, at, "another process", "claim")


def reported(book: Book, what: str, row: Run, second: float, word: str) -> None:
    asked = (row.key.job_id, after(second - 0.1), after(second), row.key.run_id)
    book.acks.append(Ack(what, *asked, word=word))


def test_a_reported_run_has_succeeded_with_its_result() -> None:
    book = Book("at 2026-12-01T12:00:10")
    row = ended(book, opened(book, 10), 20, RunStatus.SUCCEEDED, result="1/0")
    reported(book, "complete", row, 20.1, "1/0")
    assert found(book.evidence(60)) == []
    reported(book, "complete", row, 20.2, "1/1")
    only(book.evidence(60), "completion", "complete 1/1, answered")


def test_a_report_of_another_attempt_does_not_count() -> None:
    book = Book("at 2026-12-01T12:00:10")
    row = ended(book, opened(book, 10), 20, RunStatus.SUCCEEDED, result="2/0")
    reported(book, "complete", row, 20.1, "2/0")
    only(book.evidence(60), "completion", "complete 2/0, answered")


def test_a_reported_failure_is_on_record() -> None:
    book = Book("at 2026-12-01T12:00:10")
    error = RunError("failed", "1/0", permanent=True)
    row = ended(book, opened(book, 10), 20, RunStatus.DEAD, error=error, reason="refused")
    reported(book, "fail", row, 20.1, "1/0")
    assert found(book.evidence(60)) == []
    reported(book, "fail", row, 20.2, "1/1")
    only(book.evidence(60), "completion", "is not among ['1/0']")


@pytest.mark.parametrize(
    ("second", "words"), [(39, "0:00:01 early"), (42, ""), (80, "left open for 0:00:40")]
)
def test_silence_ends_an_attempt_at_its_lease(second: int, words: str) -> None:
    book = Book("at 2026-12-01T12:00:10")
    error = RunError("timeout", "nobody had reported")
    ended(book, opened(book, 10), second, RunStatus.TIMED_OUT, error=error, reason="exhausted")
    said = dict(found(book.evidence(100))).get("completion", "")
    assert (words in said) if words else said == ""


def test_an_open_run_holds_its_permit() -> None:
    book = Book("every 20s", concurrency=Concurrency("k", 1))
    row = ended(book, opened(book, 20), 35, RunStatus.SUCCEEDED)
    book.ran(key_of(40))
    assert found(book.evidence(50)) == []
    book.writes[-3:] = [write for write in book.writes[-3:] if write.after != row]
    only(book.evidence(50), "completion", "held 'k'")
