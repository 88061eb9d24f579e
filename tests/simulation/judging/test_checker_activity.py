"""The checker finds what is wrong with the activity feed and its sums."""

from dataclasses import replace

import pytest

from carillon.domain.activity.results import results_of
from carillon.domain.activity.summary import Counted
from carillon.domain.calendar import CalendarUse
from carillon.domain.run import AttemptRecord, RunError, RunKind, RunStatus
from carillon.schedules import parse_schedule
from tests.simulation.judging import checker_activity
from tests.simulation.judging.checker_book import (
    CLOSED,
    JOB_ID,
    NOON,
    Book,
    after,
    found,
    key_of,
    only,
    plain,
)
from tests.simulation.judging.evidence import RunWrite
from tests.support.jobs import job_with


def told(book: Book) -> list[object]:
    return [result for row in book.rows.values() for result in results_of(row, None)]


def passed_over() -> Book:
    book = plain()
    row = next(iter(book.rows.values()))
    key = replace(row.key, redrive=1)
    book.rows[key] = replace(row, key=key)
    return book


def test_successes_need_not_be_there_and_may_be() -> None:
    book = plain()
    assert found(book.evidence(30, activity=[])) == []
    assert found(book.evidence(30, activity=told(book) * 2)) == []


def test_a_deviation_that_nobody_told() -> None:
    book = passed_over()
    texts = [text for name, text in found(book.evidence(30, activity=[])) if name == "feed"]
    assert len(texts) == 1
    assert "not in the feed" in texts[0]
    lost = frozenset({(key.run_id, 1) for key in book.rows})
    evidence = book.evidence(30, activity=[], activity_lost=lost)
    assert not any(name == "feed" for name, _ in found(evidence))


@pytest.mark.parametrize(("deleted", "is_broken"), [(110, True), (130, False), (None, True)])
def test_the_check_of_a_job_that_was_deleted_then_may_have_told_of_nothing(
    deleted: int | None, is_broken: bool
) -> None:
    book = Book("every 10s", expect_within=120)
    row = book.claimed(key_of(10, RunKind.WATCH), after(120))
    book.finished(row, after(120), RunStatus.MISSED, reason="not_succeeded", attempt=0)
    if deleted is not None:
        book.delete(deleted)
        book.resume(140)
    told_of = [name for name, _ in found(book.evidence(200, activity=[])) if name == "feed"]
    assert told_of == ["feed"] * is_broken


def test_a_result_that_no_row_shows() -> None:
    book = plain()
    wrong = [replace(each, status=RunStatus.DEAD) for each in told(book)]  # type: ignore[type-var]
    only(book.evidence(30, activity=wrong), "feed", "its row as")


@pytest.mark.parametrize("has_calendar", [True, False])
def test_the_row_of_a_failed_attempt_may_be_gone_where_a_closed_day_moves_runs(
    has_calendar: bool,
) -> None:
    """The attempt died, and was told; the run goes on under another key (seed 9979409033)."""
    book = Book("every 10s", calendar=CLOSED if has_calendar else None)
    died = AttemptRecord(1, after(20), after(80), RunError("lost", "its executor died"))
    row = book.claimed(key_of(20), after(81), attempt=2, attempts=(died,))
    told_of = list(results_of(row, None))
    assert [each.status for each in told_of] == [RunStatus.RETRYING]
    book.writes.append(RunWrite(after(82), "of the closed day", "discard_claim", row, None))
    del book.rows[row.key]
    broken = [name for name, _ in found(book.evidence(85, activity=told_of)) if name == "feed"]
    assert broken == ["feed"] * (not has_calendar)


def test_a_success_that_no_row_shows_is_not_to_be_summed_up() -> None:
    book = plain()
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 20, 30)]
    assert found(book.evidence(30, summed={NOON: right})) == []
    green = [*right, Counted(JOB_ID, "", (), after(24), "succeeded")]
    only(book.evidence(30, summed={NOON: green}), "feed", "rows show 0")
    # Seed 9750001492: a chunk that ended as the world did had yet to put its rows.
    young = [*right, Counted(JOB_ID, "", (), after(26), "succeeded")]
    assert found(book.evidence(30, summed={NOON: young})) == []
    only(book.evidence(30, summed={NOON: right[1:]}), "feed", "0 are summed up")
    only(book.evidence(30, summed={NOON: []}), "feed", "0 are summed up")


