"""What the checker says of load, of who is told, and of what comes to its end: each rule meets a
story that keeps it, and one that breaks it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from carillon.domain.calendar import CalendarUse
from carillon.domain.events import EventType
from carillon.domain.job import Generation
from carillon.domain.operation import Operation, OperationKind, OperationState
from carillon.domain.policies import Concurrency, OnComplete, Overlap, Rate
from carillon.domain.run import Resolution, Run, RunKey, RunKind, RunStatus
from carillon.domain.spec.completion_spec import CompletionSpec
from carillon.domain.targets import TaskTarget, WebhookTarget
from carillon.schedules import CalendarRule, parse_schedule
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
from tests.simulation.judging.evidence import Circumstances, Evidence, Load
from tests.support.jobs import job_with

TELL = TaskTarget(name="tell")
EVENTS = tuple(EventType)


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
    use = CalendarUse(name="closed", rule=CalendarRule.PREVIOUS_BUSINESS_DAY)
    book = Book(on_success=TELL, calendar=use)
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


def test_a_job_that_is_to_go_with_its_last_run_goes() -> None:
    book = Book("at 2026-12-01T12:00:10Z", on_complete=OnComplete.DELETE)
    assert found(book.evidence(5)) == []
    book.ran_at(10)
    only(book.evidence(15), "complete", "the job is still there")
    book.becomes(10.5, book.job.completed(after(10.5), after(9999)))
    assert found(book.evidence(15)) == []


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
