"""Gates and turns: concurrency, rates, waiting occurrences, and messages in flight."""

from dataclasses import replace

import pytest

from carillon.domain.policies import Concurrency, Overlap, Rate
from carillon.domain.run import Run, RunKey, RunStatus
from tests.simulation.judging.checker_book import (
    CLOSED,
    GENERATION_ID,
    JOB_ID,
    Book,
    after,
    found,
    key_of,
    only,
)
from tests.simulation.judging.evidence import Circumstances, Load, RunWrite
from tests.support.jobs import job_with


def held(book: Book, second: int, last: float) -> Run:
    """A run whose call lasts from its fire time on until `last`."""
    row = book.claimed(key_of(second), after(second))
    book.called(row, after(second + 0.1), ended_at=after(last))
    return book.finished(row, after(last + 0.1))


def test_a_key_has_so_many_places() -> None:
    book = Book(concurrency=Concurrency("k", 2))
    held(book, 10, 25)
    held(book, 20, 25)
    held(book, 30, 35)
    assert found(book.evidence(35)) == []
    book.deliveries[0] = replace(book.deliveries[0], ended_at=after(33))
    book.deliveries[1] = replace(book.deliveries[1], ended_at=after(33), is_untouched=False)
    assert "concurrency" not in dict(found(book.evidence(35)))
    book.deliveries[1] = replace(book.deliveries[1], is_untouched=True)
    assert "2 runs may hold 'k' at once" in dict(found(book.evidence(35)))["concurrency"]


def test_a_rate_grants_so_many_starts_in_any_period() -> None:
    book = Book(rate=Rate(2, 30))
    book.grants_at(f"rate-of-job/{JOB_ID}", 0, 29, 30, 59, 60)
    assert found(book.evidence(5)) == []
    book.grants_at(f"rate-of-job/{JOB_ID}", 88)
    only(book.evidence(5), "rate", f"from {after(59)} to {after(88)}")


@pytest.mark.parametrize(
    ("limit", "looked_at", "is_told"), [(2, 900, False), (1, 500, False), (1, 900, True)]
)
def test_who_waits_by_a_rate_that_the_job_has_no_more_is_told(
    limit: int, looked_at: float, is_told: bool
) -> None:
    book = Book(rate=Rate(2, 30))
    row = book.claimed(key_of(40), after(40))
    note = f"{limit} starts in 30 s are reached, it may start at {after(9999)}"
    waits = replace(row, status=RunStatus.SCHEDULED, lease_until=None, note=note)
    at = after(looked_at)
    book.written(replace(waits, updated_at=at, next_attempt_at=after(9999)), at, "j/1", "finish")
    told = [text for what, text in found(book.evidence(45)) if what == "rate"]
    assert [text.partition(" at ")[0] for text in told] == [f"{row.key.run_id} still waits"][
        :is_told
    ]


def test_owners_have_a_rate_too() -> None:
    book = Book()
    book.grants_at("owner", 0, 1, 60)
    terms = Circumstances(owner_starts_per_minute=2)
    assert found(book.evidence(5, circumstances=terms)) == []
    book.grants_at("owner", 60.5)
    only(book.evidence(5, circumstances=terms), "rate", "owner allows (2, 60)")


def test_no_more_runs_begin_than_a_rate_allows_unless_something_struck() -> None:
    book = Book(rate=Rate(1, 20, "r"))
    book.ran(key_of(10))
    book.ran(key_of(20), 30)
    assert found(book.evidence(25)) == []
    book = Book(rate=Rate(1, 20, "r"))
    book.ran_at(10, 20)
    only(book.evidence(25), "rate", "rate/r allows (1, 20), and more began")
    book.faults.append(after(15))
    assert found(book.evidence(25)) == []


@pytest.mark.parametrize(("last", "is_broken"), [(30, False), (20, True)])
def test_of_several_limits_of_a_key_no_more_begin_than_all_allow_together(
    last: int, is_broken: bool
) -> None:
    book = Book("every 1s", rate=Rate(1, 20, "r"), overlap=Overlap.ALLOW)
    book.becomes(-60, job_with(book.job, rate=Rate(2, 40, "r")))
    book.ran_at(10, 11, 12, last)
    told = [text for rule, text in found(book.evidence(40)) if rule == "rate"]
    assert [text.partition(", and")[0] for text in told] == ["rate/r allows (3, 20)"] * is_broken


def test_messages_in_flight_stay_in_proportion_to_the_runs_they_are_about() -> None:
    book = Book()
    assert found(book.evidence(5, loads=[Load(after(1), 300, 70), Load(after(2), 35, 1)])) == []
    bursting = [Load(after(1), 300, 70), Load(after(2), 300, 20)]
    only(book.evidence(5, loads=bursting), "runaway", f"about 20 runs were in flight at {after(2)}")
    # Seven reindexings in three minutes had ticks send all of it again each time (9970001957).
    assert found(book.evidence(5, loads=[Load(after(1), 368, 77, again=1)])) == []


def test_copies_of_messages_last_while_their_claims_are_undone() -> None:
    """Seed 9979060517: 15 s of a function's 20 were the target's, and calls of stores took 3 s."""
    book, load = Book(), Load(after(2), 45, 1)
    only(book.evidence(5, loads=[load]), "runaway", "45 messages about 1 runs")
    book.given_back(key_of(-350), GENERATION_ID)
    assert found(book.evidence(5, loads=[load])) == []
    only(book.evidence(5, loads=[Load(after(12), 45, 1)]), "runaway", "45 messages about 1 runs")


