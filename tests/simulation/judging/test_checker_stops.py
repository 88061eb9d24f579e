"""The checker finds what is wrong with runs that were stopped during their calls."""

from dataclasses import replace
from typing import Any

import pytest

from carillon.domain.execution.stopping import STOPPED
from carillon.domain.run import AttemptRecord, Run
from tests.simulation.judging.checker_book import Book, after, found, key_of, only
from tests.simulation.judging.evidence import BY_CHUNK, Circumstances

LATENCY_SECONDS = 0.25


def stopped(
    claimed: float = 10, called: float = 10.1, at: float = 15, ended: float | None = 17
) -> tuple[Book, Run]:
    """A run that is stopped during its call."""
    book = Book()
    row = book.claimed(key_of(10), after(claimed))
    ended_at = None if ended is None else after(ended)
    outcome: dict[str, Any] = {"ended_at": ended_at, "is_done": False, "is_success": False}
    book.called(row, after(called), **outcome)
    record = AttemptRecord(1, after(claimed), after(at), STOPPED)
    cancelled = replace(
        row.cancelled("on request", "cancel", after(at), after(9999)), attempts=(record,)
    )
    book.acknowledged("stop", at + 0.1, row.key.run_id)
    return book, book.written(cancelled, after(at), "stop", "claim")


def test_nothing_is_wrong_with_a_run_that_was_stopped_well() -> None:
    book, _ = stopped()
    assert found(book.evidence(15)) == []


@pytest.mark.parametrize(("at", "is_found"), [(69.9, True), (70.0, False)])
def test_a_run_in_a_chunk_is_stopped_once_its_lease_has_lapsed(at: float, is_found: bool) -> None:
    """It has no row: what its chunk's claim stands for is all that there is before."""
    book, _ = stopped(at=at)
    claim, stop = book.writes
    book.writes = [replace(claim, method=BY_CHUNK[0]), replace(stop, before=None)]
    texts = [text for rule, text in found(book.evidence(80)) if rule == "stop"]
    assert any("in a chunk, under a lease until" in text for text in texts) is is_found


@pytest.mark.parametrize("ended", [19.1, None])
def test_a_call_that_goes_on(ended: float | None) -> None:
    book, _ = stopped(ended=ended)
    only(book.evidence(15), "stop", "its call lasted until")


def test_a_call_of_a_process_that_was_struck_may_go_on() -> None:
    book, _ = stopped(ended=30)
    book.deliveries = [replace(each, is_untouched=False) for each in book.deliveries]
    assert found(book.evidence(15)) == []


def test_a_call_that_was_younger_than_two_seconds() -> None:
    book, _ = stopped(at=11.9)
    only(book.evidence(15), "stop", "had begun at")


def test_an_attempt_that_is_not_on_record() -> None:
    book, row = stopped()
    last = book.writes[-1]
    book.writes[-1] = replace(last, after=replace(row, attempts=()))
    only(book.evidence(15), "stop", "attempt 1 is not on record")


def test_a_success_that_is_written_over_the_stop() -> None:
    book, row = stopped()
    book.finished(row, after(17), process=f"{row.key.run_id}/1")
    names = {name for name, _ in found(book.evidence(15))}
    assert {"I1", "I4"} <= names


@pytest.mark.parametrize(("called", "is_found"), [(15.9, False), (16.1, True)])
def test_a_call_that_begins_after_the_stop(called: float, is_found: bool) -> None:
    """Its caller may have looked at the row just before it."""
    book, _ = stopped(called=called, ended=17)
    terms = Circumstances(function_timeout_seconds=20, latency_seconds=LATENCY_SECONDS)
    texts = [text for _, text in found(book.evidence(15, circumstances=terms))]
    assert any("while its row was cancelled" in text for text in texts) is is_found
