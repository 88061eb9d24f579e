"""What is to come to an end or to stop, and requests under one key."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.admission.limits import note_of
from carillon.domain.job import Generation
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import OnComplete
from carillon.domain.run import Resolution, RunKind, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import WebhookTarget
from carillon.schedules import parse_schedule
from tests.simulation.judging.checker_book import (
    GENERATION_ID,
    JOB_ID,
    NOON,
    OWNER,
    Book,
    after,
    found,
    key_of,
    only,
)
from tests.simulation.judging.evidence import Evidence
from tests.support.jobs import job_with


def test_a_job_that_is_to_go_with_its_last_run_goes() -> None:
    book = Book("at 2026-12-01T12:00:10Z", on_complete=OnComplete.DELETE)
    assert found(book.evidence(5)) == []
    book.ran_at(10)
    only(book.evidence(15), "complete", "the job is still there")
    book.becomes(10.5, book.job.completed(after(10.5), after(9999)))
    assert found(book.evidence(15)) == []


def test_one_whose_last_run_has_its_place_in_the_window_after_the_end_is_still_there() -> None:
    """No tick has sent that yet, and nobody waits for it."""

    def story(until: float) -> Evidence:
        book = Book("every 10s", on_complete=OnComplete.DELETE, spread_seconds=5)
        ends = replace(book.job, schedule=parse_schedule("every 10s", end_at=after(20)))
        book.versions[0] = replace(book.versions[0], job=ends)
        book.ran(key_of(10), 15)
        if until >= 25:
            book.ran(key_of(20), 25)
        return book.evidence(until)

    assert "complete" not in dict(found(story(24)))
    assert "the job is still there" in dict(found(story(25)))["complete"]


def test_a_job_has_no_more_runs_than_it_may() -> None:
    book = Book(max_runs=3)
    book.ran_at(10, 20, 30)
    assert found(book.evidence(35)) == []
    book.ran_at(40)
    only(book.evidence(45), "max_runs", "4 occurrences have an outcome, and 3 may")


def test_what_was_cancelled_of_a_creation_that_died_is_no_run_of_the_job() -> None:
    """Seed 9991001392: an executor had the message of an entry that the creation left."""

    def story(generation_id: str) -> Evidence:
        book = Book(max_runs=1)
        row = book.claimed(key_of(5), after(5), generation_id=generation_id)
        cancelled = replace(row, status=RunStatus.CANCELLED, token=2, lease_until=None)
        book.written(cancelled, after(5.2), "stop", "claim")
        book.ran_at(10)
        return book.evidence(15)

    assert "max_runs" not in dict(found(story("died")))
    assert "max_runs" in dict(found(story(GENERATION_ID)))


def test_a_job_whose_schedule_was_another_for_a_while_counts_anew() -> None:
    """Seed 9990011076: it was changed in a pause, and back before that ended."""
    book = Book(max_runs=1)
    book.ran_at(10)
    book.pause(11)
    before = book.job
    book.becomes(12, job_with(before, max_runs=None, revision=before.revision + 1))
    book.becomes(13, replace(before, revision=before.revision + 2))
    book.resume(15)
    book.ran_at(20)
    assert "max_runs" not in dict(found(book.evidence(25)))


def test_an_occurrence_with_a_row_that_a_catch_up_covers_too_is_one_run() -> None:
    """Found by seed 77001325: the same instants were counted twice."""

    def story(most: int) -> Evidence:
        book = Book(max_runs=most)
        book.gap(15, 55)
        book.ran_at(10)
        book.ran(key_of(30), 60)
        book.passed_over(20, 40, 3, at=60)
        book.ran(key_of(50), 60)
        return book.evidence(55)

    assert found(story(5)) == []
    only(story(4), "max_runs", "5 occurrences have an outcome, and 4 may")


def test_so_is_one_that_two_catch_ups_cover() -> None:
    """The second one is that of a reindexing from an earlier instant."""
    book = Book(max_runs=4)
    book.gap(5, 55)
    book.passed_over(10, 10, 1, at=60)
    book.passed_over(10, 30, 3, at=60)
    book.ran(key_of(40), 60)
    assert "max_runs" not in dict(found(book.evidence(45)))


def test_failures_in_a_row_pause_a_job() -> None:
    book = Book(pause_after_failures=2)
    book.ran(key_of(10))
    book.died(key_of(20))
    assert found(book.evidence(25)) == []
    book.died(key_of(30))
    only(book.evidence(35), "failures", "2 runs in a row have died")
    book.becomes(30.5, book.job.paused(after(30.5), "paused since 2 runs in a row failed"))
    assert found(book.evidence(35)) == []


def test_those_from_before_the_job_s_change_was_committed_may_be_counted_before_it() -> None:
    """The change begins at the whole second before its commit, and the count anew with it."""

    def story(committed_at: float) -> Evidence:
        book = Book(pause_after_failures=2)
        book.died(key_of(10))  # at 10.2
        again = book.job.in_new_generation(Generation("2", after(10)), after(10.1))
        book.becomes(committed_at, again)
        book.died(key_of(20))
        return book.evidence(25)

    assert "failures" not in dict(found(story(10.5)))
    assert "2 runs in a row have died" in dict(found(story(10.15)))["failures"]


@pytest.mark.parametrize("first", ["ran", "died"])
def test_fewer_failures_in_a_row_do_not(first: str) -> None:
    book = Book(pause_after_failures=3 if first == "died" else 2)
    book.died(key_of(10))
    getattr(book, "ran" if first == "ran" else "died")(key_of(20))
    if first == "ran":
        book.died(key_of(30))
    book.becomes(30.5, book.job.paused(after(30.5), "paused since they failed"))
    words = "though one had succeeded" if first == "ran" else "2 had died by then"
    assert words in dict(found(book.evidence(30)))["failures"]


@pytest.mark.parametrize(("second", "is_early"), [(20, False), (10, True), (30, True)])
def test_what_ends_while_a_pause_is_committed_keeps_no_job_from_it(
    second: int, is_early: bool
) -> None:
    """Stores that take seconds: one succeeds, and one dies, behind the run that has paused it."""
    book = Book(pause_after_failures=2)
    died = {number: book.died(key_of(number)) for number in (10, 20, 30)}
    book.ran(key_of(25))
    book.becomes(30.5, book.job.paused(after(30.5), note_of(died[second], 2)))
    if second == 10:
        book.ran(key_of(15))
    is_found = "though one had succeeded" in dict(found(book.evidence(30))).get("failures", "")
    assert is_found is is_early


def test_a_reported_success_may_count_later_than_it_was_reported() -> None:
    """Found by seed 9711000542: the last failure came between the report and its message."""
    reporting = WebhookTarget(url="https://a.example/", completion=CompletionSpec(within="1h"))
    book = Book(pause_after_failures=2, target=reporting)
    book.died(key_of(10))
    book.ran(key_of(20))
    book.died(key_of(30))
    book.becomes(30.5, book.job.paused(after(30.5), "paused since they failed"))
    assert "failures" not in dict(found(book.evidence(30)))


def operation(kind: OperationKind, second: float, **members: object) -> Operation:
    row = Operation(
        owner=OWNER,
        operation_id="01kbd0000000000000000000p1",
        kind=kind,
        created_at=after(second),
        updated_at=after(second),
        expires_at=after(9999),
        per_minute=60,
        state=OperationState.SUCCEEDED,
    )
    return replace(row, **members)  # type: ignore[arg-type]


def test_an_operation_that_was_answered_is_there() -> None:
    book = Book()
    book.acknowledged("redrive_all", 5)
    book.acks[-1] = replace(book.acks[-1], made="01kbd0000000000000000000p1")
    only(book.evidence(5), "operation", "which is not there")
    book.operations.append(operation(OperationKind.REDRIVE, 5))
    assert found(book.evidence(5)) == []
    book.acknowledged("cancel_all", 6)
    book.acks[-1] = replace(book.acks[-1], made="01kbd0000000000000000000p1")
    only(book.evidence(5), "operation", "it is succeeded")


def test_a_bulk_redrive_leaves_no_dead_letter_that_was_there_long_before() -> None:
    book = Book()
    dead = book.died(key_of(10))
    book.operations.append(operation(OperationKind.DISCARD, 20))
    assert found(book.evidence(15)) == []
    book.operations.append(operation(OperationKind.DISCARD, 60, operation_id="other"))
    only(book.evidence(15), "operation", f"{dead.key.run_id} is still dead")
    book.rows[dead.key] = replace(dead, settled=Resolution.DISCARDED)
    assert found(book.evidence(15)) == []


def test_a_backfill_has_run_what_it_says() -> None:
    book = Book()
    filled = operation(
        OperationKind.BACKFILL,
        25,
        job_id=JOB_ID,
        from_at=NOON,
        until_at=after(20),
        done=2,
    )
    book.operations.append(filled)
    # NOON itself is an occurrence of the schedule.
    for second in (0, 10, 20):
        book.ran(key_of(second, RunKind.BACKFILL, request_id=filled.operation_id), 26)
    book.ran_at(10, 20)
    assert found(book.evidence(25)) == []
    del book.rows[key_of(20, RunKind.BACKFILL, request_id=filled.operation_id)]
    only(book.evidence(25), "operation", f"and {after(20)} was not run")
    book.operations[0] = replace(filled, only_missed=True, done=3)
    only(book.evidence(25), "operation", "sent 3, and has 2 rows")


def test_requests_under_one_key_are_one_request() -> None:
    book = Book()
    ids = []
    for second in (5, 6):
        row = book.ran(key_of(second, RunKind.MANUAL, request_id=f"r{second}"))
        book.acknowledged("run", second + 1, row.key.run_id)
        ids.append(row.key.run_id)
    assert found(book.evidence(8)) == []
    book.acks = [replace(ack, key="same") for ack in book.acks]
    only(book.evidence(8), "key", f"answered with {ids[0]} and {ids[1]}")


def test_a_schedule_with_an_end_is_complete_no_sooner() -> None:
    book = Book("every 10s", on_complete=OnComplete.DELETE)
    ends = replace(book.job, schedule=parse_schedule("every 10s", end_at=after(20)))
    book.versions[0] = replace(book.versions[0], job=ends)
    book.ran_at(10)
    book.becomes(15, book.job.completed(after(15), after(9999)))
    only(book.evidence(15), "complete", f"before its occurrence {after(20)}")
    book.versions.pop()
    book.ran_at(20)
    book.becomes(21, book.job.completed(after(21), after(9999)))
    assert found(book.evidence(30)) == []
    assert NOON + timedelta(seconds=20) == after(20)


def test_a_job_that_gets_a_window_owes_no_occurrence_of_before_it() -> None:
    """The last one came when it had none, and ended within the window (seed 10000208723)."""
    book = Book("every 10s", on_complete=OnComplete.DELETE)
    ends = replace(book.job, schedule=parse_schedule("every 10s", end_at=after(20)))
    book.versions[0] = replace(book.versions[0], job=ends)
    book.ran_at(10, 20)
    later = Generation("2", after(20))
    book.becomes(20.1, job_with(book.job, spread_seconds=16, revision=2, generation=later))
    book.becomes(21, book.job.completed(after(21), after(9999)))
    assert found(book.evidence(30)) == []