def test_a_summary_leaves_out_the_oldest_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds 9972000340 and 9982000289: twelve hours of a job that fires every 30 s."""
    book = plain()
    monkeypatch.setattr(checker_activity, "MOST_READ_OF_A_JOB", 2)
    newest = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (20, 30)]
    assert found(book.evidence(30, summed={NOON: newest})) == []


def test_a_summary_from_the_middle_on_has_what_fired_since() -> None:
    book = plain()
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (20, 30)]
    assert found(book.evidence(30, summed={after(20): right})) == []
    only(book.evidence(30, summed={after(10): right}), "feed", "0 are summed up")


def test_what_ended_when_the_world_did_may_be_missing_in_a_summary() -> None:
    """Seed 9100002231: the executor that tells of it had yet to come."""
    book = plain()
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 20)]
    assert found(book.evidence(25, summed={NOON: right})) == []


def test_a_redrive_that_has_not_begun_takes_no_dead_run_out_of_a_summary() -> None:
    """Seed 9979051069: the operation was cancelled before it had sent the redrive's message."""
    book = Book()
    book.ran_at(10, 30)
    book.died(key_of(20))
    dead = book.died(key_of(20, RunKind.BACKFILL, request_id="b"), 21)
    redrive = replace(dead, key=replace(dead.key, redrive=1), status=RunStatus.SCHEDULED, attempt=0)
    book.written(redrive, after(22), "operation", "claim")
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 30)]
    right += [Counted(JOB_ID, "", (), after(20), "dead")] * 2
    texts = [text for _, text in found(book.evidence(60, summed={NOON: right}))]
    assert not any("summed up" in text for text in texts)


def test_a_run_that_outlived_its_generation_may_be_missing_in_a_summary() -> None:
    """Seed 6620000112: a change by a slower clock, once the run's executor had read the job."""

    def summed(from_second: float) -> list[str]:
        book = plain()
        changed = replace(book.job, schedule=parse_schedule("every 1h"))
        generation = replace(book.job.generation, generation_id="2", from_at=after(from_second))
        book.becomes(31, changed.in_new_generation(generation, after(31)))
        right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 20)]
        told_of = found(book.evidence(60, summed={NOON: right}))
        return [text for _, text in told_of if "summed up" in text]

    assert len(summed(30)) == 1
    assert summed(29) == []


def test_a_run_that_was_cancelled_before_it_began_may_be_summed_up() -> None:
    """Seed 85000407: by hand, in the same second as another one that was stopped."""
    book = plain()
    row = next(iter(book.rows.values()))
    for name, attempt in (("a", 0), ("b", 1)):
        key = replace(row.key, kind=RunKind.MANUAL, request_id=name)
        book.rows[key] = replace(row, key=key, status=RunStatus.CANCELLED, attempt=attempt)
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 20, 30)]

    def summed(count: int) -> list[str]:
        cancelled = [Counted(JOB_ID, "", (), row.key.fire_at, "cancelled")] * count
        told_of = found(book.evidence(60, summed={NOON: [*right, *cancelled]}))
        return [text for _, text in told_of if "are summed up" in text]

    assert [len(summed(count)) for count in range(4)] == [1, 0, 0, 1]


def test_a_cover_is_not_to_be_summed_up_twice() -> None:
    book = plain()
    book.gap(30, 60)
    book.passed_over(40, 60, 3, 62)
    right = [Counted(JOB_ID, "", (), after(second), "succeeded") for second in (10, 20, 30)]
    skipped = [Counted(JOB_ID, "", (), after(second), "skipped") for second in (40, 50, 60)]
    texts = [text for _, text in found(book.evidence(60, summed={NOON: [*right, *skipped]}))]
    assert not any("summed up" in text for text in texts)
    whole = Counted(JOB_ID, "", (), after(60), "skipped", count=3)
    evidence = book.evidence(60, summed={NOON: [*right, *skipped, whole]})
    assert any("6 skips" in text for _, text in found(evidence))


@pytest.mark.parametrize(("calendar", "is_broken"), [(None, True), (CLOSED, False)])
def test_a_change_of_its_calendar_may_put_others_under_a_cover(
    calendar: CalendarUse | None, is_broken: bool
) -> None:
    """Seed 6700000788: days were closed, and their occurrences moved into the span."""
    book = plain()
    book.becomes(11, job_with(book.job, calendar=calendar, revision=2))
    book.passed_over(40, 60, 3, 62)
    more = [Counted(JOB_ID, "", (), after(second), "skipped") for second in (40, 45, 50, 60)]
    texts = [text for _, text in found(book.evidence(60, summed={NOON: more}))]
    assert any("4 skips" in text for text in texts) is is_broken