def retried(waits: int) -> Book:
    """A retry is claimed, and given back to its row, before it runs."""
    book, key = Book(), key_of(10)
    row = book.claimed(key, after(10))
    book.called(row, after(10.1), is_done=False, is_success=False)
    retrying = replace(row, status=RunStatus.RETRYING, next_attempt_at=after(11), lease_until=None)
    book.written(retrying, after(10.3), f"{key.run_id}/1", "finish")
    row = book.claimed(key, after(11), attempt=2)
    again = replace(retrying, token=row.token, claim_id=row.claim_id, waits=waits)
    book.written(again, after(11.1), f"{key.run_id}/2", "finish")
    row = book.claimed(key, after(12), attempt=2, waits=waits)
    book.called(row, after(12.1))
    book.finished(row, after(12.3))
    return book


def test_so_do_those_of_a_claim_whose_row_is_as_it_was() -> None:
    load = Load(after(15), 45, 1)
    assert found(retried(waits=0).evidence(15, loads=[load])) == []
    # A policy keeps it waiting: of its messages one alone is of use from then on.
    only(retried(waits=1).evidence(15, loads=[load]), "runaway", "45 messages about 1 runs")


def waits(book: Book, key: RunKey, second: float, until: float | None = None) -> Run:
    """An occurrence is claimed, and put back in its row to wait."""
    row = book.claimed(key, after(second))
    waiting = replace(row, status=RunStatus.SCHEDULED, attempt=0, lease_until=None)
    waiting = replace(waiting, next_attempt_at=after(until or second + 2))
    return book.written(waiting, after(second + 0.1), f"{key.run_id}/1", "finish")


def test_one_occurrence_waits_for_its_turn() -> None:
    book = Book(overlap=Overlap.QUEUE_ONE)
    held(book, 10, 24)
    waits(book, key_of(20), 20)
    book.ran(key_of(20), 25)
    book.ran(key_of(30))
    assert found(book.evidence(35)) == []
    waits(book, key_of(40), 40)
    waits(book, key_of(50), 41)
    evidence = book.evidence(35)
    assert "two occurrences wait" in dict(found(evidence))["queue_one"]
    assert "queue_one" not in dict(found(replace(evidence, faults=[after(40.5)])))


def test_who_waits_for_a_share_of_its_owners_waits_for_no_turn() -> None:
    """Lane slow holds one back."""
    book = Book(overlap=Overlap.QUEUE_ONE)
    row = book.claimed(key_of(40), after(40))
    note = "waits for its owner's share of lane slow, held by 1 run"
    held_back = replace(row, status=RunStatus.SCHEDULED, attempt=0, lease_until=None, note=note)
    book.written(held_back, after(40.1), f"{row.key.run_id}/1", "finish")
    waits(book, key_of(50), 41)
    assert "queue_one" not in dict(found(book.evidence(35)))


def test_where_calls_take_seconds_one_that_has_its_turn_may_wait_too() -> None:
    """Its process had too little time left behind its gate (seeds 412002130 and 412002702)."""
    book = Book(overlap=Overlap.QUEUE_ONE)
    waits(book, key_of(40), 40)
    waits(book, key_of(50), 41)
    evidence = book.evidence(35)
    slow = replace(evidence.circumstances, latency_seconds=3.0)
    assert "queue_one" in dict(found(evidence))
    assert "queue_one" not in dict(found(replace(evidence, circumstances=slow)))


def test_who_has_its_turn_may_wait_for_a_process_with_more_time() -> None:
    """Its row is put back as it was, with an instant that has come (seed 10000101323)."""
    book = Book(overlap=Overlap.QUEUE_ONE)
    waits(book, key_of(40), 43, until=42)
    waits(book, key_of(50), 44)
    assert "queue_one" not in dict(found(book.evidence(35)))


def test_two_may_wait_where_the_answer_of_a_gate_was_lost() -> None:
    """The first has the place of the active one; it was put back after that (seed 77001570)."""
    book = Book(overlap=Overlap.QUEUE_ONE)
    waits(book, key_of(40), 40)
    waits(book, key_of(50), 41)
    evidence = book.evidence(35)
    assert "queue_one" in dict(found(replace(evidence, faults=[after(39.9)])))
    assert "queue_one" not in dict(found(replace(evidence, faults=[after(40.05)])))


def test_who_has_waited_is_not_skipped_for_an_overlap() -> None:
    book = Book(overlap=Overlap.QUEUE_ONE)
    held(book, 10, 24)
    waits(book, key_of(20), 20)
    book.skipped(key_of(20), after(22), "overlap")
    only(book.evidence(25), "queue_one", "had waited for its turn")


@pytest.mark.parametrize("has_calendar", [True, False])
def test_who_waited_on_a_day_that_was_closed_has_its_turn_in_the_run_it_was_moved_to(
    has_calendar: bool,
) -> None:
    """Its row is gone; where the day is opened again, it comes anew (seed 9989044979)."""
    book = Book(overlap=Overlap.QUEUE_ONE, calendar=CLOSED if has_calendar else None)
    held(book, 10, 24)
    waits(book, key_of(20), 20)
    row = book.claimed(key_of(20), after(22))
    book.writes.append(RunWrite(after(22.1), "of the closed day", "discard_claim", row, None))
    del book.rows[key_of(20)]
    book.skipped(key_of(20), after(23), "overlap")
    assert ("queue_one" in dict(found(book.evidence(25)))) is not has_calendar
